#include "routerd/cluster_stages.h"

#include "aggregate/pipeline.h"
#include "base/clock.h"
#include "cluster/routing.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/command_env.h"
#include "routerd/current_op.h"
#include "routerd/cursor_batch.h"
#include "routerd/foreign.h"
#include "routerd/request.h"
#include "routerd/scatter.h"

#include <stdio.h>
#include <string.h>

enum { STAGES_MAX_COLLECTIONS = 10000 };

/* Documents made here, as a source for the rest of the pipeline. */
struct doc_list {
    struct buf bytes; /* documents end to end */
};

static void list_add(struct doc_list *list, const bson_t *doc)
{
    buf_append(&list->bytes, bson_get_data(doc), doc->len);
}

/* Sessions leave no trace in a router: the only one that it knows of is the one that asks. */
static void own_session(const struct command_ctx *ctx, struct doc_list *list)
{
    struct bval lsid;
    if (!bdoc_find(ctx->body, "lsid", &lsid))
        return;
    bson_t doc = BSON_INITIALIZER;
    bval_append(&doc, "_id", 3, &lsid);
    BSON_APPEND_DATE_TIME(&doc, "lastUse", clock_wall_ms());
    list_add(list, &doc);
    bson_destroy(&doc);
}

/* numOwnedDocuments and ownedSizeBytes of one shard, from its answer to $collStats. */
static void append_shard_sizes(bson_t *shards, uint32_t n, const struct remote_request *request)
{
    struct cursor_reply reply;
    struct bval value;
    struct err ignored;
    int64_t count = 0;
    int64_t size = 0;
    if (cursor_reply_parse(request->reply, &reply, &ignored) && bdoc_find(reply.batch, "0", &value) &&
        value.type == BT_DOCUMENT && bdoc_find(bval_doc(&value), "storageStats", &value) && value.type == BT_DOCUMENT) {
        struct bval number;
        if (bdoc_find(bval_doc(&value), "count", &number))
            (void)bval_to_i64(&number, &count);
        if (bdoc_find(bval_doc(&value), "size", &number))
            (void)bval_to_i64(&number, &size);
    }
    char number[16];
    const char *key;
    bson_t entry;
    size_t len = bson_uint32_to_string(n, &key, number, sizeof number);
    bson_append_document_begin(shards, key, (int)len, &entry);
    BSON_APPEND_UTF8(&entry, "shardName", request->set->name);
    BSON_APPEND_INT32(&entry, "numOrphanedDocs", 0);
    BSON_APPEND_INT64(&entry, "numOwnedDocuments", count);
    BSON_APPEND_INT64(&entry, "orphanedSizeBytes", 0);
    BSON_APPEND_INT64(&entry, "ownedSizeBytes", size);
    bson_append_document_end(shards, &entry);
}

static void stats_command(const struct ns *ns, bson_t *body)
{
    bson_t pipeline, stage, spec, inner, cursor;
    BSON_APPEND_UTF8(body, "aggregate", ns->coll);
    BSON_APPEND_ARRAY_BEGIN(body, "pipeline", &pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$collStats", &spec);
    BSON_APPEND_DOCUMENT_BEGIN(&spec, "storageStats", &inner);
    bson_append_document_end(&spec, &inner);
    bson_append_document_end(&stage, &spec);
    bson_append_document_end(&pipeline, &stage);
    bson_append_array_end(body, &pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(body, "cursor", &cursor);
    bson_append_document_end(body, &cursor);
    BSON_APPEND_UTF8(body, "$db", ns->db);
}

/* {ns, shards: [...]} of one sharded collection; one that goes away meanwhile is left out. */
static bool distribution_of(struct command_ctx *ctx, const char *name, struct doc_list *list, struct err *err)
{
    struct ns ns;
    struct route route;
    struct err ignored;
    bool done = false;
    bool ok = true;
    if (!ns_parse(&ns, name, &ignored))
        return true;
    route_init(&route, ctx, ns.full);
    while (ok && !done) {
        struct target target;
        struct scatter scatter = {0};
        struct scatter_command command = {.repeatable = true};
        struct key_range all = routing_all_keys();
        ok = route_next(&route, err);
        if (!ok || !route.routing->table)
            break;
        target_ranges(&ctx->arena, route.routing->table, &all, 1, &target);
        bson_init(&command.body);
        stats_command(&ns, &command.body);
        enum scatter_outcome outcome = scatter_targets(&route, &target, &command, &scatter, err);
        ok = outcome != SCATTER_FAILED;
        done = outcome == SCATTER_DONE;
        if (done) {
            bson_t doc = BSON_INITIALIZER;
            bson_t shards;
            BSON_APPEND_UTF8(&doc, "ns", ns.full);
            BSON_APPEND_ARRAY_BEGIN(&doc, "shards", &shards);
            for (size_t i = 0; i < scatter.count; i++)
                append_shard_sizes(&shards, (uint32_t)i, &scatter.requests[i]);
            bson_append_array_end(&doc, &shards);
            list_add(list, &doc);
            bson_destroy(&doc);
        }
        scatter_deinit(&scatter);
        bson_destroy(&command.body);
    }
    route_deinit(&route);
    return ok;
}

static bool data_distribution(struct command_ctx *ctx, struct doc_list *list, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    remote_request_init_config(&request, router_of(ctx), true);
    BSON_APPEND_UTF8(&request.body, "find", "collections");
    BSON_APPEND_INT32(&request.body, "batchSize", STAGES_MAX_COLLECTIONS);
    BSON_APPEND_BOOL(&request.body, "singleBatch", true);
    BSON_APPEND_UTF8(&request.body, "$db", "config");
    bool ok = remote_run_one(router_of(ctx), &request, ctx->deadline_ms, NULL);
    if (!ok)
        (void)client_error_from(ctx, &request, err);
    else
        ok = cursor_reply_parse(request.reply, &reply, err);
    struct biter iter;
    struct belem elem;
    if (ok)
        biter_init(&iter, reply.batch);
    while (ok && biter_next(&iter, &elem)) {
        struct bval id;
        uint32_t len;
        if (elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "_id", &id) && id.type == BT_STRING)
            ok = distribution_of(ctx, bval_str(&id, &len), list, err);
    }
    remote_request_deinit(&request);
    return ok;
}

static bool documents_of(struct command_ctx *ctx, const struct expr_env *env, const struct bval *spec,
                         struct doc_list *list, struct err *err)
{
    enum { DOCUMENTS_NOT_AN_ARRAY = 5858203, DOCUMENTS_NOT_AN_OBJECT = 40228 };
    struct expr *expr;
    struct bval array;
    struct biter iter;
    struct belem elem;
    if (!expr_compile(&ctx->arena, spec, env, &expr, err) || !expr_eval(expr, bdoc_empty(), &ctx->arena, &array, err))
        return false;
    if (array.type != BT_ARRAY)
        return err_set(err, DOCUMENTS_NOT_AN_ARRAY,
                       "error during aggregation :: caused by :: 'queue' must evaluate to "
                       "an array of objects; found %s",
                       bval_type_name(array.type));
    for (biter_init(&iter, bval_doc(&array)); biter_next(&iter, &elem);) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, DOCUMENTS_NOT_AN_OBJECT, "$documents holds something that is no document");
        buf_append(&list->bytes, elem.val.data, elem.val.len);
    }
    return true;
}

static bool make_source(struct command_ctx *ctx, struct bdoc stages, const struct expr_env *env, struct doc_list *list,
                        struct err *err)
{
    struct bval first;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(stages, "0", &first) || first.type != BT_DOCUMENT)
        return err_set(err, ERR_InvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.");
    biter_init(&iter, bval_doc(&first));
    if (!biter_next(&iter, &elem))
        return err_set(err, ERR_InvalidNamespace, "{aggregate: 1} is not valid for an empty stage.");
    if (strcmp(elem.key, "$currentOp") == 0) {
        struct current_op_options options;
        if (strcmp(ctx->db, "admin") != 0)
            return err_set(err, ERR_InvalidNamespace,
                           "$currentOp must be run against the 'admin' database with {aggregate: 1}");
        return current_op_parse(&elem.val, &options, err) && current_op_collect(ctx, &options, &list->bytes, err);
    }
    if (strcmp(elem.key, "$listLocalSessions") == 0 || strcmp(elem.key, "$listSessions") == 0) {
        own_session(ctx, list);
        return true;
    }
    if (strcmp(elem.key, "$shardedDataDistribution") == 0)
        return data_distribution(ctx, list, err);
    if (strcmp(elem.key, "$documents") == 0)
        return documents_of(ctx, env, &elem.val, list, err);
    if (strcmp(elem.key, "$changeStream") == 0)
        return err_set(err, ERR_NotImplemented, "the pipeline stage $changeStream is not supported");
    return err_set(err, ERR_InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.",
                   elem.key);
}

/* As the shards do for pipelines that run there. */
static bool check_fields(struct bdoc body, struct err *err)
{
    static const char *const known[] = {"aggregate", "pipeline",     "cursor",
                                        "explain",   "allowDiskUse", "hint",
                                        "collation", "let",          "bypassDocumentValidation",
                                        NULL};
    return fields_check_known(body, "aggregate", known, err);
}

/* The rest of the pipeline, over the documents that were made. */
static bool compile_rest(struct router_cursor *cursor, const struct aggregate_request *request, struct err *err)
{
    struct bdoc collation, stages;
    struct arena *arena = &cursor->arena;
    struct bdoc body = {arena_copy(arena, request->body.data, request->body.len), request->body.len};
    if (!command_env_init(arena, body, NULL, &cursor->env, err) || !command_env_collation(body, NULL, &collation, err))
        return false;
    stages = request_array_rest(arena, request->stages);
    if (bdoc_is_empty(stages))
        return true;
    cursor->foreign = foreign_new(cursor, request->ns.db, collation, request->depth);
    return pipeline_compile(arena, stages, &cursor->env, &cursor->pipeline, err);
}

bool cluster_stages_open(struct command_ctx *ctx, const struct aggregate_request *request, struct router_cursor **out,
                         struct err *err)
{
    char shown[COMMAND_NS_MAX + 1];
    struct doc_list list = {0};
    snprintf(shown, sizeof shown, "%s.$cmd.aggregate", ctx->db);
    struct router_cursor *cursor = router_cursor_new(router_of(ctx), shown);
    router_cursor_use(cursor, ctx);
    bool ok = check_fields(request->body, err) && compile_rest(cursor, request, err) &&
              make_source(ctx, request->stages, &cursor->env, &list, err);
    cursor->made = list.bytes;
    if (!ok) {
        router_cursor_close(router_of(ctx), cursor);
        return false;
    }
    cursor_batch_start(cursor);
    *out = cursor;
    return true;
}
