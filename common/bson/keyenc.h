/* Order-preserving encoding of BSON values: memcmp of two encodings has the sign of bval_compare of the values, equal
 * values (1, 1.0, NumberLong(1), NumberDecimal("1.0")) have equal bytes, and no encoding is a prefix of another, so
 * components and whatever follows a key (a record id) may be concatenated freely. Index entries, chunk bounds and merge
 * sort compare these bytes. Pure functions for any thread; the buffer is the caller's.
 *
 * Format. A value is a type byte and a payload; a descending component has every byte inverted.
 *
 *   0x08        MinKey                                     0x50        object: FIELD* 0x00
 *   0x10        undefined                                  0x58        array: value* 0x00
 *   0x18        null, missing                              0x60        binary: be32 length, subtype, bytes
 *   0x20-0x37   numbers, see below                         0x68        ObjectId: 12 bytes
 *   0x48        string, symbol: STRING                     0x70        bool: 0x00 or 0x01
 *   0x78        date: be64 with the sign bit inverted      0x80        timestamp: be64
 *   0x88        regular expression: STRING STRING          0x90        DBPointer: be32 length, payload as it stands
 *   0x98        code: STRING                               0xa0        code with scope: STRING FIELD* 0x00
 *   0xf0        MaxKey                                     0xf8        above everything (bounds only)
 *
 *   STRING  the bytes, with 0x00 written as 01 01 and 0x01 as 01 02; ended by 00.
 *   FIELD   class byte (the type byte; 0x20 for any number), the name as STRING, the value.
 *
 * Numbers. A positive number has one of these type bytes; all sizes are in bytes.
 *
 *   0x2c        zero of any type and sign
 *   0x2d        below 1: 8: the double's bits (after rounding towards zero) shifted left by one, lowest bit M
 *   0x2e-0x35   1 up to 2^63: n = 1..8: the integer part shifted left by one, in as few bytes as it takes, lowest bit
 * F. F set: there is a fraction: 7: its first 52 bits, then three zero bits and M 0x36        2^63 and above: as 0x2d
 * (decimals beyond the largest double: that double, with M set) 0x37        infinity M set: the value is larger than
 * these bits say: 17: the exact decimal, be16 exponent of its first digit + 0x4000, 120 bits of coefficient scaled to
 * 34 digits.
 *
 * A negative number has the type byte 0x58 - t and its payload inverted. 0x20 is NaN, 0x21 minus infinity. */
#ifndef SHERD_BSON_KEYENC_H
#define SHERD_BSON_KEYENC_H

#include "bson/compare.h"

/* One value as one component of a key. A missing value encodes as null. */
void keyenc_append(struct buf *to, const struct bval *val, bool descending);
/* In the order of bval_compare_ordered: strings stand as the STRING of their sort key. `order` NULL: as above. Keys of
 * different orders don't compare. */
void keyenc_append_ordered(struct buf *to, const struct bval *val, bool descending, const struct bval_order *order);
/* What keyenc_append gives for an int64 (a hash, for instance). */
void keyenc_append_i64(struct buf *to, int64_t number, bool descending);

/* Every field of `values` in its order, names ignored; bit i of `descending` (from keyenc_descending) is for field i.
 */
void keyenc_append_doc_key(struct buf *to, struct bdoc values, uint64_t descending);
/* Which fields of a key pattern such as {a: 1, b: -1, c: "hashed"} are descending: those with a negative number. Bit i
 * is for field i; a pattern has at most 32 fields (MongoDB's limit). */
uint64_t keyenc_descending(struct bdoc key_pattern);

/* A chunk bound: ascending components; MinKey stays MinKey, but MaxKey becomes "above everything", so that a range
 * [min, max) up to MaxKey contains a document whose key is MaxKey itself. Comparable with keys from
 * keyenc_append_doc_key; a bound of fewer fields lies before every key that begins with it. */
void keyenc_append_bound(struct buf *to, struct bdoc bound);

/* One byte that lies before (after) every value of the class that `type` belongs to, and on the far side of the
 * neighbour classes: the ends of a scan over, say, all numbers. With `descending`, before and after are still meant in
 * the order of values: "before" is then the larger byte. */
void keyenc_append_before_class(struct buf *to, uint8_t type, bool descending);
void keyenc_append_after_class(struct buf *to, uint8_t type, bool descending);

/* Sign of a - b for two encoded keys, the shorter first when one begins with the other. */
int keyenc_compare(const void *a, size_t a_len, const void *b, size_t b_len);

#endif
