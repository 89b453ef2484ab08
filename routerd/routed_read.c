#include "routerd/routed_read.h"

static enum command_status finish(struct command_ctx *ctx, const struct routed_read *read, const char *ns,
                                  struct remote_request *request, struct err *err)
{
    return read->answered ? read->answered(ctx, ns, request, err) : forward_reply(ctx, request);
}

static enum command_status read_config(struct command_ctx *ctx, const struct routed_read *read, const struct ns *ns,
                                       struct err *err)
{
    struct remote_request request;
    enum command_status status = COMMAND_ERROR;
    if (forward_config(ctx, true, &request, err))
        status = finish(ctx, read, ns->full, &request, err);
    remote_request_deinit(&request);
    return status;
}

/* The name turned out to be a view's, or the error is the client's. */
static enum command_status read_refused(struct command_ctx *ctx, const struct routed_read *read, const struct ns *ns,
                                        struct err *err)
{
    struct view view;
    if (!read->view || !view_is_refusal(err))
        return COMMAND_ERROR;
    struct err refused = *err;
    return view_resolve(ctx, ns, &refused, &view, err) ? read->view(ctx, &view, err) : COMMAND_ERROR;
}

static enum command_status read_once(struct route *route, const struct routed_read *read, const struct ns *ns,
                                     bool *again, struct err *err)
{
    struct forward_options options = {.repeatable = true};
    struct remote_request request;
    enum command_status status = COMMAND_ERROR;
    *again = false;
    switch (forward_primary(route, &options, &request, err)) {
    case FORWARD_DONE:
        status = finish(route->ctx, read, ns->full, &request, err);
        remote_request_deinit(&request);
        break;
    case FORWARD_SHARDED:
        status = read->sharded(route, ns, again, err);
        break;
    case FORWARD_NO_DATABASE:
        status = read->no_database(route->ctx, ns->full, err);
        break;
    case FORWARD_FAILED:
        status = read_refused(route->ctx, read, ns, err);
        break;
    }
    return status;
}

enum command_status routed_read_run(struct command_ctx *ctx, const struct routed_read *read, struct err *err)
{
    struct ns ns;
    struct route route;
    enum command_status status;
    bool again;
    if (!command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    if (forward_is_config_db(ns.db))
        return read_config(ctx, read, &ns, err);
    route_init(&route, ctx, ns.full);
    do
        status = read_once(&route, read, &ns, &again, err);
    while (again);
    route_deinit(&route);
    return status;
}
