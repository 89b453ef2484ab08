/* The keys that a document has in an index, or in a sort: for a pattern such as {a: 1, "b.c": -1} every tuple of
 * values. Arrays give one tuple for each element; fields below the same array go in step. Values are views of the
 * document. A compiled pattern may be read by any number of threads. */
#ifndef SHERD_BSON_KEYGEN_H
#define SHERD_BSON_KEYGEN_H

#include "bson/compare.h"
#include "bson/path.h"

enum { KEYGEN_MAX_FIELDS = 32 };

struct keygen {
    uint32_t count;                       /* fields of the pattern */
    uint64_t descending;                  /* bit i: field i is descending (see keyenc.h) */
    const struct bval_order *order;       /* of strings, for keygen_each_encoded; NULL: by bytes; borrowed */
    struct path paths[KEYGEN_MAX_FIELDS]; /* owned */
};

/* `order` (NULL: simple) is borrowed as long as `gen` is used. Only the names of `pattern`'s fields and the signs of
 * their numbers are used. ERR_CannotCreateIndex for no field or more than KEYGEN_MAX_FIELDS. On success the caller
 * calls keygen_deinit. */
bool keygen_init(struct keygen *gen, struct bdoc pattern, const struct bval_order *order,
                 struct err *err) ERR_WARN_UNUSED;
void keygen_deinit(struct keygen *gen);

struct keygen_tuple {
    const struct bval *values; /* one for each field; BT_EOO: missing (sorts as null); an empty array gives undefined */
    uint32_t count;
    bool multikey; /* an array was expanded for this document */
    /* For each field, bit j: an array that ends the path's first j + 1 parts was expanded so far (63: or a later one);
     * the last tuple has them all. */
    const uint64_t *paths;
};

/* Calls `fn` for each tuple, in the arrays' order; equal tuples may come more than once. `fn` returns false to stop.
 * Errors: 171 when two fields would expand different arrays, 16746 for a name of digits that is both a position of an
 * array and a field of its documents. True also when `fn` stopped. */
bool keygen_each(const struct keygen *gen, struct bdoc doc, bool (*fn)(void *arg, const struct keygen_tuple *tuple),
                 void *arg, struct err *err) ERR_WARN_UNUSED;

/* The same as encoded keys: `fn` gets each distinct one once, in byte order. */
bool keygen_each_encoded(const struct keygen *gen, struct bdoc doc,
                         bool (*fn)(void *arg, const uint8_t *key, size_t len), void *arg, bool *multikey,
                         struct err *err) ERR_WARN_UNUSED;

#endif
