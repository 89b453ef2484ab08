#include "command/reply.h"

#include <string.h>

/* Copies the fields of err->details into `out`. */
static void append_details(bson_t *out, const struct err *err)
{
    if (err->details_len == 0)
        return;
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, (struct bdoc){.data = err->details, .len = err->details_len}); biter_next(&iter, &elem);)
        bval_append(out, elem.key, (int)elem.key_len, &elem.val);
}

static void append_array_key(char buffer[12], const char **key, int *key_len, uint32_t index)
{
    *key_len = (int)bson_uint32_to_string(index, key, buffer, 12);
}

void reply_append_error(bson_t *out, const struct err *err, const char *const *labels, unsigned label_count)
{
    char name[ERR_NAME_MAX];
    BSON_APPEND_DOUBLE(out, "ok", 0.0);
    BSON_APPEND_UTF8(out, "errmsg", err->msg);
    BSON_APPEND_INT32(out, "code", err->code);
    BSON_APPEND_UTF8(out, "codeName", err_name(err->code, name));
    if (label_count > 0) {
        bson_t array;
        BSON_APPEND_ARRAY_BEGIN(out, "errorLabels", &array);
        for (unsigned i = 0; i < label_count; i++) {
            char buffer[12];
            const char *key;
            int key_len;
            append_array_key(buffer, &key, &key_len, i);
            bson_append_utf8(&array, key, key_len, labels[i], -1);
        }
        bson_append_array_end(out, &array);
    }
    append_details(out, err);
}

void reply_append_ok(bson_t *out)
{
    BSON_APPEND_DOUBLE(out, "ok", 1.0);
}

void reply_append_error_fields(bson_t *out, const struct err *err)
{
    BSON_APPEND_INT32(out, "code", err->code);
    BSON_APPEND_UTF8(out, "errmsg", err->msg);
    append_details(out, err);
}

static bool is_envelope(const char *name)
{
    static const char *const envelope[] = {"ok",          "errmsg",       "code",         "codeName",
                                           "errorLabels", "$clusterTime", "operationTime"};
    for (size_t i = 0; i < sizeof envelope / sizeof envelope[0]; i++)
        if (strcmp(name, envelope[i]) == 0)
            return true;
    return false;
}

bool reply_check(struct bdoc reply, struct err *err)
{
    struct bval val;
    if (bdoc_find(reply, "ok", &val) && bval_truthy(&val))
        return true;
    int64_t code = ERR_UnknownError;
    if (bdoc_find(reply, "code", &val) && (!bval_to_i64(&val, &code) || code < INT32_MIN || code > INT32_MAX))
        code = ERR_UnknownError;
    uint32_t len;
    bool has_text = bdoc_find(reply, "errmsg", &val) && val.type == BT_STRING;
    err_set(err, (int32_t)code, "%s", has_text ? bval_str(&val, &len) : "the reply is an error without a message");
    bson_t details;
    bson_init(&details);
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, reply); biter_next(&iter, &elem);)
        if (!is_envelope(elem.key) && details.len + elem.key_len + elem.val.len < ERR_DETAILS_MAX)
            bval_append(&details, elem.key, (int)elem.key_len, &elem.val);
    if (err != NULL && bson_count_keys(&details) > 0)
        err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
    return false;
}

void write_result_init(struct write_result *result, bool is_update)
{
    *result = (struct write_result){.is_update = is_update};
    bson_init(&result->upserted);
    bson_init(&result->errors);
}

void write_result_deinit(struct write_result *result)
{
    bson_destroy(&result->upserted);
    bson_destroy(&result->errors);
}

void write_result_add_error(struct write_result *result, int32_t index, const struct err *err)
{
    char buffer[12];
    const char *key;
    int key_len;
    bson_t element;
    append_array_key(buffer, &key, &key_len, result->error_count++);
    bson_append_document_begin(&result->errors, key, key_len, &element);
    BSON_APPEND_INT32(&element, "index", index);
    if (element.len + result->errors.len < WRITE_RESULT_ERROR_BYTES) {
        reply_append_error_fields(&element, err);
    } else {
        BSON_APPEND_INT32(&element, "code", err->code);
        BSON_APPEND_UTF8(&element, "errmsg", "");
    }
    bson_append_document_end(&result->errors, &element);
}

void write_result_take_errors(struct write_result *result, const struct write_result *other)
{
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, bdoc_of(&other->errors)); biter_next(&iter, &elem);) {
        char buffer[12];
        const char *key;
        int key_len;
        append_array_key(buffer, &key, &key_len, result->error_count++);
        bval_append(&result->errors, key, key_len, &elem.val);
    }
}

void write_result_add_upserted(struct write_result *result, int32_t index, const struct bval *id)
{
    char buffer[12];
    const char *key;
    int key_len;
    bson_t element;
    append_array_key(buffer, &key, &key_len, result->upserted_count++);
    bson_append_document_begin(&result->upserted, key, key_len, &element);
    BSON_APPEND_INT32(&element, "index", index);
    bval_append(&element, "_id", 3, id);
    bson_append_document_end(&result->upserted, &element);
}

static void append_count(bson_t *reply, const char *name, int64_t count)
{
    if (count <= INT32_MAX)
        BSON_APPEND_INT32(reply, name, (int32_t)count);
    else
        BSON_APPEND_INT64(reply, name, count);
}

void write_result_append(const struct write_result *result, bson_t *reply)
{
    append_count(reply, "n", result->n);
    if (result->is_update)
        append_count(reply, "nModified", result->n_modified);
    if (result->upserted_count > 0)
        BSON_APPEND_ARRAY(reply, "upserted", &result->upserted);
    if (result->error_count > 0)
        BSON_APPEND_ARRAY(reply, "writeErrors", &result->errors);
}
