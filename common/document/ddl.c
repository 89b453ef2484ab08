#include "document/ddl.h"

#include "base/mem.h"
#include "command/context.h"
#include "document/engine.h"
#include "storage/catalog.h"

enum {
    UUID_LEN = 16,
};

void create_header_encode(struct buf *out, const struct create_header *header)
{
    codec_write_str(out, header->ns);
    buf_append(out, header->uuid, UUID_LEN);
    buf_append_u8(out, header->exact_uuid);
    codec_write_doc(out, header->version);
    codec_write_doc(out, header->options);
    codec_write_doc(out, header->indexes);
}

void create_header_decode(struct codec_reader *reader, struct create_header *out)
{
    out->ns = codec_read_str(reader);
    out->uuid = codec_read_bytes(reader, UUID_LEN);
    out->exact_uuid = codec_read_u8(reader) != 0;
    out->version = codec_read_doc(reader);
    out->options = codec_read_doc(reader);
    out->indexes = codec_read_doc(reader);
}

static bool check_index(const struct document_engine *engine, struct bdoc spec, struct bdoc collation, struct err *err)
{
    bson_t normal = BSON_INITIALIZER;
    bool ok = index_spec_normalise(document_engine_store(engine), spec, collation, &normal, err);
    bson_destroy(&normal);
    return ok;
}

bool create_header_check(const struct document_engine *engine, const struct create_header *header, struct err *err)
{
    bson_t *id_index = BCON_NEW("key", "{", "_id", BCON_INT32(1), "}", "name", BCON_UTF8("_id_"));
    struct bdoc collation = {0};
    struct bval val;
    struct biter iter;
    struct belem elem;
    if (header->options.data != NULL && bdoc_find(header->options, "collation", &val) && val.type == BT_DOCUMENT)
        collation = bval_doc(&val);
    bool ok = check_index(engine, bdoc_of(id_index), collation, err);
    biter_init(&iter, header->indexes.data == NULL ? bdoc_empty() : header->indexes);
    while (ok && biter_next(&iter, &elem)) {
        ok = elem.val.type == BT_DOCUMENT || err_set(err, ERR_TypeMismatch, "an index is no object");
        ok = ok && check_index(engine, bval_doc(&elem.val), collation, err);
    }
    bson_destroy(id_index);
    return ok;
}

void create_indexes_header_encode(struct buf *out, const struct create_indexes_header *header)
{
    codec_write_str(out, header->ns);
    buf_append(out, header->create_uuid, UUID_LEN);
    codec_write_doc(out, header->version);
    codec_write_doc(out, header->specs);
}

void create_indexes_header_decode(struct codec_reader *reader, struct create_indexes_header *out)
{
    out->ns = codec_read_str(reader);
    out->create_uuid = codec_read_bytes(reader, UUID_LEN);
    out->version = codec_read_doc(reader);
    out->specs = codec_read_doc(reader);
}

void ddl_command_begin(struct buf *out, uint8_t kind)
{
    *out = BUF_INIT;
    buf_append_u8(out, kind);
}

struct parked {
    struct command_ctx *ctx;
    void (*finish)(struct command_ctx *ctx, const struct document_result *result);
};

static void proposed(void *arg, const struct document_result *result)
{
    struct parked *parked = arg;
    if (result->outcome == DOCUMENT_APPLIED && result->ok)
        parked->finish(parked->ctx, result);
    else
        command_finish(parked->ctx, &result->err);
    mem_free(parked);
}

enum command_status ddl_propose(struct command_ctx *ctx, struct buf *command,
                                void (*finish)(struct command_ctx *ctx, const struct document_result *result))
{
    const struct document_log *log = document_engine_log(document_engine_of(ctx));
    struct parked *parked = mem_alloc(sizeof *parked);
    *parked = (struct parked){.ctx = ctx, .finish = finish};
    size_t len;
    uint8_t *bytes = buf_take(command, &len);
    log->propose(log->arg, bytes, len, proposed, parked);
    return COMMAND_PARKED;
}
