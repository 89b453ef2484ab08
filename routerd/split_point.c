#include "routerd/split_point.h"

#include "routerd/ddl.h"

static void append_bytes(bson_t *to, const char *name, struct key_bytes bytes)
{
    static const uint8_t none[1];
    bson_append_binary(to, name, -1, BSON_SUBTYPE_BINARY, bytes.data ? bytes.data : none, bytes.len);
}

/* Asks the chunk's shard for the key value that halves its bytes; point->data NULL: there is none. */
static bool median(struct route *route, const struct chunk *chunk, struct bdoc *point, struct err *err)
{
    struct remote_request request;
    struct bval points, first;
    bson_t body = BSON_INITIALIZER;
    ddl_internal_body(&body, "_shardsvrSplitPoints", route->ns);
    append_bytes(&body, "min", chunk->range.min);
    append_bytes(&body, "max", chunk->range.max);
    *point = (struct bdoc){0};
    bool ok = ddl_on_shard(route->ctx, chunk->shard, &body, &request, err);
    if (ok && bdoc_find(request.reply, "points", &points) && points.type == BT_ARRAY &&
        bdoc_find(bval_doc(&points), "0", &first) && first.type == BT_DOCUMENT)
        *point = (struct bdoc){arena_copy(&route->ctx->arena, first.data, first.len), first.len};
    remote_request_deinit(&request);
    bson_destroy(&body);
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

static bool middle_of(struct route *route, const struct chunk *chunk, struct bdoc *point, struct err *err)
{
    if (!median(route, chunk, point, err))
        return false;
    if (point->data)
        return true;
    if (shardkey_hashed_field(routing_table_key(route->routing->table)) == 0)
        return hash_middle(route, chunk, point, err);
    return err_set(err, ERR_IllegalOperation, "the chunk holds too few key values to be split");
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
        return chunk_of_bounds(route, request->bounds, chunk, err) && middle_of(route, *chunk, point, err);
    return chunk_of_key(route, request->find, false, chunk, err) && middle_of(route, *chunk, point, err);
}
