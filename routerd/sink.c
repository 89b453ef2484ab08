#include "routerd/sink.h"

#include "command/fields.h"
#include "routerd/cursor_batch.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/sub_command.h"

#include <string.h>

/* The last stage's name and operand; NULL: there is none. */
static const char *last_stage(struct bdoc stages, struct bval *spec)
{
    struct biter iter;
    struct belem elem, inner;
    const char *name = NULL;
    for (biter_init(&iter, stages); biter_next(&iter, &elem);) {
        struct biter stage;
        name = NULL;
        if (elem.val.type != BT_DOCUMENT)
            continue;
        biter_init(&stage, bval_doc(&elem.val));
        if (!biter_next(&stage, &inner))
            continue;
        name = inner.key;
        *spec = inner.val;
    }
    return name;
}

bool sink_named(struct bdoc stages)
{
    struct bval spec;
    const char *name = last_stage(stages, &spec);
    return name && (strcmp(name, "$out") == 0 || strcmp(name, "$merge") == 0);
}

bool sink_target(struct sink *sink, const struct bval *into, struct err *err)
{
    uint32_t len;
    const char *db = NULL;
    const char *coll = NULL;
    if (into->type == BT_STRING)
        return ns_make(&sink->to, sink->ctx->db, bval_str(into, &len), err);
    struct bdoc spec = bval_doc(into);
    if (!field_get_str(spec, "db", &db, err) || !field_require(spec, "coll", err) ||
        !field_get_str(spec, "coll", &coll, err))
        return false;
    return ns_check_db(db ? db : sink->ctx->db, err) && ns_make(&sink->to, db ? db : sink->ctx->db, coll, err);
}

/* All stages but the last. */
static struct bdoc stages_before(struct arena *arena, struct bdoc stages)
{
    bson_t out = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    uint32_t count = bdoc_count(stages);
    uint32_t at = 0;
    for (biter_init(&iter, stages); biter_next(&iter, &elem) && at + 1 < count;)
        request_append_at(&out, at++, &elem.val);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return copy;
}

/* The command's body with other stages. */
static struct bdoc body_with(struct arena *arena, struct bdoc body, struct bdoc stages)
{
    bson_t out = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    struct bval array = {.type = BT_ARRAY, .data = stages.data, .len = stages.len};
    for (biter_init(&iter, body); biter_next(&iter, &elem);)
        if (strcmp(elem.key, "bypassDocumentValidation") != 0)
            bval_append(&out, elem.key, (int)elem.key_len, strcmp(elem.key, "pipeline") == 0 ? &array : &elem.val);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return copy;
}

static bool feed_from(struct sink *sink, struct router_cursor *cursor,
                      bool (*flush)(struct sink *sink, struct err *err), struct err *err)
{
    for (;;) {
        struct bdoc doc;
        if (!command_ctx_check_deadline(sink->ctx, err) || !router_cursor_next(cursor, &doc, err))
            return false;
        if (doc.data) {
            buf_append(&sink->docs, doc.data, doc.len);
            sink->count++;
        }
        bool full = sink->count >= SINK_BATCH_DOCS || sink->docs.len >= SINK_BATCH_BYTES;
        if (sink->count > 0 && (full || !doc.data)) {
            if (!flush(sink, err))
                return false;
            buf_clear(&sink->docs);
            sink->count = 0;
        }
        if (!doc.data)
            return true;
    }
}

bool sink_feed(struct sink *sink, bool (*flush)(struct sink *sink, struct err *err), struct err *err)
{
    struct aggregate_request request = *sink->request;
    struct router_cursor *cursor;
    request.ns.coll = request.ns.full + (sink->request->ns.coll - sink->request->ns.full);
    request.stages = stages_before(&sink->ctx->arena, request.stages);
    request.body = body_with(&sink->ctx->arena, request.body, request.stages);
    if (!aggregate_open(sink->ctx, &request, &cursor, NULL, err))
        return false;
    bool ok = feed_from(sink, cursor, flush, err);
    router_cursor_close(router_of(sink->ctx), cursor);
    return ok;
}

/* The write command's body, but for its statements. */
static void write_body(const struct sink *sink, const struct ns *to, enum write_kind kind, bson_t *body)
{
    static const char *const kept[] = {"comment", "lsid", "bypassDocumentValidation", "let", NULL};
    BSON_APPEND_UTF8(body, write_kind_command(kind), to->coll);
    for (const char *const *name = kept; *name; name++) {
        struct bval value;
        bool known = strcmp(*name, "let") != 0 || kind == WRITE_UPDATE;
        if (known && bdoc_find(sink->request->body, *name, &value))
            bval_append(body, *name, -1, &value);
    }
}

/* The write batch of `from`, in the context's arena. */
static void write_items(struct write_batch *batch, struct command_ctx *ctx, const struct sink_batch *from)
{
    static const char *const own[] = {"insert", "update", NULL};
    const uint8_t *at = from->docs->data;
    write_batch_init_items(batch, ctx, from->kind, from->count);
    batch->ordered = false;
    batch->ns = *from->to;
    batch->ns.coll = batch->ns.full + (from->to->coll - from->to->full);
    request_append_body(&batch->common, ctx->body, own);
    for (uint32_t i = 0; i < from->count; i++) {
        batch->items[i].doc = (struct bdoc){at, load_le32(at)};
        batch->items[i].index = i;
        at += batch->items[i].doc.len;
        if (from->kind == WRITE_INSERT)
            write_item_add_id(batch, &batch->items[i]);
    }
}

bool sink_write(struct sink *sink, struct sink_batch *from, struct err *err)
{
    struct command_ctx *ctx;
    struct write_batch batch;
    bson_t body = BSON_INITIALIZER;
    write_body(sink, from->to, from->kind, &body);
    bool ok = sub_command_new(sink->ctx, from->to->db, bdoc_of(&body), &ctx, err);
    bson_destroy(&body);
    if (!ok)
        return false;
    write_items(&batch, ctx, from);
    ok = write_batch_run(&batch, err);
    from->n = batch.result.n;
    if (ok && batch.result.error_count > 0) {
        write_batch_sort_errors(&batch);
        write_batch_first_error(&batch, err);
        ok = false;
    }
    write_batch_deinit(&batch);
    sub_command_free(ctx);
    return ok;
}

/* What is written must be what was read from whoever leads at the end too. */
static bool check_concern(const struct aggregate_request *request, const char *stage, struct err *err)
{
    struct bdoc concern = bdoc_empty();
    struct bval level;
    if (!field_get_doc(request->body, "readConcern", &concern, err))
        return false;
    return !bdoc_find(concern, "level", &level) || !bval_is_str(&level, "linearizable") ||
           err_set(err, ERR_InvalidOptions, "%s cannot be used with a 'linearizable' read concern level", stage);
}

enum command_status sink_run(struct command_ctx *ctx, const struct aggregate_request *request, struct err *err)
{
    struct sink sink = {.ctx = ctx, .request = request};
    const char *name = last_stage(request->stages, &sink.spec);
    if (!check_concern(request, name, err))
        return COMMAND_ERROR;
    bool ok = strcmp(name, "$out") == 0 ? sink_out_run(&sink, err) : sink_merge_run(&sink, err);
    buf_deinit(&sink.docs);
    if (!ok)
        return COMMAND_ERROR;
    return forward_empty_cursor(ctx, request->shown_ns ? request->shown_ns : request->ns.full, err);
}
