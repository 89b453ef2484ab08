#include "command/field_spec.h"

#include "command/fields.h"

#include <math.h>
#include <string.h>

/* The field that is being read. */
struct reading {
    const char *prefix;
    const struct field_spec *spec;
    const struct bval *val;
    void *to;
    struct err *err;
};

static bool wrong_type(const struct reading *r, const char *expected)
{
    return err_set(r->err, ERR_TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected %s", r->prefix,
                   r->spec->name, bval_type_name(r->val->type), expected);
}

static bool read_container(const struct reading *r, uint8_t type)
{
    if (r->val->type != type)
        return wrong_type(r, type == BT_ARRAY ? "type 'array'" : "type 'object'");
    *(struct bdoc *)r->to = bval_doc(r->val);
    return true;
}

static bool read_doc_array(const struct reading *r)
{
    struct biter iter;
    struct belem elem;
    if (!read_container(r, BT_ARRAY))
        return false;
    biter_init(&iter, bval_doc(r->val));
    while (biter_next(&iter, &elem))
        if (elem.val.type != BT_DOCUMENT)
            return err_set(r->err, ERR_TypeMismatch,
                           "BSON field '%s.%s.%s' is the wrong type '%s', expected type 'object'", r->prefix,
                           r->spec->name, elem.key, bval_type_name(elem.val.type));
    return true;
}

static bool read_str(const struct reading *r)
{
    uint32_t len;
    if (r->val->type != BT_STRING)
        return wrong_type(r, "type 'string'");
    const char *text = bval_str(r->val, &len);
    if (strlen(text) != len)
        return err_set(r->err, ERR_BadValue, "BSON field '%s.%s' holds a NUL", r->prefix, r->spec->name);
    *(const char **)r->to = text;
    return true;
}

static bool read_flag(const struct reading *r)
{
    if (r->val->type != BT_BOOL && !bval_is_number(r->val))
        return wrong_type(r, "types '[bool, long, int, decimal, double]'");
    *(bool *)r->to = bval_truthy(r->val);
    return true;
}

/* A number as MongoDB cuts it to 64 bits: fractions towards zero, beyond the range its end, NaN 0. */
static int64_t cut_number(const struct bval *val)
{
    int64_t whole;
    double number;
    if (bval_to_i64(val, &whole))
        return whole;
    if (!bval_to_f64(val, &number) || isnan(number))
        return 0;
    if (number >= 0x1p63)
        return INT64_MAX;
    return number < -0x1p63 ? INT64_MIN : (int64_t)number;
}

static bool read_int(const struct reading *r)
{
    if (!bval_is_number(r->val))
        return wrong_type(r, "types '[long, int, decimal, double]'");
    int64_t number = cut_number(r->val);
    if (r->spec->kind == FIELD_INDEX && number < 0)
        return err_set(r->err, ERR_BadValue, "BSON field '%s' value must be >= 0, actual value '%lld'", r->spec->name,
                       (long long)number);
    *(int64_t *)r->to = number;
    return true;
}

static bool read_uuid(const struct reading *r)
{
    uint8_t subtype;
    uint32_t len;
    if (r->val->type != BT_BINARY)
        return wrong_type(r, "type 'binData'");
    const uint8_t *bytes = bval_binary(r->val, &subtype, &len);
    if (subtype != BSON_SUBTYPE_UUID)
        return err_set(r->err, ERR_TypeMismatch, "BSON field '%s.%s' is the wrong binData type, expected type 'UUID'",
                       r->prefix, r->spec->name);
    if (len != 16)
        return err_set(r->err, ERR_InvalidUUID, "BSON field '%s.%s' must be a UUID of 16 bytes", r->prefix,
                       r->spec->name);
    *(const uint8_t **)r->to = bytes;
    return true;
}

static bool read_hint(const struct reading *r)
{
    if (r->val->type != BT_STRING && r->val->type != BT_DOCUMENT)
        return err_set(r->err, ERR_FailedToParse, "Hint must be a string or an object");
    if (r->val->type == BT_STRING || !bdoc_is_empty(bval_doc(r->val)))
        *(struct bval *)r->to = *r->val;
    return true;
}

static bool read_update(const struct reading *r)
{
    struct biter iter;
    struct belem elem;
    if (r->val->type != BT_DOCUMENT && r->val->type != BT_ARRAY)
        return err_set(r->err, ERR_FailedToParse, "Update argument must be either an object or an array");
    if (r->val->type == BT_ARRAY)
        for (biter_init(&iter, bval_doc(r->val)); biter_next(&iter, &elem);)
            if (elem.val.type != BT_DOCUMENT)
                return err_set(r->err, ERR_TypeMismatch, "Each element of the 'pipeline' array must be an object");
    *(struct bval *)r->to = *r->val;
    return true;
}

static bool read_limit(const struct reading *r)
{
    int64_t number;
    if (!bval_is_number(r->val))
        return err_set(r->err, ERR_FailedToParse,
                       "The limit field in delete objects must be 0 or 1. Got a value of type %s",
                       bval_type_name(r->val->type));
    number = cut_number(r->val);
    if (number != 0 && number != 1)
        return err_set(r->err, ERR_FailedToParse, "The limit field in delete objects must be 0 or 1. Got %lld",
                       (long long)number);
    *(bool *)r->to = number == 0;
    return true;
}

static bool read_field(const struct reading *r)
{
    switch (r->spec->kind) {
    case FIELD_ANY:
        *(struct bval *)r->to = *r->val;
        return true;
    case FIELD_DOC:
        return read_container(r, BT_DOCUMENT);
    case FIELD_ARRAY:
        return read_container(r, BT_ARRAY);
    case FIELD_DOC_ARRAY:
        return read_doc_array(r);
    case FIELD_STR:
        return read_str(r);
    case FIELD_BOOL:
        if (r->val->type != BT_BOOL)
            return wrong_type(r, "type 'bool'");
        *(bool *)r->to = bval_truthy(r->val);
        return true;
    case FIELD_FLAG:
        return read_flag(r);
    case FIELD_INT:
    case FIELD_INDEX:
        return read_int(r);
    case FIELD_UUID:
        return read_uuid(r);
    case FIELD_HINT:
        return read_hint(r);
    case FIELD_UPDATE:
        return read_update(r);
    case FIELD_LIMIT:
        return read_limit(r);
    case FIELD_IGNORED:
        return true;
    }
    return true;
}

static unsigned find_spec(const struct field_specs *specs, const struct belem *elem)
{
    unsigned at = 0;
    while (at < specs->count &&
           (specs->list[at].name[0] != elem->key[0] || strcmp(specs->list[at].name, elem->key) != 0))
        at++;
    return at;
}

/* Null stands for a missing field, but an update or a limit has to be something. */
static bool counts_as_missing(const struct field_spec *spec, const struct bval *val)
{
    if (val->type != BT_NULL && val->type != BT_UNDEFINED)
        return false;
    return spec->kind != FIELD_ANY && spec->kind != FIELD_UPDATE && spec->kind != FIELD_LIMIT;
}

/* A document on its way through its table. */
struct walk {
    const char *prefix;
    const struct field_specs *specs;
    uint64_t seen;    /* bit i: field i stands there */
    uint64_t present; /* and holds something */
    void *out;
};

static bool read_elem(struct walk *walk, const struct belem *elem, struct err *err)
{
    const struct field_specs *specs = walk->specs;
    unsigned at = find_spec(specs, elem);
    if (at == specs->count)
        return (specs->command && field_is_generic(elem->key)) ||
               err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s.%s' is an unknown field.", walk->prefix,
                       elem->key);
    if (walk->seen & UINT64_C(1) << at)
        return err_set(err, COMMAND_ERR_FIELD_TWICE, "BSON field '%s.%s' is a duplicate field", walk->prefix,
                       elem->key);
    walk->seen |= UINT64_C(1) << at;
    const struct field_spec *spec = &specs->list[at];
    if (counts_as_missing(spec, &elem->val))
        return true;
    walk->present |= UINT64_C(1) << at;
    struct reading reading = {
        .prefix = walk->prefix, .spec = spec, .val = &elem->val, .to = (char *)walk->out + spec->offset, .err = err};
    return read_field(&reading);
}

bool fields_read(struct bdoc doc, const char *prefix, const struct field_specs *specs, void *out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct walk walk = {.prefix = prefix, .specs = specs, .out = out};
    biter_init(&iter, doc);
    if (specs->command && !biter_next(&iter, &elem))
        return true;
    while (biter_next(&iter, &elem))
        if (!read_elem(&walk, &elem, err))
            return false;
    for (unsigned i = 0; i < specs->count; i++)
        if (specs->list[i].required && !(walk.present & UINT64_C(1) << i))
            return err_set(err, COMMAND_ERR_FIELD_MISSING, "BSON field '%s.%s' is missing but a required field", prefix,
                           specs->list[i].name);
    return true;
}
