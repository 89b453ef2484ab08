/* Views into BSON bytes: nothing here allocates or copies. Bytes from outside pass bdoc_validate once, where they enter
 * the process; after that every view of them is trusted. Documents are built with libbson's bson_t.
 * Format: https://bsonspec.org/spec.html */
#ifndef SHERD_BSON_VALUE_H
#define SHERD_BSON_VALUE_H

#include "base/buf.h"
#include "base/err.h"

#include <bson/bson.h>

/* Type bytes of BSON elements. */
enum btype {
    BT_EOO = 0x00, /* also: "no value" */
    BT_DOUBLE = 0x01,
    BT_STRING = 0x02,
    BT_DOCUMENT = 0x03,
    BT_ARRAY = 0x04,
    BT_BINARY = 0x05,
    BT_UNDEFINED = 0x06,
    BT_OBJECT_ID = 0x07,
    BT_BOOL = 0x08,
    BT_DATE = 0x09,
    BT_NULL = 0x0a,
    BT_REGEX = 0x0b,
    BT_DB_POINTER = 0x0c,
    BT_CODE = 0x0d,
    BT_SYMBOL = 0x0e,
    BT_CODE_WITH_SCOPE = 0x0f,
    BT_INT32 = 0x10,
    BT_TIMESTAMP = 0x11,
    BT_INT64 = 0x12,
    BT_DECIMAL128 = 0x13,
    BT_MAX_KEY = 0x7f,
    BT_MIN_KEY = 0xff,
};

enum {
    BDOC_MAX_BYTES = 16 * 1024 * 1024,                      /* of a user's document */
    BDOC_MAX_INTERNAL_BYTES = 16 * 1024 * 1024 + 16 * 1024, /* of a command or reply around one */
    BDOC_MAX_DEPTH = 100,                                   /* levels of nesting of a stored document */
    BDOC_MAX_WIRE_DEPTH = 200,                              /* of a command, which wraps documents */
};

/* A whole document: `data` begins with its int32 length, `len` is that length. data == NULL: no document. */
struct bdoc {
    const uint8_t *data;
    uint32_t len;
};

/* A value: its type byte and its payload as it stands in the document. type BT_EOO: no value (a missing field). */
struct bval {
    uint8_t type; /* enum btype */
    uint32_t len; /* of the payload */
    const uint8_t *data;
};

struct belem {
    const char *key; /* ended by a NUL inside the document */
    uint32_t key_len;
    struct bval val;
};

struct biter {
    const uint8_t *pos;
    const uint8_t *end; /* the document's last byte, a NUL */
};

/* True when `data[0..len)` is exactly one well-formed document: lengths, terminators, types, UTF-8 of keys and strings,
 * at most `max_depth` levels. ERR_InvalidBSON, or ERR_Overflow for the depth. */
bool bdoc_validate(const void *data, size_t len, int max_depth, struct err *err) ERR_WARN_UNUSED;

struct bdoc bdoc_of(const bson_t *bson);
/* A bson_t that reads the same bytes; valid as long as they are. */
void bdoc_to_bson(struct bdoc doc, bson_t *out);
/* The document with no field. */
struct bdoc bdoc_empty(void);
bool bdoc_is_empty(struct bdoc doc);
uint32_t bdoc_count(struct bdoc doc);
/* First field of that name at the top level (no dotted path). False: *out has type BT_EOO. */
bool bdoc_find(struct bdoc doc, const char *key, struct bval *out);
bool bdoc_find_n(struct bdoc doc, const char *key, size_t key_len, struct bval *out);
bool bdoc_has(struct bdoc doc, const char *key);
/* Byte equality. */
bool bdoc_same(struct bdoc a, struct bdoc b);

void biter_init(struct biter *iter, struct bdoc doc); /* no document, {0}, has no fields */
/* False at the end. */
bool biter_next(struct biter *iter, struct belem *out);

/* Accessors: the value must have the named type, unless said otherwise. */
double bval_f64(const struct bval *val);
int32_t bval_i32(const struct bval *val);
int64_t bval_i64(const struct bval *val); /* int64, date or timestamp bits */
bool bval_bool(const struct bval *val);
/* String, code or symbol; not counting the final NUL; may hold NULs inside. */
const char *bval_str(const struct bval *val, uint32_t *len);
struct bdoc bval_doc(const struct bval *val); /* document or array */
const uint8_t *bval_binary(const struct bval *val, uint8_t *subtype, uint32_t *len);
const bson_oid_t *bval_oid(const struct bval *val);
const char *bval_regex(const struct bval *val, const char **options);
void bval_decimal(const struct bval *val, bson_decimal128_t *out);

bool bval_is_number(const struct bval *val);
/* A number that stands for a whole one within int64 (double and decimal included). */
bool bval_to_i64(const struct bval *val, int64_t *out);
/* Any number as a double; decimal is rounded. */
bool bval_to_f64(const struct bval *val, double *out);
/* As MongoDB's commands read flags: bool, or a number that is not 0; null and missing are false. */
bool bval_truthy(const struct bval *val);
/* True for a string equal to `text`. */
bool bval_is_str(const struct bval *val, const char *text);

/* Constants as values. The string and the document are borrowed: for a string, `data` must start with its int32 length.
 */
struct bval bval_from_doc(struct bdoc doc);
extern const struct bval BVAL_MISSING, BVAL_NULL, BVAL_MIN_KEY, BVAL_MAX_KEY;

/* Appends to a document under construction. */
void bval_append(bson_t *to, const char *key, int key_len, const struct bval *val);
/* "double", "string", "object", ... as $type names them. */
const char *bval_type_name(uint8_t type);

#endif
