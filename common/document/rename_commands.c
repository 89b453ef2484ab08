/* renameCollection, convertToCapped, cloneCollectionAsCapped: the leader's half. */
#include "base/clock.h"
#include "base/random.h"
#include "command/field_spec.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/create_options.h"
#include "document/ddl.h"
#include "document/index_builder.h"
#include "document/insert.h"
#include "document/read_txn.h"
#include "document/views.h"
#include "storage/cursor.h"

#include <stddef.h>
#include <string.h>

enum {
    UUID_LEN = 16,
    CLONE_BATCH_BYTES = 1024 * 1024, /* of documents in one log command of a clone */
    CLONE_BATCH_DOCS = 1000,
    DEFAULT_TIMEOUT_MS = 24 * 3600 * 1000, /* for a conversion without maxTimeMS */
};

static int64_t limit_ms(const struct command_ctx *ctx)
{
    int64_t latest_ms = deadline_after_ms(DEFAULT_TIMEOUT_MS);
    return ctx->deadline_ms < latest_ms ? ctx->deadline_ms : latest_ms;
}

/* Proposes and waits: a rare administrative command. Appends the answer to `result`. */
static bool propose_wait(struct command_ctx *ctx, struct buf *command, struct buf *result, struct err *err)
{
    size_t len;
    const struct document_log *log = document_engine_log(document_engine_of(ctx));
    uint8_t *bytes = buf_take(command, &len);
    return document_log_wait(log, bytes, len, limit_ms(ctx), result, err);
}

/* ---- renameCollection ---- */

struct rename_fields {
    const char *to;
    struct bval drop_target;
};

static bool read_rename(struct command_ctx *ctx, struct ns *from, struct ns *to, bool *drop_target, struct err *err)
{
    static const struct field_spec specs[] = {
        {"to", FIELD_STR, offsetof(struct rename_fields, to), true},
        {"dropTarget", FIELD_ANY, offsetof(struct rename_fields, drop_target), false},
        {"stayTemp", FIELD_IGNORED, 0, false},
        {"collectionUUID", FIELD_IGNORED, 0, false},
    };
    struct rename_fields in = {.drop_target = BVAL_MISSING};
    uint32_t len;
    if (ctx->value.type != BT_STRING)
        return err_set(err, ERR_TypeMismatch, "'renameCollection' must be of type String");
    if (!fields_read(ctx->body, "renameCollection", &(struct field_specs){specs, sizeof specs / sizeof specs[0], true},
                     &in, err) ||
        !ns_parse(from, bval_str(&ctx->value, &len), err) || !ns_parse(to, in.to, err))
        return false;
    *drop_target = bval_truthy(&in.drop_target);
    if (strcmp(from->full, to->full) == 0)
        return err_set(err, ERR_IllegalOperation, "Can't rename a collection to itself");
    return ns_check_write(from, err) && ns_check_write(to, err);
}

static void finish_rename(struct command_ctx *ctx, const struct document_result *result)
{
    (void)result;
    index_builder_nudge(document_engine_builder(document_engine_of(ctx)));
    command_finish(ctx, NULL);
}

enum command_status rename_collection_run(struct command_ctx *ctx, struct err *err)
{
    struct ns from;
    struct ns to;
    struct bdoc version;
    bool drop_target;
    if (!read_rename(ctx, &from, &to, &drop_target, err) || !request_version(ctx, &version, err))
        return COMMAND_ERROR;
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_RENAME);
    codec_write_str(&command, from.full);
    codec_write_doc(&command, version);
    codec_write_str(&command, to.full);
    buf_append_u8(&command, drop_target);
    return ddl_propose(ctx, &command, finish_rename);
}

/* ---- convertToCapped ---- */

static bool read_size(int64_t size, struct err *err)
{
    if (size <= 0)
        return err_set(err, ERR_InvalidOptions, "Capped collection size must be greater than zero");
    return size <= CREATE_CAPPED_MAX_BYTES || err_set(err, ERR_BadValue, "size cannot exceed 1 PB");
}

static bool convert(struct command_ctx *ctx, const struct ns *ns, struct bdoc version, int64_t bytes, struct err *err)
{
    bool more = true;
    bool ok = true;
    while (ok && more) {
        struct buf command;
        struct buf result = BUF_INIT;
        ddl_command_begin(&command, DOCUMENT_KIND_CONVERT_TO_CAPPED);
        codec_write_str(&command, ns->full);
        codec_write_doc(&command, version);
        buf_append_le64(&command, (uint64_t)bytes);
        ok = propose_wait(ctx, &command, &result, err);
        more = ok && result.len > 0 && result.data[0] != 0;
        buf_deinit(&result);
    }
    return ok;
}

enum command_status convert_to_capped_run(struct command_ctx *ctx, struct err *err)
{
    static const struct field_spec specs[] = {{"size", FIELD_INT, 0, true}};
    struct ns ns;
    struct bdoc version;
    int64_t size = 0;
    if (!command_ns(ctx, &ns, err) ||
        !fields_read(ctx->body, "convertToCapped", &(struct field_specs){specs, 1, true}, &size, err) ||
        !read_size(size, err) || !request_version(ctx, &version, err) ||
        !convert(ctx, &ns, version, create_round_size(size), err))
        return COMMAND_ERROR;
    index_builder_nudge(document_engine_builder(document_engine_of(ctx)));
    return COMMAND_OK;
}

/* ---- cloneCollectionAsCapped ---- */

struct clone_fields {
    const char *to;
    int64_t size;
};

struct clone {
    struct command_ctx *ctx;
    struct ns from;
    struct ns to;
    struct bdoc version;
    uint8_t from_uuid[UUID_LEN];
    uint64_t after; /* records up to this one are copied */
};

static bool read_clone(struct clone *clone, int64_t *size, struct err *err)
{
    static const struct field_spec specs[] = {
        {"toCollection", FIELD_STR, offsetof(struct clone_fields, to), true},
        {"size", FIELD_INT, offsetof(struct clone_fields, size), true},
        {"temp", FIELD_IGNORED, 0, false},
    };
    struct command_ctx *ctx = clone->ctx;
    struct clone_fields in = {0};
    if (!command_ns(ctx, &clone->from, err) ||
        !fields_read(ctx->body, "cloneCollectionAsCapped",
                     &(struct field_specs){specs, sizeof specs / sizeof specs[0], true}, &in, err) ||
        !ns_make(&clone->to, ctx->db, in.to, err) || !ns_check_write(&clone->to, err) || !read_size(in.size, err))
        return false;
    *size = create_round_size(in.size);
    return true;
}

static bool find_source(struct clone *clone, struct err *err)
{
    struct read_txn read = {0};
    if (!read_txn_open_any(&read, document_engine_of(clone->ctx), clone->from.full, clone->version, err))
        return false;
    bool ok = read.coll != NULL ||
              err_set(err, ERR_NamespaceNotFound, "source collection %s does not exist", clone->from.full);
    if (ok && read.coll->is_view)
        ok = views_refuse_write(read.coll, err);
    if (ok && read.view != NULL)
        ok = err_set(err, ERR_IllegalOperation, "cannot clone a sharded collection: %s", clone->from.full);
    if (ok)
        memcpy(clone->from_uuid, read.coll->uuid, UUID_LEN);
    read_txn_close(&read);
    return ok;
}

static bool create_target(struct clone *clone, int64_t size, struct err *err)
{
    uint8_t uuid[UUID_LEN];
    struct buf command;
    struct buf result = BUF_INIT;
    bson_t options = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&options, "capped", true);
    BSON_APPEND_INT64(&options, "size", size);
    random_uuid(uuid);
    struct create_header header = {.ns = clone->to.full, .uuid = uuid, .options = bdoc_of(&options)};
    ddl_command_begin(&command, DOCUMENT_KIND_CREATE);
    create_header_encode(&command, &header);
    bool ok = propose_wait(clone->ctx, &command, &result, err);
    if (ok && (result.len == 0 || result.data[0] == 0))
        ok = err_set(err, ERR_NamespaceExists,
                     "cloneCollectionAsCapped failed - destination collection %s already "
                     "exists",
                     clone->to.full);
    bson_destroy(&options);
    buf_deinit(&result);
    return ok;
}

/* Puts the next documents behind the header; *count is 0 at the end. */
static bool gather(struct clone *clone, struct buf *command, uint32_t *count, struct err *err)
{
    struct read_txn read = {0};
    struct record_cursor cursor;
    struct bdoc doc;
    size_t start = command->len;
    *count = 0;
    if (!read_txn_open_any(&read, document_engine_of(clone->ctx), clone->from.full, clone->version, err))
        return false;
    bool ok = (read.coll != NULL && memcmp(read.coll->uuid, clone->from_uuid, UUID_LEN) == 0) ||
              err_set(err, ERR_NamespaceNotFound, "the source collection is gone");
    if (ok) {
        record_cursor_open(&cursor, read.txn, read.coll, false);
        record_cursor_seek_after(&cursor, clone->after);
        while (*count < CLONE_BATCH_DOCS && command->len - start < CLONE_BATCH_BYTES &&
               record_cursor_next(&cursor, &clone->after, &doc)) {
            buf_append(command, doc.data, doc.len);
            ++*count;
        }
        record_cursor_close(&cursor);
    }
    read_txn_close(&read);
    return ok;
}

static bool copy_batch(struct clone *clone, bool *more, struct err *err)
{
    static const uint8_t no_uuid[UUID_LEN];
    struct insert_header header = {
        .ns = clone->to.full, .create_uuid = no_uuid, .tested = VALIDATOR_BYPASSED, .ordered = false};
    struct buf command;
    struct buf result = BUF_INIT;
    uint32_t count;
    ddl_command_begin(&command, DOCUMENT_KIND_INSERT);
    insert_header_encode(&command, &header);
    size_t docs_at = command.len;
    bool ok = gather(clone, &command, &count, err);
    *more = ok && count > 0;
    if (!*more) {
        buf_deinit(&command);
        return ok;
    }
    store_le32(command.data + docs_at - 4, count);
    ok = propose_wait(clone->ctx, &command, &result, err);
    buf_deinit(&result);
    return ok;
}

enum command_status clone_as_capped_run(struct command_ctx *ctx, struct err *err)
{
    struct clone clone = {.ctx = ctx};
    int64_t size;
    bool more = true;
    bool ok = request_version(ctx, &clone.version, err) && read_clone(&clone, &size, err) && find_source(&clone, err) &&
              create_target(&clone, size, err);
    while (ok && more)
        ok = command_ctx_check_deadline(ctx, err) && copy_batch(&clone, &more, err);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
