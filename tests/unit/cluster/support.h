/* Shared by the cluster tests: documents from extended JSON. */
#ifndef SHERD_TESTS_UNIT_CLUSTER_SUPPORT_H
#define SHERD_TESTS_UNIT_CLUSTER_SUPPORT_H

#include "tests/unit/cmocka_all.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/shardkey.h"

/* Aborts the test on bad JSON. The document lives in `arena`. */
static inline struct bdoc json_doc(struct arena *arena, const char *json)
{
    bson_error_t error;
    bson_t *bson = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (bson == NULL) {
        fail_msg("bad JSON %s: %s", json, error.message);
    }
    struct bdoc doc = {.data = arena_copy(arena, bson_get_data(bson), bson->len), .len = bson->len};
    bson_destroy(bson);
    return doc;
}

static inline struct shardkey *json_key(struct arena *arena, const char *json)
{
    struct shardkey *key = NULL;
    struct err err;
    if (!shardkey_parse(json_doc(arena, json), &key, &err)) {
        fail_msg("shard key %s: %s", json, err.msg);
    }
    return key;
}

static inline struct key_bytes json_bound(struct arena *arena, const struct shardkey *key, const char *json)
{
    struct buf buf = BUF_INIT;
    struct err err;
    if (!shardkey_encode_bound(key, json_doc(arena, json), &buf, &err)) {
        fail_msg("bound %s: %s", json, err.msg);
    }
    struct key_bytes bytes = {.data = arena_copy(arena, buf.data, buf.len), .len = (uint32_t)buf.len};
    buf_deinit(&buf);
    return bytes;
}

static inline struct key_bytes json_doc_key(struct arena *arena, const struct shardkey *key, const char *json)
{
    struct buf buf = BUF_INIT;
    struct err err;
    if (!shardkey_encode_doc(key, json_doc(arena, json), &buf, &err)) {
        fail_msg("document %s: %s", json, err.msg);
    }
    struct key_bytes bytes = {.data = arena_copy(arena, buf.data, buf.len), .len = (uint32_t)buf.len};
    buf_deinit(&buf);
    return bytes;
}

#endif
