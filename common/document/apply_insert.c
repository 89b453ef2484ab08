/* DOCUMENT_KIND_INSERT: namespace, uuid for a collection that has to be made (zeros: it must be there), $sherdVersion,
 * flags, the batch index of the first document, the number of documents, the documents end to end. Result: u32
 * inserted, u32 errors, then for each error its batch index and the error. */
#include "document/apply_internal.h"
#include "document/insert.h"
#include "document/statement.h"

#include <string.h>

static void insert_all(struct apply_target *target, struct codec_reader *reader, const struct insert_header *header,
                       struct insert_outcome *outcome)
{
    for (uint32_t i = 0; i < header->count; i++) {
        struct err err;
        struct bdoc doc = codec_read_doc(reader);
        if (validator_apply(&target->traits->validator, header->tested, (struct bdoc){0}, doc, &err) ==
                VALIDATOR_PASS &&
            apply_target_insert(target, doc, &err)) {
            outcome->inserted++;
            continue;
        }
        buf_append_le32(&outcome->errors, header->first_index + i);
        codec_write_err(&outcome->errors, &err);
        outcome->error_count++;
        if (header->ordered)
            break;
    }
}

/* NULL: the collection is not to be made. */
static const uint8_t *uuid_to_make(const struct insert_header *header)
{
    static const uint8_t none[UUID_BYTES];
    return memcmp(header->create_uuid, none, sizeof none) == 0 ? NULL : header->create_uuid;
}

/* Before anything is written the whole command is known to be readable. */
static bool check_docs(struct codec_reader reader, uint32_t count)
{
    for (uint32_t i = 0; i < count && !reader.failed; i++)
        reader.failed |= codec_read_doc(&reader).data == NULL;
    return !reader.failed;
}

bool apply_insert(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct insert_header header;
    struct insert_outcome outcome = {0};
    struct apply_target target;
    insert_header_decode(reader, &header);
    if (reader->failed || !check_docs(*reader, header.count))
        return apply_damaged(err);
    if (!apply_target_open(&target, apply, header.ns, header.version, uuid_to_make(&header), err))
        return false;
    bool ok = (target.coll != NULL || err_set(err, ERR_NamespaceNotFound, "ns not found %s", header.ns)) &&
              apply_target_check_writable(&target, err) &&
              apply_target_check_tested(&target, header.tested, false, err);
    if (ok)
        insert_all(&target, reader, &header, &outcome);
    apply_target_close(&target);
    if (!ok)
        return false;
    buf_append_le32(result, outcome.inserted);
    buf_append_le32(result, outcome.error_count);
    buf_append(result, outcome.errors.data, outcome.errors.len);
    buf_deinit(&outcome.errors);
    return true;
}
