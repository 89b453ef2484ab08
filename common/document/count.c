/* count, distinct */
#include "base/clock.h"
#include "base/map.h"
#include "bson/keyenc.h"
#include "bson/path.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/read_txn.h"
#include "document/scan.h"
#include "storage/counters.h"

#include <string.h>

/* A read without a cursor: a filter over one collection. */
struct simple_read {
    struct ns ns;
    struct bdoc filter;
    struct bdoc version;
    struct bval hint;
    struct expr_env env;
    struct filter *compiled;
    struct read_txn read;
    struct plan *plan;
    struct scan scan;
};

static bool simple_parse(struct simple_read *simple, struct command_ctx *ctx, const char *const *known, struct err *err)
{
    *simple = (struct simple_read){.filter = bdoc_empty(), .env = {.now_ms = clock_wall_ms()}};
    bdoc_find(ctx->body, "hint", &simple->hint);
    if (simple->hint.type == BT_DOCUMENT && bdoc_is_empty(bval_doc(&simple->hint)))
        simple->hint = BVAL_MISSING;
    return command_ns(ctx, &simple->ns, err) && fields_check_known(ctx->body, ctx->name, known, err) &&
           field_get_doc(ctx->body, "query", &simple->filter, err) && request_version(ctx, &simple->version, err) &&
           request_check_collation(ctx->body, err) &&
           filter_compile(&ctx->arena, simple->filter, &simple->env, &simple->compiled, err);
}

static bool simple_open(struct simple_read *simple, struct command_ctx *ctx, bool need_doc, struct err *err)
{
    if (simple->read.coll == NULL)
        return true;
    struct plan_request request = {.filter = simple->compiled, .hint = simple->hint};
    if (simple->hint.type == BT_DOCUMENT && sort_spec_natural(bval_doc(&simple->hint)) != 0) {
        request.natural = 1;
        request.hint = BVAL_MISSING;
    }
    if (!plan_make(&ctx->arena, simple->read.coll, &request, &simple->plan, err))
        return false;
    struct scan_options options = {
        .txn = simple->read.txn,
        .coll = simple->read.coll,
        .plan = simple->plan,
        .filter = simple->compiled,
        .ownership = document_engine_ownership(simple->read.engine),
        .view = read_txn_filter_view(&simple->read),
        .need_doc = need_doc,
        .deadline_ms = ctx->deadline_ms,
    };
    return scan_open(&simple->scan, &options, err);
}

static void simple_close(struct simple_read *simple)
{
    scan_close(&simple->scan);
    read_txn_close(&simple->read);
    filter_release(simple->compiled);
}

static bool count_matches(struct simple_read *simple, int64_t stop_at, int64_t *count, struct err *err)
{
    bool found = true;
    while (*count < stop_at) {
        if (!scan_next(&simple->scan, &found, err))
            return false;
        if (!found)
            break;
        ++*count;
    }
    return true;
}

static bool count_all(struct simple_read *simple, struct command_ctx *ctx, int64_t stop_at, int64_t *count,
                      struct err *err)
{
    struct document_engine *engine = document_engine_of(ctx);
    if (!read_txn_open(&simple->read, engine, simple->ns.full, simple->version, err))
        return false;
    if (simple->read.coll == NULL)
        return true;
    /* The counter is exact when every document here is owned. */
    if (filter_is_empty(simple->compiled) && !simple->read.check_visible && simple->hint.type == BT_EOO) {
        struct counter counter;
        counter_collection(simple->read.txn, simple->read.coll, &counter);
        *count = counter.docs;
        return true;
    }
    return simple_open(simple, ctx, false, err) && count_matches(simple, stop_at, count, err);
}

enum command_status count_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"count",     "query",  "limit",   "skip", "hint",
                                        "collation", "fields", "comment", NULL};
    struct simple_read simple;
    int64_t limit = 0;
    int64_t skip = 0;
    int64_t count = 0;
    bool ok = simple_parse(&simple, ctx, known, err) && field_get_i64(ctx->body, "limit", &limit, err) &&
              field_get_i64_in(ctx->body, "skip", 0, INT64_MAX, &skip, err);
    if (ok && limit < 0)
        limit = limit == INT64_MIN ? INT64_MAX : -limit;
    int64_t stop_at = limit == 0 || limit > INT64_MAX - skip ? INT64_MAX : limit + skip;
    ok = ok && count_all(&simple, ctx, stop_at, &count, err);
    simple_close(&simple);
    if (!ok)
        return COMMAND_ERROR;
    count = count > skip ? count - skip : 0;
    if (limit > 0 && count > limit)
        count = limit;
    if (count <= INT32_MAX)
        BSON_APPEND_INT32(&ctx->reply, "n", (int32_t)count);
    else
        BSON_APPEND_INT64(&ctx->reply, "n", count);
    return COMMAND_OK;
}

/* ---- distinct ---- */

struct distinct {
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
    keyenc_append(&distinct->key, val, false);
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

static bool collect_values(struct simple_read *simple, struct command_ctx *ctx, const struct path *path,
                           struct distinct *distinct, struct err *err)
{
    bool found = true;
    if (!read_txn_open(&simple->read, document_engine_of(ctx), simple->ns.full, simple->version, err) ||
        !simple_open(simple, ctx, true, err))
        return false;
    while (simple->read.coll != NULL && found) {
        if (!scan_next(&simple->scan, &found, err))
            return false;
        if (found)
            path_each(path, simple->scan.doc, PATH_LEAF_ELEMENTS, add_value, distinct);
        if (distinct->too_large)
            return err_set(err, 17217, "distinct too big, 16mb cap");
    }
    return true;
}

enum command_status distinct_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"distinct", "key", "query", "hint", "collation", "comment", NULL};
    struct simple_read simple;
    struct distinct distinct = {.seen = MAP_INIT};
    struct path path = {0};
    const char *key = NULL;
    bson_init(&distinct.values);
    bool ok = simple_parse(&simple, ctx, known, err) && field_require(ctx->body, "key", err) &&
              field_get_str(ctx->body, "key", &key, err) && path_init(&path, key, strlen(key), err) &&
              collect_values(&simple, ctx, &path, &distinct, err);
    if (ok)
        BSON_APPEND_ARRAY(&ctx->reply, "values", &distinct.values);
    simple_close(&simple);
    path_deinit(&path);
    map_deinit(&distinct.seen);
    buf_deinit(&distinct.key);
    bson_destroy(&distinct.values);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
