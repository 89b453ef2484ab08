#include "routerd/cursor_batch.h"

#include "command/table.h"
#include "routerd/client_error.h"
#include "routerd/router.h"

#include <stdio.h>

static bool source_next(void *arg, struct bdoc *out, struct err *err)
{
    struct router_cursor *cursor = arg;
    *out = (struct bdoc){0};
    if (cursor->made_at < cursor->made.len) {
        out->data = cursor->made.data + cursor->made_at;
        out->len = load_le32(out->data);
        cursor->made_at += out->len;
        return true;
    }
    return !cursor->merge || merge_next(cursor->merge, &cursor->fetch, out, err);
}

static bool source_is_local(const struct router_cursor *cursor)
{
    return !cursor->merge || merge_is_local(cursor->merge);
}

/* As servers since version 6 do: unless the command forbids it. */
static bool may_use_disk(const struct router_cursor *cursor)
{
    struct bval allow;
    return !cursor->ctx || !bdoc_find(cursor->ctx->body, "allowDiskUse", &allow) || bval_truthy(&allow);
}

void cursor_batch_start(struct router_cursor *cursor)
{
    struct doc_source source = {.next = source_next, .arg = cursor};
    if (!cursor->pipeline)
        return;
    cursor->run = pipeline_run_new(cursor->pipeline, 0, source, PIPELINE_MEMORY_LIMIT_BYTES);
    if (may_use_disk(cursor))
        pipeline_run_set_space(cursor->run, cursor->router->temp);
    if (cursor->foreign)
        pipeline_run_set_foreign(cursor->run, cursor->foreign);
}

static bool take_next(struct router_cursor *cursor, struct bdoc *out, struct err *err)
{
    if (cursor->run)
        return pipeline_run_next(cursor->run, out, err);
    return source_next(cursor, out, err);
}

bool router_cursor_next(struct router_cursor *cursor, struct bdoc *out, struct err *err)
{
    *out = cursor->pending;
    cursor->pending = (struct bdoc){0};
    if (out->data)
        return true;
    if (cursor->limit == 0)
        return true;
    do {
        if (!take_next(cursor, out, err))
            return false;
    } while (out->data && cursor->skip-- > 0);
    cursor->skip = 0;
    return true;
}

static bool fill_array(struct router_cursor *cursor, int64_t batch_size, bson_t *array, struct err *err)
{
    struct bdoc doc;
    for (uint32_t n = 0; !cursor->ended && (batch_size < 0 || n < batch_size); n++) {
        if (!router_cursor_next(cursor, &doc, err))
            return false;
        if (!doc.data) {
            cursor->ended = true;
            break;
        }
        if (n > 0 && array->len + doc.len > CURSORS_BATCH_MAX_BYTES) {
            cursor->pending = doc;
            return true;
        }
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string(n, &key, number, sizeof number);
        struct bval value = bval_from_doc(doc);
        bval_append(array, key, (int)len, &value);
        cursor->limit -= cursor->limit > 0;
        cursor->ended = cursor->limit == 0;
    }
    /* A client that got everything shouldn't have to come again to learn it. */
    if (!cursor->ended && batch_size != 0 && source_is_local(cursor)) {
        if (!router_cursor_next(cursor, &cursor->pending, err))
            return false;
        cursor->ended = !cursor->pending.data;
    }
    return true;
}

bool cursor_batch_append(struct command_ctx *ctx, struct router_cursor *cursor, int64_t batch_size, bool first,
                         bool keep, struct err *err)
{
    bson_t array = BSON_INITIALIZER;
    bson_t out;
    router_cursor_use(cursor, ctx);
    /* What a pipeline takes says nothing about what it gives. */
    cursor->fetch.batch_size = cursor->run ? 0 : batch_size;
    bool ok = fill_array(cursor, batch_size, &array, err) &&
              (cursor->ended || !keep || cursor_table_may_keep(router_of(ctx)->cursors, cursor, err));
    if (!ok) {
        bson_destroy(&array);
        client_error_make(ctx, false, err);
        return false;
    }
    cursor->ended |= !keep;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "cursor", &out);
    BSON_APPEND_ARRAY(&out, first ? "firstBatch" : "nextBatch", &array);
    BSON_APPEND_INT64(&out, "id", cursor->ended ? 0 : cursor->id);
    BSON_APPEND_UTF8(&out, "ns", cursor->ns);
    bson_append_document_end(&ctx->reply, &out);
    bson_destroy(&array);
    return true;
}

enum command_status cursor_batch_first(struct command_ctx *ctx, struct router_cursor *cursor, int64_t batch_size,
                                       bool keep, struct err *err)
{
    struct router *router = router_of(ctx);
    if (!cursor_table_add(router->cursors, cursor, err)) {
        router_cursor_close(router, cursor);
        return COMMAND_ERROR;
    }
    bool ok = cursor_batch_append(ctx, cursor, batch_size, true, keep, err);
    cursor_table_give(router->cursors, cursor, !ok || cursor->ended);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
