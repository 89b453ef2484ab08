/* planCacheClear, $planCacheStats */
#include "document/plan_cache_command.h"

#include "command/fields.h"
#include "document/commands.h"
#include "document/engine.h"
#include "plan/cache.h"

#include <stdio.h>

/* Also with a query: the plans of all shapes of the collection are found out anew. */
enum command_status plan_cache_clear_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"planCacheClear", "query", "sort", "projection", "collation", "comment", NULL};
    struct ns ns;
    struct read_txn read = {0};
    struct bdoc version;
    struct document_engine *engine = document_engine_of(ctx);
    bool ok = command_ns(ctx, &ns, err) && fields_check_known(ctx->body, "planCacheClear", known, err) &&
              request_version(ctx, &version, err) && read_txn_open(&read, engine, ns.full, version, err);
    if (ok && read.coll != NULL)
        plan_cache_clear(document_engine_plan_cache(engine), read.coll->id);
    read_txn_close(&read);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

struct listing {
    struct document_cursor *cursor;
    const char *host;
    char shard[DOCUMENT_MEMBER_NAME_MAX];
};

static void append_hash(bson_t *out, const char *name, uint32_t hash)
{
    char text[9];
    snprintf(text, sizeof text, "%08X", hash);
    bson_append_utf8(out, name, -1, text, -1);
}

static void list_one(void *arg, const struct plan_cache_value *value)
{
    struct listing *listing = arg;
    bson_t doc = BSON_INITIALIZER;
    append_hash(&doc, "queryHash", value->shape_hash);
    append_hash(&doc, "planCacheShapeHash", value->shape_hash);
    append_hash(&doc, "planCacheKey", value->key_hash);
    BSON_APPEND_BOOL(&doc, "isActive", true);
    BSON_APPEND_INT64(&doc, "works", (int64_t)value->works);
    BSON_APPEND_UTF8(&doc, "host", listing->host);
    if (listing->shard[0] != '\0')
        BSON_APPEND_UTF8(&doc, "shard", listing->shard);
    document_cursor_list_add(listing->cursor, bdoc_of(&doc));
    bson_destroy(&doc);
}

void plan_cache_list(struct document_cursor *cursor, const struct read_txn *read)
{
    struct listing listing = {.cursor = cursor, .host = document_engine_host(read->engine)};
    document_engine_member_name(read->engine, listing.shard);
    if (read->coll != NULL)
        plan_cache_each(document_engine_plan_cache(read->engine), read->coll->id, list_one, &listing);
}
