/* createIndexes, dropIndexes: the leader's half. */
#include "base/random.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/ddl.h"
#include "document/index_builder.h"
#include "document/read_txn.h"
#include "document/views.h"

#include <string.h>

enum {
    UUID_LEN = 16,
    INDEXES_PER_COMMAND_MAX = 1000,
    COMMIT_QUORUM_MAX = 50, /* members that a MongoDB replica set may have */
};

/* ---- createIndexes ---- */

static void copy_fields(bson_t *to, struct bdoc from, const char *without)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, from);
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, without) != 0)
            bval_append(to, elem.key, (int)elem.key_len, &elem.val);
    }
}

/* One specification as it goes into the log: a collation in full, so that all members have the leader's. */
static bool take_spec(struct command_ctx *ctx, struct bdoc spec, struct bdoc default_collation, bson_t *list,
                      uint32_t position, struct err *err)
{
    bson_t normal = BSON_INITIALIZER;
    bool ok =
        index_spec_normalise(document_engine_store(document_engine_of(ctx)), spec, default_collation, &normal, err);
    if (ok && !bdoc_has(spec, "name"))
        ok = err_set(err, ERR_FailedToParse, "The 'name' field is a required property of an index specification");
    if (ok) {
        struct bval collation;
        char digits[16];
        const char *name;
        bson_t out;
        bson_uint32_to_string(position, &name, digits, sizeof digits);
        BSON_APPEND_DOCUMENT_BEGIN(list, name, &out);
        copy_fields(&out, spec, "collation");
        if (bdoc_find(bdoc_of(&normal), "collation", &collation) || bdoc_find(spec, "collation", &collation))
            bval_append(&out, "collation", -1, &collation);
        bson_append_document_end(list, &out);
    }
    bson_destroy(&normal);
    return ok;
}

static bool take_specs(struct command_ctx *ctx, struct bdoc specs, struct bdoc default_collation, bson_t *list,
                       struct err *err)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    biter_init(&iter, specs);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_TypeMismatch, "The elements of the 'indexes' array must be objects, but got %s",
                           bval_type_name(elem.val.type));
        if (++count > INDEXES_PER_COMMAND_MAX)
            return err_set(err, ERR_BadValue, "createIndexes takes at most %d indexes", INDEXES_PER_COMMAND_MAX);
        if (!take_spec(ctx, bval_doc(&elem.val), default_collation, list, count - 1, err))
            return false;
    }
    return count > 0 || err_set(err, ERR_BadValue, "Must specify at least one index to create");
}

/* The specifications with the collection's default collation. */
static bool prepare_specs(struct command_ctx *ctx, const struct create_indexes_header *header, struct bdoc specs,
                          bson_t *list, struct err *err)
{
    struct read_txn read = {0};
    if (!read_txn_open_any(&read, document_engine_of(ctx), header->ns, header->version, err))
        return false;
    bool is_view = read.coll != NULL && read.coll->is_view;
    bool ok = is_view ? views_refuse_write(read.coll, err)
                      : take_specs(ctx, specs, collection_default_collation(read.coll), list, err);
    read_txn_close(&read);
    return ok;
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

/* All members of a shard take part in a build here, whatever it says. */
static bool check_commit_quorum(struct bdoc body, struct err *err)
{
    struct bval quorum;
    int64_t members;
    if (!bdoc_find(body, "commitQuorum", &quorum) || quorum.type == BT_NULL || quorum.type == BT_STRING)
        return true;
    if (!bval_is_number(&quorum))
        return err_set(err, ERR_TypeMismatch, "createIndexes.commitQuorum must be a number or a string, but got %s",
                       bval_type_name(quorum.type));
    return (bval_to_i64(&quorum, &members) && members >= 0 && members <= COMMIT_QUORUM_MAX) ||
           err_set(err, ERR_FailedToParse, "commitQuorum has to be a number of members from 0 to %d",
                   COMMIT_QUORUM_MAX);
}

/* The specifications without what nobody knows, when the command says ignoreUnknownIndexOptions. */
static bool drop_unknown_options(struct command_ctx *ctx, struct bdoc *specs, struct err *err)
{
    bool ignore = false;
    struct biter iter;
    struct belem elem;
    if (!field_get_bool(ctx->body, "ignoreUnknownIndexOptions", &ignore, err))
        return false;
    if (!ignore)
        return true;
    bson_t list = BSON_INITIALIZER;
    biter_init(&iter, *specs);
    while (biter_next(&iter, &elem)) {
        bson_t spec;
        if (elem.val.type != BT_DOCUMENT) {
            bval_append(&list, elem.key, (int)elem.key_len, &elem.val);
            continue;
        }
        bson_append_document_begin(&list, elem.key, (int)elem.key_len, &spec);
        index_spec_copy_known(bval_doc(&elem.val), &spec);
        bson_append_document_end(&list, &spec);
    }
    *specs = (struct bdoc){arena_copy(&ctx->arena, bson_get_data(&list), list.len), list.len};
    bson_destroy(&list);
    return true;
}

enum command_status create_indexes_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"createIndexes", "indexes", "commitQuorum", "ignoreUnknownIndexOptions",
                                        "comment",       NULL};
    struct ns ns;
    uint8_t uuid[UUID_LEN];
    struct bdoc specs = {0};
    struct create_indexes_header header = {.create_uuid = uuid};
    if (!command_ns(ctx, &ns, err) || !fields_check_known(ctx->body, "createIndexes", known, err) ||
        !field_require(ctx->body, "indexes", err) || !field_get_array(ctx->body, "indexes", &specs, err) ||
        !check_commit_quorum(ctx->body, err) || !drop_unknown_options(ctx, &specs, err) ||
        !request_version(ctx, &header.version, err))
        return COMMAND_ERROR;
    bson_t list = BSON_INITIALIZER;
    header.ns = ns.full;
    if (!prepare_specs(ctx, &header, specs, &list, err)) {
        bson_destroy(&list);
        return COMMAND_ERROR;
    }
    random_uuid(uuid);
    header.specs = bdoc_of(&list);
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_CREATE_INDEXES);
    create_indexes_header_encode(&command, &header);
    bson_destroy(&list);
    return ddl_propose(ctx, &command, finish_create_indexes);
}

/* ---- dropIndexes ---- */

static void finish_drop_indexes(struct command_ctx *ctx, const struct document_result *result)
{
    struct codec_reader reader;
    codec_reader_init(&reader, result->data, result->len);
    BSON_APPEND_INT32(&ctx->reply, "nIndexesWas", (int32_t)codec_read_u32(&reader));
    struct bval which;
    if (bdoc_find(ctx->body, "index", &which) && bval_is_str(&which, "*"))
        BSON_APPEND_UTF8(&ctx->reply, "msg", "non-_id indexes dropped for collection");
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
