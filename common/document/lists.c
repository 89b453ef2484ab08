/* listCollections, listIndexes, listDatabases */
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"
#include "document/traits.h"
#include "document/views.h"
#include "storage/counters.h"
#include "storage/index_build.h"

#include <string.h>

static bool batch_size_of(struct bdoc body, const char *command, int64_t *batch_size, struct err *err)
{
    bool given;
    *batch_size = -1;
    return field_get_cursor(body, command, &given, batch_size, err);
}

static void append_collection(const struct collection *coll, bool name_only, bson_t *out)
{
    static const char *const types[] = {
        [COLLECTION_PLAIN] = "collection", [COLLECTION_VIEW] = "view", [COLLECTION_TIMESERIES] = "timeseries"};
    BSON_APPEND_UTF8(out, "name", coll->name);
    BSON_APPEND_UTF8(out, "type", types[collection_traits(coll)->kind]);
    if (name_only)
        return;
    struct bval options = bval_from_doc(coll->options);
    bval_append(out, "options", -1, &options);
    bson_t info;
    BSON_APPEND_DOCUMENT_BEGIN(out, "info", &info);
    BSON_APPEND_BOOL(&info, "readOnly", coll->is_view);
    if (!coll->is_view)
        bson_append_binary(&info, "uuid", -1, BSON_SUBTYPE_UUID, coll->uuid, UUID_BYTES);
    bson_append_document_end(out, &info);
    if (coll->index_count > 0 && !coll->is_view && !coll->many_ids && !coll->clustered) {
        struct bval spec = bval_from_doc(coll->indexes[0]->spec);
        bval_append(out, "idIndex", -1, &spec);
    }
}

static void list_collections(struct store_txn *txn, const char *db, bool name_only, struct document_cursor *cursor)
{
    const struct collection *coll;
    size_t position = 0;
    while ((coll = catalog_next(txn, db, strlen(db), &position)) != NULL) {
        bson_t doc = BSON_INITIALIZER;
        append_collection(coll, name_only, &doc);
        if (cursor->filter == NULL || filter_matches(cursor->filter, bdoc_of(&doc)))
            document_cursor_list_add(cursor, bdoc_of(&doc));
        bson_destroy(&doc);
    }
}

enum command_status list_collections_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"listCollections", "filter",  "nameOnly", "authorizedCollections",
                                        "cursor",          "comment", NULL};
    struct bdoc filter = {0};
    bool name_only = false;
    int64_t batch_size;
    struct read_txn read = {0};
    struct bdoc version;
    char ns[COMMAND_NS_MAX + 1];
    if (!fields_check_known(ctx->body, "listCollections", known, err) ||
        !batch_size_of(ctx->body, "listCollections", &batch_size, err) || !request_version(ctx, &version, err) ||
        !field_get_doc(ctx->body, "filter", &filter, err) || !field_get_bool(ctx->body, "nameOnly", &name_only, err))
        return COMMAND_ERROR;
    snprintf(ns, sizeof ns, "%s.$cmd.listCollections", ctx->db);
    struct document_cursor *cursor = document_cursor_new(ctx, ns);
    if ((filter.data != NULL && !filter_compile(&cursor->arena, filter, NULL, &cursor->filter, err)) ||
        !read_txn_open(&read, document_engine_of(ctx), ns, version, err)) {
        document_cursor_free(cursor);
        return COMMAND_ERROR;
    }
    list_collections(read.txn, ctx->db, name_only, cursor);
    read_txn_close(&read);
    return cursor_reply_first(ctx, cursor, NULL, batch_size, err);
}

/* {spec, indexBuildInfo?: {method, phase, phaseStr, docsDone}} */
static void append_with_build(const struct read_txn *read, const struct index_def *index, bson_t *out)
{
    struct bval spec = bval_from_doc(index->spec);
    bson_t info;
    bval_append(out, "spec", -1, &spec);
    if (index->state == INDEX_READY)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(out, "indexBuildInfo", &info);
    BSON_APPEND_UTF8(&info, "method", "Hybrid");
    BSON_APPEND_INT32(&info, "phase", 1);
    BSON_APPEND_UTF8(&info, "phaseStr", "collection scan");
    BSON_APPEND_INT64(&info, "docsDone", (int64_t)index_build_done_records(read->txn, index));
    bson_append_document_end(out, &info);
}

/* Those that can be used; with `builds` also those under construction. */
static void list_indexes(const struct read_txn *read, bool builds, struct document_cursor *cursor)
{
    const struct collection *coll = read->coll;
    /* A time series has an index on _id for this server's own use. */
    for (uint32_t i = coll->many_ids; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        if (!builds && index->state == INDEX_READY)
            document_cursor_list_add(cursor, index->spec);
        if (!builds || index->state == INDEX_FAILED)
            continue;
        bson_t doc = BSON_INITIALIZER;
        append_with_build(read, index, &doc);
        document_cursor_list_add(cursor, bdoc_of(&doc));
        bson_destroy(&doc);
    }
}

enum command_status list_indexes_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"listIndexes",           "cursor",  "includeBuildUUIDs",
                                        "includeIndexBuildInfo", "comment", NULL};
    struct ns ns;
    struct read_txn read = {0};
    struct bdoc version;
    int64_t batch_size;
    bool builds = false;
    if (!command_ns(ctx, &ns, err) || !fields_check_known(ctx->body, "listIndexes", known, err) ||
        !batch_size_of(ctx->body, "listIndexes", &batch_size, err) || !request_version(ctx, &version, err) ||
        !field_get_bool(ctx->body, "includeIndexBuildInfo", &builds, err) ||
        !read_txn_open_any(&read, document_engine_of(ctx), ns.full, version, err))
        return COMMAND_ERROR;
    if (read.coll == NULL || read.coll->is_view) {
        (void)(read.coll == NULL ? err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns.full)
                                 : views_refuse_write(read.coll, err));
        read_txn_close(&read);
        return COMMAND_ERROR;
    }
    struct document_cursor *cursor = document_cursor_new(ctx, ns.full);
    list_indexes(&read, builds, cursor);
    enum command_status status = cursor_reply_first(ctx, cursor, NULL, batch_size, err);
    read_txn_close(&read);
    return status;
}

static int64_t database_bytes(struct store_txn *txn, const char *db, size_t db_len)
{
    const struct collection *coll;
    size_t position = 0;
    int64_t total = 0;
    while ((coll = catalog_next(txn, db, db_len, &position)) != NULL) {
        struct counter counter;
        counter_collection(txn, coll, &counter);
        total += counter.bytes;
        for (uint32_t i = 0; i < coll->index_count; i++) {
            counter_index(txn, coll->indexes[i], &counter);
            total += counter.bytes;
        }
    }
    return total;
}

static void list_databases(struct store_txn *txn, const struct filter *filter, bool name_only, bson_t *reply)
{
    const struct collection *coll = NULL;
    int64_t total = 0;
    uint32_t count = 0;
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(reply, "databases", &array);
    while ((coll = catalog_next_db(txn, coll)) != NULL) {
        /* A member's own state is nobody's database. */
        if (coll->db_len == 5 && memcmp(coll->ns, "local", 5) == 0)
            continue;
        bson_t doc = BSON_INITIALIZER;
        int64_t bytes = database_bytes(txn, coll->ns, coll->db_len);
        bson_append_utf8(&doc, "name", -1, coll->ns, (int)coll->db_len);
        if (!name_only) {
            BSON_APPEND_INT64(&doc, "sizeOnDisk", bytes);
            BSON_APPEND_BOOL(&doc, "empty", false);
        }
        if (filter == NULL || filter_matches(filter, bdoc_of(&doc))) {
            char digits[16];
            const char *key;
            bson_uint32_to_string(count++, &key, digits, sizeof digits);
            bson_append_document(&array, key, -1, &doc);
            total += bytes;
        }
        bson_destroy(&doc);
    }
    bson_append_array_end(reply, &array);
    if (!name_only) {
        BSON_APPEND_INT64(reply, "totalSize", total);
        BSON_APPEND_INT64(reply, "totalSizeMb", total >> 20);
    }
}

enum command_status list_databases_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"listDatabases", "filter", "nameOnly", "authorizedDatabases", "comment", NULL};
    struct bdoc filter = {0};
    struct filter *compiled = NULL;
    bool name_only = false;
    struct store_txn *txn = NULL;
    bool ok = fields_check_known(ctx->body, "listDatabases", known, err) &&
              field_get_doc(ctx->body, "filter", &filter, err) &&
              field_get_bool(ctx->body, "nameOnly", &name_only, err) &&
              (filter.data == NULL || filter_compile(&ctx->arena, filter, NULL, &compiled, err)) &&
              store_read_begin(document_engine_store(document_engine_of(ctx)), &txn, err);
    if (ok) {
        list_databases(txn, compiled, name_only, &ctx->reply);
        store_read_end(txn);
    }
    filter_release(compiled);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
