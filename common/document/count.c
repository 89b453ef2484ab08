/* count */
#include "command/fields.h"
#include "document/commands.h"
#include "document/simple_read.h"
#include "storage/counters.h"

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

bool count_open(struct simple_read *simple, struct command_ctx *ctx, int64_t *skip, int64_t *limit, struct err *err)
{
    static const char *const known[] = {"count",     "query",  "limit",   "skip", "hint",
                                        "collation", "fields", "comment", NULL};
    *skip = 0;
    *limit = 0;
    if (!simple_read_open(simple, ctx, known, err) || !field_get_i64(ctx->body, "limit", limit, err) ||
        !field_get_i64_in(ctx->body, "skip", 0, INT64_MAX, skip, err))
        return false;
    if (*limit < 0)
        *limit = *limit == INT64_MIN ? INT64_MAX : -*limit;
    return true;
}

bool count_is_counted(const struct simple_read *simple)
{
    return filter_is_empty(simple->compiled) && !simple->read.check_visible && simple->hint.type == BT_EOO;
}

static bool count_all(struct simple_read *simple, struct command_ctx *ctx, int64_t stop_at, int64_t *count,
                      struct err *err)
{
    if (simple->read.coll == NULL)
        return true;
    /* The counter is exact when every document here is owned. */
    if (count_is_counted(simple)) {
        struct counter counter;
        counter_collection(simple->read.txn, simple->read.coll, &counter);
        *count = counter.docs;
        return true;
    }
    return simple_read_plan(simple, ctx, err) && simple_read_scan(simple, false, err) &&
           count_matches(simple, stop_at, count, err);
}

enum command_status count_run(struct command_ctx *ctx, struct err *err)
{
    struct simple_read simple = {0};
    int64_t limit;
    int64_t skip;
    int64_t count = 0;
    bool ok = count_open(&simple, ctx, &skip, &limit, err);
    if (ok) {
        int64_t stop_at = limit == 0 || limit > INT64_MAX - skip ? INT64_MAX : limit + skip;
        ok = count_all(&simple, ctx, stop_at, &count, err);
    }
    simple_read_close(&simple);
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
