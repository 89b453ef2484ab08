/* The keys that a document has in an index. Pure; any thread. Arrays along the path of ONE array make several keys, a
 * missing field is null, an empty array is undefined:
 * https://www.mongodb.com/docs/manual/core/indexes/index-types/index-multikey/
 *
 * A wildcard field ("$**", "a.$**") makes two components in its place, both in its direction: a path (a string, never
 * collated) and the value there. A document has a key for every scalar below the wildcard's root, also explicit null;
 * an empty object is a value, an empty array is undefined; the elements of an array stand under the array's own path,
 * an array that lies directly in another one is a value; other objects have no key of their own. A name with a dot in
 * it hides what is below. Without a value there is no key. _id is left out unless wildcardProjection has it.
 * A COMPOUND wildcard index has besides, for each document, one key with MinKey as path and as value: whoever asks only
 * for fields before the wildcard finds each document once there. Its other fields can't be arrays (error 7246301). */
#ifndef SHERD_STORAGE_INDEX_KEYS_H
#define SHERD_STORAGE_INDEX_KEYS_H

#include "storage/catalog.h"
#include "storage/cursor.h"

enum {
    INDEX_KEYS_MAX = 100000,                 /* keys of one document in one index; more: 201 CannotBuildIndexKeys */
    INDEX_KEYS_MAX_BYTES = 64 * 1024 * 1024, /* of those keys together; more: 201 */
};

struct index_key {
    uint32_t offset; /* into index_keys.bytes */
    uint32_t len;
    uint32_t
        types_len; /* bytes behind the key (bson/keytypes.h), no part of it: keys that differ only there are equal */
    bool stored;   /* an entry is there, with other types */
};

/* Reusable: the memory stays with the struct. Zero-initialise. */
struct index_keys {
    struct buf bytes;       /* the encoded keys, back to back */
    struct index_key *keys; /* in order, each once */
    size_t count;
    size_t cap;
    bool multikey; /* an array was on the way */
    /* For each field, as index_field.multikey; valid when `multikey`. */
    uint64_t paths[CATALOG_INDEX_FIELDS_MAX];
};

void index_keys_deinit(struct index_keys *keys);
/* Replaces the content. A document outside a sparse or partial index has no key. Errors: 171, 16766, 16746, 201. */
bool index_keys_generate(const struct index_def *index, struct bdoc doc, struct index_keys *out,
                         struct err *err) ERR_WARN_UNUSED;
/* The values that an entry stands for, byte-identical to those of the document, under the fields' names: {a: 1,
 * "b.c": 2}. Appends to `out`; a missing value is left out, or null when `missing_as_null`. False: the entry can't tell
 * (a hashed or wildcard field, a collated string, a long key, a missing dotted field that isn't wanted as null), and
 * `out` may have some of the fields. A field with index_field.multikey != 0 gives an array's element, not the array. */
bool index_entry_values(const struct index_def *index, const struct index_entry *entry, bool missing_as_null,
                        bson_t *out) ERR_WARN_UNUSED;
/* True when every value at that dotted path is in a wildcard index (an array's by its elements): the path lies below
 * the wildcard's root, is not projected away and has no part of digits only. */
bool index_wildcard_covers(const struct index_def *index, const char *path, uint32_t path_len);
/* {a: 1, b: 2}: the values of an encoded key can't be printed in general, so this takes them from the document that has
 * the key, as error 11000 shows them. `key` is the one of `doc`'s keys that is wanted. */
void index_key_value(const struct index_def *index, struct bdoc doc, const uint8_t *key, uint32_t key_len, bson_t *out);

#endif
