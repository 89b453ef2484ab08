#include "routerd/split_point.h"

#include "base/clock.h"
#include "bson/path.h"
#include "routerd/client_error.h"
#include "routerd/registry.h"
#include "routerd/request.h"

/* One comparison: fields before `last` equal, field `last` beyond. */
static void append_branch(const struct shardkey *key, struct bdoc bound, size_t last, const char *op, bson_t *out)
{
    for (size_t i = 0; i <= last; i++) {
        const char *path = shardkey_field_path(key, i);
        struct bval value;
        bson_t child;
        (void)bdoc_find(bound, path, &value);
        BSON_APPEND_DOCUMENT_BEGIN(out, path, &child);
        bval_append(&child, i == last ? op : "$eq", -1, &value);
        bson_append_document_end(out, &child);
    }
}

/* {$or: [{a: {op: x}}, {a: {$eq: x}, b: {op: y}}, ...]}; `tie` (NULL: none) also takes the bound itself. */
static void append_side(const struct shardkey *key, struct bdoc bound, const char *op, const char *tie, bson_t *out)
{
    bson_t list, branch;
    size_t fields = shardkey_field_count(key);
    char number[16];
    const char *name;
    BSON_APPEND_ARRAY_BEGIN(out, "$or", &list);
    for (size_t i = 0; i < fields; i++) {
        size_t len = bson_uint32_to_string((uint32_t)i, &name, number, sizeof number);
        bson_append_document_begin(&list, name, (int)len, &branch);
        append_branch(key, bound, i, i + 1 == fields && tie ? tie : op, &branch);
        bson_append_document_end(&list, &branch);
    }
    bson_append_array_end(out, &list);
}

void split_range_filter(const struct shardkey *key, struct bdoc min, struct bdoc max, bson_t *out)
{
    bson_t list, side;
    uint32_t n = 0;
    if (shardkey_bound_is_global_min(key, min) && shardkey_bound_is_global_max(key, max))
        return;
    BSON_APPEND_ARRAY_BEGIN(out, "$and", &list);
    if (!shardkey_bound_is_global_min(key, min)) {
        BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &side);
        append_side(key, min, "$gt", "$gte", &side);
        bson_append_document_end(&list, &side);
        n++;
    }
    if (!shardkey_bound_is_global_max(key, max)) {
        BSON_APPEND_DOCUMENT_BEGIN(&list, n ? "1" : "0", &side);
        append_side(key, max, "$lt", NULL, &side);
        bson_append_document_end(&list, &side);
    }
    bson_append_array_end(out, &list);
}

/* Runs a find on the chunk's shard; the first document comes back in the arena, data NULL: none. */
static bool ask_shard(struct route *route, const struct chunk *chunk, bson_t *body, struct bdoc *first, struct err *err)
{
    struct remote_set *set;
    struct remote_request request;
    struct cursor_reply reply;
    struct bval doc;
    *first = (struct bdoc){0};
    if (!registry_shard(route->router->registry, chunk->shard, route->ctx->deadline_ms, &set, err)) {
        client_error_make(route->ctx, false, err);
        return false;
    }
    remote_request_init(&request, set, true);
    remote_set_unref(set);
    bson_concat(&request.body, body);
    route_append_range_version(route, &request.body, &chunk->range, 1);
    bool ok = remote_run_one(route->router, &request, route->ctx->deadline_ms, NULL);
    if (!ok)
        (void)client_error_from(route->ctx, &request, err);
    else if (bdoc_has(request.reply, "n"))
        *first =
            (struct bdoc){arena_copy(&route->ctx->arena, request.reply.data, request.reply.len), request.reply.len};
    else if ((ok = cursor_reply_parse(request.reply, &reply, err)) && bdoc_find(reply.batch, "0", &doc))
        *first = (struct bdoc){arena_copy(&route->ctx->arena, doc.data, doc.len), doc.len};
    remote_request_deinit(&request);
    return ok;
}

static bool count_chunk(struct route *route, const struct split_request *request, const struct chunk *chunk,
                        int64_t *count, struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    bson_t query;
    struct bdoc answer;
    struct bval n;
    BSON_APPEND_UTF8(&body, "count", request->ns.coll);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "query", &query);
    split_range_filter(routing_table_key(route->routing->table), chunk->min, chunk->max, &query);
    bson_append_document_end(&body, &query);
    BSON_APPEND_UTF8(&body, "$db", request->ns.db);
    bool ok = ask_shard(route, chunk, &body, &answer, err);
    *count = 0;
    if (ok && answer.data && bdoc_find(answer, "n", &n))
        (void)bval_to_i64(&n, count);
    bson_destroy(&body);
    return ok;
}

/* The shard key of the document in the middle of the chunk. */
static bool median(struct route *route, const struct split_request *request, const struct chunk *chunk,
                   struct bdoc *point, struct err *err)
{
    const struct shardkey *key = routing_table_key(route->routing->table);
    int64_t count;
    if (!count_chunk(route, request, chunk, &count, err))
        return false;
    if (count < 2)
        return err_set(err, ERR_IllegalOperation, "the chunk holds %s: there is no point to split it at",
                       count ? "one document" : "no document");
    bson_t body = BSON_INITIALIZER;
    bson_t filter;
    struct bdoc doc;
    struct bval sort = bval_from_doc(shardkey_pattern(key));
    BSON_APPEND_UTF8(&body, "find", request->ns.coll);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "filter", &filter);
    split_range_filter(key, chunk->min, chunk->max, &filter);
    bson_append_document_end(&body, &filter);
    bval_append(&body, "sort", -1, &sort);
    BSON_APPEND_INT64(&body, "skip", count / 2);
    BSON_APPEND_INT32(&body, "limit", 1);
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", request->ns.db);
    bool ok = ask_shard(route, chunk, &body, &doc, err);
    bson_destroy(&body);
    if (!ok || !doc.data)
        return ok && err_set(err, ERR_ConflictingOperationInProgress, "the chunk changed while it was looked at");
    bson_t out = BSON_INITIALIZER;
    ok = shardkey_extract(key, doc, &out, err);
    *point = (struct bdoc){arena_copy(&route->ctx->arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return ok;
}

/* Half way between two hashes; for a key whose first field is the hashed one. */
static bool hash_middle(struct route *route, const struct chunk *chunk, struct bdoc *point, struct err *err)
{
    const struct shardkey *key = routing_table_key(route->routing->table);
    const char *path = shardkey_field_path(key, 0);
    struct bval low, high;
    (void)bdoc_find(chunk->min, path, &low);
    (void)bdoc_find(chunk->max, path, &high);
    int64_t a = low.type == BT_INT64 ? bval_i64(&low) : INT64_MIN;
    int64_t b = high.type == BT_INT64 ? bval_i64(&high) : INT64_MAX;
    int64_t middle = (int64_t)((uint64_t)a + ((uint64_t)b - (uint64_t)a) / 2);
    bson_t prefix = BSON_INITIALIZER;
    bson_t out = BSON_INITIALIZER;
    bson_append_int64(&prefix, path, -1, middle);
    bool ok = shardkey_extend_bound(key, bdoc_of(&prefix), &out, err);
    *point = (struct bdoc){arena_copy(&route->ctx->arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&prefix);
    bson_destroy(&out);
    return ok;
}

static bool middle_of(struct route *route, const struct split_request *request, const struct chunk *chunk,
                      struct bdoc *point, struct err *err)
{
    size_t hashed = shardkey_hashed_field(routing_table_key(route->routing->table));
    if (hashed == 0)
        return hash_middle(route, chunk, point, err);
    if (hashed != SIZE_MAX)
        return err_set(err, ERR_InvalidOptions, "name the middle to split a chunk of this shard key");
    return median(route, request, chunk, point, err);
}

static bool chunk_of_key(const struct route *route, struct bdoc doc, bool is_bound, const struct chunk **chunk,
                         struct err *err)
{
    struct buf key = BUF_INIT;
    const struct shardkey *pattern = routing_table_key(route->routing->table);
    bool ok = is_bound ? shardkey_encode_bound(pattern, doc, &key, err) : shardkey_encode_doc(pattern, doc, &key, err);
    if (ok)
        (void)routing_table_target_key(route->routing->table, key_bytes_of(&key), chunk);
    buf_deinit(&key);
    return ok;
}

static bool chunk_of_bounds(const struct route *route, struct bdoc bounds, const struct chunk **chunk, struct err *err)
{
    struct bval low, high;
    if (!bdoc_find(bounds, "0", &low) || !bdoc_find(bounds, "1", &high) || low.type != BT_DOCUMENT ||
        high.type != BT_DOCUMENT)
        return err_set(err, ERR_InvalidOptions, "bounds takes two documents");
    if (!chunk_of_key(route, bval_doc(&low), true, chunk, err))
        return false;
    struct buf end = BUF_INIT;
    bool ok = shardkey_encode_bound(routing_table_key(route->routing->table), bval_doc(&high), &end, err);
    if (ok && key_bytes_compare(key_bytes_of(&end), (*chunk)->range.max) != 0)
        ok = err_set(err, ERR_BadValue, "no chunk has these bounds");
    buf_deinit(&end);
    return ok;
}

bool split_point_find(struct route *route, const struct split_request *request, const struct chunk **chunk,
                      struct bdoc *point, struct err *err)
{
    if (request->middle.data) {
        *point = request->middle;
        return chunk_of_key(route, request->middle, true, chunk, err);
    }
    if (request->bounds.data)
        return chunk_of_bounds(route, request->bounds, chunk, err) && middle_of(route, request, *chunk, point, err);
    return chunk_of_key(route, request->find, false, chunk, err) && middle_of(route, request, *chunk, point, err);
}
