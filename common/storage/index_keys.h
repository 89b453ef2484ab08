/* The keys that a document has in an index. Pure; any thread. Arrays along the path of ONE array make several keys, a
 * missing field is null, an empty array is undefined:
 * https://www.mongodb.com/docs/manual/core/indexes/index-types/index-multikey/ */
#ifndef SHERD_STORAGE_INDEX_KEYS_H
#define SHERD_STORAGE_INDEX_KEYS_H

#include "storage/catalog.h"

enum {
    INDEX_KEYS_MAX = 100000,                 /* keys of one document in one index; more: 201 CannotBuildIndexKeys */
    INDEX_KEYS_MAX_BYTES = 64 * 1024 * 1024, /* of those keys together; more: 201 */
};

struct index_key {
    uint32_t offset; /* into index_keys.bytes */
    uint32_t len;
};

/* Reusable: the memory stays with the struct. Zero-initialise. */
struct index_keys {
    struct buf bytes;       /* the encoded keys, back to back */
    struct index_key *keys; /* in order, each once */
    size_t count;
    size_t cap;
    bool multikey; /* an array was on the way */
};

void index_keys_deinit(struct index_keys *keys);
/* Replaces the content. A document outside a sparse or partial index has no key. Errors: 171, 16766, 16746, 201. */
bool index_keys_generate(const struct index_def *index, struct bdoc doc, struct index_keys *out,
                         struct err *err) ERR_WARN_UNUSED;
/* {a: 1, b: 2}: the values of an encoded key can't be printed in general, so this takes them from the document that has
 * the key, as error 11000 shows them. `key` is the one of `doc`'s keys that is wanted. */
void index_key_value(const struct index_def *index, struct bdoc doc, const uint8_t *key, uint32_t key_len, bson_t *out);

#endif
