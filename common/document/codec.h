/* Reading and writing the bytes of log commands and of their results: little-endian integers, byte runs behind their
 * length, whole BSON documents. A reader never runs past its end; it remembers that it failed, so one check at the end
 * is enough. Pure. */
#ifndef SHERD_DOCUMENT_CODEC_H
#define SHERD_DOCUMENT_CODEC_H

#include "base/buf.h"
#include "bson/value.h"

#include <stdbool.h>
#include <stdint.h>

struct codec_reader {
    const uint8_t *pos;
    const uint8_t *end;
    bool failed; /* something was cut short; what was read since is zero */
};

void codec_reader_init(struct codec_reader *reader, const void *data, size_t len);
uint8_t codec_read_u8(struct codec_reader *reader);
uint32_t codec_read_u32(struct codec_reader *reader);
uint64_t codec_read_u64(struct codec_reader *reader);
/* Borrowed from the bytes; NULL when there are fewer. */
const uint8_t *codec_read_bytes(struct codec_reader *reader, size_t len);
/* A string behind its u32 length, with its final NUL; "" when damaged. */
const char *codec_read_str(struct codec_reader *reader);
/* A document by its own length; data == NULL for one that was written as absent. Only its frame is checked: its author
 * validated it. */
struct bdoc codec_read_doc(struct codec_reader *reader);

/* Whether a batch is ordered, and the version of the validator that its documents were tested with (0: none): one byte,
 * and eight more for a version. */
void codec_read_batch_flags(struct codec_reader *reader, bool *ordered, uint64_t *tested);
void codec_write_batch_flags(struct buf *out, bool ordered, uint64_t tested);

void codec_write_str(struct buf *out, const char *text);
/* An absent document (data == NULL) takes four zero bytes. */
void codec_write_doc(struct buf *out, struct bdoc doc);

#endif
