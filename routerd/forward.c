#include "routerd/forward.h"

#include "routerd/client_error.h"
#include "routerd/cursors.h"
#include "routerd/request.h"

#include <stdio.h>
#include <string.h>

bool forward_is_config_db(const char *db)
{
    return strcmp(db, "config") == 0 || strcmp(db, "admin") == 0;
}

bool forward_config(struct command_ctx *ctx, bool repeatable, struct remote_request *request, struct err *err)
{
    remote_request_init_config(request, router_of(ctx), repeatable);
    request_append_body(&request->body, ctx->body, NULL);
    return remote_run_one(router_of(ctx), request, ctx->deadline_ms, NULL) || client_error_from(ctx, request, err);
}

enum forward_outcome forward_primary(struct route *route, const struct forward_options *options,
                                     struct remote_request *request, struct err *err)
{
    for (;;) {
        struct remote_set *set;
        if (!route_next(route, err) || (options->create_database && !route_create_database(route, err)))
            return FORWARD_FAILED;
        if (!route->routing->exists)
            return FORWARD_NO_DATABASE;
        if (route->routing->table && !options->even_sharded)
            return FORWARD_SHARDED;
        if (!route_primary(route, &set, err))
            return FORWARD_FAILED;
        remote_request_init(request, set, options->repeatable);
        remote_set_unref(set);
        request_append_body(&request->body, route->ctx->body, options->skip);
        if (!route->routing->table)
            route_append_db_version(route, &request->body);
        remote_run(route->router, request, 1, route->ctx->deadline_ms);
        if (request->ok)
            return FORWARD_DONE;
        bool again = !request->unknown && route_is_stale(route, &request->err);
        if (!again)
            (void)client_error_from(route->ctx, request, err);
        remote_request_deinit(request);
        if (!again)
            return FORWARD_FAILED;
    }
}

enum command_status forward_reply(struct command_ctx *ctx, struct remote_request *request)
{
    command_ctx_set_raw(ctx, request->frame);
    request->frame = NULL;
    return COMMAND_OK;
}

enum command_status forward_cursor_reply(struct command_ctx *ctx, const char *ns, struct remote_request *request,
                                         struct err *err)
{
    struct cursor_reply reply;
    if (!cursor_reply_parse(request->reply, &reply, err))
        return COMMAND_ERROR;
    if (reply.id != 0) {
        struct bval value;
        struct router_cursor *cursor = router_cursor_new(router_of(ctx), ns);
        cursor->set = remote_set_ref(request->set);
        cursor->shard_id = reply.id;
        router_cursor_set_origin(cursor, ctx);
        cursor->no_timeout = bdoc_find(ctx->body, "noCursorTimeout", &value) && bval_truthy(&value);
        snprintf(cursor->member, sizeof cursor->member, "%s", request->member);
        if (!cursor_table_add(router_of(ctx)->cursors, cursor, err)) {
            router_cursor_close(router_of(ctx), cursor);
            return COMMAND_ERROR;
        }
        /* The frame is this request's alone: the id is exchanged in place. */
        store_le64(request->frame->data + (reply.id_at - request->frame->data), (uint64_t)cursor->id);
        cursor_table_give(router_of(ctx)->cursors, cursor, false);
    }
    return forward_reply(ctx, request);
}

enum command_status forward_empty_cursor(struct command_ctx *ctx, const char *ns, struct err *err)
{
    (void)err;
    bson_t cursor, batch;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "cursor", &cursor);
    BSON_APPEND_INT64(&cursor, "id", 0);
    BSON_APPEND_UTF8(&cursor, "ns", ns);
    BSON_APPEND_ARRAY_BEGIN(&cursor, "firstBatch", &batch);
    bson_append_array_end(&cursor, &batch);
    bson_append_document_end(&ctx->reply, &cursor);
    return COMMAND_OK;
}
