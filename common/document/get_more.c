/* getMore, killCursors */
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"
#include "document/cursors.h"

#include <stdio.h>
#include <string.h>

struct get_more_request {
    struct ns ns;
    int64_t id;
    int64_t batch_size; /* -1: as many as fit */
    int64_t batch;      /* $sherdBatch: the router's number of the batch; -1: none */
};

static bool parse(struct command_ctx *ctx, struct get_more_request *out, struct err *err)
{
    static const char *const known[] = {
        "getMore", "collection", "batchSize", "comment", "term", "lastKnownCommittedOpTime", NULL};
    const char *coll = NULL;
    *out = (struct get_more_request){.batch = -1};
    if (ctx->value.type != BT_INT64)
        return err_set(err, ERR_TypeMismatch,
                       "BSON field 'getMore.getMore' is the wrong type '%s', expected type 'long'",
                       bval_type_name(ctx->value.type));
    out->id = bval_i64(&ctx->value);
    if (!fields_check_known(ctx->body, "getMore", known, err) || !field_require(ctx->body, "collection", err) ||
        !field_get_str(ctx->body, "collection", &coll, err) ||
        !field_get_i64_in(ctx->body, "batchSize", 0, INT64_MAX, &out->batch_size, err) ||
        !field_get_i64(ctx->body, "$sherdBatch", &out->batch, err))
        return false;
    if (out->batch_size == 0)
        out->batch_size = -1;
    int len = snprintf(out->ns.full, sizeof out->ns.full, "%s.%s", ctx->db, coll);
    return (len > 0 && (size_t)len < sizeof out->ns.full) ||
           err_set(err, ERR_InvalidNamespace, "namespace of getMore is too long");
}

/* One batch under way: the cursor is ours. *close says whether it is used up. */
static struct wire_frame *next_batch(struct command_ctx *ctx, const struct get_more_request *request,
                                     struct document_cursor *cursor, bool *close, struct err *err)
{
    struct wire_frame *frame = NULL;
    struct read_txn read = {0};
    struct batch_reply reply;
    *close = true; /* a cursor that failed can't go on */
    if (!read_txn_open(&read, document_engine_of(ctx), cursor->ns, (struct bdoc){0}, err))
        return NULL;
    batch_reply_begin(&reply, false);
    if (document_cursor_attach(cursor, &read, ctx->deadline_ms, err)) {
        bool ok = document_cursor_fill(cursor, &reply, request->batch_size, err);
        document_cursor_detach(cursor);
        if (ok) {
            *close = cursor->exhausted;
            frame = batch_reply_end(&reply, *close ? 0 : cursor->id, cursor->ns);
        }
    }
    batch_reply_deinit(&reply);
    read_txn_close(&read);
    return frame;
}

static void keep_for_repeat(struct document_cursor *cursor, int64_t batch, const struct wire_frame *frame)
{
    wire_frame_unref(cursor->last_batch);
    cursor->last_batch = cursor_reply_copy(frame);
    cursor->batch_number = batch;
}

enum command_status get_more_run(struct command_ctx *ctx, struct err *err)
{
    struct get_more_request request;
    struct document_cursor *cursor;
    struct document_cursors *cursors = document_engine_cursors(document_engine_of(ctx));
    if (!parse(ctx, &request, err) || !document_cursors_take(cursors, request.id, &cursor, err))
        return COMMAND_ERROR;
    if (strcmp(cursor->ns, request.ns.full) != 0) {
        err_set(err, ERR_Unauthorized,
                "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", request.ns.full,
                cursor->ns);
        document_cursors_give_back(cursors, cursor, false);
        return COMMAND_ERROR;
    }
    if (request.batch >= 0 && request.batch == cursor->batch_number) {
        command_ctx_set_raw(ctx, cursor_reply_copy(cursor->last_batch));
        document_cursors_give_back(cursors, cursor, false);
        return COMMAND_OK;
    }
    bool close;
    struct wire_frame *frame = next_batch(ctx, &request, cursor, &close, err);
    if (frame != NULL && request.batch >= 0) {
        /* The last batch may be asked for again: the cursor stays for a while. */
        keep_for_repeat(cursor, request.batch, frame);
        close = false;
    }
    document_cursors_give_back(cursors, cursor, close);
    if (frame == NULL)
        return COMMAND_ERROR;
    command_ctx_set_raw(ctx, frame);
    return COMMAND_OK;
}

static void append_ids(bson_t *reply, const char *name, const bson_t *ids)
{
    bson_append_array(reply, name, -1, ids);
}

enum command_status kill_cursors_run(struct command_ctx *ctx, struct err *err)
{
    struct bdoc ids = {0};
    struct biter iter;
    struct belem elem;
    if (!field_require(ctx->body, "cursors", err) || !field_get_array(ctx->body, "cursors", &ids, err))
        return COMMAND_ERROR;
    bson_t killed = BSON_INITIALIZER;
    bson_t missing = BSON_INITIALIZER;
    bson_t none = BSON_INITIALIZER;
    bool ok = true;
    biter_init(&iter, ids);
    while (ok && biter_next(&iter, &elem)) {
        ok = elem.val.type == BT_INT64 ||
             err_set(err, ERR_TypeMismatch,
                     "BSON field 'killCursors.cursors.%s' is the wrong type '%s', expected type 'long'", elem.key,
                     bval_type_name(elem.val.type));
        if (!ok)
            break;
        bool found = document_cursors_kill(document_engine_cursors(document_engine_of(ctx)), bval_i64(&elem.val));
        bson_t *to = found ? &killed : &missing;
        const char *key;
        char digits[16];
        bson_uint32_to_string(bson_count_keys(to), &key, digits, sizeof digits);
        bval_append(to, key, -1, &elem.val);
    }
    if (ok) {
        append_ids(&ctx->reply, "cursorsKilled", &killed);
        append_ids(&ctx->reply, "cursorsNotFound", &missing);
        append_ids(&ctx->reply, "cursorsAlive", &none);
        append_ids(&ctx->reply, "cursorsUnknown", &none);
    }
    bson_destroy(&killed);
    bson_destroy(&missing);
    bson_destroy(&none);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
