/* checkMetadataConsistency: whether the chunks of each sharded collection cover all keys, and whether every shard that
 * owns one has the collection under the uuid that the config service knows. */
#include "command/fields.h"
#include "routerd/commands.h"
#include "routerd/ddl.h"
#include "routerd/request.h"

#include <stdio.h>
#include <string.h>

enum { METADATA_MAX_COLLECTIONS = 10000 };

/* One check of a cluster, a database or a collection. */
struct consistency {
    struct command_ctx *ctx;
    bson_t found; /* array of inconsistencies */
    uint32_t count;
};

static void add_inconsistency(struct consistency *check, const char *type, const char *ns, const char *shard,
                              const char *description)
{
    bson_t doc = BSON_INITIALIZER;
    bson_t details;
    BSON_APPEND_UTF8(&doc, "type", type);
    BSON_APPEND_UTF8(&doc, "description", description);
    BSON_APPEND_DOCUMENT_BEGIN(&doc, "details", &details);
    BSON_APPEND_UTF8(&details, "namespace", ns);
    if (shard)
        BSON_APPEND_UTF8(&details, "shard", shard);
    bson_append_document_end(&doc, &details);
    struct bval value = bval_from_doc(bdoc_of(&doc));
    request_append_at(&check->found, check->count++, &value);
    bson_destroy(&doc);
}

/* The collection's uuid on one shard; *uuid is NULL when the shard doesn't have it, else borrowed from the request. */
static bool shard_uuid(struct command_ctx *ctx, const struct ns *ns, const char *shard, struct remote_request *request,
                       const uint8_t **uuid, struct err *err)
{
    struct cursor_reply reply;
    struct bval first;
    struct bdoc info = {0};
    bson_t filter;
    bson_t body = BSON_INITIALIZER;
    *uuid = NULL;
    BSON_APPEND_INT32(&body, "listCollections", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "filter", &filter);
    BSON_APPEND_UTF8(&filter, "name", ns->coll);
    bson_append_document_end(&body, &filter);
    BSON_APPEND_UTF8(&body, "$db", ns->db);
    bool ok = ddl_on_shard(ctx, shard, &body, request, err) && cursor_reply_parse(request->reply, &reply, err);
    if (ok && bdoc_find(reply.batch, "0", &first) && first.type == BT_DOCUMENT)
        ok = field_get_doc(bval_doc(&first), "info", &info, err) &&
             (!info.data || field_get_uuid(info, "uuid", uuid, err));
    bson_destroy(&body);
    return ok;
}

static bool check_shards(struct consistency *check, const struct ns *ns, const struct routing_table *table,
                         struct err *err)
{
    const struct collection_entry *entry = routing_table_collection(table);
    bool ok = true;
    for (size_t i = 0; ok && i < routing_table_shard_count(table); i++) {
        struct remote_request request;
        const uint8_t *uuid;
        const char *shard = routing_table_shard_name(table, i);
        ok = shard_uuid(check->ctx, ns, shard, &request, &uuid, err);
        if (ok && !uuid)
            add_inconsistency(check, "MissingLocalCollection", ns->full, shard,
                              "a shard that owns chunks lacks the collection");
        else if (ok && memcmp(uuid, entry->uuid, CLUSTER_UUID_BYTES) != 0)
            add_inconsistency(check, "CollectionUUIDMismatch", ns->full, shard,
                              "the collection has another uuid there");
        remote_request_deinit(&request);
    }
    return ok;
}

static bool check_collection(struct consistency *check, const char *name, struct err *err)
{
    struct ns ns;
    struct route route;
    if (!ns_parse(&ns, name, err))
        return false;
    /* Read again from the start: building the table checks that the chunks cover all keys once. */
    routing_cache_flush(router_of(check->ctx)->routing, ns.full);
    route_init(&route, check->ctx, ns.full);
    bool ok = route_next(&route, err);
    if (!ok && (err->code == ERR_RangeOverlapConflict || err->code == ERR_FailedToParse)) {
        add_inconsistency(check, "RoutingTableRangeOverlap", ns.full, NULL, err->msg);
        ok = true;
    } else if (ok && route.routing->table) {
        ok = check_shards(check, &ns, route.routing->table, err);
    }
    route_deinit(&route);
    return ok;
}

/* "db.coll" names one collection, "db." those of a database, "" all. */
static bool in_scope(const char *scope, const char *ns)
{
    size_t len = strlen(scope);
    bool open_end = len == 0 || scope[len - 1] == '.';
    return open_end ? strncmp(ns, scope, len) == 0 : strcmp(ns, scope) == 0;
}

static bool check_all(struct consistency *check, const char *scope, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    struct biter iter;
    struct belem elem;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "find", "collections");
    BSON_APPEND_INT32(&body, "batchSize", METADATA_MAX_COLLECTIONS);
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", "config");
    bool ok = ddl_on_config(check->ctx, &body, true, &request, err) && cursor_reply_parse(request.reply, &reply, err);
    if (ok)
        biter_init(&iter, reply.batch);
    while (ok && biter_next(&iter, &elem)) {
        struct bval id;
        uint32_t len;
        if (elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "_id", &id) && id.type == BT_STRING &&
            in_scope(scope, bval_str(&id, &len)))
            ok = check_collection(check, bval_str(&id, &len), err);
    }
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

static enum command_status run_check(struct command_ctx *ctx, struct err *err)
{
    struct consistency check = {.ctx = ctx};
    struct ns ns;
    char scope[COMMAND_NS_MAX + 1] = "";
    char cursor_ns[COMMAND_DB_MAX + 16];
    if (!command_ns_or_db(ctx, &ns, err))
        return COMMAND_ERROR;
    if (ns.coll[0])
        snprintf(scope, sizeof scope, "%s", ns.full);
    else if (strcmp(ns.db, "admin") != 0)
        snprintf(scope, sizeof scope, "%s.", ns.db);
    bson_init(&check.found);
    bool ok = check_all(&check, scope, err);
    if (ok) {
        bson_t cursor;
        snprintf(cursor_ns, sizeof cursor_ns, "%s.$cmd.aggregate", ns.db);
        BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "cursor", &cursor);
        BSON_APPEND_ARRAY(&cursor, "firstBatch", &check.found);
        BSON_APPEND_INT64(&cursor, "id", 0);
        BSON_APPEND_UTF8(&cursor, "ns", cursor_ns);
        bson_append_document_end(&ctx->reply, &cursor);
    }
    bson_destroy(&check.found);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static const struct command commands[] = {
    {"checkMetadataConsistency", NULL, 0, run_check},
};

const struct command_family commands_metadata = COMMAND_FAMILY(commands);
