#include "command/fields.h"

#include <string.h>

/* Arguments that any command takes. What Sherd doesn't act on is accepted all the same, as drivers send it. */
static const char *const generic[] = {
    "$db",
    "lsid",
    "txnNumber",
    "maxTimeMS",
    "comment",
    "readConcern",
    "writeConcern",
    "$readPreference",
    "$clusterTime",
    "autocommit",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "$configServerState",
    "$configTime",
    "$topologyTime",
    "$audit",
    "$client",
    "$queryOptions",
    "$replData",
    "help",
    "maxTimeMSOpOnly",
    "mayBypassWriteBlocking",
    "rawData",
};

/* Most names differ in the first byte. */
static bool same(const char *a, const char *b)
{
    return a[0] == b[0] && strcmp(a, b) == 0;
}

static bool wrong_type(const char *name, const struct bval *val, const char *expected, struct err *err)
{
    return err_set(err, ERR_TypeMismatch, "BSON field '%s' is the wrong type '%s', expected %s", name,
                   bval_type_name(val->type), expected);
}

static bool flag_type_ok(const char *name, const struct bval *val, struct err *err)
{
    return val->type == BT_BOOL || bval_is_number(val) || val->type == BT_NULL || val->type == BT_UNDEFINED ||
           wrong_type(name, val, "types '[bool, long, int, decimal, double]'", err);
}

bool field_is_generic(const char *name)
{
    if (strncmp(name, "$sherd", 6) == 0)
        return true;
    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++)
        if (same(name, generic[i]))
            return true;
    return false;
}

/* Flags that change nothing here: nobody reads them, so their type is checked with their name. */
static bool check_ignored_flag(const struct belem *elem, struct err *err)
{
    static const char *const flags[] = {"allowDiskUse", "bypassDocumentValidation", "allowPartialResults",
                                        "oplogReplay", "authorizedCollections"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(elem->key, flags[i]) == 0)
            return flag_type_ok(elem->key, &elem->val, err);
    return true;
}

static bool check_rest(struct biter *iter, const char *command, const char *const *known, struct err *err)
{
    struct belem elem;
    while (biter_next(iter, &elem)) {
        const char *const *at = known;
        while (*at != NULL && !same(*at, elem.key))
            at++;
        if (*at == NULL && !field_is_generic(elem.key))
            return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s.%s' is an unknown field.", command,
                           elem.key);
        if (!check_ignored_flag(&elem, err))
            return false;
    }
    return true;
}

bool fields_check_known(struct bdoc doc, const char *command, const char *const *known, struct err *err)
{
    struct biter iter;
    biter_init(&iter, doc);
    return check_rest(&iter, command, known, err);
}

bool fields_check_arguments(struct bdoc body, const char *command, const char *const *known, struct err *err)
{
    struct biter iter;
    struct belem name;
    biter_init(&iter, body);
    return !biter_next(&iter, &name) || check_rest(&iter, command, known, err);
}

/* False when the field is missing or null. */
static bool field_find(struct bdoc doc, const char *name, struct bval *val)
{
    return bdoc_find(doc, name, val) && val->type != BT_NULL && val->type != BT_UNDEFINED;
}

bool field_get_doc(struct bdoc doc, const char *name, struct bdoc *out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_DOCUMENT)
        return wrong_type(name, &val, "type 'object'", err);
    *out = bval_doc(&val);
    return true;
}

bool field_get_array(struct bdoc doc, const char *name, struct bdoc *out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_ARRAY)
        return wrong_type(name, &val, "type 'array'", err);
    *out = bval_doc(&val);
    return true;
}

bool field_get_str(struct bdoc doc, const char *name, const char **out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_STRING)
        return wrong_type(name, &val, "type 'string'", err);
    uint32_t len;
    const char *text = bval_str(&val, &len);
    if (strlen(text) != len)
        return err_set(err, ERR_BadValue, "BSON field '%s' holds a NUL", name);
    *out = text;
    return true;
}

bool field_get_i64(struct bdoc doc, const char *name, int64_t *out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (!bval_is_number(&val))
        return wrong_type(name, &val, "types '[long, int, decimal, double]'", err);
    if (!bval_to_i64(&val, out))
        return err_set(err, ERR_FailedToParse, "BSON field '%s' must be a whole number within 64 bits", name);
    return true;
}

bool field_get_i64_in(struct bdoc doc, const char *name, int64_t min, int64_t max, int64_t *out, struct err *err)
{
    int64_t value = min;
    if (!bdoc_has(doc, name))
        return true;
    if (!field_get_i64(doc, name, &value, err))
        return false;
    if (value < min || value > max)
        return err_set(err, COMMAND_ERR_OUT_OF_RANGE, "BSON field '%s' value must be %s %lld, actual value '%lld'",
                       name, value < min ? ">=" : "<=", (long long)(value < min ? min : max), (long long)value);
    struct bval val;
    if (field_find(doc, name, &val))
        *out = value;
    return true;
}

bool field_get_bool(struct bdoc doc, const char *name, bool *out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (!flag_type_ok(name, &val, err))
        return false;
    *out = bval_truthy(&val);
    return true;
}

bool field_get_uuid(struct bdoc doc, const char *name, const uint8_t **out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_BINARY)
        return wrong_type(name, &val, "type 'binData'", err);
    uint8_t subtype;
    uint32_t len;
    const uint8_t *bytes = bval_binary(&val, &subtype, &len);
    if (subtype != BSON_SUBTYPE_UUID || len != 16)
        return err_set(err, ERR_InvalidUUID, "BSON field '%s' must be a UUID", name);
    *out = bytes;
    return true;
}

bool field_get_oid(struct bdoc doc, const char *name, const bson_oid_t **out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_OBJECT_ID)
        return wrong_type(name, &val, "type 'objectId'", err);
    *out = bval_oid(&val);
    return true;
}

bool field_get_timestamp(struct bdoc doc, const char *name, uint64_t *out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_TIMESTAMP)
        return wrong_type(name, &val, "type 'timestamp'", err);
    *out = (uint64_t)bval_i64(&val);
    return true;
}

bool field_get_date(struct bdoc doc, const char *name, int64_t *out_ms, struct err *err)
{
    struct bval val;
    if (!field_find(doc, name, &val))
        return true;
    if (val.type != BT_DATE)
        return wrong_type(name, &val, "type 'date'", err);
    *out_ms = bval_i64(&val);
    return true;
}

bool field_get_hint(struct bdoc doc, struct bval *out, struct err *err)
{
    struct bval val;
    if (!field_find(doc, "hint", &val))
        return true;
    if (val.type != BT_STRING && val.type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "Hint must be a string or an object");
    if (val.type == BT_STRING || !bdoc_is_empty(bval_doc(&val)))
        *out = val;
    return true;
}

bool field_get_cursor(struct bdoc body, const char *command, bool *given, int64_t *batch_size, struct err *err)
{
    struct bdoc cursor = {0};
    struct biter iter;
    struct belem elem;
    if (!field_get_doc(body, "cursor", &cursor, err))
        return false;
    *given = cursor.data != NULL;
    if (!*given)
        return true;
    biter_init(&iter, cursor);
    while (biter_next(&iter, &elem))
        if (strcmp(elem.key, "batchSize") != 0)
            return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s.cursor.%s' is an unknown field.", command,
                           elem.key);
    return field_get_i64_in(cursor, "batchSize", 0, INT64_MAX, batch_size, err);
}

bool field_require(struct bdoc doc, const char *name, struct err *err)
{
    struct bval val;
    if (field_find(doc, name, &val))
        return true;
    return err_set(err, COMMAND_ERR_FIELD_MISSING, "BSON field '%s' is missing but a required field", name);
}
