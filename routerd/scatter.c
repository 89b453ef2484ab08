#include "routerd/scatter.h"

#include "base/mem.h"
#include "routerd/client_error.h"
#include "routerd/merge.h"
#include "routerd/request.h"

#include <stdio.h>
#include <string.h>

bool scatter_any_ok(const struct scatter *scatter)
{
    for (size_t i = 0; i < scatter->count; i++)
        if (scatter->requests[i].ok)
            return true;
    return false;
}

static enum scatter_outcome scatter_outcome_of(struct command_ctx *ctx, struct route *route,
                                               const struct scatter_command *command, const struct scatter *scatter,
                                               struct err *err)
{
    enum scatter_outcome outcome = SCATTER_DONE;
    const struct remote_request *gone = NULL;
    for (size_t i = 0; i < scatter->count; i++) {
        const struct remote_request *request = &scatter->requests[i];
        if (request->ok)
            continue;
        if (command->gone_code && request->err.code == command->gone_code) {
            gone = request;
        } else if (route && route_is_stale(route, &request->err)) {
            if (outcome == SCATTER_DONE)
                outcome = SCATTER_STALE;
        } else if (outcome != SCATTER_FAILED) {
            (void)client_error_from(ctx, request, err);
            outcome = SCATTER_FAILED;
        }
    }
    if (gone && outcome == SCATTER_DONE && !command->done_before && !scatter_any_ok(scatter)) {
        (void)client_error_from(ctx, gone, err);
        outcome = SCATTER_FAILED;
    }
    return outcome;
}

enum scatter_outcome scatter_targets(struct route *route, const struct target *target,
                                     const struct scatter_command *command, struct scatter *out, struct err *err)
{
    *out = (struct scatter){.requests = remote_requests_new(target->count + 1)};
    for (size_t i = 0; i < target->count; i++) {
        struct remote_set *set;
        if (!route_shard(route, target->list[i].shard, &set, err))
            return SCATTER_FAILED;
        struct remote_request *request = &out->requests[out->count++];
        remote_request_init(request, set, command->repeatable);
        remote_set_unref(set);
        bson_concat(&request->body, &command->body);
        route_append_range_version(route, &request->body, target->list[i].ranges, target->list[i].range_count);
    }
    remote_run(route->router, out->requests, out->count, route->ctx->deadline_ms);
    return scatter_outcome_of(route->ctx, route, command, out, err);
}

enum scatter_outcome scatter_primary(struct route *route, const struct scatter_command *command, struct scatter *out,
                                     struct err *err)
{
    struct remote_set *set;
    *out = (struct scatter){.requests = remote_requests_new(1)};
    if (!route_primary(route, &set, err))
        return SCATTER_FAILED;
    remote_request_init(&out->requests[out->count++], set, command->repeatable);
    remote_set_unref(set);
    bson_concat(&out->requests[0].body, &command->body);
    route_append_db_version(route, &out->requests[0].body);
    remote_run(route->router, out->requests, 1, route->ctx->deadline_ms);
    return scatter_outcome_of(route->ctx, route, command, out, err);
}

enum scatter_outcome scatter_sets(struct command_ctx *ctx, const struct set_list *sets,
                                  const struct scatter_command *command, struct scatter *out, struct err *err)
{
    *out = (struct scatter){.requests = remote_requests_new(sets->count + 1)};
    for (; out->count < sets->count; out->count++) {
        remote_request_init(&out->requests[out->count], sets->sets[out->count], command->repeatable);
        bson_concat(&out->requests[out->count].body, &command->body);
    }
    remote_run(router_of(ctx), out->requests, out->count, ctx->deadline_ms);
    return scatter_outcome_of(ctx, NULL, command, out, err);
}

void scatter_close_cursors(struct route *route, struct scatter *scatter)
{
    for (size_t i = 0; i < scatter->count; i++) {
        struct remote_request *request = &scatter->requests[i];
        struct cursor_reply reply;
        struct err ignored;
        if (!request->ok || !request->frame || !cursor_reply_parse(request->reply, &reply, &ignored) || reply.id == 0)
            continue;
        char db[COMMAND_DB_MAX + 1];
        const char *dot = strchr(route->ns, '.');
        snprintf(db, sizeof db, "%.*s", (int)(dot - route->ns), route->ns);
        merge_kill_cursor(route->router, request->set, request->member, db, dot + 1, reply.id);
    }
}

void scatter_deinit(struct scatter *scatter)
{
    for (size_t i = 0; i < scatter->count; i++)
        remote_request_deinit(&scatter->requests[i]);
    mem_free(scatter->requests);
    *scatter = (struct scatter){0};
}
