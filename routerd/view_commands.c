/* find, count and distinct on a view. */
#include "base/map.h"
#include "bson/keyenc.h"
#include "bson/path.h"
#include "command/fields.h"
#include "routerd/aggregate_open.h"
#include "routerd/command_env.h"
#include "routerd/cursor_batch.h"
#include "routerd/request.h"

#include <string.h>

/* The aggregate behind the context's command, in the context's arena. */
static bool make_request(struct command_ctx *ctx, const struct view *view, struct aggregate_request *out,
                         struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    bool ok = view_aggregate_body(&ctx->arena, view, ctx->body, &body, err);
    BSON_APPEND_UTF8(&body, "$db", view->on.db);
    struct bdoc kept = {arena_copy(&ctx->arena, bson_get_data(&body), body.len), body.len};
    bson_destroy(&body);
    return ok && aggregate_request_parse(kept, &view->on, out, err);
}

enum command_status view_find(struct command_ctx *ctx, const struct view *view, struct err *err)
{
    struct aggregate_request request;
    if (!make_request(ctx, view, &request, err) ||
        !field_get_bool(ctx->body, "singleBatch", &request.single_batch, err))
        return COMMAND_ERROR;
    request.shown_ns = view->view.full;
    return aggregate_reply(ctx, &request, err);
}

enum command_status view_count(struct command_ctx *ctx, const struct view *view, struct err *err)
{
    struct aggregate_request request;
    struct router_cursor *cursor;
    struct bdoc doc;
    struct bval n;
    int64_t count = 0;
    if (!make_request(ctx, view, &request, err) || !aggregate_open(ctx, &request, &cursor, NULL, err))
        return COMMAND_ERROR;
    bool ok = router_cursor_next(cursor, &doc, err);
    if (ok && doc.data && bdoc_find(doc, "count", &n))
        (void)bval_to_i64(&n, &count);
    router_cursor_close(router_of(ctx), cursor);
    if (!ok)
        return COMMAND_ERROR;
    if (count <= INT32_MAX)
        BSON_APPEND_INT32(&ctx->reply, "n", (int32_t)count);
    else
        BSON_APPEND_INT64(&ctx->reply, "n", count);
    return COMMAND_OK;
}

/* Values of a distinct as they come. */
struct distinct {
    struct map seen;
    struct buf key;
    bson_t values;
    uint32_t count;
    const struct bval_order *order; /* the view's collation; NULL: simple */
};

static bool distinct_add(void *arg, const struct path_hit *hit)
{
    struct distinct *distinct = arg;
    if (hit->val.type == BT_EOO)
        return true;
    buf_clear(&distinct->key);
    keyenc_append_ordered(&distinct->key, &hit->val, false, distinct->order);
    if (!map_put(&distinct->seen, distinct->key.data, distinct->key.len, distinct))
        request_append_at(&distinct->values, distinct->count++, &hit->val);
    return true;
}

static bool distinct_collect(struct router_cursor *cursor, const struct path *path, struct distinct *distinct,
                             struct err *err)
{
    for (;;) {
        struct bdoc doc;
        if (!router_cursor_next(cursor, &doc, err))
            return false;
        if (!doc.data)
            return true;
        path_each(path, doc, PATH_LEAF_ELEMENTS, distinct_add, distinct);
        if (distinct->values.len > BDOC_MAX_BYTES)
            return err_set(err, 17217, "distinct too big, 16mb cap");
    }
}

enum command_status view_distinct(struct command_ctx *ctx, const struct view *view, struct err *err)
{
    struct aggregate_request request;
    struct router_cursor *cursor;
    struct expr_env env;
    struct path path;
    const char *key = NULL;
    if (!make_request(ctx, view, &request, err) || !field_get_str(ctx->body, "key", &key, err) ||
        !command_env_init(&ctx->arena, request.body, NULL, &env, err))
        return COMMAND_ERROR;
    const char *rest = key + strcspn(key, ".");
    char *inner = arena_printf(&ctx->arena, "_id%s", rest);
    if (!path_init(&path, inner, strlen(inner), err))
        return COMMAND_ERROR;
    if (!aggregate_open(ctx, &request, &cursor, NULL, err)) {
        path_deinit(&path);
        return COMMAND_ERROR;
    }
    struct distinct distinct = {.order = env.order};
    bson_init(&distinct.values);
    bool ok = distinct_collect(cursor, &path, &distinct, err);
    if (ok)
        BSON_APPEND_ARRAY(&ctx->reply, "values", &distinct.values);
    router_cursor_close(router_of(ctx), cursor);
    bson_destroy(&distinct.values);
    buf_deinit(&distinct.key);
    map_deinit(&distinct.seen);
    path_deinit(&path);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
