/* From the parser of extended JSON to its type wrappers ({"$oid": ...} and the like). */
#ifndef SHERD_BSON_EXTJSON_TYPES_H
#define SHERD_BSON_EXTJSON_TYPES_H

#include "bson/value.h"

/* True when a document whose first field has this name stands for a value of another type. */
bool extjson_is_wrapper(const char *key, size_t len);
/* Appends to `to` the value that `wrapper` stands for. ERR_FailedToParse when its fields are not what the first one
 * asks for. */
bool extjson_append_unwrapped(bson_t *to, const char *key, int key_len, struct bdoc wrapper,
                              struct err *err) ERR_WARN_UNUSED;

#endif
