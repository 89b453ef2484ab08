/* Building BSON straight into a struct buf: no bson_t, no second copy. Used by query, update and aggregate, which hand
 * out documents appended to a buffer. Nested documents are opened and closed in order; the offset that begin returned
 * goes to end. Any thread; the buffer is the caller's. */
#ifndef SHERD_EXPR_WRITER_H
#define SHERD_EXPR_WRITER_H

#include "base/arena.h"
#include "base/buf.h"
#include "bson/value.h"

enum {
    WRITER_INDEX_BYTES = 12, /* of the name of an array element */
};

/* Opens a document (or array) at the end of `buf`; returns where it begins. */
size_t write_begin(struct buf *buf);
/* The same as the value of a field. `type` is BT_DOCUMENT or BT_ARRAY. */
size_t write_begin_field(struct buf *buf, const char *key, size_t key_len, uint8_t type);
void write_end(struct buf *buf, size_t start);
/* A field; a missing value writes nothing. */
void write_value(struct buf *buf, const char *key, size_t key_len, const struct bval *val);
/* A field as it stands in another document. */
void write_elem(struct buf *buf, const struct belem *elem);
void write_i32(struct buf *buf, const char *key, int32_t value);
void write_i64(struct buf *buf, const char *key, int64_t value);
void write_f64(struct buf *buf, const char *key, double value);
void write_str(struct buf *buf, const char *key, const char *text, size_t len);
/* Decimal digits of an array index into `name` (WRITER_INDEX_BYTES); returns the length. */
size_t write_index_name(char *name, uint32_t index);
/* The n-th element of an array. */
void write_item(struct buf *buf, uint32_t index, const struct bval *val);
/* View of a finished document that begins at `start`; valid until the buffer grows. */
struct bdoc write_view(const struct buf *buf, size_t start);

/* Values in an arena. */
struct bval make_i32(struct arena *arena, int32_t value);
struct bval make_i64(struct arena *arena, int64_t value);
struct bval make_f64(struct arena *arena, double value);
struct bval make_date(struct arena *arena, int64_t value_ms);
struct bval make_timestamp(struct arena *arena, uint64_t bits);
struct bval make_decimal(struct arena *arena, const bson_decimal128_t *value);
struct bval make_str(struct arena *arena, const char *text, size_t len);
/* Constant: needs no arena. */
struct bval make_bool(bool value);
/* A copy of a value whose bytes would not live long enough. */
struct bval make_copy(struct arena *arena, const struct bval *val);
/* Moves a finished document out of a buffer: a copy in the arena; the buffer is freed. */
struct bval make_doc(struct arena *arena, struct buf *take, uint8_t type);

#endif
