#include "routerd/cluster_stages.h"

#include "aggregate/pipeline.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/routing.h"
#include "command/fields.h"
#include "command/namespace.h"
#include "routerd/client_error.h"
#include "routerd/cursors.h"
#include "routerd/request.h"
#include "routerd/scatter.h"

#include <stdio.h>
#include <string.h>

enum { STAGES_MAX_COLLECTIONS = 10000 };

/* Documents made here, as a source for the rest of the pipeline. */
struct doc_list {
    struct buf bytes; /* documents end to end */
    size_t at;        /* the next one */
};

static bool list_next(void *arg, struct bdoc *out, struct err *err)
{
    (void)err;
    struct doc_list *list = arg;
    *out = (struct bdoc){0};
    if (list->at >= list->bytes.len)
        return true;
    out->data = list->bytes.data + list->at;
    out->len = load_le32(out->data);
    list->at += out->len;
    return true;
}

static void list_add(struct doc_list *list, const bson_t *doc)
{
    buf_append(&list->bytes, bson_get_data(doc), doc->len);
}

static void current_op(const struct command_ctx *ctx, struct doc_list *list)
{
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "type", "op");
    BSON_APPEND_UTF8(&doc, "host", router_of(ctx)->address);
    BSON_APPEND_UTF8(&doc, "op", "command");
    BSON_APPEND_UTF8(&doc, "ns", "admin.$cmd.aggregate");
    BSON_APPEND_BOOL(&doc, "active", true);
    BSON_APPEND_UTF8(&doc, "opid", "self");
    list_add(list, &doc);
    bson_destroy(&doc);
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

static bool documents_of(const struct bval *spec, struct doc_list *list, struct err *err)
{
    struct biter iter;
    struct belem elem;
    if (spec->type != BT_ARRAY)
        return err_set(err, ERR_CommandNotSupported, "$documents takes an array of constant documents in this version");
    biter_init(&iter, bval_doc(spec));
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_BadValue, "$documents holds something that is no document");
        buf_append(&list->bytes, elem.val.data, elem.val.len);
    }
    return true;
}

static bool make_source(struct command_ctx *ctx, struct bdoc stages, struct doc_list *list, struct err *err)
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
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_FailedToParse, "$currentOp options must be specified in an object, but found: %s",
                           bval_type_name(elem.val.type));
        current_op(ctx, list);
        return true;
    }
    if (strcmp(elem.key, "$listLocalSessions") == 0 || strcmp(elem.key, "$listSessions") == 0) {
        own_session(ctx, list);
        return true;
    }
    if (strcmp(elem.key, "$shardedDataDistribution") == 0)
        return data_distribution(ctx, list, err);
    if (strcmp(elem.key, "$documents") == 0)
        return documents_of(&elem.val, list, err);
    if (strcmp(elem.key, "$changeStream") == 0)
        return err_set(err, ERR_CommandNotSupported, "$changeStream is not supported by this version");
    return err_set(err, ERR_InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.",
                   elem.key);
}

static bool fill(struct pipeline *pipeline, struct doc_list *list, bson_t *batch, struct err *err)
{
    struct doc_source source = {.next = list_next, .arg = list};
    struct pipeline_run *run = pipeline_run_new(pipeline, 0, source, PIPELINE_MEMORY_LIMIT_BYTES);
    struct bdoc doc;
    uint32_t n = 0;
    bool ok;
    while ((ok = pipeline_run_next(run, &doc, err)) && doc.data) {
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string(n++, &key, number, sizeof number);
        struct bval value = bval_from_doc(doc);
        if (batch->len + doc.len > CURSORS_BATCH_MAX_BYTES) {
            ok = err_set(err, ERR_BSONObjectTooLarge, "the result is too large for one batch");
            break;
        }
        bval_append(batch, key, (int)len, &value);
    }
    pipeline_run_free(run);
    return ok;
}

/* As the shards do for pipelines that run there. */
static bool check_fields(const struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"aggregate", "pipeline",     "cursor",
                                        "explain",   "allowDiskUse", "hint",
                                        "collation", "let",          "bypassDocumentValidation",
                                        NULL};
    return fields_check_known(ctx->body, "aggregate", known, err);
}

enum command_status cluster_stages_run(struct command_ctx *ctx, struct bdoc stages, const struct bdoc *let,
                                       struct err *err)
{
    struct doc_list list = {0};
    struct pipeline *pipeline = NULL;
    struct expr_env env = {.now_ms = clock_wall_ms(), .let = *let};
    bson_t batch = BSON_INITIALIZER;
    bool ok = check_fields(ctx, err) && make_source(ctx, stages, &list, err) &&
              pipeline_compile(&ctx->arena, request_array_rest(&ctx->arena, stages), &env, &pipeline, err) &&
              fill(pipeline, &list, &batch, err);
    if (ok) {
        char ns[COMMAND_NS_MAX + 1];
        bson_t cursor;
        snprintf(ns, sizeof ns, "%s.$cmd.aggregate", ctx->db);
        BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "cursor", &cursor);
        BSON_APPEND_ARRAY(&cursor, "firstBatch", &batch);
        BSON_APPEND_INT64(&cursor, "id", 0);
        BSON_APPEND_UTF8(&cursor, "ns", ns);
        bson_append_document_end(&ctx->reply, &cursor);
    }
    pipeline_release(pipeline);
    bson_destroy(&batch);
    buf_deinit(&list.bytes);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
