/* create, drop, dropDatabase, collMod: the leader's half. */
#include "base/random.h"
#include "command/fields.h"
#include "document/coll_mod.h"
#include "document/commands.h"
#include "document/create_options.h"
#include "document/ddl.h"
#include "document/index_builder.h"
#include "document/read_txn.h"

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

enum command_status create_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    uint8_t uuid[UUID_LEN];
    struct create_request request;
    struct create_header header = {.uuid = uuid};
    if (!command_ns(ctx, &ns, err) || !create_request_parse(&ctx->arena, &ns, ctx->body, &request, err) ||
        !request_version(ctx, &header.version, err))
        return COMMAND_ERROR;
    random_uuid(uuid);
    header.ns = ns.full;
    header.options = request.options;
    header.indexes = request.indexes;
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

/* ---- collMod ---- */

static void finish_coll_mod(struct command_ctx *ctx, const struct document_result *result)
{
    struct codec_reader reader;
    struct biter iter;
    struct belem elem;
    codec_reader_init(&reader, result->data, result->len);
    biter_init(&iter, codec_read_doc(&reader));
    while (biter_next(&iter, &elem))
        bval_append(&ctx->reply, elem.key, (int)elem.key_len, &elem.val);
    command_finish(ctx, NULL);
}

/* Refused before it takes a log entry; apply looks again. */
static bool check_coll_mod(struct command_ctx *ctx, const struct ns *ns, struct bdoc version, struct bdoc changes,
                           struct err *err)
{
    struct read_txn read = {0};
    if (!read_txn_open_any(&read, document_engine_of(ctx), ns->full, version, err))
        return false;
    bool ok = read.coll != NULL ? coll_mod_check(read.coll, changes, err)
                                : err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns->full);
    read_txn_close(&read);
    return ok;
}

enum command_status coll_mod_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct bdoc version;
    struct bdoc changes;
    if (!command_ns(ctx, &ns, err) || !coll_mod_parse(&ctx->arena, &ns, ctx->body, &changes, err) ||
        !request_version(ctx, &version, err) || !check_coll_mod(ctx, &ns, version, changes, err))
        return COMMAND_ERROR;
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_COLL_MOD);
    codec_write_str(&command, ns.full);
    codec_write_doc(&command, version);
    codec_write_doc(&command, changes);
    return ddl_propose(ctx, &command, finish_coll_mod);
}
