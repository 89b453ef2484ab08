#include "document/parameters.h"

#include "command/fields.h"
#include "document/apply_internal.h"
#include "document/commands.h"
#include "document/ddl.h"
#include "document/ttl.h"

#include <string.h>

enum {
    PARAMETER_KEY_MAX = 64,
};

struct parameter {
    const char *name;
    bool is_flag;
    int64_t min;
    int64_t max;
    int64_t (*get)(const struct document_engine *engine);
    void (*set)(struct document_engine *engine, int64_t value);
};

static int64_t get_ttl_enabled(const struct document_engine *engine)
{
    return document_ttl_enabled(document_engine_ttl(engine));
}

static void set_ttl_enabled(struct document_engine *engine, int64_t value)
{
    document_ttl_set_enabled(document_engine_ttl(engine), value != 0);
}

static int64_t get_ttl_sleep(const struct document_engine *engine)
{
    return document_ttl_sleep_secs(document_engine_ttl(engine));
}

static void set_ttl_sleep(struct document_engine *engine, int64_t value)
{
    document_ttl_set_sleep_secs(document_engine_ttl(engine), value);
}

static const struct parameter parameters[] = {
    {"ttlMonitorEnabled", true, 0, 1, get_ttl_enabled, set_ttl_enabled},
    {"ttlMonitorSleepSecs", false, 1, INT32_MAX, get_ttl_sleep, set_ttl_sleep},
};

enum {
    PARAMETER_COUNT = sizeof parameters / sizeof parameters[0],
};

static const struct parameter *find(const char *name)
{
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if (strcmp(parameters[i].name, name) == 0)
            return &parameters[i];
    }
    return NULL;
}

static size_t stored_key(const struct parameter *parameter, char key[PARAMETER_KEY_MAX])
{
    int len = snprintf(key, PARAMETER_KEY_MAX, "parameter.%s", parameter->name);
    return (size_t)len;
}

bool document_parameters_load(struct document_engine *engine, struct err *err)
{
    struct store_txn *txn;
    if (!store_read_begin(document_engine_store(engine), &txn, err))
        return false;
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        char key[PARAMETER_KEY_MAX];
        const void *value;
        size_t len;
        if (store_meta_get(txn, key, stored_key(&parameters[i], key), &value, &len) && len == sizeof(uint64_t))
            parameters[i].set(engine, (int64_t)load_le64(value));
    }
    store_read_end(txn);
    return true;
}

/* DOCUMENT_KIND_SET_PARAMETER: name, value (u64). Result: the value before (u64). */
bool apply_set_parameter(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    char key[PARAMETER_KEY_MAX];
    uint8_t bytes[sizeof(uint64_t)];
    const struct parameter *parameter = find(codec_read_str(reader));
    uint64_t value = codec_read_u64(reader);
    if (reader->failed || parameter == NULL)
        return apply_damaged(err);
    store_le64(bytes, value);
    store_meta_put(apply->txn, key, stored_key(parameter, key), bytes, sizeof bytes);
    buf_append_le64(result, (uint64_t)parameter->get(apply->engine));
    parameter->set(apply->engine, (int64_t)value);
    return true;
}

/* ---- commands ---- */

static void append_value(bson_t *to, const char *name, const struct parameter *parameter, int64_t value)
{
    if (parameter->is_flag)
        bson_append_bool(to, name, -1, value != 0);
    else
        bson_append_int32(to, name, -1, (int32_t)value);
}

/* The one parameter that the command names. */
static const struct parameter *named(const struct command_ctx *ctx, struct bval *value, struct err *err)
{
    const struct parameter *parameter = NULL;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, ctx->body);
    biter_next(&iter, &elem);
    while (biter_next(&iter, &elem)) {
        if (field_is_generic(elem.key) || strcmp(elem.key, "comment") == 0)
            continue;
        parameter = find(elem.key);
        *value = elem.val;
        if (parameter == NULL)
            (void)err_set(err, ERR_InvalidOptions, "attempted to set unrecognized parameter [%s]", elem.key);
        return parameter;
    }
    (void)err_set(err, ERR_InvalidOptions, "no option found to set");
    return NULL;
}

static bool read_value(const struct parameter *parameter, const struct bval *value, int64_t *out, struct err *err)
{
    if (parameter->is_flag) {
        *out = bval_truthy(value);
        return value->type == BT_BOOL || bval_is_number(value) ||
               err_set(err, ERR_TypeMismatch, "%s takes a bool", parameter->name);
    }
    if (!bval_is_number(value) || !bval_to_i64(value, out))
        return err_set(err, ERR_BadValue, "%s takes a whole number", parameter->name);
    return (*out >= parameter->min && *out <= parameter->max) ||
           err_set(err, ERR_BadValue, "Invalid value for parameter %s: %lld is not within %lld and %lld",
                   parameter->name, (long long)*out, (long long)parameter->min, (long long)parameter->max);
}

static void finish_set(struct command_ctx *ctx, const struct document_result *result)
{
    struct codec_reader reader;
    struct bval value;
    struct err err;
    const struct parameter *parameter = named(ctx, &value, &err);
    codec_reader_init(&reader, result->data, result->len);
    if (parameter != NULL)
        append_value(&ctx->reply, "was", parameter, (int64_t)codec_read_u64(&reader));
    command_finish(ctx, NULL);
}

enum command_status set_parameter_run(struct command_ctx *ctx, struct err *err)
{
    struct bval value;
    int64_t number;
    struct buf command;
    const struct parameter *parameter = named(ctx, &value, err);
    if (parameter == NULL || !read_value(parameter, &value, &number, err))
        return COMMAND_ERROR;
    ddl_command_begin(&command, DOCUMENT_KIND_SET_PARAMETER);
    codec_write_str(&command, parameter->name);
    buf_append_le64(&command, (uint64_t)number);
    return ddl_propose(ctx, &command, finish_set);
}

enum command_status get_parameter_run(struct command_ctx *ctx, struct err *err)
{
    bool all = bval_is_str(&ctx->value, "*") || ctx->value.type == BT_DOCUMENT;
    unsigned found = 0;
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if (!all && !bdoc_has(ctx->body, parameters[i].name))
            continue;
        append_value(&ctx->reply, parameters[i].name, &parameters[i], parameters[i].get(document_engine_of(ctx)));
        found++;
    }
    if (found == 0)
        err_set(err, ERR_InvalidOptions, "no option found to get");
    return found > 0 ? COMMAND_OK : COMMAND_ERROR;
}
