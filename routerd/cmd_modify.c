/* findAndModify: to the one shard that the query names, or to the shard of the best candidate. */
#include "command/modify_fields.h"
#include "query/projection.h"
#include "routerd/client_error.h"
#include "routerd/command_env.h"
#include "routerd/commands.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/single_write.h"
#include "routerd/upsert.h"
#include "routerd/write_concern.h"

/* {lastErrorObject: {updatedExisting | n}, value: null} for a query that matches nothing. */
static enum command_status modify_nothing(struct command_ctx *ctx, const struct modify_fields *fields)
{
    bson_t last;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "lastErrorObject", &last);
    BSON_APPEND_INT32(&last, "n", 0);
    if (!fields->remove)
        BSON_APPEND_BOOL(&last, "updatedExisting", false);
    bson_append_document_end(&ctx->reply, &last);
    BSON_APPEND_NULL(&ctx->reply, "value");
    return COMMAND_OK;
}

/* Passes the reply through; one that says writeConcern can't be met is copied. */
static enum command_status modify_reply(struct command_ctx *ctx, struct remote_request *request)
{
    static const char *const own[] = {"ok", NULL};
    if (!bdoc_has(ctx->body, "writeConcern"))
        return forward_reply(ctx, request);
    request_append_body(&ctx->reply, request->reply, own);
    write_concern_append_error(ctx, request->set->members.count);
    return COMMAND_OK;
}

/* The command to one shard. */
struct modify_send {
    size_t shard;
    struct bdoc query;                  /* of a candidate, instead of the command's; data NULL: its own */
    const struct routing_target *range; /* what it may look at there; NULL: one key value */
    bool again;                         /* out: the routing table was old */
    bool matched;                       /* out: there was such a document, or one was inserted */
};

static enum command_status modify_run(struct route *route, struct modify_send *send, struct err *err)
{
    /* A candidate that is gone makes no new document: the caller looks for another. */
    static const char *const own[] = {"query", "upsert", NULL};
    struct remote_set *set;
    struct remote_request request;
    struct bval value;
    if (!route_shard(route, send->shard, &set, err))
        return COMMAND_ERROR;
    remote_request_init(&request, set, false);
    remote_set_unref(set);
    request_append_body(&request.body, route->ctx->body, send->query.data ? own : NULL);
    if (send->query.data) {
        value = bval_from_doc(send->query);
        bval_append(&request.body, "query", -1, &value);
    }
    if (send->range)
        route_append_range_version(route, &request.body, send->range->ranges, send->range->range_count);
    else
        route_append_key_version(route, &request.body);
    remote_run(route->router, &request, 1, route->ctx->deadline_ms);
    enum command_status status = COMMAND_ERROR;
    if (request.ok) {
        struct bval last;
        send->matched = bdoc_find(request.reply, "lastErrorObject", &last) && last.type == BT_DOCUMENT &&
                        bdoc_find(bval_doc(&last), "n", &value) && bval_truthy(&value);
        status = send->matched || !send->query.data ? modify_reply(route->ctx, &request) : COMMAND_OK;
    } else if (!(send->again = !request.unknown && route_is_stale(route, &request.err))) {
        (void)client_error_from(route->ctx, &request, err);
    }
    remote_request_deinit(&request);
    return status;
}

/* The document as `fields` wants to see it. */
static bool append_value(struct command_ctx *ctx, const struct modify_fields *fields, struct bdoc doc, struct err *err)
{
    struct projection *projection;
    struct expr_env env;
    struct buf out = BUF_INIT;
    if (!fields->want_new) {
        BSON_APPEND_NULL(&ctx->reply, "value");
        return true;
    }
    struct projection_options options = {.kind = PROJECTION_FIND, .env = &env};
    if (fields->fields.data && !bdoc_is_empty(fields->fields)) {
        if (!command_env_init(&ctx->arena, ctx->body, NULL, &env, err) ||
            !projection_compile(&ctx->arena, fields->fields, &options, &projection, err))
            return false;
        if (!projection_apply(projection, doc, NULL, &out, err)) {
            buf_deinit(&out);
            return false;
        }
        doc = (struct bdoc){out.data, (uint32_t)out.len};
    }
    struct bval value = bval_from_doc(doc);
    bval_append(&ctx->reply, "value", -1, &value);
    buf_deinit(&out);
    return true;
}

static struct upsert upsert_of(const struct modify_fields *fields)
{
    return (struct upsert){
        .filter = fields->query,
        .update = fields->update,
        .array_filters = fields->array_filters,
        .collation = fields->collation,
    };
}

/* No shard has a match: inserts. *taken: a unique key is in use, so that something may match by now. */
static enum command_status modify_upsert(struct route *route, const struct ns *ns, const struct modify_fields *fields,
                                         bool *taken, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct upsert upsert = upsert_of(fields);
    struct bdoc doc;
    struct bval id;
    bson_t last;
    bool unknown = false;
    *taken = false;
    if (!upsert_build(route, &upsert, &doc, err))
        return COMMAND_ERROR;
    if (!upsert_insert(route, ns, ctx->body, doc, &unknown, err)) {
        *taken = err->code == ERR_DuplicateKey;
        return COMMAND_ERROR;
    }
    bdoc_find(doc, "_id", &id);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "lastErrorObject", &last);
    BSON_APPEND_INT32(&last, "n", 1);
    BSON_APPEND_BOOL(&last, "updatedExisting", false);
    bval_append(&last, "upserted", -1, &id);
    bson_append_document_end(&ctx->reply, &last);
    return append_value(ctx, fields, doc, err) ? COMMAND_OK : COMMAND_ERROR;
}

/* Any of several shards may have the document. */
static enum command_status modify_anywhere(struct route *route, const struct ns *ns, const struct modify_fields *fields,
                                           const struct target *target, bool *again, struct err *err)
{
    struct single_query query = {fields->query, fields->sort, fields->collation, fields->hint, route->ctx->body};
    int upserts = 0;
    for (int tries = 0; tries < SINGLE_WRITE_TRIES_MAX; tries++) {
        struct single_candidate candidate;
        enum single_found found = single_write_find(route, ns->coll, &query, target, &candidate, err);
        *again = found == SINGLE_STALE;
        if (found == SINGLE_STALE || found == SINGLE_FAILED)
            return COMMAND_ERROR;
        if (found == SINGLE_NONE && !fields->upsert)
            return modify_nothing(route->ctx, fields);
        if (found == SINGLE_NONE) {
            bool taken;
            enum command_status status = modify_upsert(route, ns, fields, &taken, err);
            if (status == COMMAND_OK || !taken || ++upserts == UPSERT_TRIES_MAX)
                return status;
        } else {
            struct modify_send send = {.query = candidate.filter};
            if (!single_write_shard(route, candidate.doc, &send.shard, err))
                return COMMAND_ERROR;
            enum command_status status = modify_run(route, &send, err);
            *again = send.again;
            if (status == COMMAND_ERROR || send.matched)
                return status;
        }
        if (!single_write_pause(route->ctx, tries, err))
            return COMMAND_ERROR;
    }
    err_set(err, ERR_WriteConflict, "the document kept changing while it was looked for");
    return COMMAND_ERROR;
}

static enum command_status modify_sharded(struct route *route, const struct ns *ns, const struct modify_fields *fields,
                                          bool *again, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct expr_env env;
    struct target target;
    struct target_query wanted = {fields->query, &env};
    if (!command_env_init(&ctx->arena, ctx->body, route->routing, &env, err) ||
        !target_filter(&ctx->arena, route->routing->table, &wanted, &target, err))
        return COMMAND_ERROR;
    if (target.count == 0 && !fields->upsert)
        return modify_nothing(ctx, fields);
    /* The one shard that an upsert may look at is not always the one where it inserts. */
    bool stays = !fields->upsert;
    if (fields->upsert && target.point) {
        struct upsert upsert = upsert_of(fields);
        stays = !upsert_leaves(route, &upsert, target.list->shard);
    }
    if (target.count == 1 && stays) {
        struct modify_send send = {.shard = target.list->shard, .range = target.point ? NULL : target.list};
        enum command_status status = modify_run(route, &send, err);
        *again = send.again;
        return status;
    }
    return modify_anywhere(route, ns, fields, &target, again, err);
}

static enum command_status run_find_and_modify(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct modify_fields fields;
    enum command_status status = COMMAND_ERROR;
    bool again;
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    if (!command_ns(ctx, &ns, err) || !modify_fields_read(ctx->body, &fields, err))
        return COMMAND_ERROR;
    if (forward_is_config_db(ns.db)) {
        err_set(err, ERR_IllegalOperation, "findAndModify on %s is not allowed", ns.full);
        return COMMAND_ERROR;
    }
    struct forward_options options = {.create_database = fields.upsert};
    route_init(&route, ctx, ns.full);
    do {
        again = false;
        switch (forward_primary(&route, &options, &request, err)) {
        case FORWARD_DONE:
            status = modify_reply(ctx, &request);
            remote_request_deinit(&request);
            break;
        case FORWARD_SHARDED:
            status = modify_sharded(&route, &ns, &fields, &again, err);
            break;
        case FORWARD_NO_DATABASE:
            status = modify_nothing(ctx, &fields);
            break;
        case FORWARD_FAILED:
            break;
        }
    } while (again);
    route_deinit(&route);
    return status;
}

static const struct command commands[] = {
    {"findAndModify", "findandmodify", COMMAND_WRITE | COMMAND_COLLECTION, run_find_and_modify},
};

const struct command_family commands_modify = COMMAND_FAMILY(commands);
