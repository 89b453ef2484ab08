/* MongoDB Extended JSON v2, canonical and relaxed: printing and parsing. Any thread.
 * Format: https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/ */
#ifndef SHERD_BSON_EXTJSON_H
#define SHERD_BSON_EXTJSON_H

#include "bson/value.h"

enum extjson_mode {
    EXTJSON_CANONICAL, /* every type survives a round trip */
    EXTJSON_RELAXED,   /* plain numbers, ISO dates */
};

/* Appends one line of JSON without a newline and without a NUL. */
void extjson_print(struct buf *to, struct bdoc doc, enum extjson_mode mode);
void extjson_print_value(struct buf *to, const struct bval *val, enum extjson_mode mode);

/* Parses one document in either mode (whole numbers become int32 or int64, others double). `out` is initialised here
 * and the caller's to bson_destroy, on success only. At most BDOC_MAX_DEPTH levels. ERR_FailedToParse with the byte
 * offset. */
bool extjson_parse(const char *text, size_t len, bson_t *out, struct err *err) ERR_WARN_UNUSED;

#endif
