#include "cluster/fields.h"

#include <string.h>

static bool field_of_type(struct bdoc doc, const char *name, uint8_t type, struct bval *out, struct err *err)
{
    if (!bdoc_find(doc, name, out)) {
        return err_set(err, ERR_NoSuchKey, "Missing expected field \"%s\"", name);
    }
    if (out->type != type) {
        return err_set(err, ERR_TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", name,
                       bval_type_name(type), bval_type_name(out->type));
    }
    return true;
}

bool field_str(struct bdoc doc, const char *name, char *out, size_t cap, struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_STRING, &val, err)) {
        return false;
    }
    uint32_t len;
    const char *text = bval_str(&val, &len);
    if (len == 0 || len >= cap || memchr(text, '\0', len) != NULL) {
        return err_set(err, ERR_BadValue, "\"%s\" must be a string of 1 to %zu bytes", name, cap - 1);
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

bool field_uuid(struct bdoc doc, const char *name, uint8_t out[CLUSTER_UUID_BYTES], struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_BINARY, &val, err)) {
        return false;
    }
    uint8_t subtype;
    uint32_t len;
    const uint8_t *bytes = bval_binary(&val, &subtype, &len);
    if (subtype != BSON_SUBTYPE_UUID || len != CLUSTER_UUID_BYTES) {
        return err_set(err, ERR_InvalidUUID, "\"%s\" must be a UUID", name);
    }
    memcpy(out, bytes, CLUSTER_UUID_BYTES);
    return true;
}

bool field_oid(struct bdoc doc, const char *name, bson_oid_t *out, struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_OBJECT_ID, &val, err)) {
        return false;
    }
    memcpy(out, bval_oid(&val), sizeof *out);
    return true;
}

bool field_i64(struct bdoc doc, const char *name, int64_t *out, struct err *err)
{
    struct bval val;
    if (!bdoc_find(doc, name, &val)) {
        return err_set(err, ERR_NoSuchKey, "Missing expected field \"%s\"", name);
    }
    if (!bval_is_number(&val) || !bval_to_i64(&val, out)) {
        return err_set(err, ERR_TypeMismatch, "\"%s\" must be a whole number, found %s", name,
                       bval_type_name(val.type));
    }
    return true;
}

bool field_timestamp(struct bdoc doc, const char *name, uint64_t *out, struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_TIMESTAMP, &val, err)) {
        return false;
    }
    *out = (uint64_t)bval_i64(&val);
    return true;
}

bool field_date(struct bdoc doc, const char *name, int64_t *out_ms, struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_DATE, &val, err)) {
        return false;
    }
    *out_ms = bval_i64(&val);
    return true;
}

bool field_doc(struct bdoc doc, const char *name, struct bdoc *out, struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_DOCUMENT, &val, err)) {
        return false;
    }
    *out = bval_doc(&val);
    return true;
}

bool field_array(struct bdoc doc, const char *name, struct bdoc *out, struct err *err)
{
    struct bval val;
    if (!field_of_type(doc, name, BT_ARRAY, &val, err)) {
        return false;
    }
    *out = bval_doc(&val);
    return true;
}

bool field_flag(struct bdoc doc, const char *name)
{
    struct bval val;
    return bdoc_find(doc, name, &val) && bval_truthy(&val);
}

void append_uuid(bson_t *to, const char *name, const uint8_t uuid[CLUSTER_UUID_BYTES])
{
    bson_append_binary(to, name, -1, BSON_SUBTYPE_UUID, uuid, CLUSTER_UUID_BYTES);
}

void append_timestamp(bson_t *to, const char *name, uint64_t timestamp)
{
    bson_append_timestamp(to, name, -1, (uint32_t)(timestamp >> 32), (uint32_t)timestamp);
}

void append_bdoc(bson_t *to, const char *name, struct bdoc doc)
{
    bson_t view;
    bdoc_to_bson(doc, &view);
    bson_append_document(to, name, -1, &view);
}

void append_array(bson_t *to, const char *name, struct bdoc array)
{
    bson_t view;
    bdoc_to_bson(array, &view);
    bson_append_array(to, name, -1, &view);
}
