/* JavaScript values to BSON and back. A number that is whole and fits goes out as int32, any other as double; int64,
 * decimal and the rest have classes of their own in js/bson.js, told apart by `_bsontype`. */
#include "shell/engine_internal.h"

#include "base/check.h"
#include "bson/base64.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Where a value goes: the document under construction and its name there. */
struct place {
    struct engine *engine;
    bson_t *to;
    const char *key;
    int key_len;
    int depth; /* levels that may still be opened */
    JSValueRef *exception;
};

static bool append_js(const struct place *place, JSValueRef value);

static bool refuse(const struct place *place, const char *what)
{
    struct err err;
    err_set(&err, ERR_BadValue, "field '%.*s': %s", place->key_len, place->key, what);
    engine_throw(place->engine->context, place->exception, &err);
    return false;
}

static bool appended(const struct place *place, bool ok)
{
    return ok || refuse(place, "the document is too large");
}

/* --- JavaScript to BSON
 * ------------------------------------------------------------------------------------------------ */

static bool append_number(const struct place *place, double number)
{
    bool negative_zero = number == 0 && signbit(number);
    if (number == trunc(number) && number >= INT32_MIN && number <= INT32_MAX && !negative_zero)
        return appended(place, bson_append_int32(place->to, place->key, place->key_len, (int32_t)number));
    return appended(place, bson_append_double(place->to, place->key, place->key_len, number));
}

static bool append_string(const struct place *place, JSValueRef value)
{
    struct buf text = BUF_INIT;
    engine_append_text(place->engine->context, value, &text);
    bool ok = bson_append_utf8(place->to, place->key, place->key_len, text.len > 0 ? (const char *)text.data : "",
                               (int)text.len);
    buf_deinit(&text);
    return appended(place, ok);
}

/* A property as text with a NUL behind it. */
static const char *text_property(const struct place *place, JSObjectRef object, const char *name, struct buf *out)
{
    engine_append_text(place->engine->context, engine_get(place->engine->context, object, name), out);
    *buf_reserve(out, 1) = 0;
    return (const char *)out->data;
}

static double number_property(const struct place *place, JSObjectRef object, const char *name)
{
    return JSValueToNumber(place->engine->context, engine_get(place->engine->context, object, name), NULL);
}

static bool append_object_id(const struct place *place, JSObjectRef object)
{
    struct buf hex = BUF_INIT;
    text_property(place, object, "value", &hex);
    bson_oid_t oid;
    bool ok = hex.len == 24 && bson_oid_is_valid((const char *)hex.data, 24);
    if (ok) {
        bson_oid_init_from_string(&oid, (const char *)hex.data);
        ok = bson_append_oid(place->to, place->key, place->key_len, &oid);
    }
    buf_deinit(&hex);
    return ok || refuse(place, "a malformed ObjectId");
}

static bool append_long(const struct place *place, JSObjectRef object)
{
    int64_t number = JSValueToInt64(place->engine->context, engine_get(place->engine->context, object, "value"), NULL);
    return appended(place, bson_append_int64(place->to, place->key, place->key_len, number));
}

static bool append_int(const struct place *place, JSObjectRef object)
{
    return appended(place, bson_append_int32(place->to, place->key, place->key_len,
                                             (int32_t)number_property(place, object, "value")));
}

static bool append_double(const struct place *place, JSObjectRef object)
{
    return appended(place,
                    bson_append_double(place->to, place->key, place->key_len, number_property(place, object, "value")));
}

static bool append_decimal(const struct place *place, JSObjectRef object)
{
    struct buf text = BUF_INIT;
    bson_decimal128_t decimal;
    bool ok = bson_decimal128_from_string(text_property(place, object, "value", &text), &decimal);
    buf_deinit(&text);
    return ok ? appended(place, bson_append_decimal128(place->to, place->key, place->key_len, &decimal))
              : refuse(place, "not a decimal number");
}

static bool append_binary(const struct place *place, JSObjectRef object)
{
    struct buf text = BUF_INIT;
    struct buf bytes = BUF_INIT;
    text_property(place, object, "base64", &text);
    double subtype = number_property(place, object, "sub_type");
    bool ok = subtype >= 0 && subtype <= 255 && base64_decode(&bytes, (const char *)text.data, text.len);
    if (ok)
        ok = bson_append_binary(place->to, place->key, place->key_len, (bson_subtype_t)subtype, bytes.data,
                                (uint32_t)bytes.len);
    buf_deinit(&text);
    buf_deinit(&bytes);
    return ok || refuse(place, "malformed binary data");
}

static bool append_timestamp(const struct place *place, JSObjectRef object)
{
    double t = number_property(place, object, "t");
    double i = number_property(place, object, "i");
    if (!(t >= 0 && t <= UINT32_MAX && i >= 0 && i <= UINT32_MAX))
        return refuse(place, "a timestamp's parts must be from 0 to 4294967295");
    return appended(place, bson_append_timestamp(place->to, place->key, place->key_len, (uint32_t)t, (uint32_t)i));
}

static int compare_chars(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* RegExp has source and flags, BSONRegExp pattern and options. Of JavaScript's flags only those that the server knows
 * are kept. */
static bool append_regex(const struct place *place, JSObjectRef object, const char *pattern_name,
                         const char *options_name)
{
    struct buf pattern = BUF_INIT;
    struct buf options = BUF_INIT;
    text_property(place, object, pattern_name, &pattern);
    text_property(place, object, options_name, &options);
    char kept[16];
    size_t count = 0;
    for (size_t i = 0; i < options.len && count + 1 < sizeof kept; i++) {
        if (strchr("imsxlu", options.data[i]) != NULL && options.data[i] != 0)
            kept[count++] = (char)options.data[i];
    }
    kept[count] = 0;
    qsort(kept, count, 1, compare_chars);
    bool ok = memchr(pattern.data, 0, pattern.len) == NULL;
    if (ok)
        ok = bson_append_regex(place->to, place->key, place->key_len, (const char *)pattern.data, kept);
    buf_deinit(&pattern);
    buf_deinit(&options);
    return ok || refuse(place, "a NUL in a regular expression");
}

static bool append_regexp(const struct place *place, JSObjectRef object)
{
    JSValueRef pattern = engine_get(place->engine->context, object, "_pattern");
    bool is_kept = JSValueIsString(place->engine->context, pattern);
    return append_regex(place, object, is_kept ? "_pattern" : "source", "flags");
}

static bool append_bson_regex(const struct place *place, JSObjectRef object)
{
    return append_regex(place, object, "pattern", "options");
}

static bool append_symbol(const struct place *place, JSObjectRef object)
{
    struct buf text = BUF_INIT;
    text_property(place, object, "value", &text);
    bool ok = bson_append_symbol(place->to, place->key, place->key_len, (const char *)text.data, (int)text.len);
    buf_deinit(&text);
    return appended(place, ok);
}

/* Raw, as libbson's own functions for code stop at a NUL. */
static void append_code_bytes(const struct place *place, const struct buf *code, const bson_t *scope)
{
    struct buf bytes = BUF_INIT;
    if (scope != NULL)
        buf_append_le32(&bytes, (uint32_t)(4 + 4 + code->len + 1 + scope->len));
    buf_append_le32(&bytes, (uint32_t)code->len + 1);
    buf_append(&bytes, code->data, code->len);
    buf_append_u8(&bytes, 0);
    if (scope != NULL)
        buf_append(&bytes, bson_get_data(scope), scope->len);
    struct bval val = {
        .type = scope != NULL ? BT_CODE_WITH_SCOPE : BT_CODE, .len = (uint32_t)bytes.len, .data = bytes.data};
    bval_append(place->to, place->key, place->key_len, &val);
    buf_deinit(&bytes);
}

static bool append_code(const struct place *place, JSObjectRef object)
{
    struct buf code = BUF_INIT;
    bson_t scope;
    JSValueRef scope_value = engine_get(place->engine->context, object, "scope");
    bool has_scope = JSValueIsObject(place->engine->context, scope_value);
    if (has_scope && !convert_to_bson(place->engine, scope_value, &scope, place->exception))
        return false;
    text_property(place, object, "code", &code);
    append_code_bytes(place, &code, has_scope ? &scope : NULL);
    buf_deinit(&code);
    if (has_scope)
        bson_destroy(&scope);
    return true;
}

static bool append_db_pointer(const struct place *place, JSObjectRef object)
{
    struct buf ref = BUF_INIT;
    struct buf hex = BUF_INIT;
    bson_oid_t oid;
    text_property(place, object, "ref", &ref);
    text_property(place, object, "id", &hex);
    bool ok = hex.len == 24 && bson_oid_is_valid((const char *)hex.data, 24);
    if (ok) {
        bson_oid_init_from_string(&oid, (const char *)hex.data);
        ok = bson_append_dbpointer(place->to, place->key, place->key_len, (const char *)ref.data, &oid);
    }
    buf_deinit(&ref);
    buf_deinit(&hex);
    return ok || refuse(place, "a malformed DBPointer");
}

static bool append_min_key(const struct place *place, JSObjectRef object)
{
    (void)object;
    return appended(place, bson_append_minkey(place->to, place->key, place->key_len));
}

static bool append_max_key(const struct place *place, JSObjectRef object)
{
    (void)object;
    return appended(place, bson_append_maxkey(place->to, place->key, place->key_len));
}

/* An instance of one of the library's classes. */
static bool append_typed(const struct place *place, JSObjectRef object, JSValueRef type)
{
    static const struct {
        const char *name;
        bool (*append)(const struct place *place, JSObjectRef object);
    } types[] = {
        {"ObjectId", append_object_id},
        {"Long", append_long},
        {"Int32", append_int},
        {"Double", append_double},
        {"Decimal128", append_decimal},
        {"Binary", append_binary},
        {"Timestamp", append_timestamp},
        {"BSONRegExp", append_bson_regex},
        {"BSONSymbol", append_symbol},
        {"Code", append_code},
        {"DBPointer", append_db_pointer},
        {"MinKey", append_min_key},
        {"MaxKey", append_max_key},
    };
    struct buf name = BUF_INIT;
    engine_append_text(place->engine->context, type, &name);
    buf_append_u8(&name, 0);
    size_t i = 0;
    size_t count = sizeof types / sizeof *types;
    while (i < count && strcmp((const char *)name.data, types[i].name) != 0)
        i++;
    buf_deinit(&name);
    return i < count ? types[i].append(place, object) : refuse(place, "an unknown _bsontype");
}

static bool append_fields(struct place *place, JSObjectRef object)
{
    JSContextRef context = place->engine->context;
    JSPropertyNameArrayRef names = JSObjectCopyPropertyNames(context, object);
    size_t count = JSPropertyNameArrayGetCount(names);
    struct buf key = BUF_INIT;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        JSStringRef name = JSPropertyNameArrayGetNameAtIndex(names, i);
        JSValueRef value = JSObjectGetProperty(context, object, name, place->exception);
        if (*place->exception != NULL) {
            ok = false;
            break;
        }
        buf_clear(&key);
        engine_append_js_string(name, &key);
        *buf_reserve(&key, 1) = 0;
        place->key = (const char *)key.data;
        place->key_len = (int)key.len;
        ok = memchr(key.data, 0, key.len) == NULL ? append_js(place, value) : refuse(place, "a NUL in a field name");
    }
    buf_deinit(&key);
    JSPropertyNameArrayRelease(names);
    return ok;
}

static bool append_elements(struct place *place, JSObjectRef array)
{
    JSContextRef context = place->engine->context;
    double count = JSValueToNumber(context, engine_get(context, array, "length"), NULL);
    char key[16];
    place->key = key;
    for (unsigned i = 0; i < count; i++) {
        place->key_len = snprintf(key, sizeof key, "%u", i);
        JSValueRef value = JSObjectGetPropertyAtIndex(context, array, i, place->exception);
        if (*place->exception != NULL || !append_js(place, value)) {
            place->key = "";
            return false;
        }
    }
    place->key = "";
    return true;
}

static bool append_nested(const struct place *place, JSObjectRef object, bool is_array)
{
    bson_t child;
    if (place->depth == 0)
        return refuse(place, "nested too deeply, or contains itself");
    bool begun = is_array ? bson_append_array_begin(place->to, place->key, place->key_len, &child)
                          : bson_append_document_begin(place->to, place->key, place->key_len, &child);
    if (!begun)
        return appended(place, false);
    struct place inner = {
        .engine = place->engine, .to = &child, .depth = place->depth - 1, .exception = place->exception};
    bool ok = is_array ? append_elements(&inner, object) : append_fields(&inner, object);
    return (is_array ? bson_append_array_end(place->to, &child) : bson_append_document_end(place->to, &child)) && ok;
}

static bool is_regexp(JSContextRef context, JSObjectRef object)
{
    JSValueRef constructor = engine_get(context, JSContextGetGlobalObject(context), "RegExp");
    return JSValueIsObject(context, constructor) &&
           JSValueIsInstanceOfConstructor(context, object, JSValueToObject(context, constructor, NULL), NULL);
}

static bool append_object(const struct place *place, JSValueRef value)
{
    JSContextRef context = place->engine->context;
    JSObjectRef object = JSValueToObject(context, value, NULL);
    if (JSValueIsDate(context, value))
        return appended(place, bson_append_date_time(place->to, place->key, place->key_len,
                                                     (int64_t)JSValueToNumber(context, value, NULL)));
    if (JSValueIsArray(context, value))
        return append_nested(place, object, true);
    JSValueRef type = JSObjectGetProperty(context, object, place->engine->bson_type, place->exception);
    if (*place->exception != NULL)
        return false;
    if (JSValueIsString(context, type))
        return append_typed(place, object, type);
    if (JSObjectIsFunction(context, object)) /* left out, as drivers do */
        return true;
    if (is_regexp(context, object))
        return append_regexp(place, object);
    return append_nested(place, object, false);
}

static bool append_js(const struct place *place, JSValueRef value)
{
    JSContextRef context = place->engine->context;
    switch (JSValueGetType(context, value)) {
    case kJSTypeUndefined:
    case kJSTypeNull:
        return appended(place, bson_append_null(place->to, place->key, place->key_len));
    case kJSTypeBoolean:
        return appended(place,
                        bson_append_bool(place->to, place->key, place->key_len, JSValueToBoolean(context, value)));
    case kJSTypeNumber:
        return append_number(place, JSValueToNumber(context, value, NULL));
    case kJSTypeString:
        return append_string(place, value);
    case kJSTypeObject:
        return append_object(place, value);
    case kJSTypeBigInt:
        return appended(place,
                        bson_append_int64(place->to, place->key, place->key_len, JSValueToInt64(context, value, NULL)));
    default:
        return refuse(place, "a value that can't be stored");
    }
}

bool convert_to_bson(struct engine *engine, JSValueRef value, bson_t *out, JSValueRef *exception)
{
    JSContextRef context = engine->context;
    struct place place = {.engine = engine, .to = out, .key = "", .depth = BDOC_MAX_WIRE_DEPTH, .exception = exception};
    if (!JSValueIsObject(context, value) || JSValueIsArray(context, value) || JSValueIsDate(context, value)) {
        struct err err;
        err_set(&err, ERR_TypeMismatch, "a document is expected");
        engine_throw(context, exception, &err);
        return false;
    }
    bson_init(out);
    if (append_fields(&place, JSValueToObject(context, value, NULL)))
        return true;
    bson_destroy(out);
    return false;
}

/* --- BSON to JavaScript
 * ------------------------------------------------------------------------------------------------ */

static JSValueRef from_value(struct engine *engine, const struct bval *val, JSValueRef *exception);

static JSValueRef make(struct engine *engine, enum engine_maker maker, size_t count, const JSValueRef *arguments,
                       JSValueRef *exception)
{
    JSValueRef value =
        JSObjectCallAsFunction(engine->context, engine->makers[maker], NULL, count, arguments, exception);
    return value != NULL ? value : JSValueMakeUndefined(engine->context);
}

static JSValueRef make_from_text(struct engine *engine, enum engine_maker maker, const char *text, size_t len,
                                 JSValueRef *exception)
{
    JSValueRef argument = engine_string(engine->context, text, len);
    return make(engine, maker, 1, &argument, exception);
}

static JSValueRef from_object_id(struct engine *engine, const uint8_t *bytes, JSValueRef *exception)
{
    static const char digits[] = "0123456789abcdef";
    char hex[24];
    for (int i = 0; i < 12; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    return make_from_text(engine, MAKE_OBJECT_ID, hex, sizeof hex, exception);
}

static JSValueRef from_int64(struct engine *engine, int64_t number, JSValueRef *exception)
{
    JSValueRef argument = JSBigIntCreateWithInt64(engine->context, number, exception);
    return make(engine, MAKE_LONG, 1, &argument, exception);
}

static JSValueRef from_binary(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    uint8_t subtype;
    uint32_t len;
    const uint8_t *data = bval_binary(val, &subtype, &len);
    if (subtype == BSON_SUBTYPE_BINARY_DEPRECATED) {
        data += 4;
        len -= 4;
    }
    struct buf text = BUF_INIT;
    base64_encode(&text, data, len);
    JSValueRef arguments[2] = {engine_string(engine->context, text.len > 0 ? (const char *)text.data : "", text.len),
                               JSValueMakeNumber(engine->context, subtype)};
    buf_deinit(&text);
    return make(engine, MAKE_BINARY, 2, arguments, exception);
}

static JSValueRef from_decimal(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    bson_decimal128_t decimal;
    char text[BSON_DECIMAL128_STRING];
    bval_decimal(val, &decimal);
    bson_decimal128_to_string(&decimal, text);
    return make_from_text(engine, MAKE_DECIMAL, text, strlen(text), exception);
}

static JSValueRef from_timestamp(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    JSValueRef arguments[2] = {JSValueMakeNumber(engine->context, load_le32(val->data + 4)),
                               JSValueMakeNumber(engine->context, load_le32(val->data))};
    return make(engine, MAKE_TIMESTAMP, 2, arguments, exception);
}

static JSValueRef from_regex(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    const char *options;
    const char *pattern = bval_regex(val, &options);
    JSValueRef arguments[2] = {engine_string(engine->context, pattern, strlen(pattern)),
                               engine_string(engine->context, options, strlen(options))};
    return make(engine, MAKE_REGEX, 2, arguments, exception);
}

static JSValueRef from_code_with_scope(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    uint32_t code_size = load_le32(val->data + 4);
    struct bdoc scope = {.data = val->data + 8 + code_size, .len = val->len - 8 - code_size};
    JSValueRef arguments[2] = {engine_string(engine->context, (const char *)val->data + 8, code_size - 1),
                               convert_from_bson(engine, scope, exception)};
    return make(engine, MAKE_CODE, 2, arguments, exception);
}

static JSValueRef from_db_pointer(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    uint32_t len;
    const char *ref = bval_str(val, &len);
    JSValueRef arguments[2] = {engine_string(engine->context, ref, len),
                               from_object_id(engine, val->data + val->len - 12, exception)};
    return make(engine, MAKE_DB_POINTER, 2, arguments, exception);
}

static JSValueRef from_date(struct engine *engine, int64_t ms, JSValueRef *exception)
{
    JSValueRef argument = JSValueMakeNumber(engine->context, (double)ms);
    return JSObjectMakeDate(engine->context, 1, &argument, exception);
}

static JSValueRef from_array(struct engine *engine, struct bdoc array, JSValueRef *exception)
{
    JSObjectRef out = JSObjectMakeArray(engine->context, 0, NULL, exception);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, array);
    for (unsigned i = 0; biter_next(&iter, &elem); i++)
        JSObjectSetPropertyAtIndex(engine->context, out, i, from_value(engine, &elem.val, exception), NULL);
    return out;
}

/* The types that are text, or have something inside. */
static JSValueRef from_compound(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    uint32_t len;
    const char *text;
    switch (val->type) {
    case BT_STRING:
        text = bval_str(val, &len);
        return engine_string(engine->context, text, len);
    case BT_SYMBOL:
        text = bval_str(val, &len);
        return make_from_text(engine, MAKE_SYMBOL, text, len, exception);
    case BT_CODE:
        text = bval_str(val, &len);
        return make_from_text(engine, MAKE_CODE, text, len, exception);
    case BT_DOCUMENT:
        return convert_from_bson(engine, bval_doc(val), exception);
    case BT_ARRAY:
        return from_array(engine, bval_doc(val), exception);
    case BT_BINARY:
        return from_binary(engine, val, exception);
    case BT_REGEX:
        return from_regex(engine, val, exception);
    case BT_CODE_WITH_SCOPE:
        return from_code_with_scope(engine, val, exception);
    case BT_DB_POINTER:
        return from_db_pointer(engine, val, exception);
    default:
        UNREACHABLE();
    }
}

static JSValueRef from_value(struct engine *engine, const struct bval *val, JSValueRef *exception)
{
    JSContextRef context = engine->context;
    switch (val->type) {
    case BT_DOUBLE:
        return JSValueMakeNumber(context, bval_f64(val));
    case BT_INT32:
        return JSValueMakeNumber(context, bval_i32(val));
    case BT_INT64:
        return from_int64(engine, bval_i64(val), exception);
    case BT_DECIMAL128:
        return from_decimal(engine, val, exception);
    case BT_BOOL:
        return JSValueMakeBoolean(context, bval_bool(val));
    case BT_NULL:
        return JSValueMakeNull(context);
    case BT_UNDEFINED:
        return JSValueMakeUndefined(context);
    case BT_OBJECT_ID:
        return from_object_id(engine, val->data, exception);
    case BT_DATE:
        return from_date(engine, bval_i64(val), exception);
    case BT_TIMESTAMP:
        return from_timestamp(engine, val, exception);
    case BT_MIN_KEY:
        return make(engine, MAKE_MIN_KEY, 0, NULL, exception);
    case BT_MAX_KEY:
        return make(engine, MAKE_MAX_KEY, 0, NULL, exception);
    default:
        return from_compound(engine, val, exception);
    }
}

JSValueRef convert_from_bson(struct engine *engine, struct bdoc doc, JSValueRef *exception)
{
    JSObjectRef out = JSObjectMake(engine->context, NULL, NULL);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        JSValueRef value = from_value(engine, &elem.val, exception);
        if (strcmp(elem.key, "__proto__") == 0) {
            JSValueRef arguments[3] = {out, engine_string(engine->context, elem.key, elem.key_len), value};
            make(engine, MAKE_FIELD, 3, arguments, exception);
            continue;
        }
        JSStringRef name = JSStringCreateWithUTF8CString(elem.key);
        JSObjectSetProperty(engine->context, out, name, value, kJSPropertyAttributeNone, NULL);
        JSStringRelease(name);
    }
    return out;
}
