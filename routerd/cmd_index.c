/* createIndexes, dropIndexes, listIndexes: on the primary shard, or on every shard that owns a part. */
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/ddl.h"
#include "routerd/index_cleanup.h"
#include "routerd/request.h"
#include "routerd/routed_read.h"
#include "routerd/write_concern.h"

#include <stdio.h>

/* A unique index can only hold cluster-wide when equal keys meet on one shard. */
static bool check_unique(const struct route *route, struct bdoc specs, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, specs);
    while (biter_next(&iter, &elem)) {
        struct bdoc key = {0};
        bool unique = false;
        bool prepared = false;
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_TypeMismatch, "an element of createIndexes.indexes is no document");
        struct bdoc spec = bval_doc(&elem.val);
        if (!field_get_doc(spec, "key", &key, err) || !field_get_bool(spec, "unique", &unique, err) ||
            !field_get_bool(spec, "prepareUnique", &prepared, err))
            return false;
        bool is_id = key.data && bdoc_count(key) == 1 && bdoc_has(key, "_id");
        if ((unique || prepared) && !is_id && key.data &&
            !shardkey_is_prefix_of(routing_table_key(route->routing->table), key))
            return err_set(err, ERR_CannotCreateIndex,
                           "cannot create unique index over a key that doesn't begin with the shard key");
    }
    return true;
}

/* {raw: {host: reply, ...}} and the counts of the first shard that has done it. */
static void raw_reply(struct command_ctx *ctx, const struct scatter *scatter)
{
    static const char *const own[] = {"ok", NULL};
    bson_t raw;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "raw", &raw);
    for (size_t i = 0; i < scatter->count; i++) {
        struct bval reply = bval_from_doc(scatter->requests[i].reply);
        bval_append(&raw, scatter->requests[i].set->host, -1, &reply);
    }
    bson_append_document_end(&ctx->reply, &raw);
    for (size_t i = 0; i < scatter->count; i++) {
        if (scatter->requests[i].ok) {
            request_append_body(&ctx->reply, scatter->requests[i].reply, own);
            break;
        }
    }
}

/* A shard that dropped the index in an earlier attempt has nothing left to do. One that lacks the first of several may
 * still have the others: that is an error as ever. */
static int32_t gone_code(struct bdoc body)
{
    struct bval which;
    return bdoc_find(body, "index", &which) && which.type != BT_ARRAY ? ERR_IndexNotFound : 0;
}

static enum command_status index_sharded(struct route *route, bool create, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct bdoc specs = bdoc_empty();
    struct bdoc before = {0};
    struct scatter scatter;
    struct ns ns;
    bool sharded;
    if (!command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    if (create && (!field_get_array(ctx->body, "indexes", &specs, err) || !check_unique(route, specs, err) ||
                   !index_cleanup_look(route, &ns, &before, err)))
        return COMMAND_ERROR;
    bson_t body = BSON_INITIALIZER;
    request_append_body(&body, ctx->body, NULL);
    enum scatter_outcome outcome = ddl_owners(route, &body, create ? 0 : gone_code(ctx->body), &sharded, &scatter, err);
    bool ok = outcome == SCATTER_DONE;
    if (!ok && create)
        index_cleanup_run(route, &ns, specs, before, &scatter);
    if (ok && !sharded)
        ok = err_set(err, ERR_ConflictingOperationInProgress, "the collection was dropped meanwhile");
    if (ok) {
        raw_reply(ctx, &scatter);
        write_concern_append_error(ctx, scatter.requests[0].set->members.count);
    }
    scatter_deinit(&scatter);
    bson_destroy(&body);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_index_command(struct command_ctx *ctx, bool create, struct err *err)
{
    static const char *const own[] = {"ok", NULL};
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = create, .create_database = create};
    enum command_status status = COMMAND_ERROR;
    if (!command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    if (forward_is_config_db(ns.db)) {
        err_set(err, ERR_IllegalOperation, "%s on %s is not allowed", ctx->command->name, ns.full);
        return COMMAND_ERROR;
    }
    route_init(&route, ctx, ns.full);
    switch (forward_primary(&route, &options, &request, err)) {
    case FORWARD_DONE:
        request_append_body(&ctx->reply, request.reply, own);
        write_concern_append_error(ctx, request.set->members.count);
        remote_request_deinit(&request);
        status = COMMAND_OK;
        break;
    case FORWARD_SHARDED:
        status = index_sharded(&route, create, err);
        break;
    case FORWARD_NO_DATABASE:
        err_set(err, ERR_NamespaceNotFound, "ns not found %s", ns.full);
        break;
    case FORWARD_FAILED:
        break;
    }
    route_deinit(&route);
    return status;
}

static enum command_status run_create_indexes(struct command_ctx *ctx, struct err *err)
{
    return run_index_command(ctx, true, err);
}

static enum command_status run_drop_indexes(struct command_ctx *ctx, struct err *err)
{
    return run_index_command(ctx, false, err);
}

/* Every owner has the same indexes: the first is asked. */
static enum command_status list_sharded(struct route *route, const struct ns *ns, bool *again, struct err *err)
{
    struct target target;
    struct key_range all = routing_all_keys();
    struct scatter scatter;
    struct scatter_command command = {.repeatable = true};
    enum command_status status = COMMAND_ERROR;
    target_ranges(&route->ctx->arena, route->routing->table, &all, 1, &target);
    target.count = 1;
    bson_init(&command.body);
    request_append_body(&command.body, route->ctx->body, NULL);
    enum scatter_outcome outcome = scatter_targets(route, &target, &command, &scatter, err);
    *again = outcome == SCATTER_STALE;
    if (outcome == SCATTER_DONE)
        status = forward_cursor_reply(route->ctx, ns->full, &scatter.requests[0], err);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return status;
}

static enum command_status list_missing(struct command_ctx *ctx, const char *ns, struct err *err)
{
    (void)ctx;
    err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns);
    return COMMAND_ERROR;
}

static enum command_status run_list_indexes(struct command_ctx *ctx, struct err *err)
{
    static const struct routed_read read = {
        .answered = forward_cursor_reply, .sharded = list_sharded, .no_database = list_missing};
    return routed_read_run(ctx, &read, err);
}

static enum command_status run_search_index(struct command_ctx *ctx, struct err *err)
{
    (void)ctx;
    index_search_refused(err);
    return COMMAND_ERROR;
}

void index_search_refused(struct err *err)
{
    enum { SEARCH_NOT_ENABLED = 31082 };
    err_set(err, SEARCH_NOT_ENABLED,
            "Search indexes are a service of MongoDB Atlas: they and $listSearchIndexes are not supported here");
}

static const struct command commands[] = {
    {"createIndexes", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_create_indexes},
    {"dropIndexes", "deleteIndexes", COMMAND_WRITE | COMMAND_COLLECTION, run_drop_indexes},
    {"listIndexes", NULL, COMMAND_COLLECTION, run_list_indexes},
    {"createSearchIndexes", NULL, COMMAND_COLLECTION, run_search_index},
    {"updateSearchIndex", NULL, COMMAND_COLLECTION, run_search_index},
    {"dropSearchIndex", NULL, COMMAND_COLLECTION, run_search_index},
};

const struct command_family commands_index = COMMAND_FAMILY(commands);
