/* find */
#include "base/clock.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"

struct find_request {
    struct ns ns;
    struct bdoc filter;
    struct bdoc sort;
    struct bdoc projection;
    struct bdoc let;
    struct bdoc version;
    struct bval hint;
    int64_t skip;
    int64_t limit;      /* 0: none */
    int64_t batch_size; /* -1: not given */
    bool single_batch;
    bool no_timeout;
    bool sort_keys; /* $sherdSortKeys: the router merges and wants them */
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
    FIND_UNSUPPORTED, /* and up to the next */
    FIND_IGNORED = FIND_UNSUPPORTED + 6,
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
                                          "comment",
                                          "allowDiskUse",
                                          "allowPartialResults",
                                          "oplogReplay",
                                          "term",
                                          "includeQueryStatsMetrics",
                                          NULL};

#define FIND_BIT(field) (UINT64_C(1) << (field))

/* Options that change the answer are refused unless they are off. */
static bool refuse_unsupported(struct bdoc body, uint64_t present, struct err *err)
{
    for (int i = FIND_UNSUPPORTED; i < FIND_IGNORED; i++) {
        struct bval val;
        if (!(present & FIND_BIT(i)) || !bdoc_find(body, find_fields[i], &val))
            continue;
        bool harmless = val.type == BT_DOCUMENT ? bdoc_is_empty(bval_doc(&val)) : !bval_truthy(&val);
        if (!harmless)
            return err_set(err, ERR_NotImplemented, "find doesn't support the option '%s'", find_fields[i]);
    }
    return !(present & FIND_BIT(FIND_COLLATION)) || request_check_collation(body, err);
}

static bool parse_docs(struct bdoc body, uint64_t present, struct find_request *out, struct err *err)
{
    const struct {
        enum find_field field;
        struct bdoc *out;
    } docs[] = {{FIND_FILTER, &out->filter},
                {FIND_SORT, &out->sort},
                {FIND_PROJECTION, &out->projection},
                {FIND_LET, &out->let},
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
    } flags[] = {{FIND_SINGLE_BATCH, &out->single_batch},
                 {FIND_NO_TIMEOUT, &out->no_timeout},
                 {FIND_SORT_KEYS, &out->sort_keys}};
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

static bool parse(struct command_ctx *ctx, struct find_request *out, struct err *err)
{
    uint64_t present;
    *out = (struct find_request){.filter = bdoc_empty(), .batch_size = -1};
    if (!command_ns(ctx, &out->ns, err) || !request_fields(ctx->body, find_fields, &present, err))
        return false;
    if (present & FIND_BIT(FIND_HINT))
        bdoc_find(ctx->body, "hint", &out->hint);
    return parse_docs(ctx->body, present, out, err) && parse_numbers(ctx->body, present, out, err) &&
           refuse_unsupported(ctx->body, present, err);
}

static bool compile(struct document_cursor *cursor, const struct find_request *request, struct err *err)
{
    cursor->env = (struct expr_env){.now_ms = clock_wall_ms(), .let = request->let};
    cursor->skip_left = request->skip;
    cursor->limit_left = request->limit > 0 ? request->limit : -1;
    cursor->single_batch = request->single_batch;
    cursor->no_timeout = request->no_timeout;
    if (!filter_compile(&cursor->arena, request->filter, &cursor->env, &cursor->filter, err))
        return false;
    if (request->sort.data != NULL && !bdoc_is_empty(request->sort) && sort_spec_natural(request->sort) == 0 &&
        !sort_spec_compile(&cursor->arena, request->sort, cursor->env.order, &cursor->sort, err))
        return false;
    if (request->sort_keys)
        cursor->key_spec = cursor->sort;
    if (request->projection.data == NULL || bdoc_is_empty(request->projection))
        return true;
    if (!projection_compile(
            &cursor->arena, request->projection,
            &(struct projection_options){.kind = PROJECTION_FIND, .filter = cursor->filter, .env = &cursor->env},
            &cursor->projection, err))
        return false;
    if (projection_is_identity(cursor->projection))
        cursor->projection = NULL;
    return true;
}

/* 1 or -1 when the sort or the hint asks for the order of the records. */
static int natural_of(const struct find_request *request)
{
    int natural = request->sort.data == NULL ? 0 : sort_spec_natural(request->sort);
    if (natural == 0 && request->hint.type == BT_DOCUMENT)
        natural = sort_spec_natural(bval_doc(&request->hint));
    return natural;
}

static bool plan(struct document_cursor *cursor, const struct find_request *request, const struct read_txn *read,
                 struct err *err)
{
    int natural = natural_of(request);
    bool hint_is_natural = request->hint.type == BT_DOCUMENT && sort_spec_natural(bval_doc(&request->hint)) != 0;
    struct plan_request wanted = {
        .filter = cursor->filter,
        .sort = cursor->sort,
        .natural = natural,
        .hint = hint_is_natural ? BVAL_MISSING : request->hint,
        .limited = request->limit > 0,
    };
    if (wanted.hint.type == BT_DOCUMENT && bdoc_is_empty(bval_doc(&wanted.hint)))
        wanted.hint = BVAL_MISSING;
    if (!plan_make(&cursor->arena, read->coll, &wanted, &cursor->plan, err))
        return false;
    if (cursor->plan->sorted && natural == 0)
        cursor->sort = NULL;
    return true;
}

enum command_status find_run(struct command_ctx *ctx, struct err *err)
{
    struct find_request request;
    struct read_txn read = {0};
    if (!parse(ctx, &request, err))
        return COMMAND_ERROR;
    struct document_cursor *cursor = document_cursor_new(ctx, request.ns.full);
    enum command_status status = COMMAND_ERROR;
    if (!compile(cursor, &request, err) ||
        !read_txn_open(&read, document_engine_of(ctx), request.ns.full, request.version, err))
        goto out;
    if (read.coll == NULL) {
        status = cursor_reply_empty(ctx, request.ns.full);
        goto out;
    }
    document_cursor_bind(cursor, &read);
    if (!plan(cursor, &request, &read, err))
        goto out;
    struct document_cursor *taken = cursor;
    cursor = NULL;
    int64_t batch_size = request.batch_size >= 0 ? request.batch_size : DOCUMENT_FIRST_BATCH;
    if (request.single_batch && request.batch_size < 0)
        batch_size = -1;
    status = cursor_reply_first(ctx, taken, &read, batch_size, err);
out:
    document_cursor_free(cursor);
    read_txn_close(&read);
    return status;
}
