/* Where one component of an encoded key (bson/keyenc.h) ends and the next begins: for walks through an index that look
 * at each field of a compound key. Pure functions for any thread. */
#ifndef SHERD_BSON_KEYSPLIT_H
#define SHERD_BSON_KEYSPLIT_H

#include <stdbool.h>
#include <stdint.h>

/* Length of the first component of `key`; 0 when the bytes are no whole component. */
uint32_t keysplit_component(const uint8_t *key, uint32_t len, bool descending);

#endif
