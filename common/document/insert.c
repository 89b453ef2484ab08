/* insert: the documents go into the log as they came, in as few entries as their size allows. */
#include "document/insert.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/batch.h"
#include "command/field_spec.h"
#include "command/fields.h"
#include "command/reply.h"
#include "document/commands.h"
#include "document/read_txn.h"
#include "document/statement.h"
#include "document/validation.h"
#include "document/write_target.h"
#include "storage/store.h"
#include "update/update.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

enum {
    UUID_LEN = 16,
};

void insert_header_encode(struct buf *out, const struct insert_header *header)
{
    codec_write_str(out, header->ns);
    buf_append(out, header->create_uuid, UUID_LEN);
    codec_write_doc(out, header->version);
    codec_write_batch_flags(out, header->ordered, header->tested);
    buf_append_le32(out, header->first_index);
    buf_append_le32(out, header->count);
}

void insert_header_decode(struct codec_reader *reader, struct insert_header *out)
{
    out->ns = codec_read_str(reader);
    out->create_uuid = codec_read_bytes(reader, UUID_LEN);
    out->version = codec_read_doc(reader);
    codec_read_batch_flags(reader, &out->ordered, &out->tested);
    out->first_index = codec_read_u32(reader);
    out->count = codec_read_u32(reader);
}

/* An insert under way. One thread at a time: a worker, or the completion of its proposal. */
struct insert_op {
    struct command_ctx *ctx;
    struct document_engine *engine;
    struct ns ns;
    struct bdoc version;
    struct batch batch;
    struct batch_iter iter; /* stands before document `next` */
    struct bdoc held;       /* document `next`, when it was looked at already; data NULL: not */
    uint32_t next;
    uint32_t entry_first;         /* batch index of the first document of the entry under way */
    struct bdoc documents;        /* as the body holds them; only read through `batch` */
    const uint8_t *expected_uuid; /* collectionUUID; NULL: not given */
    uint8_t uuid[UUID_LEN];
    bool bypass_validation;
    struct validation validation;
    struct batch_iter entry_iter; /* where the entry under way begins, should it have to be made again: behind ... */
    struct bdoc entry_held;       /* ... this document, the first */
    uint32_t redo_count;
    int64_t now_ms;
    bool ordered;
    bool stopped; /* an ordered batch met an error */
    struct write_result result;
};

static void finish(struct insert_op *op, const struct err *err)
{
    struct command_ctx *ctx = op->ctx;
    if (err == NULL)
        write_result_append(&op->result, &ctx->reply);
    write_result_deinit(&op->result);
    mem_free(op);
    command_finish(ctx, err);
}

static void add_error(struct insert_op *op, uint32_t index, const struct err *err)
{
    write_result_add_error(&op->result, (int32_t)index, err);
    op->stopped |= op->ordered;
}

/* With an _id in front that can't be wrong in itself. */
static bool is_storable(struct bdoc doc)
{
    return doc.len > 8 && doc.data[4] != BT_DOCUMENT && memcmp(doc.data + 5, "_id", 4) == 0 &&
           doc.len <= BDOC_MAX_BYTES;
}

/* Appends the document as it will be stored. */
static bool append_doc(struct buf *out, struct bdoc doc, struct err *err)
{
    if (is_storable(doc)) {
        buf_append(out, doc.data, doc.len);
        return true;
    }
    bson_oid_t id;
    bson_oid_init(&id, NULL);
    return update_prepare_insert(doc, &id, out, err);
}

/* The document that was appended at `at`, as the collection's validator sees it. */
static bool is_valid(const struct insert_op *op, const struct buf *command, size_t at, struct err *err)
{
    struct bdoc doc = {.data = command->data + at, .len = (uint32_t)(command->len - at)};
    return validation_check(&op->validation, (struct bdoc){0}, doc, err);
}

/* Puts the next documents into `command`; returns how many. It ends before a document that is refused here. */
static uint32_t gather(struct insert_op *op, struct buf *command)
{
    uint32_t count = 0;
    size_t start = command->len;
    while (!op->stopped && (op->held.data != NULL || batch_next(&op->iter, &op->held))) {
        struct err err;
        if (count > 0 && command->len - start + op->held.len > DOCUMENT_ENTRY_MAX_BYTES)
            break;
        size_t at = command->len;
        if (!append_doc(command, op->held, &err) || !is_valid(op, command, at, &err)) {
            command->len = at;
            if (count > 0)
                break;
            add_error(op, op->next++, &err);
            op->held = (struct bdoc){0};
            continue;
        }
        if (count == 0) {
            op->entry_iter = op->iter;
            op->entry_held = op->held;
        }
        op->held = (struct bdoc){0};
        op->next++;
        count++;
    }
    return count;
}

static void step(void *arg);

static void read_outcome(struct insert_op *op, const struct document_result *result)
{
    struct codec_reader reader;
    codec_reader_init(&reader, result->data, result->len);
    op->result.n += codec_read_u32(&reader);
    uint32_t errors = codec_read_u32(&reader);
    for (uint32_t i = 0; i < errors && !reader.failed; i++) {
        struct err err;
        uint32_t index = codec_read_u32(&reader);
        codec_read_err(&reader, &err);
        add_error(op, index, &err);
    }
}

/* The entry was not executed, or nobody knows. When documents before it were, only its own and later ones fail. */
static void end_unexecuted(struct insert_op *op, const struct err *err)
{
    if (op->entry_first == 0) {
        finish(op, err);
        return;
    }
    uint32_t end = op->ordered ? op->entry_first + 1 : op->batch.count;
    for (uint32_t i = op->entry_first; i < end; i++)
        add_error(op, i, err);
    finish(op, NULL);
}

/* The entry met another validator than the one that its documents were tested with: back to its first document. */
static bool must_test_again(struct insert_op *op, const struct document_result *result)
{
    if (result->outcome != DOCUMENT_APPLIED || result->ok || result->err.code != ERR_WriteConflict ||
        ++op->redo_count > DOCUMENT_REDO_MAX)
        return false;
    op->iter = op->entry_iter;
    op->held = op->entry_held;
    op->next = op->entry_first;
    return true;
}

static void proposed(void *arg, const struct document_result *result)
{
    struct insert_op *op = arg;
    if (must_test_again(op, result)) {
        const struct document_log *log = document_engine_log(op->engine);
        log->submit(log->arg, step, op);
        return;
    }
    if (result->outcome != DOCUMENT_APPLIED || !result->ok) {
        end_unexecuted(op, &result->err);
        return;
    }
    read_outcome(op, result);
    if (op->stopped || (op->held.data == NULL && op->next == op->batch.count)) {
        finish(op, NULL);
        return;
    }
    const struct document_log *log = document_engine_log(op->engine);
    log->submit(log->arg, step, op);
}

static void step(void *arg)
{
    struct insert_op *op = arg;
    const struct document_log *log = document_engine_log(op->engine);
    struct insert_header header = {
        .ns = op->ns.full, .create_uuid = op->uuid, .version = op->version, .ordered = op->ordered};
    struct buf command = BUF_INIT;
    struct err err;
    /* Again for each entry: those before may have used up what was left, and the validator may be another. */
    if (!store_check_space(document_engine_store(op->engine), &err) ||
        !validation_look(&op->validation, op->engine, op->ns.full, op->now_ms, &op->ctx->arena, &err)) {
        op->entry_first = op->next;
        end_unexecuted(op, &err);
        return;
    }
    buf_reserve(&command, op->ctx->frame->len + sizeof op->ns + 256);
    buf_append_u8(&command, DOCUMENT_KIND_INSERT);
    header.tested = op->validation.tested;
    insert_header_encode(&command, &header);
    size_t docs_at = command.len;
    uint32_t count = gather(op, &command);
    if (count == 0) {
        buf_deinit(&command);
        finish(op, NULL);
        return;
    }
    op->entry_first = op->next - count;
    store_le32(command.data + docs_at - 8, op->entry_first);
    store_le32(command.data + docs_at - 4, count);
    size_t len;
    uint8_t *bytes = buf_take(&command, &len);
    log->propose(log->arg, bytes, len, proposed, op);
}

static bool parse(struct insert_op *op, struct err *err)
{
#define AT(member) offsetof(struct insert_op, member)
    static const struct field_spec list[] = {
        {"documents", FIELD_ARRAY, AT(documents), false},
        {"ordered", FIELD_BOOL, AT(ordered), false},
        {"bypassDocumentValidation", FIELD_FLAG, AT(bypass_validation), false},
        {"bypassEmptyTsReplacement", FIELD_IGNORED, 0, false},
        {"collectionUUID", FIELD_UUID, AT(expected_uuid), false},
    };
#undef AT
    static const struct field_specs specs = {list, sizeof list / sizeof list[0], true};
    struct command_ctx *ctx = op->ctx;
    const struct bval_order *ignored;
    op->ordered = true;
    return command_ns(ctx, &op->ns, err) && fields_read(ctx->body, "insert", &specs, op, err) &&
           request_version(ctx, &op->version, err) && batch_init(&op->batch, ctx, "documents", err) &&
           write_target_look(op->engine, &op->ns, op->expected_uuid, &ctx->arena, &ignored, err);
}

enum command_status insert_run(struct command_ctx *ctx, struct err *err)
{
    struct insert_op *op = mem_alloc_aligned(1, sizeof *op, alignof(struct insert_op));
    op->ctx = ctx;
    op->engine = document_engine_of(ctx);
    if (!parse(op, err)) {
        mem_free(op);
        return COMMAND_ERROR;
    }
    op->validation.bypass = op->bypass_validation;
    op->now_ms = clock_wall_ms();
    batch_iter_init(&op->iter, &op->batch);
    random_uuid(op->uuid);
    write_result_init(&op->result, false);
    step(op);
    return COMMAND_PARKED;
}
