#include "document/explain_print.h"

#include "document/engine.h"
#include "query/filter_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct printer {
    const struct explain_info *info;
    bool executed; /* with counters */
};

static void append_hash(bson_t *out, const char *name, uint32_t hash)
{
    char text[16];
    snprintf(text, sizeof text, "%08X", hash);
    BSON_APPEND_UTF8(out, name, text);
}

static void append_doc(bson_t *out, const char *name, struct bdoc doc)
{
    struct bval val = bval_from_doc(doc);
    bval_append(out, name, -1, &val);
}

static void append_count(bson_t *out, const char *name, uint64_t count)
{
    if (count <= INT32_MAX)
        BSON_APPEND_INT32(out, name, (int32_t)count);
    else
        BSON_APPEND_INT64(out, name, (int64_t)count);
}

static void append_filter(bson_t *out, const char *name, const struct filter *filter)
{
    bson_t parsed;
    BSON_APPEND_DOCUMENT_BEGIN(out, name, &parsed);
    if (filter != NULL)
        filter_append_parsed(filter, &parsed);
    bson_append_document_end(out, &parsed);
}

/* ---- what a stage says of itself ---- */

/* {a: ["a", "a.b"]}: for each field the parts of its path that were arrays in some document. */
static void append_multikey_paths(bson_t *out, const struct plan_scan *scan)
{
    bson_t paths;
    struct biter iter;
    struct belem elem;
    uint32_t i = 0;
    BSON_APPEND_DOCUMENT_BEGIN(out, "multiKeyPaths", &paths);
    biter_init(&iter, scan->key_pattern);
    while (biter_next(&iter, &elem) && i < scan->field_count) {
        bson_t list;
        uint32_t n = 0;
        uint32_t part = 0;
        bson_append_array_begin(&paths, elem.key, (int)elem.key_len, &list);
        for (uint32_t at = 0; at <= elem.key_len && part < 64; at++) {
            if (at < elem.key_len && elem.key[at] != '.')
                continue;
            if (scan->multikey_paths != NULL && scan->multikey_paths[i] >> part & 1) {
                char digits[16];
                const char *key;
                bson_uint32_to_string(n++, &key, digits, sizeof digits);
                bson_append_utf8(&list, key, -1, elem.key, (int)at);
            }
            part++;
        }
        bson_append_array_end(&paths, &list);
        i++;
    }
    bson_append_document_end(out, &paths);
}

static void append_index(const struct printer *printer, const struct plan_node *node, bson_t *out)
{
    const struct plan_scan *scan = node->scan;
    bson_t bounds;
    append_doc(out, "keyPattern", scan->key_pattern);
    BSON_APPEND_UTF8(out, "indexName", scan->index_name);
    if (scan->collation.data != NULL)
        append_doc(out, "collation", scan->collation);
    BSON_APPEND_BOOL(out, "isMultiKey", scan->multikey);
    append_multikey_paths(out, scan);
    BSON_APPEND_BOOL(out, "isUnique", scan->unique);
    BSON_APPEND_BOOL(out, "isSparse", scan->sparse);
    BSON_APPEND_BOOL(out, "isPartial", scan->partial);
    BSON_APPEND_INT32(out, "indexVersion", 2);
    BSON_APPEND_UTF8(out, "direction", scan->backward ? "backward" : "forward");
    BSON_APPEND_DOCUMENT_BEGIN(out, "indexBounds", &bounds);
    plan_bounds_append(scan, &bounds);
    bson_append_document_end(out, &bounds);
    if (!printer->executed)
        return;
    append_count(out, "keysExamined", node->counters.keys_examined);
    append_count(out, "seeks", node->counters.seeks);
    append_count(out, "dupsTested", node->counters.dups_tested);
    append_count(out, "dupsDropped", node->counters.dups_dropped);
}

static void append_sort(const struct printer *printer, const struct plan_node *node, bson_t *out)
{
    const struct explain_counts *counts = &printer->info->counts;
    append_doc(out, "sortPattern", node->sort->source);
    if (node->stage == STAGE_SORT_MERGE)
        return;
    BSON_APPEND_INT64(out, "memLimit", DOCUMENT_SORT_MAX_BYTES);
    if (node->number > 0)
        append_count(out, "limitAmount", node->number);
    BSON_APPEND_UTF8(out, "type", "simple");
    if (!printer->executed)
        return;
    BSON_APPEND_INT64(out, "totalDataSizeSorted", counts->spilled.bytes);
    BSON_APPEND_BOOL(out, "usedDisk", counts->spilled.runs > 0);
    BSON_APPEND_INT64(out, "spills", (int64_t)counts->spilled.runs);
    BSON_APPEND_INT64(out, "spilledDataStorageSize", counts->spilled.spilled_bytes);
}

static void append_write(const struct printer *printer, const struct plan_node *node, bson_t *out)
{
    const struct explain_counts *counts = &printer->info->counts;
    if (!printer->executed)
        return;
    if (node->stage == STAGE_DELETE) {
        append_count(out, "nWouldDelete", counts->matched);
        return;
    }
    append_count(out, "nMatched", counts->matched);
    append_count(out, "nWouldModify", counts->would_modify);
    append_count(out, "nWouldUpsert", counts->would_upsert);
}

static void append_details(const struct printer *printer, const struct plan_node *node, bson_t *out)
{
    const struct explain_counts *counts = &printer->info->counts;
    switch (node->stage) {
    case STAGE_COLLSCAN:
        BSON_APPEND_UTF8(out, "direction", node->backward ? "backward" : "forward");
        break;
    case STAGE_IXSCAN:
    case STAGE_COUNT_SCAN:
    case STAGE_DISTINCT_SCAN:
        append_index(printer, node, out);
        break;
    case STAGE_IDHACK:
        BSON_APPEND_UTF8(out, "keyPattern", "{ _id: 1 }");
        BSON_APPEND_UTF8(out, "indexName", "_id_");
        if (printer->executed)
            append_count(out, "keysExamined", node->counters.keys_examined);
        break;
    case STAGE_SORT:
    case STAGE_SORT_MERGE:
        append_sort(printer, node, out);
        break;
    case STAGE_SKIP:
        append_count(out, "skipAmount", node->number);
        break;
    case STAGE_LIMIT:
        append_count(out, "limitAmount", node->number);
        break;
    case STAGE_PROJECTION_SIMPLE:
    case STAGE_PROJECTION_COVERED:
    case STAGE_PROJECTION_DEFAULT:
        append_doc(out, "transformBy",
                   printer->info->projection.data != NULL ? printer->info->projection : bdoc_empty());
        break;
    case STAGE_COUNT:
        if (printer->executed) {
            append_count(out, "nCounted", counts->matched);
            append_count(out, "nSkipped", counts->skipped);
        }
        break;
    case STAGE_SHARDING_FILTER:
        if (printer->executed)
            append_count(out, "chunkSkips", node->counters.chunk_skips);
        break;
    case STAGE_UPDATE:
    case STAGE_DELETE:
        append_write(printer, node, out);
        break;
    case STAGE_EOF:
    case STAGE_FETCH:
    case STAGE_OR:
    case STAGE_RECORD_STORE_COUNT:
        break;
    }
}

static bool reads_documents(enum plan_stage stage)
{
    return stage == STAGE_COLLSCAN || stage == STAGE_FETCH || stage == STAGE_IDHACK;
}

static void append_counters(const struct plan_node *node, bson_t *out)
{
    const struct plan_counters *counters = &node->counters;
    append_count(out, "nReturned", counters->advanced);
    BSON_APPEND_INT32(out, "executionTimeMillisEstimate", 0);
    append_count(out, "works", counters->works);
    append_count(out, "advanced", counters->advanced);
    append_count(out, "needTime", counters->works > counters->advanced ? counters->works - counters->advanced : 0);
    BSON_APPEND_INT32(out, "needYield", 0);
    BSON_APPEND_INT32(out, "saveState", 0);
    BSON_APPEND_INT32(out, "restoreState", 0);
    BSON_APPEND_INT32(out, "isEOF", counters->eof);
    if (reads_documents(node->stage))
        append_count(out, "docsExamined", counters->docs_examined);
}

static void append_node(const struct printer *printer, const struct plan_node *node, bson_t *out)
{
    bson_t child;
    BSON_APPEND_UTF8(out, "stage", plan_stage_name(node->stage));
    if (node->filter != NULL)
        append_filter(out, "filter", node->filter);
    if (printer->executed)
        append_counters(node, out);
    append_details(printer, node, out);
    if (node->child_count == 1) {
        BSON_APPEND_DOCUMENT_BEGIN(out, "inputStage", &child);
        append_node(printer, node->children[0], &child);
        bson_append_document_end(out, &child);
    } else if (node->child_count > 1) {
        bson_t list;
        BSON_APPEND_ARRAY_BEGIN(out, "inputStages", &list);
        for (uint32_t i = 0; i < node->child_count; i++) {
            char digits[16];
            const char *key;
            bson_uint32_to_string(i, &key, digits, sizeof digits);
            BSON_APPEND_DOCUMENT_BEGIN(&list, key, &child);
            append_node(printer, node->children[i], &child);
            bson_append_document_end(&list, &child);
        }
        bson_append_array_end(out, &list);
    }
}

/* A collection that doesn't exist has one stage of its own. */
static void append_tree(const struct printer *printer, bson_t *out)
{
    if (printer->info->tree != NULL) {
        append_node(printer, printer->info->tree, out);
        return;
    }
    BSON_APPEND_UTF8(out, "stage", "EOF");
    if (printer->executed)
        append_counters(&(struct plan_node){.stage = STAGE_EOF, .counters = {.works = 1, .eof = true}}, out);
    BSON_APPEND_UTF8(out, "type", "nonExistentNamespace");
}

/* ---- queryPlanner ---- */

static struct plan_node *rejected_tree(struct arena *arena, const struct explain_info *info, const struct plan *plan)
{
    struct plan_shape shape = info->shape;
    if (plan->sorted)
        shape.sort = NULL;
    return plan_tree_new(arena, plan, &shape);
}

static void append_rejected(const struct explain_info *info, bson_t *out)
{
    struct arena arena;
    bson_t list;
    arena_init(&arena);
    BSON_APPEND_ARRAY_BEGIN(out, "rejectedPlans", &list);
    for (uint32_t i = 0; info->plan != NULL && i < info->plan->rejected_count; i++) {
        const struct printer printer = {.info = info};
        char digits[16];
        const char *key;
        bson_t child;
        bson_uint32_to_string(i, &key, digits, sizeof digits);
        BSON_APPEND_DOCUMENT_BEGIN(&list, key, &child);
        BSON_APPEND_BOOL(&child, "isCached", false);
        append_node(&printer, rejected_tree(&arena, info, info->plan->rejected[i]), &child);
        bson_append_document_end(&list, &child);
    }
    bson_append_array_end(out, &list);
    arena_deinit(&arena);
}

static void append_planner(const struct explain_info *info, bson_t *out)
{
    const struct printer printer = {.info = info};
    bson_t planner;
    bson_t winning;
    BSON_APPEND_DOCUMENT_BEGIN(out, "queryPlanner", &planner);
    BSON_APPEND_UTF8(&planner, "namespace", info->ns);
    append_filter(&planner, "parsedQuery", info->filter);
    BSON_APPEND_BOOL(&planner, "indexFilterSet", false);
    append_hash(&planner, "queryHash", info->plan == NULL ? 0 : info->plan->shape_hash);
    append_hash(&planner, "planCacheShapeHash", info->plan == NULL ? 0 : info->plan->shape_hash);
    append_hash(&planner, "planCacheKey", info->plan == NULL ? 0 : info->plan->key_hash);
    BSON_APPEND_INT32(&planner, "optimizationTimeMillis", 0);
    BSON_APPEND_BOOL(&planner, "maxIndexedOrSolutionsReached", false);
    BSON_APPEND_BOOL(&planner, "maxIndexedAndSolutionsReached", false);
    BSON_APPEND_BOOL(&planner, "maxScansToExplodeReached", false);
    BSON_APPEND_BOOL(&planner, "prunedSimilarIndexes", false);
    BSON_APPEND_DOCUMENT_BEGIN(&planner, "winningPlan", &winning);
    BSON_APPEND_BOOL(&winning, "isCached", info->plan != NULL && info->plan->from_cache);
    append_tree(&printer, &winning);
    bson_append_document_end(&planner, &winning);
    append_rejected(info, &planner);
    bson_append_document_end(out, &planner);
}

/* ---- executionStats ---- */

static void append_one_plan(bson_t *list, uint32_t index, const struct explain_info *info, const struct plan *plan,
                            struct arena *arena)
{
    const struct printer printer = {.info = info};
    char digits[16];
    const char *key;
    bson_t one;
    bson_t stages;
    bson_uint32_to_string(index, &key, digits, sizeof digits);
    BSON_APPEND_DOCUMENT_BEGIN(list, key, &one);
    BSON_APPEND_DOUBLE(&one, "score", plan->score);
    append_count(&one, "works", plan->trial_works);
    BSON_APPEND_DOCUMENT_BEGIN(&one, "executionStages", &stages);
    append_node(&printer, rejected_tree(arena, info, plan), &stages);
    bson_append_document_end(&one, &stages);
    bson_append_document_end(list, &one);
}

/* Every plan that was tried: how far its trial went, and its score. */
static void append_all_plans(const struct explain_info *info, bson_t *out)
{
    struct arena arena;
    bson_t list;
    uint32_t n = 0;
    arena_init(&arena);
    BSON_APPEND_ARRAY_BEGIN(out, "allPlansExecution", &list);
    if (info->plan != NULL && info->plan->rejected_count > 0) {
        append_one_plan(&list, n++, info, info->plan, &arena);
        for (uint32_t i = 0; i < info->plan->rejected_count; i++)
            append_one_plan(&list, n++, info, info->plan->rejected[i], &arena);
    }
    bson_append_array_end(out, &list);
    arena_deinit(&arena);
}

static void append_stats(const struct explain_info *info, bson_t *out)
{
    const struct explain_counts *counts = &info->counts;
    const struct printer printer = {.info = info, .executed = true};
    bson_t stats;
    bson_t stages;
    BSON_APPEND_DOCUMENT_BEGIN(out, "executionStats", &stats);
    BSON_APPEND_BOOL(&stats, "executionSuccess", counts->failure.code == 0);
    if (counts->failure.code != 0) {
        BSON_APPEND_UTF8(&stats, "errorMessage", counts->failure.msg);
        BSON_APPEND_INT32(&stats, "errorCode", counts->failure.code);
    }
    append_count(&stats, "nReturned", counts->returned);
    BSON_APPEND_INT32(&stats, "executionTimeMillis", (int32_t)counts->millis);
    append_count(&stats, "totalKeysExamined", counts->keys_examined);
    append_count(&stats, "totalDocsExamined", counts->docs_examined);
    BSON_APPEND_DOCUMENT_BEGIN(&stats, "executionStages", &stages);
    BSON_APPEND_BOOL(&stages, "isCached", info->plan != NULL && info->plan->from_cache);
    append_tree(&printer, &stages);
    bson_append_document_end(&stats, &stages);
    if (info->verbosity == EXPLAIN_ALL_PLANS)
        append_all_plans(info, &stats);
    bson_append_document_end(out, &stats);
}

void explain_append_plan(const struct explain_info *info, bson_t *out)
{
    append_planner(info, out);
    if (info->verbosity != EXPLAIN_QUERY_PLANNER)
        append_stats(info, out);
}

/* ---- the rest of the answer ---- */

static void append_command(const struct command_ctx *ctx, bson_t *out)
{
    bson_t command;
    struct biter iter;
    struct belem elem;
    BSON_APPEND_DOCUMENT_BEGIN(out, "command", &command);
    biter_init(&iter, ctx->body);
    while (biter_next(&iter, &elem)) {
        if (strncmp(elem.key, "$sherd", 6) != 0 && strcmp(elem.key, "$db") != 0)
            bval_append(&command, elem.key, (int)elem.key_len, &elem.val);
    }
    BSON_APPEND_UTF8(&command, "$db", ctx->db);
    bson_append_document_end(out, &command);
}

void explain_append_server(const struct command_ctx *ctx, const char *host, bson_t *out)
{
    bson_t info;
    const char *colon = strrchr(host, ':');
    append_command(ctx, out);
    BSON_APPEND_DOCUMENT_BEGIN(out, "serverInfo", &info);
    bson_append_utf8(&info, "host", -1, host, colon == NULL ? -1 : (int)(colon - host));
    BSON_APPEND_INT32(&info, "port", colon == NULL ? 0 : (int32_t)strtol(colon + 1, NULL, 10));
    BSON_APPEND_UTF8(&info, "version", "8.0.0");
    BSON_APPEND_UTF8(&info, "gitVersion", "sherd-" SHERD_VERSION);
    bson_append_document_end(out, &info);
    BSON_APPEND_DOCUMENT_BEGIN(out, "serverParameters", &info);
    BSON_APPEND_INT32(&info, "internalQueryMaxBlockingSortMemoryUsageBytes", DOCUMENT_SORT_MAX_BYTES);
    bson_append_document_end(out, &info);
}
