#include "bson/value.h"

#include "base/check.h"
#include "bson/decnum.h"

#include <math.h>
#include <string.h>

const struct bval BVAL_MISSING = {.type = BT_EOO};
const struct bval BVAL_NULL = {.type = BT_NULL};
const struct bval BVAL_MIN_KEY = {.type = BT_MIN_KEY};
const struct bval BVAL_MAX_KEY = {.type = BT_MAX_KEY};

enum {
    SIZE_CSTRING_PAIR = -1,
    SIZE_STRING = -2,
    SIZE_DOCUMENT = -3,
    SIZE_BINARY = -4,
    SIZE_DB_POINTER = -5,
    SIZE_CODE_WITH_SCOPE = -6,
    SIZE_BAD = -7
};

/* Payload bytes of a type, or which rule gives them. */
static int size_rule(uint8_t type)
{
    switch (type) {
    case BT_UNDEFINED:
    case BT_NULL:
    case BT_MIN_KEY:
    case BT_MAX_KEY:
        return 0;
    case BT_BOOL:
        return 1;
    case BT_INT32:
        return 4;
    case BT_DOUBLE:
    case BT_DATE:
    case BT_TIMESTAMP:
    case BT_INT64:
        return 8;
    case BT_OBJECT_ID:
        return 12;
    case BT_DECIMAL128:
        return 16;
    case BT_STRING:
    case BT_CODE:
    case BT_SYMBOL:
        return SIZE_STRING;
    case BT_DOCUMENT:
    case BT_ARRAY:
        return SIZE_DOCUMENT;
    case BT_BINARY:
        return SIZE_BINARY;
    case BT_REGEX:
        return SIZE_CSTRING_PAIR;
    case BT_DB_POINTER:
        return SIZE_DB_POINTER;
    case BT_CODE_WITH_SCOPE:
        return SIZE_CODE_WITH_SCOPE;
    default:
        return SIZE_BAD;
    }
}

/* Payload length of a value in a validated document. */
static uint32_t payload_len(uint8_t type, const uint8_t *data)
{
    int rule = size_rule(type);
    switch (rule) {
    case SIZE_STRING:
        return 4 + load_le32(data);
    case SIZE_DOCUMENT:
    case SIZE_CODE_WITH_SCOPE:
        return load_le32(data);
    case SIZE_BINARY:
        return 5 + load_le32(data);
    case SIZE_DB_POINTER:
        return 4 + load_le32(data) + 12;
    case SIZE_CSTRING_PAIR: {
        size_t first = strlen((const char *)data) + 1;
        return (uint32_t)(first + strlen((const char *)data + first) + 1);
    }
    default:
        CHECK(rule >= 0);
        return (uint32_t)rule;
    }
}

/* --- validation ------------------------------------------------------------------------------------------------ */

static bool validate_doc(const uint8_t *data, size_t len, int depth, struct err *err);

static bool invalid(struct err *err, const char *what)
{
    return err_set(err, ERR_InvalidBSON, "invalid BSON: %s", what);
}

/* libbson looks at one byte at a time; most text is ASCII, which eight bytes at once can tell. */
static bool is_utf8(const uint8_t *text, size_t len, bool allow_nul)
{
    const uint64_t high_bits = UINT64_C(0x8080808080808080);
    size_t at = 0;
    while (at + 8 <= len && (load_le64(text + at) & high_bits) == 0)
        at += 8;
    while (at < len && text[at] < 0x80)
        at++;
    return at == len || bson_utf8_validate((const char *)text + at, len - at, allow_nul);
}

/* A length-prefixed string with its final NUL at `data`, of which `left` bytes may be read; *used is its whole size. */
static bool validate_string(const uint8_t *data, size_t left, bool any_bytes, size_t *used, struct err *err)
{
    if (left < 5)
        return invalid(err, "a string runs past the end");
    uint32_t len = load_le32(data);
    if (len < 1 || len > left - 4)
        return invalid(err, "a string's length runs past the end");
    if (data[4 + len - 1] != 0)
        return invalid(err, "a string is not ended by a NUL");
    if (!any_bytes && !is_utf8(data + 4, len - 1, true))
        return invalid(err, "a string is not UTF-8");
    *used = 4 + (size_t)len;
    return true;
}

static bool validate_cstring(const uint8_t *data, size_t left, size_t *used, struct err *err)
{
    const uint8_t *end = memchr(data, 0, left);
    if (end == NULL)
        return invalid(err, "a name runs past the end");
    *used = (size_t)(end - data) + 1;
    if (!is_utf8(data, *used - 1, false))
        return invalid(err, "a name is not UTF-8");
    return true;
}

static bool validate_binary(const uint8_t *data, size_t left, size_t *used, struct err *err)
{
    if (left < 5)
        return invalid(err, "binary data runs past the end");
    uint32_t len = load_le32(data);
    if (len > left - 5)
        return invalid(err, "binary data's length runs past the end");
    /* The old subtype repeats the length inside. */
    if (data[4] == 2 && (len < 4 || load_le32(data + 5) != len - 4))
        return invalid(err, "binary data of subtype 2 has two lengths");
    *used = 5 + (size_t)len;
    return true;
}

static bool validate_sub_document(const uint8_t *data, size_t left, int depth, size_t *used, struct err *err)
{
    if (left < 5)
        return invalid(err, "a document runs past the end");
    uint32_t len = load_le32(data);
    if (len < 5 || len > left)
        return invalid(err, "a document's length runs past the end");
    *used = len;
    return validate_doc(data, len, depth - 1, err);
}

static bool validate_code_with_scope(const uint8_t *data, size_t left, int depth, size_t *used, struct err *err)
{
    if (left < 14)
        return invalid(err, "code with scope runs past the end");
    uint32_t len = load_le32(data);
    if (len < 14 || len > left)
        return invalid(err, "code with scope has a wrong length");
    size_t code_used;
    if (!validate_string(data + 4, len - 4, false, &code_used, err))
        return false;
    size_t scope_used;
    if (!validate_sub_document(data + 4 + code_used, len - 4 - code_used, depth, &scope_used, err))
        return false;
    if (4 + code_used + scope_used != len)
        return invalid(err, "code with scope has a wrong length");
    *used = len;
    return true;
}

static bool validate_value(uint8_t type, const uint8_t *data, size_t left, int depth, size_t *used, struct err *err)
{
    int rule = size_rule(type);
    switch (rule) {
    case SIZE_STRING:
        return validate_string(data, left, false, used, err);
    case SIZE_DOCUMENT:
        return validate_sub_document(data, left, depth, used, err);
    case SIZE_BINARY:
        return validate_binary(data, left, used, err);
    case SIZE_CODE_WITH_SCOPE:
        return validate_code_with_scope(data, left, depth, used, err);
    case SIZE_CSTRING_PAIR: {
        size_t first;
        size_t second;
        if (!validate_cstring(data, left, &first, err) || !validate_cstring(data + first, left - first, &second, err))
            return false;
        *used = first + second;
        return true;
    }
    case SIZE_DB_POINTER:
        if (!validate_string(data, left, false, used, err))
            return false;
        if (left - *used < 12)
            return invalid(err, "a DBPointer runs past the end");
        *used += 12;
        return true;
    case SIZE_BAD:
        return err_set(err, ERR_InvalidBSON, "invalid BSON: unknown type 0x%02x", type);
    default:
        if (left < (size_t)rule)
            return invalid(err, "a value runs past the end");
        if (type == BT_BOOL && data[0] > 1)
            return invalid(err, "a boolean is neither 0 nor 1");
        *used = (size_t)rule;
        return true;
    }
}

static bool validate_doc(const uint8_t *data, size_t len, int depth, struct err *err)
{
    if (depth < 0)
        return err_set(err, ERR_Overflow, "a document is nested too deeply");
    if (len < 5 || load_le32(data) != len || data[len - 1] != 0)
        return invalid(err, "a document's length or end is wrong");
    size_t pos = 4;
    while (pos < len - 1) {
        uint8_t type = data[pos++];
        size_t used;
        if (!validate_cstring(data + pos, len - 1 - pos, &used, err))
            return false;
        pos += used;
        if (!validate_value(type, data + pos, len - 1 - pos, depth, &used, err))
            return false;
        pos += used;
    }
    return true;
}

bool bdoc_validate(const void *data, size_t len, int max_depth, struct err *err)
{
    if (len > INT32_MAX)
        return invalid(err, "a document is too large");
    return validate_doc(data, len, max_depth, err);
}

/* --- documents -------------------------------------------------------------------------------------------------- */

struct bdoc bdoc_of(const bson_t *bson)
{
    return (struct bdoc){.data = bson_get_data(bson), .len = bson->len};
}

void bdoc_to_bson(struct bdoc doc, bson_t *out)
{
    CHECK(bson_init_static(out, doc.data, doc.len));
}

struct bdoc bdoc_empty(void)
{
    static const uint8_t bytes[5] = {5, 0, 0, 0, 0};
    return (struct bdoc){.data = bytes, .len = sizeof bytes};
}

bool bdoc_is_empty(struct bdoc doc)
{
    return doc.len <= 5;
}

uint32_t bdoc_count(struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        count++;
    return count;
}

bool bdoc_find_n(struct bdoc doc, const char *key, size_t key_len, struct bval *out)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (elem.key_len == key_len && memcmp(elem.key, key, key_len) == 0) {
            *out = elem.val;
            return true;
        }
    }
    *out = BVAL_MISSING;
    return false;
}

bool bdoc_find(struct bdoc doc, const char *key, struct bval *out)
{
    return bdoc_find_n(doc, key, strlen(key), out);
}

bool bdoc_has(struct bdoc doc, const char *key)
{
    struct bval ignored;
    return bdoc_find(doc, key, &ignored);
}

bool bdoc_same(struct bdoc a, struct bdoc b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

void biter_init(struct biter *iter, struct bdoc doc)
{
    if (doc.data == NULL) {
        *iter = (struct biter){0};
        return;
    }
    iter->pos = doc.data + 4;
    iter->end = doc.data + doc.len - 1;
}

bool biter_next(struct biter *iter, struct belem *out)
{
    const uint8_t *pos = iter->pos;
    if (pos >= iter->end)
        return false;
    out->val.type = *pos++;
    out->key = (const char *)pos;
    out->key_len = (uint32_t)strlen((const char *)pos);
    pos += out->key_len + 1;
    out->val.data = pos;
    out->val.len = payload_len(out->val.type, pos);
    iter->pos = pos + out->val.len;
    return true;
}

/* --- values ----------------------------------------------------------------------------------------------------- */

double bval_f64(const struct bval *val)
{
    double value;
    memcpy(&value, val->data, sizeof value);
    return value;
}

int32_t bval_i32(const struct bval *val)
{
    return (int32_t)load_le32(val->data);
}

int64_t bval_i64(const struct bval *val)
{
    return (int64_t)load_le64(val->data);
}

bool bval_bool(const struct bval *val)
{
    return val->data[0] != 0;
}

const char *bval_str(const struct bval *val, uint32_t *len)
{
    *len = load_le32(val->data) - 1;
    return (const char *)val->data + 4;
}

struct bdoc bval_doc(const struct bval *val)
{
    return (struct bdoc){.data = val->data, .len = val->len};
}

const uint8_t *bval_binary(const struct bval *val, uint8_t *subtype, uint32_t *len)
{
    *len = load_le32(val->data);
    *subtype = val->data[4];
    return val->data + 5;
}

const bson_oid_t *bval_oid(const struct bval *val)
{
    return (const bson_oid_t *)(const void *)val->data;
}

const char *bval_regex(const struct bval *val, const char **options)
{
    const char *pattern = (const char *)val->data;
    *options = pattern + strlen(pattern) + 1;
    return pattern;
}

void bval_decimal(const struct bval *val, bson_decimal128_t *out)
{
    out->low = load_le64(val->data);
    out->high = load_le64(val->data + 8);
}

bool bval_is_number(const struct bval *val)
{
    return val->type == BT_INT32 || val->type == BT_INT64 || val->type == BT_DOUBLE || val->type == BT_DECIMAL128;
}

static double f64_of_decimal(const struct bval *val)
{
    bson_decimal128_t decimal;
    bval_decimal(val, &decimal);
    struct decnum number = decnum_from_decimal(decimal);
    return decnum_to_f64(&number);
}

bool bval_to_f64(const struct bval *val, double *out)
{
    switch (val->type) {
    case BT_INT32:
        *out = bval_i32(val);
        return true;
    case BT_INT64:
        *out = (double)bval_i64(val);
        return true;
    case BT_DOUBLE:
        *out = bval_f64(val);
        return true;
    case BT_DECIMAL128:
        *out = f64_of_decimal(val);
        return true;
    default:
        return false;
    }
}

bool bval_to_i64(const struct bval *val, int64_t *out)
{
    if (val->type == BT_INT32) {
        *out = bval_i32(val);
        return true;
    }
    if (val->type == BT_INT64) {
        *out = bval_i64(val);
        return true;
    }
    if (val->type == BT_DECIMAL128) {
        bson_decimal128_t decimal;
        bval_decimal(val, &decimal);
        struct decnum parts = decnum_from_decimal(decimal);
        return decnum_to_i64(&parts, out);
    }
    double number;
    if (!bval_to_f64(val, &number) || !(number >= -0x1p63 && number < 0x1p63) || number != trunc(number))
        return false;
    *out = (int64_t)number;
    return true;
}

bool bval_truthy(const struct bval *val)
{
    if (val->type == BT_BOOL)
        return bval_bool(val);
    double number;
    return bval_to_f64(val, &number) && number != 0;
}

bool bval_is_str(const struct bval *val, const char *text)
{
    if (val->type != BT_STRING)
        return false;
    uint32_t len;
    const char *str = bval_str(val, &len);
    return len == strlen(text) && memcmp(str, text, len) == 0;
}

struct bval bval_from_doc(struct bdoc doc)
{
    return (struct bval){.type = BT_DOCUMENT, .len = doc.len, .data = doc.data};
}

/* Appends an element whose payload is as long as `val`'s, and has the same bytes from the sixth on. */
static bool append_placeholder(bson_t *to, const char *key, int key_len, const struct bval *val)
{
    switch (val->len) {
    case 0:
        return bson_append_null(to, key, key_len);
    case 1:
        return bson_append_bool(to, key, key_len, false);
    case 2:
        return bson_append_regex(to, key, key_len, "", "");
    case 3:
        return bson_append_regex(to, key, key_len, "x", "");
    case 4:
        return bson_append_int32(to, key, key_len, 0);
    default:
        return bson_append_binary(to, key, key_len, BSON_SUBTYPE_BINARY, val->data + 5, val->len - 5);
    }
}

void bval_append(bson_t *to, const char *key, int key_len, const struct bval *val)
{
    /* libbson has no way to append raw bytes (its iterator's copy sorts a regular expression's options, for one), so
     * type and payload are put over an element of the same size. */
    CHECK(val->type != BT_EOO);
    uint32_t type_at = to->len - 1;
    CHECK(append_placeholder(to, key, key_len, val));
    uint8_t *bytes = (uint8_t *)(uintptr_t)bson_get_data(to);
    bytes[type_at] = val->type;
    if (val->len > 0)
        memcpy(bytes + to->len - 1 - val->len, val->data, val->len < 5 ? val->len : 5);
}

const char *bval_type_name(uint8_t type)
{
    switch (type) {
    case BT_EOO:
        return "missing";
    case BT_DOUBLE:
        return "double";
    case BT_STRING:
        return "string";
    case BT_DOCUMENT:
        return "object";
    case BT_ARRAY:
        return "array";
    case BT_BINARY:
        return "binData";
    case BT_UNDEFINED:
        return "undefined";
    case BT_OBJECT_ID:
        return "objectId";
    case BT_BOOL:
        return "bool";
    case BT_DATE:
        return "date";
    case BT_NULL:
        return "null";
    case BT_REGEX:
        return "regex";
    case BT_DB_POINTER:
        return "dbPointer";
    case BT_CODE:
        return "javascript";
    case BT_SYMBOL:
        return "symbol";
    case BT_CODE_WITH_SCOPE:
        return "javascriptWithScope";
    case BT_INT32:
        return "int";
    case BT_TIMESTAMP:
        return "timestamp";
    case BT_INT64:
        return "long";
    case BT_DECIMAL128:
        return "decimal";
    case BT_MAX_KEY:
        return "maxKey";
    case BT_MIN_KEY:
        return "minKey";
    default:
        return "unknown";
    }
}
