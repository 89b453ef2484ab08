/* Inside storage only: a document as MongoDB's error messages print it: { a: 1, b: "x" }. */
#ifndef SHERD_STORAGE_SHELL_TEXT_H
#define SHERD_STORAGE_SHELL_TEXT_H

#include "bson/value.h"

/* Appends without a final NUL; stops after about `max_bytes`. */
void shell_text_append(struct buf *out, struct bdoc doc, size_t max_bytes);

#endif
