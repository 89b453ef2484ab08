#include "routerd/explain_reply.h"

#include "base/clock.h"
#include "routerd/request.h"

#include <stdlib.h>
#include <string.h>

static struct bdoc doc_of(struct bdoc from, const char *name)
{
    struct bval val;
    if (!bdoc_find(from, name, &val) || val.type != BT_DOCUMENT)
        return (struct bdoc){0};
    return bval_doc(&val);
}

static void append_fields(bson_t *out, struct bdoc from, const char *const *skip)
{
    if (from.data)
        request_append_body(out, from, skip);
}

/* ---- queryPlanner ---- */

static void append_shard_plan(bson_t *list, uint32_t index, const struct remote_request *request)
{
    char number[16];
    const char *key;
    bson_t shard;
    struct bval version;
    size_t len = bson_uint32_to_string(index, &key, number, sizeof number);
    bson_append_document_begin(list, key, (int)len, &shard);
    if (bdoc_find(request->reply, "explainVersion", &version))
        bval_append(&shard, "explainVersion", -1, &version);
    BSON_APPEND_UTF8(&shard, "shardName", request->set->name);
    BSON_APPEND_UTF8(&shard, "connectionString", request->set->host);
    struct bdoc server = doc_of(request->reply, "serverInfo");
    if (server.data) {
        struct bval val = bval_from_doc(server);
        bval_append(&shard, "serverInfo", -1, &val);
    }
    append_fields(&shard, doc_of(request->reply, "queryPlanner"), NULL);
    bson_append_document_end(list, &shard);
}

static void append_planner(const struct explain_reply *reply, bson_t *out)
{
    bson_t planner, winning, list, none;
    BSON_APPEND_DOCUMENT_BEGIN(out, "queryPlanner", &planner);
    BSON_APPEND_INT32(&planner, "mongosPlannerVersion", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&planner, "winningPlan", &winning);
    BSON_APPEND_UTF8(&winning, "stage", reply->stage);
    BSON_APPEND_ARRAY_BEGIN(&winning, "shards", &list);
    for (size_t i = 0; i < reply->scatter->count; i++)
        append_shard_plan(&list, (uint32_t)i, &reply->scatter->requests[i]);
    bson_append_array_end(&winning, &list);
    bson_append_document_end(&planner, &winning);
    BSON_APPEND_ARRAY_BEGIN(&planner, "rejectedPlans", &none);
    bson_append_array_end(&planner, &none);
    bson_append_document_end(out, &planner);
}

/* ---- executionStats ---- */

static int64_t stat_sum(const struct scatter *scatter, const char *name)
{
    int64_t sum = 0;
    for (size_t i = 0; i < scatter->count; i++) {
        struct bdoc stats = doc_of(scatter->requests[i].reply, "executionStats");
        struct bval val;
        int64_t number;
        if (stats.data && bdoc_find(stats, name, &val) && bval_to_i64(&val, &number))
            sum += number;
    }
    return sum;
}

static void append_sum(bson_t *out, const char *name, int64_t sum)
{
    if (sum <= INT32_MAX)
        BSON_APPEND_INT32(out, name, (int32_t)sum);
    else
        BSON_APPEND_INT64(out, name, sum);
}

static void append_totals(const struct explain_reply *reply, int64_t millis, bson_t *out)
{
    append_sum(out, "nReturned", stat_sum(reply->scatter, "nReturned"));
    append_sum(out, "executionTimeMillis", millis);
    append_sum(out, "totalKeysExamined", stat_sum(reply->scatter, "totalKeysExamined"));
    append_sum(out, "totalDocsExamined", stat_sum(reply->scatter, "totalDocsExamined"));
}

static void append_shard_stats(const struct explain_reply *reply, bson_t *out)
{
    static const char *const own[] = {"allPlansExecution", NULL};
    bson_t list, shard;
    BSON_APPEND_ARRAY_BEGIN(out, "shards", &list);
    for (size_t i = 0; i < reply->scatter->count; i++) {
        const struct remote_request *request = &reply->scatter->requests[i];
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string((uint32_t)i, &key, number, sizeof number);
        bson_append_document_begin(&list, key, (int)len, &shard);
        BSON_APPEND_UTF8(&shard, "shardName", request->set->name);
        append_fields(&shard, doc_of(request->reply, "executionStats"), own);
        bson_append_document_end(&list, &shard);
    }
    bson_append_array_end(out, &list);
}

static void append_all_plans(const struct explain_reply *reply, bson_t *out)
{
    bson_t list, shard;
    BSON_APPEND_ARRAY_BEGIN(out, "allPlansExecution", &list);
    for (size_t i = 0; i < reply->scatter->count; i++) {
        const struct remote_request *request = &reply->scatter->requests[i];
        struct bdoc stats = doc_of(request->reply, "executionStats");
        struct bval plans;
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string((uint32_t)i, &key, number, sizeof number);
        bson_append_document_begin(&list, key, (int)len, &shard);
        BSON_APPEND_UTF8(&shard, "shardName", request->set->name);
        if (stats.data && bdoc_find(stats, "allPlansExecution", &plans))
            bval_append(&shard, "allPlans", -1, &plans);
        bson_append_document_end(&list, &shard);
    }
    bson_append_array_end(out, &list);
}

static void append_stats(const struct explain_reply *reply, bson_t *out)
{
    bson_t stats, stages;
    int64_t millis = clock_now_ms() - reply->ctx->started_ms;
    BSON_APPEND_DOCUMENT_BEGIN(out, "executionStats", &stats);
    append_totals(reply, millis, &stats);
    BSON_APPEND_DOCUMENT_BEGIN(&stats, "executionStages", &stages);
    BSON_APPEND_UTF8(&stages, "stage", reply->stage);
    append_totals(reply, millis, &stages);
    BSON_APPEND_INT64(&stages, "totalChildMillis", stat_sum(reply->scatter, "executionTimeMillis"));
    append_shard_stats(reply, &stages);
    bson_append_document_end(&stats, &stages);
    if (reply->all_plans)
        append_all_plans(reply, &stats);
    bson_append_document_end(out, &stats);
}

/* ---- the ends ---- */

static void append_targeting(const struct explain_targeting *targeting, bson_t *out)
{
    bson_t doc;
    BSON_APPEND_DOCUMENT_BEGIN(out, "targeting", &doc);
    BSON_APPEND_UTF8(&doc, "kind", targeting->kind);
    BSON_APPEND_UTF8(&doc, "reason", targeting->reason);
    if (targeting->key.data) {
        struct bval key = bval_from_doc(targeting->key);
        bval_append(&doc, "shardKey", -1, &key);
    }
    BSON_APPEND_INT32(&doc, "shards", (int32_t)targeting->shards);
    BSON_APPEND_INT32(&doc, "of", (int32_t)targeting->of);
    bson_append_document_end(out, &doc);
}

static void append_command(const struct command_ctx *inner, bson_t *out)
{
    bson_t command;
    struct biter iter;
    struct belem elem;
    BSON_APPEND_DOCUMENT_BEGIN(out, "command", &command);
    for (biter_init(&iter, inner->body); biter_next(&iter, &elem);)
        if (strncmp(elem.key, "$sherd", 6) != 0)
            bval_append(&command, elem.key, (int)elem.key_len, &elem.val);
    bson_append_document_end(out, &command);
}

static void append_server(const struct router *router, bson_t *out)
{
    bson_t info;
    const char *colon = strrchr(router->address, ':');
    BSON_APPEND_DOCUMENT_BEGIN(out, "serverInfo", &info);
    bson_append_utf8(&info, "host", -1, router->address, colon ? (int)(colon - router->address) : -1);
    BSON_APPEND_INT32(&info, "port", (int32_t)router->options.port);
    BSON_APPEND_UTF8(&info, "version", "8.0.0");
    BSON_APPEND_UTF8(&info, "gitVersion", "sherd-" SHERD_VERSION);
    bson_append_document_end(out, &info);
}

void explain_reply_end(const struct explain_reply *reply)
{
    bson_t *out = &reply->ctx->reply;
    append_targeting(&reply->targeting, out);
    append_server(router_of(reply->ctx), out);
    append_command(reply->inner, out);
}

void explain_reply_plan(const struct explain_reply *reply)
{
    append_planner(reply, &reply->ctx->reply);
    if (reply->stats)
        append_stats(reply, &reply->ctx->reply);
    explain_reply_end(reply);
}

static void append_array(bson_t *out, const char *name, struct bdoc array)
{
    struct bval val = {.type = BT_ARRAY, .data = array.data, .len = array.len};
    bval_append(out, name, -1, &val);
}

/* Streams of the shards come first, then what the router does with them. */
static void append_merger(const struct explain_reply *reply, bson_t *out)
{
    bson_t list, stage, spec;
    struct biter iter;
    struct belem elem;
    uint32_t n = 1;
    BSON_APPEND_ARRAY_BEGIN(out, "mergerPart", &list);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$mergeCursors", &spec);
    if (reply->merge_sort.data) {
        struct bval sort = bval_from_doc(reply->merge_sort);
        bval_append(&spec, "sort", -1, &sort);
    }
    BSON_APPEND_UTF8(&spec, "nss", reply->ns ? reply->ns : "");
    bson_append_document_end(&stage, &spec);
    bson_append_document_end(&list, &stage);
    if (reply->merger_part.data)
        for (biter_init(&iter, reply->merger_part); biter_next(&iter, &elem);)
            request_append_at(&list, n++, &elem.val);
    bson_append_array_end(out, &list);
}

/* Each shard under its name, with its plan or its stages. */
static void append_shards(const struct explain_reply *reply, bson_t *out)
{
    static const char *const own[] = {"command", "serverInfo", "serverParameters", "ok", NULL};
    bson_t shards, shard;
    BSON_APPEND_DOCUMENT_BEGIN(out, "shards", &shards);
    for (size_t i = 0; i < reply->scatter->count; i++) {
        const struct remote_request *request = &reply->scatter->requests[i];
        bson_append_document_begin(&shards, request->set->name, -1, &shard);
        BSON_APPEND_UTF8(&shard, "host", request->member);
        append_fields(&shard, request->reply, own);
        bson_append_document_end(&shards, &shard);
    }
    bson_append_document_end(out, &shards);
}

void explain_reply_aggregate(const struct explain_reply *reply)
{
    bson_t *out = &reply->ctx->reply;
    bson_t split;
    if (reply->shards_part.data) {
        BSON_APPEND_UTF8(out, "mergeType", "mongos");
        BSON_APPEND_DOCUMENT_BEGIN(out, "splitPipeline", &split);
        append_array(&split, "shardsPart", reply->shards_part);
        append_merger(reply, &split);
        bson_append_document_end(out, &split);
    } else {
        BSON_APPEND_NULL(out, "splitPipeline");
    }
    append_shards(reply, out);
    explain_reply_end(reply);
}

void explain_reply_whole(const struct explain_reply *reply)
{
    static const char *const own[] = {"ok", NULL};
    append_fields(&reply->ctx->reply, reply->scatter->requests[0].reply, own);
    append_targeting(&reply->targeting, &reply->ctx->reply);
}
