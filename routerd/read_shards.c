#include "routerd/read_shards.h"

#include "command/fields.h"
#include "routerd/command_env.h"
#include "routerd/forward.h"
#include "routerd/request.h"

static bool read_target(struct route *route, const struct shards_read *read, struct target *target, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct expr_env env;
    struct target_query query = {.env = &env};
    return field_get_doc(ctx->body, read->filter_field, &query.filter, err) &&
           command_env_init(&ctx->arena, ctx->body, route->routing, &env, err) &&
           target_filter(&ctx->arena, route->routing->table, &query, target, err);
}

enum command_status read_shards_run(struct route *route, const struct shards_read *read, bool *again, struct err *err)
{
    struct target target;
    struct scatter_command command = {.repeatable = true};
    struct scatter scatter = {0};
    if (!read_target(route, read, &target, err))
        return COMMAND_ERROR;
    bool one = target.count == 1;
    bson_init(&command.body);
    request_append_body(&command.body, route->ctx->body, one ? NULL : read->skip);
    bool ok = one || !read->prepare || read->prepare(route->ctx, &command.body, err);
    if (ok) {
        enum scatter_outcome outcome = scatter_targets(route, &target, &command, &scatter, err);
        *again = outcome == SCATTER_STALE;
        ok = outcome == SCATTER_DONE;
    }
    if (ok && one)
        (void)forward_reply(route->ctx, &scatter.requests[0]);
    else if (ok)
        ok = read->join(route, &scatter, err);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
