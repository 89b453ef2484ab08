/* The order of BSON values, as sort, comparison operators, indexes and chunk bounds use it. Pure functions for any
 * thread.
 *
 * Order of the classes: MinKey, undefined, null and missing, numbers, string and symbol, object, array, binary data,
 * ObjectId, bool, date, timestamp, regular expression, DBPointer, code, code with scope, MaxKey.
 * Numbers compare by exact value whatever their types; NaN is below all others and equal to itself; -0 equals 0.
 * Strings compare by bytes, or by a collation where an order is given. Objects compare field by field: class of the
 * value, then name, then value; arrays element by element; when one ends first it is less. Binary data compares by
 * length, subtype, bytes. Source: https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/ */
#ifndef SHERD_BSON_COMPARE_H
#define SHERD_BSON_COMPARE_H

#include "bson/value.h"

/* Place of a type in the order of the classes; types that compare with each other have the same one. */
enum bclass {
    BCLASS_UNDEFINED = 0,
    BCLASS_NULL = 5, /* null and a missing value */
    BCLASS_NUMBER = 10,
    BCLASS_STRING = 15, /* string and symbol */
    BCLASS_DOCUMENT = 20,
    BCLASS_ARRAY = 25,
    BCLASS_BINARY = 30,
    BCLASS_OBJECT_ID = 35,
    BCLASS_BOOL = 40,
    BCLASS_DATE = 45,
    BCLASS_TIMESTAMP = 47,
    BCLASS_REGEX = 50,
    BCLASS_DB_POINTER = 55,
    BCLASS_CODE = 60,
    BCLASS_CODE_WITH_SCOPE = 65,
    BCLASS_MIN_KEY = -1,
    BCLASS_MAX_KEY = 127,
};

/* Replaces the comparison of strings and symbols (a collation) at every depth; names of fields and code still compare
 * by bytes. A pointer to it that is NULL stands for the simple order, by bytes. Read-only; any thread. */
struct bval_order {
    int (*compare_strings)(const void *arg, const char *a, uint32_t a_len, const char *b, uint32_t b_len);
    /* Appends bytes whose memcmp order, the shorter first, is that of compare_strings, and that are equal when it says
     * 0. Any byte may occur in them: bson/keyenc.h escapes them. */
    void (*append_key)(const void *arg, const char *text, uint32_t len, struct buf *to);
    const void *arg;
    const char *name; /* the collation's normalised form: two orders are the same when their names are equal */
};

/* Both simple, or of the same name. */
bool bval_order_same(const struct bval_order *a, const struct bval_order *b);
/* The order decides something about the value: it is or contains a string. */
bool bval_order_concerns(const struct bval *val);

enum bclass bval_class(uint8_t type);

/* Below 0, 0 or above 0. */
int bval_compare(const struct bval *a, const struct bval *b);
bool bval_equal(const struct bval *a, const struct bval *b);
/* `order` NULL: strings by bytes. */
int bval_compare_ordered(const struct bval *a, const struct bval *b, const struct bval_order *order);
bool bval_equal_ordered(const struct bval *a, const struct bval *b, const struct bval_order *order);
/* True when one of `values`, sorted by that order, equals `val`: by halves. */
bool bval_in_sorted(const struct bval *val, const struct bval *values, size_t count, const struct bval_order *order);
/* Documents with the names of their fields. */
int bdoc_compare(struct bdoc a, struct bdoc b);
int bdoc_compare_ordered(struct bdoc a, struct bdoc b, const struct bval_order *order);
/* Two values of class number. */
int bval_compare_numbers(const struct bval *a, const struct bval *b);

#endif
