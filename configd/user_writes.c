#include "configd/user_writes.h"

#include "base/clock.h"
#include "command/batch.h"
#include "command/fields.h"
#include "command/namespace.h"
#include "command/reply.h"
#include "configd/batch_error.h"
#include "configd/names.h"
#include "configd/plans.h"
#include "configd/server.h"

#include <string.h>

static enum command_status refuse(const struct ns *ns, struct err *err)
{
    err_set(
        err, ERR_IllegalOperation,
        "%s can't be written to: the cluster's metadata is changed by its commands (sh.addShard, sh.shardCollection, "
        "sh.splitAt, ...); only config.settings and noBalance in config.collections may be updated",
        ns->full);
    return COMMAND_ERROR;
}

static int64_t count_of(const bson_t *reply, const char *name)
{
    struct bval val;
    int64_t count = 0;
    if (bdoc_find(bdoc_of(reply), name, &val)) {
        (void)bval_to_i64(&val, &count);
    }
    return count;
}

/* One statement; false when it failed. */
static bool run_statement(struct command_ctx *ctx, change_plan_cb *plan, struct bdoc statement, int32_t index,
                          struct write_result *result, struct err *err)
{
    struct bval upserted;
    bson_t reply = BSON_INITIALIZER;
    bool ok = server_change(server_of(ctx), plan, statement, deadline_after_ms(SERVER_CHANGE_MS), &reply, err);
    if (ok) {
        result->n += count_of(&reply, "n");
        result->n_modified += count_of(&reply, "nModified");
        if (bdoc_find(bdoc_of(&reply), "upserted", &upserted)) {
            write_result_add_upserted(result, index, &upserted);
        }
    }
    bson_destroy(&reply);
    return ok;
}

static enum command_status run_batch(struct command_ctx *ctx, const char *field, change_plan_cb *plan, bool is_update,
                                     struct err *err)
{
    struct batch batch;
    struct batch_iter iter;
    struct bdoc statement;
    struct write_result result;
    bool ordered = true;
    if (!field_get_bool(ctx->body, "ordered", &ordered, err) || !batch_init(&batch, ctx, field, err)) {
        return COMMAND_ERROR;
    }
    write_result_init(&result, is_update);
    batch_iter_init(&iter, &batch);
    bool ok = true;
    bool ends = false;
    for (int32_t index = 0; !ends && (ok || !ordered) && batch_next(&iter, &statement); index++) {
        struct err failed;
        ok = run_statement(ctx, plan, statement, index, &result, &failed);
        ends = !ok && batch_error_ends(&failed, result.n, err);
        if (!ok && !ends) {
            write_result_add_error(&result, index, &failed);
        }
    }
    if (!ends) {
        write_result_append(&result, &ctx->reply);
    }
    write_result_deinit(&result);
    return ends ? COMMAND_ERROR : COMMAND_OK;
}

enum command_status user_update_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    if (!command_ns(ctx, &ns, err)) {
        return COMMAND_ERROR;
    }
    if (strcmp(ns.full, NS_SETTINGS) == 0) {
        return run_batch(ctx, "updates", plan_update_settings, true, err);
    }
    if (strcmp(ns.full, NS_COLLECTIONS) == 0) {
        return run_batch(ctx, "updates", plan_update_collections, true, err);
    }
    return refuse(&ns, err);
}

enum command_status user_delete_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    if (!command_ns(ctx, &ns, err)) {
        return COMMAND_ERROR;
    }
    if (strcmp(ns.full, NS_SETTINGS) == 0) {
        return run_batch(ctx, "deletes", plan_delete_settings, false, err);
    }
    return refuse(&ns, err);
}

enum command_status user_refuse_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    if (!command_ns_or_db(ctx, &ns, err)) {
        return COMMAND_ERROR;
    }
    return refuse(&ns, err);
}
