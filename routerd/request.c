#include "routerd/request.h"

#include <string.h>

static bool name_in(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

void request_append_body(bson_t *out, struct bdoc body, const char *const *skip)
{
    static const char *const router_only[] = {
        "apiVersion",    "apiStrict", "apiDeprecationErrors", "$clusterTime", "$readPreference",
        "$queryOptions", "maxTimeMS", "writeConcern",         NULL,
    };
    struct biter iter;
    struct belem elem;
    biter_init(&iter, body);
    while (biter_next(&iter, &elem))
        if (!name_in(elem.key, router_only) && !name_in(elem.key, skip))
            bval_append(out, elem.key, (int)elem.key_len, &elem.val);
}

bool cursor_reply_parse(struct bdoc reply, struct cursor_reply *out, struct err *err)
{
    struct bval value;
    *out = (struct cursor_reply){0};
    if (!bdoc_find(reply, "cursor", &value) || value.type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "a shard's reply has no cursor");
    struct bdoc cursor = bval_doc(&value);
    if (!bdoc_find(cursor, "id", &value) || value.type != BT_INT64)
        return err_set(err, ERR_FailedToParse, "a shard's reply has no cursor id");
    out->id = bval_i64(&value);
    out->id_at = value.data;
    if ((!bdoc_find(cursor, "firstBatch", &value) && !bdoc_find(cursor, "nextBatch", &value)) || value.type != BT_ARRAY)
        return err_set(err, ERR_FailedToParse, "a shard's reply has no batch");
    out->batch = bval_doc(&value);
    if (bdoc_find(cursor, "sortKeys", &value) && value.type == BT_ARRAY)
        out->sort_keys = bval_doc(&value);
    return true;
}

void request_append_at(bson_t *array, uint32_t index, const struct bval *value)
{
    char number[16];
    const char *key;
    size_t len = bson_uint32_to_string(index, &key, number, sizeof number);
    bval_append(array, key, (int)len, value);
}

struct bdoc request_array_rest(struct arena *arena, struct bdoc array)
{
    bson_t out = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    uint32_t n = 0;
    biter_init(&iter, array);
    (void)biter_next(&iter, &elem);
    while (biter_next(&iter, &elem))
        request_append_at(&out, n++, &elem.val);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return copy;
}
