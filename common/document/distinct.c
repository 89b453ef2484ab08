/* distinct */
#include "base/map.h"
#include "bson/keyenc.h"
#include "bson/path.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/simple_read.h"

#include <string.h>

enum {
    ERR_DISTINCT_TOO_BIG = 17217,
};

struct distinct {
    const struct bval_order *order;
    struct map seen; /* encoded values */
    bson_t values;
    struct buf key;
    uint32_t count;
    bool too_large;
};

static bool add_value(void *arg, const struct path_hit *hit)
{
    struct distinct *distinct = arg;
    const struct bval *val = &hit->val;
    if (val->type == BT_EOO)
        return true;
    buf_clear(&distinct->key);
    keyenc_append_ordered(&distinct->key, val, false, distinct->order);
    if (map_get(&distinct->seen, distinct->key.data, distinct->key.len) != NULL)
        return true;
    distinct->too_large = distinct->values.len + val->len + 16 > BDOC_MAX_BYTES;
    if (distinct->too_large)
        return false;
    map_put(&distinct->seen, distinct->key.data, distinct->key.len, distinct);
    char digits[16];
    const char *key;
    bson_uint32_to_string(distinct->count++, &key, digits, sizeof digits);
    bval_append(&distinct->values, key, -1, val);
    return true;
}

static bool collect_values(struct simple_read *simple, struct command_ctx *ctx, struct distinct *distinct,
                           struct err *err)
{
    struct path path = {0};
    bool found = true;
    bool ok = path_init(&path, simple->distinct, strlen(simple->distinct), err) && simple_read_plan(simple, ctx, err) &&
              simple_read_scan(simple, true, err);
    while (ok && found) {
        ok = scan_next(&simple->scan, &found, err);
        if (ok && found)
            path_each(&path, simple->scan.doc, PATH_LEAF_ELEMENTS, add_value, distinct);
        if (distinct->too_large)
            ok = err_set(err, ERR_DISTINCT_TOO_BIG, "distinct too big, 16mb cap");
    }
    path_deinit(&path);
    return ok;
}

bool distinct_open(struct simple_read *simple, struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"distinct", "key", "query", "hint", "collation", "comment", NULL};
    return simple_read_open(simple, ctx, known, err) && field_require(ctx->body, "key", err) &&
           field_get_str(ctx->body, "key", &simple->distinct, err);
}

enum command_status distinct_run(struct command_ctx *ctx, struct err *err)
{
    struct simple_read simple = {0};
    struct distinct distinct = {.seen = MAP_INIT};
    bson_init(&distinct.values);
    bool ok = distinct_open(&simple, ctx, err);
    distinct.order = simple.env.order;
    if (ok && simple.read.coll != NULL)
        ok = collect_values(&simple, ctx, &distinct, err);
    if (ok)
        BSON_APPEND_ARRAY(&ctx->reply, "values", &distinct.values);
    simple_read_close(&simple);
    map_deinit(&distinct.seen);
    buf_deinit(&distinct.key);
    bson_destroy(&distinct.values);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
