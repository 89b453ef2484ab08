/* collStats, dbStats, validate, and the documents of $collStats and $indexStats */
#include "document/index_usage.h"
#include "document/stats.h"

#include "base/clock.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/traits.h"
#include "document/views.h"
#include "storage/counters.h"
#include "storage/validate.h"

#include <string.h>

static void append_size(bson_t *out, const char *name, int64_t bytes, int64_t scale)
{
    int64_t value = bytes / scale;
    if (value <= INT32_MAX)
        BSON_APPEND_INT32(out, name, (int32_t)value);
    else
        BSON_APPEND_INT64(out, name, value);
}

static int64_t index_bytes(struct store_txn *txn, const struct collection *coll)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < coll->index_count; i++) {
        struct counter counter;
        counter_index(txn, coll->indexes[i], &counter);
        total += counter.bytes;
    }
    return total;
}

static void append_index_sizes(struct store_txn *txn, const struct collection *coll, int64_t scale, bson_t *out)
{
    bson_t sizes;
    BSON_APPEND_DOCUMENT_BEGIN(out, "indexSizes", &sizes);
    for (uint32_t i = 0; i < coll->index_count; i++) {
        struct counter counter;
        counter_index(txn, coll->indexes[i], &counter);
        append_size(&sizes, coll->indexes[i]->name, counter.bytes, scale);
    }
    bson_append_document_end(out, &sizes);
}

static void append_capped(const struct collection *coll, int64_t scale, bson_t *out)
{
    BSON_APPEND_BOOL(out, "capped", coll != NULL && coll->capped);
    if (coll == NULL || !coll->capped)
        return;
    const struct collection_traits *traits = collection_traits(coll);
    append_size(out, "max", traits->capped_docs, 1);
    append_size(out, "maxSize", traits->capped_bytes, scale);
}

static void append_storage(struct store_txn *txn, const struct collection *coll, int64_t scale, bson_t *out)
{
    struct counter counter = {0};
    if (coll != NULL)
        counter_collection(txn, coll, &counter);
    int64_t indexes = coll == NULL ? 0 : index_bytes(txn, coll);
    append_size(out, "size", counter.bytes, scale);
    append_size(out, "count", counter.docs, 1);
    if (counter.docs > 0)
        append_size(out, "avgObjSize", counter.bytes / counter.docs, 1);
    append_size(out, "storageSize", counter.bytes, scale);
    BSON_APPEND_INT32(out, "freeStorageSize", 0);
    append_capped(coll, scale, out);
    BSON_APPEND_INT32(out, "nindexes", coll == NULL ? 0 : (int32_t)(coll->index_count - coll->many_ids));
    append_size(out, "totalIndexSize", indexes, scale);
    append_size(out, "totalSize", indexes + counter.bytes, scale);
    if (coll != NULL)
        append_index_sizes(txn, coll, scale, out);
    append_size(out, "scaleFactor", scale, 1);
}

static bool read_scale(struct bdoc doc, int64_t *scale, struct err *err)
{
    *scale = 1;
    return field_get_i64_in(doc, "scale", 1, INT64_MAX, scale, err);
}

static void append_origin(struct document_engine *engine, const struct ns *ns, bson_t *out)
{
    char shard[DOCUMENT_MEMBER_NAME_MAX];
    document_engine_member_name(engine, shard);
    BSON_APPEND_UTF8(out, "ns", ns->full);
    if (shard[0] != '\0')
        BSON_APPEND_UTF8(out, "shard", shard);
    BSON_APPEND_UTF8(out, "host", document_engine_host(engine));
    BSON_APPEND_DATE_TIME(out, "localTime", clock_wall_ms());
}

bool stats_coll_stats_stage(struct document_engine *engine, const struct read_txn *read, const struct ns *ns,
                            const struct bval *spec, bson_t *out, struct err *err)
{
    struct bdoc storage = {0};
    struct bdoc count = {0};
    int64_t scale = 1;
    if (spec->type != BT_DOCUMENT)
        return err_set(err, 5447000, "$collStats must take a nested object but found a value of type %s",
                       bval_type_name(spec->type));
    if (!field_get_doc(bval_doc(spec), "storageStats", &storage, err) ||
        !field_get_doc(bval_doc(spec), "count", &count, err) ||
        (storage.data != NULL && !read_scale(storage, &scale, err)))
        return false;
    if (read->coll == NULL && (storage.data != NULL || count.data != NULL))
        return err_set(err, ERR_NamespaceNotFound,
                       "Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [%s] not found.",
                       ns->full);
    append_origin(engine, ns, out);
    if (storage.data != NULL) {
        bson_t stats;
        BSON_APPEND_DOCUMENT_BEGIN(out, "storageStats", &stats);
        append_storage(read->txn, read->coll, scale, &stats);
        bson_append_document_end(out, &stats);
    }
    if (count.data != NULL) {
        struct counter counter;
        counter_collection(read->txn, read->coll, &counter);
        append_size(out, "count", counter.docs, 1);
    }
    return true;
}

void stats_index_stats_stage(struct document_engine *engine, const struct index_def *index, bson_t *out)
{
    char shard[DOCUMENT_MEMBER_NAME_MAX];
    struct bval key = bval_from_doc(index->key_pattern);
    struct bval spec = bval_from_doc(index->spec);
    int64_t since_ms;
    int64_t uses = index_usage_get(document_engine_usage(engine), index->id, &since_ms);
    bson_t accesses;
    BSON_APPEND_UTF8(out, "name", index->name);
    bval_append(out, "key", -1, &key);
    BSON_APPEND_UTF8(out, "host", document_engine_host(engine));
    BSON_APPEND_DOCUMENT_BEGIN(out, "accesses", &accesses);
    BSON_APPEND_INT64(&accesses, "ops", uses);
    BSON_APPEND_DATE_TIME(&accesses, "since", since_ms);
    bson_append_document_end(out, &accesses);
    document_engine_member_name(engine, shard);
    if (shard[0] != '\0')
        BSON_APPEND_UTF8(out, "shard", shard);
    bval_append(out, "spec", -1, &spec);
    if (index->state != INDEX_READY)
        BSON_APPEND_BOOL(out, "building", true);
}

enum command_status coll_stats_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"collStats", "collstats", "scale", "verbose", NULL};
    struct ns ns;
    struct read_txn read = {0};
    struct bdoc version;
    int64_t scale;
    bool ok = command_ns(ctx, &ns, err) && fields_check_known(ctx->body, "collStats", known, err) &&
              read_scale(ctx->body, &scale, err) && request_version(ctx, &version, err) &&
              read_txn_open_any(&read, document_engine_of(ctx), ns.full, version, err);
    if (ok && read.coll != NULL && read.coll->is_view)
        ok = views_refuse_write(read.coll, err);
    if (ok) {
        BSON_APPEND_UTF8(&ctx->reply, "ns", ns.full);
        append_storage(read.txn, read.coll, scale, &ctx->reply);
    }
    read_txn_close(&read);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

struct db_totals {
    int64_t collections;
    int64_t views;
    int64_t objects;
    int64_t data_bytes;
    int64_t indexes;
    int64_t index_bytes;
};

static void sum_db(struct store_txn *txn, const char *db, struct db_totals *totals)
{
    const struct collection *coll;
    size_t position = 0;
    while ((coll = catalog_next(txn, db, strlen(db), &position)) != NULL) {
        struct counter counter;
        if (coll->is_view) {
            totals->views++;
            continue;
        }
        counter_collection(txn, coll, &counter);
        totals->collections++;
        totals->objects += counter.docs;
        totals->data_bytes += counter.bytes;
        totals->indexes += coll->index_count - coll->many_ids;
        totals->index_bytes += index_bytes(txn, coll);
    }
}

enum command_status db_stats_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"dbStats", "dbstats", "scale", "freeStorage", NULL};
    struct store_txn *txn = NULL;
    struct db_totals totals = {0};
    int64_t scale;
    if (!fields_check_known(ctx->body, "dbStats", known, err) || !read_scale(ctx->body, &scale, err) ||
        !store_read_begin(document_engine_store(document_engine_of(ctx)), &txn, err))
        return COMMAND_ERROR;
    sum_db(txn, ctx->db, &totals);
    store_read_end(txn);
    bson_t *reply = &ctx->reply;
    BSON_APPEND_UTF8(reply, "db", ctx->db);
    append_size(reply, "collections", totals.collections, 1);
    append_size(reply, "views", totals.views, 1);
    append_size(reply, "objects", totals.objects, 1);
    BSON_APPEND_DOUBLE(reply, "avgObjSize",
                       totals.objects == 0 ? 0.0 : (double)totals.data_bytes / (double)totals.objects);
    append_size(reply, "dataSize", totals.data_bytes, scale);
    append_size(reply, "storageSize", totals.data_bytes, scale);
    append_size(reply, "indexes", totals.indexes, 1);
    append_size(reply, "indexSize", totals.index_bytes, scale);
    append_size(reply, "totalSize", totals.data_bytes + totals.index_bytes, scale);
    append_size(reply, "scaleFactor", scale, 1);
    return COMMAND_OK;
}

enum command_status validate_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"validate",   "full", "repair", "metadata", "checkBSONConformance",
                                        "background", NULL};
    struct ns ns;
    struct read_txn read = {0};
    bool full = false;
    bool repair = false;
    if (!command_ns(ctx, &ns, err) || !fields_check_known(ctx->body, "validate", known, err) ||
        !field_get_bool(ctx->body, "full", &full, err) || !field_get_bool(ctx->body, "repair", &repair, err))
        return COMMAND_ERROR;
    if (repair) {
        err_set(err, ERR_InvalidOptions, "validate with { repair: true } is not supported on a member of a set");
        return COMMAND_ERROR;
    }
    if (!read_txn_open_any(&read, document_engine_of(ctx), ns.full, (struct bdoc){0}, err))
        return COMMAND_ERROR;
    bool found = read.coll != NULL && !read.coll->is_view;
    if (read.coll != NULL && read.coll->is_view)
        (void)views_refuse_write(read.coll, err);
    else if (found)
        collection_validate(read.txn, read.coll, &ctx->reply);
    else
        err_set(err, ERR_NamespaceNotFound, "Collection '%s' does not exist to validate.", ns.full);
    read_txn_close(&read);
    return found ? COMMAND_OK : COMMAND_ERROR;
}
