/* listCollections, listDatabases, collStats, dbStats, validate, planCacheClear. */
#include "base/map.h"
#include "base/mem.h"
#include "command/fields.h"
#include "query/filter.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/ddl.h"
#include "routerd/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum command_status run_list_collections(struct command_ctx *ctx, struct err *err)
{
    char cursor_ns[COMMAND_NS_MAX + 1];
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = true};
    enum command_status status = COMMAND_ERROR;
    snprintf(cursor_ns, sizeof cursor_ns, "%s.$cmd.listCollections", ctx->db);
    if (forward_is_config_db(ctx->db)) {
        if (forward_config(ctx, true, &request, err))
            status = forward_cursor_reply(ctx, cursor_ns, &request, err);
        remote_request_deinit(&request);
        return status;
    }
    route_init(&route, ctx, ctx->db);
    switch (forward_primary(&route, &options, &request, err)) {
    case FORWARD_DONE:
        status = forward_cursor_reply(ctx, cursor_ns, &request, err);
        remote_request_deinit(&request);
        break;
    case FORWARD_NO_DATABASE:
    case FORWARD_SHARDED:
        status = forward_empty_cursor(ctx, cursor_ns, err);
        break;
    case FORWARD_FAILED:
        break;
    }
    route_deinit(&route);
    return status;
}

/* One database over all shards. */
struct database_sum {
    int64_t size;
    bool empty;
};

struct database_list {
    struct map sums; /* name -> struct database_sum * */
    struct arena *arena;
};

static void add_database(struct database_list *list, struct bdoc doc)
{
    struct bval name, value;
    int64_t size = 0;
    uint32_t len;
    if (!bdoc_find(doc, "name", &name) || name.type != BT_STRING)
        return;
    const char *text = bval_str(&name, &len);
    if (bdoc_find(doc, "sizeOnDisk", &value))
        (void)bval_to_i64(&value, &size);
    bool empty = bdoc_find(doc, "empty", &value) && bval_truthy(&value);
    struct database_sum *sum = map_get(&list->sums, text, len);
    if (!sum) {
        sum = arena_alloc(list->arena, sizeof *sum);
        sum->empty = true;
        map_put(&list->sums, text, len, sum);
    }
    sum->size += size;
    sum->empty &= empty;
}

/* The reserved databases come from the config service, all others from the shards. */
static void add_databases(struct database_list *list, struct bdoc reply, bool config)
{
    struct bval databases, name;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(reply, "databases", &databases) || databases.type != BT_ARRAY)
        return;
    biter_init(&iter, bval_doc(&databases));
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&elem.val), "name", &name))
            continue;
        bool reserved = bval_is_str(&name, "config") || bval_is_str(&name, "admin");
        if (reserved == config && !bval_is_str(&name, "local"))
            add_database(list, bval_doc(&elem.val));
    }
}

static int name_compare(const void *a, const void *b)
{
    return strcmp((*(const struct map_entry *const *)a)->key, (*(const struct map_entry *const *)b)->key);
}

static bool append_databases(struct command_ctx *ctx, const struct database_list *list, const struct filter *filter,
                             bool name_only)
{
    bson_t array = BSON_INITIALIZER;
    uint32_t count = 0, n = 0;
    int64_t total = 0;
    struct map_entry **entries = mem_alloc_array(list->sums.count + 1, sizeof *entries);
    for (struct map_entry *e = map_next(&list->sums, NULL); e; e = map_next(&list->sums, e))
        entries[count++] = e;
    qsort(entries, count, sizeof *entries, name_compare);
    for (uint32_t i = 0; i < count; i++) {
        const struct database_sum *sum = entries[i]->value;
        bson_t doc = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&doc, "name", entries[i]->key);
        if (!name_only) {
            BSON_APPEND_INT64(&doc, "sizeOnDisk", sum->size);
            BSON_APPEND_BOOL(&doc, "empty", sum->empty);
        }
        if (!filter || filter_matches(filter, bdoc_of(&doc))) {
            struct bval value = bval_from_doc(bdoc_of(&doc));
            request_append_at(&array, n++, &value);
            total += sum->size;
        }
        bson_destroy(&doc);
    }
    mem_free(entries);
    BSON_APPEND_ARRAY(&ctx->reply, "databases", &array);
    bson_destroy(&array);
    if (!name_only) {
        BSON_APPEND_INT64(&ctx->reply, "totalSize", total);
        BSON_APPEND_INT64(&ctx->reply, "totalSizeMb", total >> 20);
    }
    return true;
}

/* All shards and the config service. */
static bool gather_databases(struct command_ctx *ctx, struct database_list *list, struct err *err)
{
    struct set_list sets;
    struct scatter scatter = {0};
    struct scatter_command command = {.repeatable = true};
    if (!registry_all(router_of(ctx)->registry, ctx->deadline_ms, &sets, err)) {
        client_error_make(ctx, false, err);
        return false;
    }
    sets.sets[sets.count++] = remote_set_ref(registry_config(router_of(ctx)->registry));
    bson_init(&command.body);
    BSON_APPEND_INT32(&command.body, "listDatabases", 1);
    BSON_APPEND_UTF8(&command.body, "$db", "admin");
    bool ok = scatter_sets(ctx, &sets, &command, &scatter, err) == SCATTER_DONE;
    for (size_t i = 0; ok && i < scatter.count; i++)
        add_databases(list, scatter.requests[i].reply, i + 1 == scatter.count);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    set_list_deinit(&sets);
    return ok;
}

static enum command_status run_list_databases(struct command_ctx *ctx, struct err *err)
{
    struct bdoc query = {0};
    struct filter *filter = NULL;
    bool name_only = false;
    struct database_list list = {.arena = &ctx->arena};
    static const char *const known[] = {"filter", "nameOnly", "authorizedDatabases", NULL};
    bool ok = fields_check_arguments(ctx->body, ctx->name, known, err) &&
              field_get_doc(ctx->body, "filter", &query, err) &&
              field_get_bool(ctx->body, "nameOnly", &name_only, err) &&
              (!query.data || filter_compile(&ctx->arena, query, NULL, &filter, err)) &&
              gather_databases(ctx, &list, err) && append_databases(ctx, &list, filter, name_only);
    filter_release(filter);
    map_deinit(&list.sums);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

/* Adds up the named number over the shards; int64 unless it is small. */
static void append_sum(bson_t *reply, const struct scatter *scatter, const char *name)
{
    int64_t total = 0;
    for (size_t i = 0; i < scatter->count; i++) {
        struct bval value;
        int64_t number;
        double real;
        if (!bdoc_find(scatter->requests[i].reply, name, &value))
            continue;
        if (bval_to_i64(&value, &number))
            total += number;
        else if (bval_to_f64(&value, &real))
            total += (int64_t)real;
    }
    if (total <= INT32_MAX)
        bson_append_int32(reply, name, -1, (int32_t)total);
    else
        bson_append_int64(reply, name, -1, total);
}

static void append_shard_replies(bson_t *reply, const char *name, const struct scatter *scatter, bool by_host)
{
    static const char *const own[] = {"ok", NULL};
    bson_t shards, child;
    bson_append_document_begin(reply, name, -1, &shards);
    for (size_t i = 0; i < scatter->count; i++) {
        const struct remote_request *request = &scatter->requests[i];
        bson_append_document_begin(&shards, by_host ? request->set->host : request->set->name, -1, &child);
        request_append_body(&child, request->reply, own);
        bson_append_document_end(&shards, &child);
    }
    bson_append_document_end(reply, &shards);
}

static void coll_stats_sharded(struct command_ctx *ctx, const struct ns *ns, const struct scatter *scatter)
{
    static const char *const sums[] = {"count", "size", "storageSize", "totalIndexSize", "totalSize", NULL};
    struct bval value;
    BSON_APPEND_BOOL(&ctx->reply, "sharded", true);
    BSON_APPEND_UTF8(&ctx->reply, "ns", ns->full);
    for (const char *const *name = sums; *name; name++)
        append_sum(&ctx->reply, scatter, *name);
    if (scatter->count > 0 && bdoc_find(scatter->requests[0].reply, "nindexes", &value))
        bval_append(&ctx->reply, "nindexes", -1, &value);
    BSON_APPEND_INT32(&ctx->reply, "nchunks", 0);
    append_shard_replies(&ctx->reply, "shards", scatter, false);
}

static void coll_stats_empty(struct command_ctx *ctx, const struct ns *ns)
{
    static const char *const names[] = {"count", "size", "storageSize", "nindexes", "totalIndexSize", "totalSize"};
    BSON_APPEND_UTF8(&ctx->reply, "ns", ns->full);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        bson_append_int32(&ctx->reply, names[i], -1, 0);
}

static void validate_sharded(struct command_ctx *ctx, const struct scatter *scatter)
{
    bool valid = true;
    for (size_t i = 0; i < scatter->count; i++) {
        struct bval value;
        valid &= bdoc_find(scatter->requests[i].reply, "valid", &value) && bval_truthy(&value);
    }
    BSON_APPEND_BOOL(&ctx->reply, "valid", valid);
    append_sum(&ctx->reply, scatter, "nrecords");
    append_shard_replies(&ctx->reply, "raw", scatter, true);
}

enum report {
    REPORT_STATS,
    REPORT_VALIDATE,
    REPORT_NOTHING, /* planCacheClear: no more than ok */
};

/* The primary shard's answer, or those of all owners put together. */
static enum command_status run_collection_report(struct command_ctx *ctx, enum report report, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = true};
    enum command_status status = COMMAND_ERROR;
    if (!command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    if (forward_is_config_db(ns.db)) {
        if (forward_config(ctx, true, &request, err))
            status = forward_reply(ctx, &request);
        remote_request_deinit(&request);
        return status;
    }
    route_init(&route, ctx, ns.full);
    enum forward_outcome outcome = forward_primary(&route, &options, &request, err);
    if (outcome == FORWARD_DONE) {
        status = forward_reply(ctx, &request);
        remote_request_deinit(&request);
    } else if (outcome == FORWARD_NO_DATABASE && report != REPORT_VALIDATE) {
        if (report == REPORT_STATS)
            coll_stats_empty(ctx, &ns);
        status = COMMAND_OK;
    } else if (outcome == FORWARD_NO_DATABASE) {
        err_set(err, ERR_NamespaceNotFound, "Collection '%s' does not exist to validate.", ns.full);
    } else if (outcome == FORWARD_SHARDED) {
        struct scatter scatter;
        bool sharded;
        bson_t body = BSON_INITIALIZER;
        request_append_body(&body, ctx->body, NULL);
        if (ddl_owners(&route, &body, 0, &sharded, &scatter, err) == SCATTER_DONE) {
            status = COMMAND_OK;
            if (report == REPORT_STATS)
                coll_stats_sharded(ctx, &ns, &scatter);
            else if (report == REPORT_VALIDATE)
                validate_sharded(ctx, &scatter);
        }
        scatter_deinit(&scatter);
        bson_destroy(&body);
    }
    route_deinit(&route);
    return status;
}

static enum command_status run_coll_stats(struct command_ctx *ctx, struct err *err)
{
    return run_collection_report(ctx, REPORT_STATS, err);
}

static enum command_status run_validate(struct command_ctx *ctx, struct err *err)
{
    return run_collection_report(ctx, REPORT_VALIDATE, err);
}

static enum command_status run_plan_cache_clear(struct command_ctx *ctx, struct err *err)
{
    return run_collection_report(ctx, REPORT_NOTHING, err);
}

static enum command_status run_db_stats(struct command_ctx *ctx, struct err *err)
{
    static const char *const sums[] = {"collections", "views",     "objects",   "dataSize", "storageSize",
                                       "indexes",     "indexSize", "totalSize", NULL};
    struct set_list sets;
    struct scatter scatter;
    struct scatter_command command = {.repeatable = true};
    if (!registry_all(router_of(ctx)->registry, ctx->deadline_ms, &sets, err)) {
        client_error_make(ctx, false, err);
        return COMMAND_ERROR;
    }
    if (forward_is_config_db(ctx->db))
        sets.sets[sets.count++] = remote_set_ref(registry_config(router_of(ctx)->registry));
    bson_init(&command.body);
    request_append_body(&command.body, ctx->body, NULL);
    bool ok = scatter_sets(ctx, &sets, &command, &scatter, err) == SCATTER_DONE;
    if (ok) {
        BSON_APPEND_UTF8(&ctx->reply, "db", ctx->db);
        for (const char *const *name = sums; *name; name++)
            append_sum(&ctx->reply, &scatter, *name);
        append_shard_replies(&ctx->reply, "raw", &scatter, true);
    }
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    set_list_deinit(&sets);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static const struct command commands[] = {
    {"listCollections", NULL, 0, run_list_collections},
    {"listDatabases", NULL, COMMAND_ADMIN_ONLY, run_list_databases},
    {"collStats", "collstats", COMMAND_COLLECTION, run_coll_stats},
    {"dbStats", "dbstats", 0, run_db_stats},
    {"validate", NULL, COMMAND_COLLECTION, run_validate},
    {"planCacheClear", NULL, COMMAND_COLLECTION, run_plan_cache_clear},
};

const struct command_family commands_list = COMMAND_FAMILY(commands);
