/* Base64 (RFC 4648, with padding). Any thread. */
#ifndef SHERD_BSON_BASE64_H
#define SHERD_BSON_BASE64_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends the text, without a NUL. */
void base64_encode(struct buf *to, const void *data, size_t len);
/* Appends the bytes; false when `text` is malformed (what was appended by then stays). */
bool base64_decode(struct buf *to, const char *text, size_t len);

#endif
