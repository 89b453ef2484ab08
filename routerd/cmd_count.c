/* count, distinct. */
#include "base/map.h"
#include "bson/keyenc.h"
#include "command/field_spec.h"
#include "command/fields.h"
#include "routerd/command_env.h"
#include "routerd/commands.h"
#include "routerd/read_shards.h"
#include "routerd/request.h"
#include "routerd/routed_read.h"

#include <stddef.h>

static bool whole_number(const struct bval *val, const char *name, int64_t *out, struct err *err)
{
    if (val->type == BT_EOO || val->type == BT_NULL)
        return true;
    if (!bval_is_number(val))
        return err_set(err, ERR_BadValue, "%s value is not a valid number", name);
    return bval_to_i64(val, out) || err_set(err, ERR_FailedToParse, "Expected an integer: %s", name);
}

static bool count_bounds(const struct command_ctx *ctx, int64_t *skip, int64_t *limit, struct err *err)
{
    struct bval given_skip = BVAL_MISSING;
    struct bval given_limit = BVAL_MISSING;
    *skip = 0;
    *limit = 0;
    (void)bdoc_find(ctx->body, "skip", &given_skip);
    (void)bdoc_find(ctx->body, "limit", &given_limit);
    if (!whole_number(&given_skip, "skip", skip, err) || !whole_number(&given_limit, "limit", limit, err))
        return false;
    if (*skip < 0)
        return err_set(err, ERR_FailedToParse, "Expected a non-negative number: skip");
    if (*limit == INT64_MIN)
        return err_set(err, ERR_BadValue, "limit value for count cannot be min long");
    if (*limit < 0)
        *limit = -*limit;
    return true;
}

/* Refuses what is malformed. A number in place of the query counts everything: old clients send {query: 1}. */
static bool count_check(struct command_ctx *ctx, struct err *err)
{
    struct fields {
        struct bval query, hint;
        struct bdoc collation;
        const uint8_t *uuid;
    } fields = {.query = BVAL_MISSING};
    static const struct field_spec list[] = {
        {"query", FIELD_ANY, offsetof(struct fields, query), false},
        {"skip", FIELD_IGNORED, 0, false},
        {"limit", FIELD_IGNORED, 0, false},
        {"hint", FIELD_HINT, offsetof(struct fields, hint), false},
        {"collation", FIELD_DOC, offsetof(struct fields, collation), false},
        {"fields", FIELD_IGNORED, 0, false},
    };
    static const struct field_specs specs = {list, sizeof list / sizeof list[0], true};
    static const char *const dropped[] = {"query", NULL};
    int64_t skip, limit;
    if (!fields_read(ctx->body, "count", &specs, &fields, err) || !count_bounds(ctx, &skip, &limit, err))
        return false;
    if (bval_is_number(&fields.query)) {
        bson_t body = BSON_INITIALIZER;
        request_append_body(&body, ctx->body, dropped);
        ctx->body = (struct bdoc){arena_copy(&ctx->arena, bson_get_data(&body), body.len), body.len};
        bson_destroy(&body);
    }
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

static bool count_join(struct route *route, const struct scatter *scatter, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
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

static enum command_status count_sharded(struct route *route, const struct ns *ns, bool *again, struct err *err)
{
    static const char *const own[] = {"skip", "limit", NULL};
    static const struct shards_read read = {"query", own, count_prepare, count_join};
    (void)ns;
    return read_shards_run(route, &read, again, err);
}

static enum command_status count_nothing(struct command_ctx *ctx, const char *ns, struct err *err)
{
    int64_t skip, limit;
    (void)ns;
    if (!count_bounds(ctx, &skip, &limit, err))
        return COMMAND_ERROR;
    BSON_APPEND_INT32(&ctx->reply, "n", 0);
    return COMMAND_OK;
}

static enum command_status run_count(struct command_ctx *ctx, struct err *err)
{
    static const struct routed_read read = {NULL, count_sharded, count_nothing, view_count};
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    return count_check(ctx, err) ? routed_read_run(ctx, &read, err) : COMMAND_ERROR;
}

enum {
    DISTINCT_TOO_BIG = 17217,
    VALUE_OVERHEAD = 16, /* type and index of an element */
};

/* The union of the shards' values: the first of those that compare equal stays. */
struct union_values {
    struct map seen; /* encoded values */
    struct buf key;
    bson_t values;
    uint32_t count;
};

static bool add_values(struct union_values *all, struct bdoc reply, const struct bval_order *order, struct err *err)
{
    struct bval list;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(reply, "values", &list) || list.type != BT_ARRAY)
        return err_set(err, ERR_FailedToParse, "a shard's distinct values can't be read");
    for (biter_init(&iter, bval_doc(&list)); biter_next(&iter, &elem);) {
        if (all->values.len + elem.val.len + VALUE_OVERHEAD > BDOC_MAX_BYTES)
            return err_set(err, DISTINCT_TOO_BIG, "distinct too big, 16mb cap");
        buf_clear(&all->key);
        keyenc_append_ordered(&all->key, &elem.val, false, order);
        if (!map_put(&all->seen, all->key.data, all->key.len, all))
            request_append_at(&all->values, all->count++, &elem.val);
    }
    return true;
}

static bool distinct_join(struct route *route, const struct scatter *scatter, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct union_values all = {.count = 0};
    struct expr_env env;
    if (!command_env_init(&ctx->arena, ctx->body, route->routing, &env, err))
        return false;
    bson_init(&all.values);
    bool ok = true;
    for (size_t i = 0; i < scatter->count && ok; i++)
        ok = add_values(&all, scatter->requests[i].reply, env.order, err);
    if (ok)
        BSON_APPEND_ARRAY(&ctx->reply, "values", &all.values);
    bson_destroy(&all.values);
    buf_deinit(&all.key);
    map_deinit(&all.seen);
    return ok;
}

static enum command_status distinct_sharded(struct route *route, const struct ns *ns, bool *again, struct err *err)
{
    static const struct shards_read read = {"query", NULL, NULL, distinct_join};
    (void)ns;
    return read_shards_run(route, &read, again, err);
}

static enum command_status distinct_nothing(struct command_ctx *ctx, const char *ns, struct err *err)
{
    bson_t values;
    (void)ns;
    (void)err;
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "values", &values);
    bson_append_array_end(&ctx->reply, &values);
    return COMMAND_OK;
}

static enum command_status run_distinct(struct command_ctx *ctx, struct err *err)
{
    static const struct routed_read read = {NULL, distinct_sharded, distinct_nothing, view_distinct};
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    return routed_read_run(ctx, &read, err);
}

static const struct command commands[] = {
    {"count", NULL, COMMAND_COLLECTION, run_count},
    {"distinct", NULL, COMMAND_COLLECTION, run_distinct},
};

const struct command_family commands_count = COMMAND_FAMILY(commands);
