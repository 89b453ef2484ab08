#include "routerd/read_shards.h"

#include "base/clock.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/request.h"

static bool read_target(struct route *route, const struct read_merge *merge, struct target *target, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct expr_env env = {.now_ms = clock_wall_ms()};
    struct target_query query = {.env = &env};
    return field_get_doc(ctx->body, merge->filter_field, &query.filter, err) &&
           field_get_doc(ctx->body, "collation", &query.collation, err) &&
           field_get_doc(ctx->body, "let", &env.let, err) &&
           target_filter(&ctx->arena, route->routing->table, &query, target, err);
}

/* A read of a sharded collection. *again: the table was old. */
static enum command_status read_sharded(struct route *route, const struct read_merge *merge, bool *again,
                                        struct err *err)
{
    struct target target;
    struct scatter_command command = {.repeatable = true};
    struct scatter scatter = {0};
    if (!read_target(route, merge, &target, err))
        return COMMAND_ERROR;
    bool one = target.count == 1;
    bson_init(&command.body);
    request_append_body(&command.body, route->ctx->body, one ? NULL : merge->skip);
    bool ok = one || !merge->prepare || merge->prepare(route->ctx, &command.body, err);
    if (ok) {
        enum scatter_outcome outcome = scatter_targets(route, &target, &command, &scatter, err);
        *again = outcome == SCATTER_STALE;
        ok = outcome == SCATTER_DONE;
    }
    if (ok && one)
        (void)forward_reply(route->ctx, &scatter.requests[0]);
    else if (ok)
        ok = merge->join(route->ctx, &scatter, err);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

enum command_status read_shards_run(struct command_ctx *ctx, const struct read_merge *merge, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = true};
    enum command_status status = COMMAND_ERROR;
    bool again;
    if (!command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    if (forward_is_config_db(ns.db)) {
        if (forward_config(ctx, true, &request, err))
            status = forward_reply(ctx, &request);
        remote_request_deinit(&request);
        return status;
    }
    route_init(&route, ctx, ns.full);
    do {
        again = false;
        switch (forward_primary(&route, &options, &request, err)) {
        case FORWARD_DONE:
            status = forward_reply(ctx, &request);
            remote_request_deinit(&request);
            break;
        case FORWARD_SHARDED:
            status = read_sharded(&route, merge, &again, err);
            break;
        case FORWARD_NO_DATABASE:
            status = merge->join(ctx, &(struct scatter){0}, err) ? COMMAND_OK : COMMAND_ERROR;
            break;
        case FORWARD_FAILED:
            break;
        }
    } while (again);
    route_deinit(&route);
    return status;
}
