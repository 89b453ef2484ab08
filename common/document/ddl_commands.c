/* create, drop, dropDatabase, createIndexes, dropIndexes, collMod: the leader's half. */
#include "base/random.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/ddl.h"
#include "document/index_builder.h"
#include "document/read_txn.h"
#include "storage/index_build.h"

#include <string.h>

enum {
    UUID_LEN = 16,
};

static void finish_ok(struct command_ctx *ctx, const struct document_result *result)
{
    (void)result;
    command_finish(ctx, NULL);
}

/* ---- create ---- */

/* Options that change what a collection is, and that Sherd doesn't have: never accepted in silence. */
static bool refuse_create_option(const char *name, const struct bval *val, struct err *err)
{
    static const char *const unsupported[] = {"capped",
                                              "size",
                                              "max",
                                              "viewOn",
                                              "pipeline",
                                              "timeseries",
                                              "expireAfterSeconds",
                                              "clusteredIndex",
                                              "validator",
                                              "encryptedFields",
                                              "changeStreamPreAndPostImages"};
    static const char *const harmless[] = {"autoIndexId",
                                           "validationLevel",
                                           "validationAction",
                                           "storageEngine",
                                           "indexOptionDefaults",
                                           "idIndex",
                                           "collation",
                                           "flags",
                                           "temp",
                                           "recordPreImages"};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        if (strcmp(name, harmless[i]) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        if (strcmp(name, unsupported[i]) != 0)
            continue;
        bool off = val->type == BT_NULL || (val->type == BT_BOOL && !bval_bool(val)) ||
                   (val->type == BT_DOCUMENT && bdoc_is_empty(bval_doc(val)));
        return off || err_set(err, ERR_NotImplemented, "create doesn't support the option '%s'", name);
    }
    return field_is_generic(name) || strcmp(name, "comment") == 0 ||
           err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field 'create.%s' is an unknown field.", name);
}

static bool check_create_options(struct bdoc body, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, body);
    biter_next(&iter, &elem);
    while (biter_next(&iter, &elem)) {
        if (!refuse_create_option(elem.key, &elem.val, err))
            return false;
    }
    return request_check_collation(body, err);
}

enum command_status create_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    uint8_t uuid[UUID_LEN];
    struct create_header header = {.uuid = uuid};
    if (!command_ns(ctx, &ns, err) || !check_create_options(ctx->body, err) ||
        !request_version(ctx, &header.version, err))
        return COMMAND_ERROR;
    random_uuid(uuid);
    header.ns = ns.full;
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_CREATE);
    create_header_encode(&command, &header);
    return ddl_propose(ctx, &command, finish_ok);
}

/* ---- drop, dropDatabase ---- */

static void finish_drop(struct command_ctx *ctx, const struct document_result *result)
{
    struct codec_reader reader;
    codec_reader_init(&reader, result->data, result->len);
    uint32_t indexes = codec_read_u32(&reader);
    if (indexes > 0) {
        BSON_APPEND_INT32(&ctx->reply, "nIndexesWas", (int32_t)indexes);
        struct ns ns;
        if (command_ns(ctx, &ns, NULL))
            BSON_APPEND_UTF8(&ctx->reply, "ns", ns.full);
    }
    index_builder_nudge(document_engine_builder(document_engine_of(ctx)));
    command_finish(ctx, NULL);
}

enum command_status drop_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"drop", "comment", NULL};
    struct ns ns;
    struct bdoc version;
    if (!command_ns(ctx, &ns, err) || !fields_check_known(ctx->body, "drop", known, err) ||
        !request_version(ctx, &version, err))
        return COMMAND_ERROR;
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_DROP);
    codec_write_str(&command, ns.full);
    codec_write_doc(&command, version);
    return ddl_propose(ctx, &command, finish_drop);
}

static void finish_drop_database(struct command_ctx *ctx, const struct document_result *result)
{
    (void)result;
    BSON_APPEND_UTF8(&ctx->reply, "dropped", ctx->db);
    index_builder_nudge(document_engine_builder(document_engine_of(ctx)));
    command_finish(ctx, NULL);
}

enum command_status drop_database_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"dropDatabase", "comment", NULL};
    if (!fields_check_known(ctx->body, "dropDatabase", known, err))
        return COMMAND_ERROR;
    if (ns_is_reserved_db(ctx->db)) {
        err_set(err, ERR_IllegalOperation, "Cannot drop the '%s' database", ctx->db);
        return COMMAND_ERROR;
    }
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_DROP_DATABASE);
    codec_write_str(&command, ctx->db);
    return ddl_propose(ctx, &command, finish_drop_database);
}

/* ---- createIndexes ---- */

static bool check_specs(struct command_ctx *ctx, struct bdoc specs, struct err *err)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    biter_init(&iter, specs);
    while (biter_next(&iter, &elem)) {
        bson_t normal = BSON_INITIALIZER;
        bool ok = elem.val.type == BT_DOCUMENT ||
                  err_set(err, ERR_TypeMismatch, "The elements of the 'indexes' array must be objects, but got %s",
                          bval_type_name(elem.val.type));
        ok = ok && request_check_collation(bval_doc(&elem.val), err) &&
             index_spec_normalise(document_engine_store(document_engine_of(ctx)), bval_doc(&elem.val), &normal, err);
        bson_destroy(&normal);
        if (!ok)
            return false;
        count++;
    }
    return count > 0 || err_set(err, ERR_BadValue, "Must specify at least one index to create");
}

static void append_create_result(struct command_ctx *ctx, struct codec_reader *reader)
{
    bool created = codec_read_u8(reader) != 0;
    uint32_t before = codec_read_u32(reader);
    uint32_t after = codec_read_u32(reader);
    BSON_APPEND_INT32(&ctx->reply, "numIndexesBefore", (int32_t)before);
    BSON_APPEND_INT32(&ctx->reply, "numIndexesAfter", (int32_t)after);
    BSON_APPEND_BOOL(&ctx->reply, "createdCollectionAutomatically", created);
    if (before == after)
        BSON_APPEND_UTF8(&ctx->reply, "note", "all indexes already exist");
}

static void finish_create_indexes(struct command_ctx *ctx, const struct document_result *result)
{
    struct codec_reader reader;
    struct ns ns;
    uint32_t ids[CATALOG_INDEXES_MAX];
    codec_reader_init(&reader, result->data, result->len);
    append_create_result(ctx, &reader);
    uint32_t building = codec_read_u32(&reader);
    for (uint32_t i = 0; i < building && i < CATALOG_INDEXES_MAX; i++)
        ids[i] = codec_read_u32(&reader);
    if (reader.failed || building == 0 || building > CATALOG_INDEXES_MAX || !command_ns(ctx, &ns, NULL)) {
        command_finish(ctx, NULL);
        return;
    }
    index_builder_start(document_engine_builder(document_engine_of(ctx)), ctx, ns.full, ids, building);
}

enum command_status create_indexes_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"createIndexes", "indexes", "commitQuorum", "ignoreUnknownIndexOptions",
                                        "comment",       NULL};
    struct ns ns;
    uint8_t uuid[UUID_LEN];
    struct create_indexes_header header = {.create_uuid = uuid};
    if (!command_ns(ctx, &ns, err) || !fields_check_known(ctx->body, "createIndexes", known, err) ||
        !field_require(ctx->body, "indexes", err) || !field_get_array(ctx->body, "indexes", &header.specs, err) ||
        !request_version(ctx, &header.version, err) || !check_specs(ctx, header.specs, err))
        return COMMAND_ERROR;
    random_uuid(uuid);
    header.ns = ns.full;
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_CREATE_INDEXES);
    create_indexes_header_encode(&command, &header);
    return ddl_propose(ctx, &command, finish_create_indexes);
}

/* ---- dropIndexes ---- */

static void finish_drop_indexes(struct command_ctx *ctx, const struct document_result *result)
{
    struct codec_reader reader;
    codec_reader_init(&reader, result->data, result->len);
    BSON_APPEND_INT32(&ctx->reply, "nIndexesWas", (int32_t)codec_read_u32(&reader));
    index_builder_nudge(document_engine_builder(document_engine_of(ctx)));
    command_finish(ctx, NULL);
}

enum command_status drop_indexes_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"dropIndexes", "deleteIndexes", "index", "comment", NULL};
    struct ns ns;
    struct bdoc version;
    struct bval index;
    if (!command_ns(ctx, &ns, err) || !fields_check_known(ctx->body, "dropIndexes", known, err) ||
        !field_require(ctx->body, "index", err) || !request_version(ctx, &version, err))
        return COMMAND_ERROR;
    bdoc_find(ctx->body, "index", &index);
    if (index.type != BT_STRING && index.type != BT_DOCUMENT && index.type != BT_ARRAY) {
        err_set(err, ERR_TypeMismatch,
                "BSON field 'dropIndexes.index' is the wrong type '%s', expected types '[string, object]'",
                bval_type_name(index.type));
        return COMMAND_ERROR;
    }
    bson_t wrapped = BSON_INITIALIZER;
    bval_append(&wrapped, "index", -1, &index);
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_DROP_INDEXES);
    codec_write_str(&command, ns.full);
    codec_write_doc(&command, version);
    codec_write_doc(&command, bdoc_of(&wrapped));
    bson_destroy(&wrapped);
    return ddl_propose(ctx, &command, finish_drop_indexes);
}

/* ---- collMod ---- */

enum command_status coll_mod_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct biter iter;
    struct belem elem;
    struct read_txn read = {0};
    if (!command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    biter_init(&iter, ctx->body);
    biter_next(&iter, &elem);
    while (biter_next(&iter, &elem)) {
        if (field_is_generic(elem.key))
            continue;
        err_set(err, ERR_NotImplemented, "collMod doesn't support the option '%s'", elem.key);
        return COMMAND_ERROR;
    }
    if (!read_txn_open(&read, document_engine_of(ctx), ns.full, (struct bdoc){0}, err))
        return COMMAND_ERROR;
    bool exists = read.coll != NULL;
    read_txn_close(&read);
    if (!exists)
        err_set(err, ERR_NamespaceNotFound, "ns does not exist");
    return exists ? COMMAND_OK : COMMAND_ERROR;
}
