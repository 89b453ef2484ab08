/* find */
#include "document/find.h"

#include "base/clock.h"
#include "base/random.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"
#include "document/request_order.h"
#include "document/traits.h"

struct find_request {
    struct ns ns;
    struct bdoc filter;
    struct bdoc sort;
    struct bdoc projection;
    struct bdoc let;
    struct bdoc version;
    struct bdoc min;
    struct bdoc max;
    struct bval hint;
    int64_t skip;
    int64_t limit;      /* 0: none */
    int64_t batch_size; /* -1: not given */
    bool single_batch;
    bool no_timeout;
    bool sort_keys; /* $sherdSortKeys: the router merges and wants them */
    bool return_key;
    bool show_record_id;
    bool tailable;
    bool await_data;
    bool allow_disk;
};

/* The command's fields; the options that are looked for only when they are given come first. */
enum find_field {
    FIND_COMMAND,
    FIND_FILTER,
    FIND_SORT,
    FIND_PROJECTION,
    FIND_HINT,
    FIND_LET,
    FIND_SKIP,
    FIND_LIMIT,
    FIND_BATCH_SIZE,
    FIND_SINGLE_BATCH,
    FIND_NO_TIMEOUT,
    FIND_SORT_KEYS,
    FIND_VERSION,
    FIND_COLLATION,
    FIND_MIN,
    FIND_MAX,
    FIND_RETURN_KEY,
    FIND_SHOW_RECORD_ID,
    FIND_TAILABLE,
    FIND_AWAIT_DATA,
    FIND_ALLOW_DISK,
    FIND_ALLOW_PARTIAL, /* the router's business; and what means nothing here */
};

static const char *const find_fields[] = {"find",
                                          "filter",
                                          "sort",
                                          "projection",
                                          "hint",
                                          "let",
                                          "skip",
                                          "limit",
                                          "batchSize",
                                          "singleBatch",
                                          "noCursorTimeout",
                                          "$sherdSortKeys",
                                          "$sherdVersion",
                                          "collation",
                                          "min",
                                          "max",
                                          "returnKey",
                                          "showRecordId",
                                          "tailable",
                                          "awaitData",
                                          "allowDiskUse",
                                          "allowPartialResults",
                                          "comment",
                                          "oplogReplay",
                                          "term",
                                          "includeQueryStatsMetrics",
                                          NULL};

#define FIND_BIT(field) (UINT64_C(1) << (field))

static bool parse_docs(struct bdoc body, uint64_t present, struct find_request *out, struct err *err)
{
    const struct {
        enum find_field field;
        struct bdoc *out;
    } docs[] = {{FIND_FILTER, &out->filter},  {FIND_SORT, &out->sort}, {FIND_PROJECTION, &out->projection},
                {FIND_LET, &out->let},        {FIND_MIN, &out->min},   {FIND_MAX, &out->max},
                {FIND_VERSION, &out->version}};
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++) {
        if ((present & FIND_BIT(docs[i].field)) && !field_get_doc(body, find_fields[docs[i].field], docs[i].out, err))
            return false;
    }
    return true;
}

static bool parse_numbers(struct bdoc body, uint64_t present, struct find_request *out, struct err *err)
{
    const struct {
        enum find_field field;
        int64_t *out;
    } numbers[] = {{FIND_SKIP, &out->skip}, {FIND_LIMIT, &out->limit}, {FIND_BATCH_SIZE, &out->batch_size}};
    const struct {
        enum find_field field;
        bool *out;
    } flags[] = {{FIND_SINGLE_BATCH, &out->single_batch},     {FIND_NO_TIMEOUT, &out->no_timeout},
                 {FIND_SORT_KEYS, &out->sort_keys},           {FIND_RETURN_KEY, &out->return_key},
                 {FIND_SHOW_RECORD_ID, &out->show_record_id}, {FIND_TAILABLE, &out->tailable},
                 {FIND_AWAIT_DATA, &out->await_data},         {FIND_ALLOW_DISK, &out->allow_disk}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if ((present & FIND_BIT(numbers[i].field)) &&
            !field_get_i64_in(body, find_fields[numbers[i].field], 0, INT64_MAX, numbers[i].out, err))
            return false;
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if ((present & FIND_BIT(flags[i].field)) &&
            !field_get_bool(body, find_fields[flags[i].field], flags[i].out, err))
            return false;
    }
    return true;
}

static bool has_sort(const struct find_request *request)
{
    return request->sort.data != NULL && !bdoc_is_empty(request->sort);
}

/* Options that exclude each other. */
static bool check_options(const struct find_request *request, struct err *err)
{
    if (request->await_data && !request->tailable)
        return err_set(err, ERR_FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'");
    if (!request->tailable)
        return true;
    if (has_sort(request) && sort_spec_natural(request->sort) != 1)
        return err_set(err, ERR_BadValue, "cannot use tailable option with a sort other than {$natural: 1}");
    if (request->single_batch)
        return err_set(err, ERR_FailedToParse, "cannot use tailable option with the 'singleBatch' option");
    return true;
}

static bool parse(struct command_ctx *ctx, struct find_request *out, struct err *err)
{
    uint64_t present;
    *out = (struct find_request){.filter = bdoc_empty(), .batch_size = -1, .allow_disk = true};
    if (!command_ns(ctx, &out->ns, err) || !request_fields(ctx->body, find_fields, &present, err))
        return false;
    if ((present & FIND_BIT(FIND_HINT)) && !field_get_hint(ctx->body, &out->hint, err))
        return false;
    return parse_docs(ctx->body, present, out, err) && parse_numbers(ctx->body, present, out, err) &&
           check_options(out, err);
}

static bool compile_projection(struct document_cursor *cursor, const struct find_request *request, struct err *err)
{
    struct projection_options options = {.kind = PROJECTION_FIND, .filter = cursor->filter, .env = &cursor->env};
    if (request->return_key || request->projection.data == NULL || bdoc_is_empty(request->projection))
        return true;
    if (!projection_compile(&cursor->arena, request->projection, &options, &cursor->projection, err))
        return false;
    if (projection_is_identity(cursor->projection))
        cursor->projection = NULL;
    return true;
}

static bool compile(struct document_cursor *cursor, const struct find_request *request, struct err *err)
{
    cursor->env.now_ms = clock_wall_ms();
    cursor->env.random = random_u64();
    cursor->env.let = request->let;
    cursor->skip_left = request->skip;
    cursor->limit_left = request->limit > 0 ? request->limit : -1;
    cursor->single_batch = request->single_batch;
    cursor->no_timeout = request->no_timeout;
    cursor->return_key = request->return_key;
    cursor->show_record_id = request->show_record_id;
    cursor->tailable = request->tailable;
    cursor->await_data = request->await_data;
    if (!filter_compile(&cursor->arena, request->filter, &cursor->env, &cursor->filter, err))
        return false;
    if (has_sort(request) && sort_spec_natural(request->sort) == 0 &&
        !sort_spec_compile(&cursor->arena, request->sort, cursor->env.order, &cursor->sort, err))
        return false;
    if (request->sort_keys)
        cursor->key_spec = cursor->sort;
    return compile_projection(cursor, request, err);
}

/* 1 or -1 when the sort or the hint asks for the order of the records. */
static int natural_of(const struct find_request *request)
{
    int natural = request->sort.data == NULL ? 0 : sort_spec_natural(request->sort);
    if (natural == 0 && request->hint.type == BT_DOCUMENT)
        natural = sort_spec_natural(bval_doc(&request->hint));
    return request->tailable ? 1 : natural;
}

static bool make_plan(struct document_cursor *cursor, const struct find_request *request,
                      const struct opened_read *opened, struct err *err)
{
    int natural = natural_of(request);
    bool hint_is_natural = request->hint.type == BT_DOCUMENT && sort_spec_natural(bval_doc(&request->hint)) != 0;
    struct plan_request wanted = {
        .filter = cursor->filter,
        .sort = cursor->sort,
        .natural = natural,
        /* Only a walk over the records can be gone on with at their end. */
        .hint = hint_is_natural || request->tailable ? BVAL_MISSING : request->hint,
        .limited = request->limit > 0,
        .wanted = request->limit > 0 ? (uint64_t)request->limit + (uint64_t)request->skip : 0,
        .projection = cursor->show_record_id ? NULL : cursor->projection,
        .min = request->min,
        .max = request->max,
        .explain = opened->explain,
    };
    if (wanted.hint.type == BT_DOCUMENT && bdoc_is_empty(bval_doc(&wanted.hint)))
        wanted.hint = BVAL_MISSING;
    return document_cursor_plan(cursor, &opened->read, &wanted, err);
}

static bool bind(struct document_cursor *cursor, const struct find_request *request, struct opened_read *opened,
                 struct err *err)
{
    if (opened->read.coll == NULL)
        return true;
    if (request->tailable && !collection_traits(opened->read.coll)->capped)
        return err_set(err, ERR_BadValue,
                       "error processing query: ns=%s tailable cursor requested on non capped collection", cursor->ns);
    document_cursor_bind(cursor, &opened->read);
    return make_plan(cursor, request, opened, err);
}

bool find_open(struct command_ctx *ctx, struct opened_read *out, struct err *err)
{
    struct find_request request;
    if (!parse(ctx, &request, err))
        return false;
    struct document_engine *engine = document_engine_of(ctx);
    struct document_cursor *cursor = document_cursor_new(ctx, request.ns.full);
    out->cursor = cursor;
    cursor->space = request.allow_disk ? document_engine_temp(engine) : NULL;
    if (!read_txn_open(&out->read, engine, request.ns.full, request.version, err) ||
        !request_order(ctx->body, out->read.coll, &cursor->arena, &cursor->env.order, err) ||
        !compile(cursor, &request, err) || !bind(cursor, &request, out, err)) {
        opened_read_close(out);
        return false;
    }
    out->batch_size = request.batch_size >= 0 ? request.batch_size : DOCUMENT_FIRST_BATCH;
    if (request.single_batch && request.batch_size < 0)
        out->batch_size = -1;
    return true;
}

void opened_read_close(struct opened_read *opened)
{
    document_cursor_free(opened->cursor);
    opened->cursor = NULL;
    read_txn_close(&opened->read);
}

enum command_status find_run(struct command_ctx *ctx, struct err *err)
{
    struct opened_read opened = {.explain = false};
    enum command_status status;
    if (!find_open(ctx, &opened, err))
        return COMMAND_ERROR;
    if (opened.read.coll == NULL) {
        status = cursor_reply_empty(ctx, opened.cursor->ns);
    } else {
        struct document_cursor *taken = opened.cursor;
        opened.cursor = NULL;
        status = cursor_reply_first(ctx, taken, &opened.read, opened.batch_size, err);
    }
    opened_read_close(&opened);
    return status;
}
