/* count, distinct. */
#include "base/map.h"
#include "bson/keyenc.h"
#include "command/fields.h"
#include "routerd/commands.h"
#include "routerd/read_shards.h"

#include <stdlib.h>

static bool count_bounds(const struct command_ctx *ctx, int64_t *skip, int64_t *limit, struct err *err)
{
    *skip = 0;
    *limit = 0;
    if (!field_get_i64_in(ctx->body, "skip", 0, INT64_MAX, skip, err) || !field_get_i64(ctx->body, "limit", limit, err))
        return false;
    if (*limit < 0)
        *limit = *limit == INT64_MIN ? INT64_MAX : -*limit;
    return true;
}

static bool count_prepare(struct command_ctx *ctx, bson_t *body, struct err *err)
{
    int64_t skip, limit;
    if (!count_bounds(ctx, &skip, &limit, err))
        return false;
    if (limit > 0 && limit <= INT64_MAX - skip)
        BSON_APPEND_INT64(body, "limit", limit + skip);
    return true;
}

static bool count_join(struct command_ctx *ctx, const struct scatter *scatter, struct err *err)
{
    int64_t skip, limit;
    int64_t total = 0;
    if (!count_bounds(ctx, &skip, &limit, err))
        return false;
    for (size_t i = 0; i < scatter->count; i++) {
        struct bval n;
        int64_t number;
        if (!bdoc_find(scatter->requests[i].reply, "n", &n) || !bval_to_i64(&n, &number))
            return err_set(err, ERR_FailedToParse, "a shard's count can't be read");
        total += number;
    }
    total = total > skip ? total - skip : 0;
    if (limit > 0 && total > limit)
        total = limit;
    if (total <= INT32_MAX)
        BSON_APPEND_INT32(&ctx->reply, "n", (int32_t)total);
    else
        BSON_APPEND_INT64(&ctx->reply, "n", total);
    return true;
}

static enum command_status run_count(struct command_ctx *ctx, struct err *err)
{
    static const char *const own[] = {"skip", "limit", NULL};
    static const struct read_merge merge = {"query", own, count_prepare, count_join};
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    return read_shards_run(ctx, &merge, err);
}

/* The union of the shards' values: the first of those that compare equal stays. */
static bool distinct_join(struct command_ctx *ctx, const struct scatter *scatter, struct err *err)
{
    struct map seen = MAP_INIT;
    struct buf key = BUF_INIT;
    bson_t values;
    uint32_t count = 0;
    bool ok = true;
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "values", &values);
    for (size_t i = 0; i < scatter->count && ok; i++) {
        struct bval list;
        struct biter iter;
        struct belem elem;
        ok = bdoc_find(scatter->requests[i].reply, "values", &list) && list.type == BT_ARRAY;
        if (!ok) {
            err_set(err, ERR_FailedToParse, "a shard's distinct values can't be read");
            break;
        }
        biter_init(&iter, bval_doc(&list));
        while (biter_next(&iter, &elem)) {
            char number[16];
            const char *name;
            buf_clear(&key);
            keyenc_append(&key, &elem.val, false);
            if (map_put(&seen, key.data, key.len, &seen))
                continue;
            size_t len = bson_uint32_to_string(count++, &name, number, sizeof number);
            bval_append(&values, name, (int)len, &elem.val);
        }
    }
    bson_append_array_end(&ctx->reply, &values);
    buf_deinit(&key);
    map_deinit(&seen);
    return ok;
}

static enum command_status run_distinct(struct command_ctx *ctx, struct err *err)
{
    static const struct read_merge merge = {"query", NULL, NULL, distinct_join};
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    return read_shards_run(ctx, &merge, err);
}

static const struct command commands[] = {
    {"count", NULL, COMMAND_COLLECTION, run_count},
    {"distinct", NULL, COMMAND_COLLECTION, run_distinct},
};

const struct command_family commands_count = COMMAND_FAMILY(commands);
