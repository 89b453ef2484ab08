/* What an encoded key (keyenc.h) doesn't tell about its values: 1, 1.0 and NumberLong(1) have the same bytes, and so
 * have null and a missing field. These bytes stand beside a key and let its values be given back exactly. They are no
 * part of a key: equal keys may have different ones. Pure functions for any thread.
 *
 * Format. One mark for each value of a key that needs one, in the order of the key, objects' and arrays' members where
 * they stand; nothing at all when every mark would be its default.
 *
 *   number   0 int32 (default)   1 double   2 int64   3 decimal, then its 16 bytes   4 double, then its 8 bytes (-0,
 * NaN) string   0 string (default)  1 symbol null     0 null (default)    1 missing
 *
 * One byte 0xff instead of all: the values can't be given back (a collated string, a hash, code with scope). */
#ifndef SHERD_BSON_KEYTYPES_H
#define SHERD_BSON_KEYTYPES_H

#include "bson/compare.h"

/* Collects the marks of one key. */
struct keytypes {
    struct buf *out; /* the caller's; marks are appended */
    size_t start;    /* where the key's marks begin in it */
    bool needed;     /* some mark is not the default */
    bool lost;       /* the values can't be given back */
};

void keytypes_begin(struct keytypes *types, struct buf *out);
/* The next component. `order` as in keyenc_append_ordered. */
void keytypes_add(struct keytypes *types, const struct bval *val, const struct bval_order *order);
/* The next component can't be given back. */
void keytypes_lose(struct keytypes *types);
/* Leaves the marks in `out`; returns their length. */
uint32_t keytypes_end(struct keytypes *types);

/* Reads a key component by component. */
struct keytypes_reader {
    const uint8_t *key;
    const uint8_t *key_end;
    const uint8_t *marks; /* NULL: all are the default */
    const uint8_t *marks_end;
    uint8_t flip; /* 0xff within a descending component */
};

/* False when the values can't be given back. */
bool keytypes_reader_init(struct keytypes_reader *reader, const uint8_t *key, uint32_t key_len, const uint8_t *types,
                          uint32_t types_len) ERR_WARN_UNUSED;
/* Takes the next component: appends it to `out` under `name`, unless it is missing, which sets *missing. False for
 * bytes that are no key with its marks (then `out` may have a part). */
bool keytypes_take(struct keytypes_reader *reader, bool descending, const char *name, bson_t *out,
                   bool *missing) ERR_WARN_UNUSED;

#endif
