#include "bson/extjson_types.h"

#include "base/mem.h"
#include "bson/base64.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is being built, and out of what. */
struct unwrap {
    bson_t *to;
    const char *key;
    int key_len;
    struct bdoc wrapper;
    struct bval first; /* the wrapper's first value */
    struct err *err;
};

static bool malformed(const struct unwrap *unwrap)
{
    struct biter iter;
    struct belem elem = {0};
    biter_init(&iter, unwrap->wrapper);
    (void)biter_next(&iter, &elem);
    return err_set(unwrap->err, ERR_FailedToParse, "a malformed %s", elem.key);
}

/* A string without NULs inside as C text. */
static bool text_of(const struct bval *val, const char **out)
{
    uint32_t len;
    if (val->type != BT_STRING)
        return false;
    *out = bval_str(val, &len);
    return strlen(*out) == len;
}

static bool is_field_count(const struct unwrap *unwrap, uint32_t count)
{
    return bdoc_count(unwrap->wrapper) == count;
}

/* The two fields of the document that the wrapper's only field holds. */
static bool inner_pair(const struct unwrap *unwrap, const char *name_a, const char *name_b, struct bval *a,
                       struct bval *b)
{
    if (!is_field_count(unwrap, 1) || unwrap->first.type != BT_DOCUMENT)
        return false;
    struct bdoc inner = bval_doc(&unwrap->first);
    return bdoc_count(inner) == 2 && bdoc_find(inner, name_a, a) && bdoc_find(inner, name_b, b);
}

static bool parse_i64(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    if (*text != '-' && (*text < '0' || *text > '9'))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *out = number;
    return errno == 0 && *end == 0 && number >= min && number <= max;
}

static bool unwrap_int(const struct unwrap *unwrap)
{
    const char *text;
    int64_t number;
    return is_field_count(unwrap, 1) && text_of(&unwrap->first, &text) &&
           parse_i64(text, INT32_MIN, INT32_MAX, &number) &&
           bson_append_int32(unwrap->to, unwrap->key, unwrap->key_len, (int32_t)number);
}

static bool unwrap_long(const struct unwrap *unwrap)
{
    const char *text;
    int64_t number;
    return is_field_count(unwrap, 1) && text_of(&unwrap->first, &text) &&
           parse_i64(text, INT64_MIN, INT64_MAX, &number) &&
           bson_append_int64(unwrap->to, unwrap->key, unwrap->key_len, number);
}

static bool unwrap_double(const struct unwrap *unwrap)
{
    const char *text;
    if (!is_field_count(unwrap, 1) || !text_of(&unwrap->first, &text) || *text == 0)
        return false;
    double number;
    if (strcmp(text, "NaN") == 0) {
        number = (double)NAN;
    } else if (strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0) {
        number = *text == '-' ? -(double)INFINITY : (double)INFINITY;
    } else {
        char *end;
        if (strspn(text, "+-.0123456789eE") != strlen(text))
            return false;
        number = strtod(text, &end);
        if (*end != 0)
            return false;
    }
    return bson_append_double(unwrap->to, unwrap->key, unwrap->key_len, number);
}

static bool unwrap_decimal(const struct unwrap *unwrap)
{
    const char *text;
    bson_decimal128_t decimal;
    return is_field_count(unwrap, 1) && text_of(&unwrap->first, &text) && bson_decimal128_from_string(text, &decimal) &&
           bson_append_decimal128(unwrap->to, unwrap->key, unwrap->key_len, &decimal);
}

static bool oid_of(const struct bval *val, bson_oid_t *out)
{
    const char *text;
    if (!text_of(val, &text) || strlen(text) != 24 || !bson_oid_is_valid(text, 24))
        return false;
    bson_oid_init_from_string(out, text);
    return true;
}

static bool unwrap_oid(const struct unwrap *unwrap)
{
    bson_oid_t oid;
    return is_field_count(unwrap, 1) && oid_of(&unwrap->first, &oid) &&
           bson_append_oid(unwrap->to, unwrap->key, unwrap->key_len, &oid);
}

/* "2020-01-31T12:34:56.789Z", the fraction optional, or with an offset such as +01:00. */
static bool parse_iso_date(const char *text, int64_t *out_ms)
{
    struct tm tm = {0};
    int used = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
               &tm.tm_sec, &used) != 6)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    text += used;
    int64_t ms = 0;
    if (*text == '.') {
        int64_t unit = 100;
        for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
            ms += unit * (*text - '0');
    }
    int64_t offset_min = 0;
    if (*text == '+' || *text == '-') {
        int hours;
        int minutes;
        if (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 &&
            sscanf(text + 1, "%2d%2d%n", &hours, &minutes, &used) != 2)
            return false;
        offset_min = (*text == '-' ? -1 : 1) * ((int64_t)hours * 60 + minutes);
        text += 1 + used;
    } else if (*text++ != 'Z') {
        return false;
    }
    *out_ms = ((int64_t)timegm(&tm) - offset_min * 60) * 1000 + ms;
    return *text == 0;
}

static bool unwrap_date(const struct unwrap *unwrap)
{
    const char *text;
    int64_t ms;
    if (!is_field_count(unwrap, 1))
        return false;
    if (text_of(&unwrap->first, &text)) {
        if (!parse_iso_date(text, &ms))
            return false;
    } else if (unwrap->first.type == BT_INT64) { /* {"$numberLong": ...} is unwrapped already */
        ms = bval_i64(&unwrap->first);
    } else {
        return false;
    }
    return bson_append_date_time(unwrap->to, unwrap->key, unwrap->key_len, ms);
}

/* {"$binary": {"base64": "...", "subType": "00"}}, and the older {"$binary": "...", "$type": "00"}. */
static bool unwrap_binary(const struct unwrap *unwrap)
{
    struct bval data_val = unwrap->first;
    struct bval type_val;
    const char *data;
    const char *type;
    bool found = data_val.type == BT_STRING
                     ? is_field_count(unwrap, 2) && bdoc_find(unwrap->wrapper, "$type", &type_val)
                     : inner_pair(unwrap, "base64", "subType", &data_val, &type_val);
    if (!found || !text_of(&data_val, &data) || !text_of(&type_val, &type))
        return false;
    char *end;
    unsigned long subtype = strtoul(type, &end, 16);
    if (*type == 0 || *end != 0 || strlen(type) > 2)
        return false;
    struct buf bytes = BUF_INIT;
    bool ok = base64_decode(&bytes, data, strlen(data)) &&
              bson_append_binary(unwrap->to, unwrap->key, unwrap->key_len, (bson_subtype_t)subtype,
                                 bytes.len > 0 ? bytes.data : (const uint8_t *)"", (uint32_t)bytes.len);
    buf_deinit(&bytes);
    return ok;
}

static bool unwrap_uuid(const struct unwrap *unwrap)
{
    const char *text;
    uint8_t bytes[16];
    if (!is_field_count(unwrap, 1) || !text_of(&unwrap->first, &text) || strlen(text) != 36)
        return false;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (*text++ != '-')
                return false;
        }
        unsigned byte;
        if (strspn(text, "0123456789abcdefABCDEF") < 2 || sscanf(text, "%2x", &byte) != 1)
            return false;
        bytes[i] = (uint8_t)byte;
        text += 2;
    }
    return bson_append_binary(unwrap->to, unwrap->key, unwrap->key_len, BSON_SUBTYPE_UUID, bytes, sizeof bytes);
}

static bool unwrap_regex(const struct unwrap *unwrap)
{
    struct bval pattern_val;
    struct bval options_val;
    const char *pattern;
    const char *options;
    if (!inner_pair(unwrap, "pattern", "options", &pattern_val, &options_val) || !text_of(&pattern_val, &pattern) ||
        !text_of(&options_val, &options))
        return false;
    return bson_append_regex(unwrap->to, unwrap->key, unwrap->key_len, pattern, options);
}

static bool u32_of(const struct bval *val, uint32_t *out)
{
    int64_t number;
    if (!bval_to_i64(val, &number) || number < 0 || number > UINT32_MAX)
        return false;
    *out = (uint32_t)number;
    return true;
}

static bool unwrap_timestamp(const struct unwrap *unwrap)
{
    struct bval t_val;
    struct bval i_val;
    uint32_t t;
    uint32_t i;
    return inner_pair(unwrap, "t", "i", &t_val, &i_val) && u32_of(&t_val, &t) && u32_of(&i_val, &i) &&
           bson_append_timestamp(unwrap->to, unwrap->key, unwrap->key_len, t, i);
}

static bool unwrap_min_key(const struct unwrap *unwrap)
{
    int64_t one;
    return is_field_count(unwrap, 1) && bval_to_i64(&unwrap->first, &one) && one == 1 &&
           bson_append_minkey(unwrap->to, unwrap->key, unwrap->key_len);
}

static bool unwrap_max_key(const struct unwrap *unwrap)
{
    int64_t one;
    return is_field_count(unwrap, 1) && bval_to_i64(&unwrap->first, &one) && one == 1 &&
           bson_append_maxkey(unwrap->to, unwrap->key, unwrap->key_len);
}

static bool unwrap_code(const struct unwrap *unwrap)
{
    if (unwrap->first.type != BT_STRING)
        return false;
    struct bval scope;
    if (is_field_count(unwrap, 1)) {
        struct bval code = unwrap->first;
        code.type = BT_CODE;
        bval_append(unwrap->to, unwrap->key, unwrap->key_len, &code);
        return true;
    }
    if (!is_field_count(unwrap, 2) || !bdoc_find(unwrap->wrapper, "$scope", &scope) || scope.type != BT_DOCUMENT)
        return false;
    struct buf bytes = BUF_INIT;
    buf_append_le32(&bytes, 4 + unwrap->first.len + scope.len);
    buf_append(&bytes, unwrap->first.data, unwrap->first.len);
    buf_append(&bytes, scope.data, scope.len);
    struct bval out = {.type = BT_CODE_WITH_SCOPE, .len = (uint32_t)bytes.len, .data = bytes.data};
    bval_append(unwrap->to, unwrap->key, unwrap->key_len, &out);
    buf_deinit(&bytes);
    return true;
}

static bool unwrap_symbol(const struct unwrap *unwrap)
{
    if (!is_field_count(unwrap, 1) || unwrap->first.type != BT_STRING)
        return false;
    struct bval symbol = unwrap->first;
    symbol.type = BT_SYMBOL;
    bval_append(unwrap->to, unwrap->key, unwrap->key_len, &symbol);
    return true;
}

static bool unwrap_undefined(const struct unwrap *unwrap)
{
    return is_field_count(unwrap, 1) && unwrap->first.type == BT_BOOL && bval_bool(&unwrap->first) &&
           bson_append_undefined(unwrap->to, unwrap->key, unwrap->key_len);
}

static bool unwrap_db_pointer(const struct unwrap *unwrap)
{
    struct bval ref;
    struct bval id;
    if (!inner_pair(unwrap, "$ref", "$id", &ref, &id) || ref.type != BT_STRING || id.type != BT_OBJECT_ID)
        return false;
    struct buf bytes = BUF_INIT;
    buf_append(&bytes, ref.data, ref.len);
    buf_append(&bytes, id.data, id.len);
    struct bval out = {.type = BT_DB_POINTER, .len = (uint32_t)bytes.len, .data = bytes.data};
    bval_append(unwrap->to, unwrap->key, unwrap->key_len, &out);
    buf_deinit(&bytes);
    return true;
}

static const struct wrapper {
    const char *name;
    bool (*append)(const struct unwrap *unwrap); /* false: malformed */
} wrappers[] = {
    {"$oid", unwrap_oid},
    {"$date", unwrap_date},
    {"$numberInt", unwrap_int},
    {"$numberLong", unwrap_long},
    {"$numberDouble", unwrap_double},
    {"$numberDecimal", unwrap_decimal},
    {"$binary", unwrap_binary},
    {"$uuid", unwrap_uuid},
    {"$regularExpression", unwrap_regex},
    {"$timestamp", unwrap_timestamp},
    {"$minKey", unwrap_min_key},
    {"$maxKey", unwrap_max_key},
    {"$code", unwrap_code},
    {"$symbol", unwrap_symbol},
    {"$undefined", unwrap_undefined},
    {"$dbPointer", unwrap_db_pointer},
};

static const struct wrapper *find_wrapper(const char *key, size_t len)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        if (strlen(wrappers[i].name) == len && memcmp(wrappers[i].name, key, len) == 0)
            return &wrappers[i];
    }
    return NULL;
}

bool extjson_is_wrapper(const char *key, size_t len)
{
    return len > 0 && key[0] == '$' && find_wrapper(key, len) != NULL;
}

bool extjson_append_unwrapped(bson_t *to, const char *key, int key_len, struct bdoc wrapper, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, wrapper);
    if (!biter_next(&iter, &elem))
        return err_set(err, ERR_FailedToParse, "an empty type wrapper");
    struct unwrap unwrap = {
        .to = to, .key = key, .key_len = key_len, .wrapper = wrapper, .first = elem.val, .err = err};
    const struct wrapper *found = find_wrapper(elem.key, elem.key_len);
    return (found != NULL && found->append(&unwrap)) || malformed(&unwrap);
}
