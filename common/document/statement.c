#include "document/statement.h"

#include <string.h>

enum {
    UUID_LEN = 16,
    OID_LEN = 12,
};

void statement_batch_encode(struct buf *out, const struct statement_batch *batch)
{
    codec_write_str(out, batch->ns);
    buf_append(out, batch->create_uuid, UUID_LEN);
    codec_write_doc(out, batch->version);
    codec_write_doc(out, batch->let);
    buf_append_le64(out, (uint64_t)batch->now_ms);
    codec_write_batch_flags(out, batch->ordered, batch->tested);
    buf_append_le32(out, batch->count);
}

void statement_batch_decode(struct codec_reader *reader, struct statement_batch *out)
{
    out->ns = codec_read_str(reader);
    out->create_uuid = codec_read_bytes(reader, UUID_LEN);
    out->version = codec_read_doc(reader);
    out->let = codec_read_doc(reader);
    out->now_ms = (int64_t)codec_read_u64(reader);
    codec_read_batch_flags(reader, &out->ordered, &out->tested);
    out->count = codec_read_u32(reader);
}

static void encode_candidate(struct buf *out, const struct statement *statement,
                             const struct statement_candidate *candidate)
{
    buf_append_le64(out, candidate->record_id);
    buf_append_le32(out, candidate->sort_key_len);
    buf_append(out, candidate->sort_key, candidate->sort_key_len);
    if (statement->flags & STATEMENT_IMAGE) {
        buf_append_le64(out, candidate->hash);
        codec_write_doc(out, candidate->after);
    }
}

void statement_encode(struct buf *out, const struct statement *statement)
{
    buf_append_le32(out, statement->flags);
    buf_append_le32(out, statement->index);
    codec_write_doc(out, statement->filter);
    buf_append_u8(out, statement->update.type);
    if (statement->update.type != BT_EOO)
        codec_write_doc(out, bval_doc(&statement->update));
    codec_write_doc(out, statement->array_filters);
    codec_write_doc(out, statement->sort);
    buf_append(out, &statement->upsert_id, OID_LEN);
    codec_write_doc(out, statement->upsert_image);
    buf_append_le32(out, statement->candidate_count);
    for (uint32_t i = 0; i < statement->candidate_count; i++)
        encode_candidate(out, statement, &statement->candidates[i]);
}

static void decode_candidate(struct codec_reader *reader, const struct statement *statement,
                             struct statement_candidate *out)
{
    out->record_id = codec_read_u64(reader);
    out->sort_key_len = codec_read_u32(reader);
    out->sort_key = codec_read_bytes(reader, out->sort_key_len);
    if (statement->flags & STATEMENT_IMAGE) {
        out->hash = codec_read_u64(reader);
        out->after = codec_read_doc(reader);
    }
}

void statement_decode(struct codec_reader *reader, struct arena *arena, struct statement *out)
{
    *out = (struct statement){.flags = codec_read_u32(reader)};
    out->index = codec_read_u32(reader);
    out->filter = codec_read_doc(reader);
    out->update.type = codec_read_u8(reader);
    if (out->update.type != BT_EOO) {
        struct bdoc doc = codec_read_doc(reader);
        out->update.data = doc.data;
        out->update.len = doc.len;
    }
    out->array_filters = codec_read_doc(reader);
    out->sort = codec_read_doc(reader);
    const uint8_t *oid = codec_read_bytes(reader, OID_LEN);
    if (oid != NULL)
        memcpy(&out->upsert_id, oid, OID_LEN);
    out->upsert_image = codec_read_doc(reader);
    uint32_t count = codec_read_u32(reader);
    /* A candidate takes at least its record id: a damaged count allocates no more than the bytes allow. */
    if (reader->failed || count > (size_t)(reader->end - reader->pos) / sizeof(uint64_t)) {
        reader->failed |= count > 0;
        return;
    }
    out->candidates = arena_alloc(arena, count * sizeof *out->candidates);
    out->candidate_count = count;
    for (uint32_t i = 0; i < count; i++)
        decode_candidate(reader, out, &out->candidates[i]);
}

void codec_write_err(struct buf *out, const struct err *err)
{
    buf_append_le32(out, (uint32_t)err->code);
    codec_write_str(out, err->msg);
    buf_append_le32(out, err->details_len);
    buf_append(out, err->details, err->details_len);
}

void codec_read_err(struct codec_reader *reader, struct err *out)
{
    int32_t code = (int32_t)codec_read_u32(reader);
    err_set(out, code, "%s", codec_read_str(reader));
    uint32_t len = codec_read_u32(reader);
    const uint8_t *details = codec_read_bytes(reader, len);
    if (details != NULL && len > 0)
        err_set_details(out, details, len);
}

void statement_result_encode(struct buf *out, const struct statement_result *result)
{
    buf_append_u8(out, (uint8_t)result->status);
    buf_append_le32(out, result->index);
    buf_append_le32(out, result->n);
    buf_append_le32(out, result->n_modified);
    codec_write_doc(out, result->upserted);
    codec_write_doc(out, result->value);
    buf_append_le32(out, result->missed_count);
    buf_append(out, result->missed, result->missed_count * sizeof(uint64_t));
    if (result->status == STATEMENT_ERROR)
        codec_write_err(out, &result->err);
}

void statement_result_decode(struct codec_reader *reader, struct statement_result *out)
{
    out->status = codec_read_u8(reader);
    out->index = codec_read_u32(reader);
    out->n = codec_read_u32(reader);
    out->n_modified = codec_read_u32(reader);
    out->upserted = codec_read_doc(reader);
    out->value = codec_read_doc(reader);
    out->missed_count = codec_read_u32(reader);
    out->missed = codec_read_bytes(reader, out->missed_count * sizeof(uint64_t));
    if (out->missed == NULL)
        out->missed_count = 0;
    if (out->status == STATEMENT_ERROR)
        codec_read_err(reader, &out->err);
}
