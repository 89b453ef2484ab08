/* The order of BSON values, as sort, comparison operators, indexes and chunk bounds use it. Pure functions for any
 * thread.
 *
 * Order of the classes: MinKey, undefined, null and missing, numbers, string and symbol, object, array, binary data,
 * ObjectId, bool, date, timestamp, regular expression, DBPointer, code, code with scope, MaxKey.
 * Numbers compare by exact value whatever their types; NaN is below all others and equal to itself; -0 equals 0.
 * Strings compare by bytes. Objects compare field by field: class of the value, then name, then value; arrays element
 * by element; when one ends first it is less. Binary data compares by length, subtype, bytes. Source:
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/ */
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

/* Replaces the comparison of strings (a collation); it is applied at every depth. */
struct bval_order {
    int (*compare_strings)(void *arg, const char *a, uint32_t a_len, const char *b, uint32_t b_len);
    void *arg;
};

enum bclass bval_class(uint8_t type);

/* Below 0, 0 or above 0. */
int bval_compare(const struct bval *a, const struct bval *b);
bool bval_equal(const struct bval *a, const struct bval *b);
/* `order` NULL: strings by bytes. */
int bval_compare_ordered(const struct bval *a, const struct bval *b, const struct bval_order *order);
/* Documents with the names of their fields. */
int bdoc_compare(struct bdoc a, struct bdoc b);
int bdoc_compare_ordered(struct bdoc a, struct bdoc b, const struct bval_order *order);
/* Two values of class number. */
int bval_compare_numbers(const struct bval *a, const struct bval *b);

#endif
