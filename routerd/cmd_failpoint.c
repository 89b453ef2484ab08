#include "base/clock.h"
#include "base/mem.h"
#include "command/fields.h"
#include "routerd/commands.h"
#include "routerd/failpoint.h"
#include "routerd/router.h"

#include <pthread.h>
#include <string.h>

enum {
    FAILPOINT_BLOCK_MAX_MS = 60 * 1000,
    FAILPOINT_ALWAYS = -1,
};

struct failpoints {
    pthread_mutex_t lock; /* guards all below */
    int64_t times;        /* activations left; FAILPOINT_ALWAYS; 0: off */
    int64_t skip;         /* matching commands to let through first */
    uint8_t *data;        /* the `data` document, heap; NULL: none */
    uint32_t data_len;
};

struct failpoints *failpoints_new(void)
{
    struct failpoints *failpoints = mem_alloc(sizeof *failpoints);
    pthread_mutex_init(&failpoints->lock, NULL);
    return failpoints;
}

void failpoints_free(struct failpoints *failpoints)
{
    if (!failpoints)
        return;
    mem_free(failpoints->data);
    pthread_mutex_destroy(&failpoints->lock);
    mem_free(failpoints);
}

static bool lists(struct bdoc data, const char *command)
{
    struct bval list;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(data, "failCommands", &list) || list.type != BT_ARRAY)
        return false;
    biter_init(&iter, bval_doc(&list));
    while (biter_next(&iter, &elem))
        if (bval_is_str(&elem.val, command))
            return true;
    return false;
}

static bool matches(struct bdoc data, const struct command_ctx *ctx, const char *app_name)
{
    struct bval wanted;
    if (!lists(data, ctx->name))
        return false;
    return !bdoc_find(data, "appName", &wanted) || bval_is_str(&wanted, app_name);
}

/* Takes an activation when one is due: a copy of its data in the context's arena; data NULL: not active. */
static struct bdoc activation(struct failpoints *failpoints, struct command_ctx *ctx, const char *app_name)
{
    struct bdoc data = {0};
    pthread_mutex_lock(&failpoints->lock);
    struct bdoc stored = {failpoints->data, failpoints->data_len};
    if (failpoints->times != 0 && stored.data && matches(stored, ctx, app_name)) {
        if (failpoints->skip > 0) {
            failpoints->skip--;
        } else {
            failpoints->times -= failpoints->times > 0;
            data = (struct bdoc){arena_copy(&ctx->arena, stored.data, stored.len), stored.len};
        }
    }
    pthread_mutex_unlock(&failpoints->lock);
    return data;
}

static bool is_retryable_code(int64_t code)
{
    static const int32_t codes[] = {6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* The labels as given; without any, the one that a server adds by itself. */
static void set_labels(struct command_ctx *ctx, struct bdoc data, int64_t code)
{
    struct bval list;
    struct biter iter;
    struct belem elem;
    uint32_t len;
    if (!bdoc_find(data, "errorLabels", &list) || list.type != BT_ARRAY) {
        if (is_retryable_code(code) && bdoc_has(ctx->body, "txnNumber"))
            command_ctx_add_label(ctx, "RetryableWriteError");
        return;
    }
    biter_init(&iter, bval_doc(&list));
    while (biter_next(&iter, &elem) && ctx->label_count < sizeof ctx->labels / sizeof ctx->labels[0])
        if (elem.val.type == BT_STRING)
            command_ctx_add_label(ctx, bval_str(&elem.val, &len));
}

static void block(struct bdoc data)
{
    struct bval value;
    int64_t time_ms = 0;
    if (!bdoc_find(data, "blockConnection", &value) || !bval_truthy(&value))
        return;
    if (bdoc_find(data, "blockTimeMS", &value))
        (void)bval_to_i64(&value, &time_ms);
    if (time_ms > 0)
        clock_sleep_ms(time_ms < FAILPOINT_BLOCK_MAX_MS ? time_ms : FAILPOINT_BLOCK_MAX_MS);
}

void failpoints_check(struct failpoints *failpoints, struct command_ctx *ctx, const char *app_name,
                      struct failpoint_outcome *out, struct err *err)
{
    struct bval value;
    int64_t code = 0;
    *out = (struct failpoint_outcome){0};
    struct bdoc data = activation(failpoints, ctx, app_name);
    if (!data.data)
        return;
    block(data);
    if (bdoc_find(data, "closeConnection", &value) && bval_truthy(&value)) {
        out->effect = FAILPOINT_CLOSE;
    } else if (bdoc_find(data, "errorCode", &value) && bval_to_i64(&value, &code)) {
        out->effect = FAILPOINT_ERROR;
        err_set(err, (int32_t)code, "Failing command via 'failCommand' failpoint");
        set_labels(ctx, data, code);
    } else if (bdoc_find(data, "writeConcernError", &value) && value.type == BT_DOCUMENT) {
        out->write_concern_error = bval_doc(&value);
        if (bdoc_find(data, "errorLabels", &value) && value.type == BT_ARRAY)
            out->labels = bval_doc(&value);
    }
}

static bool read_mode(struct bdoc body, int64_t *times, int64_t *skip, struct err *err)
{
    struct bval mode;
    struct bdoc doc;
    *times = FAILPOINT_ALWAYS;
    *skip = 0;
    if (!field_require(body, "mode", err))
        return false;
    (void)bdoc_find(body, "mode", &mode);
    if (bval_is_str(&mode, "off"))
        *times = 0;
    else if (mode.type == BT_DOCUMENT) {
        doc = bval_doc(&mode);
        return field_get_i64_in(doc, "times", 0, INT32_MAX, times, err) &&
               field_get_i64_in(doc, "skip", 0, INT32_MAX, skip, err);
    } else if (!bval_is_str(&mode, "alwaysOn"))
        return err_set(err, ERR_BadValue, "unknown mode of a fail point");
    return true;
}

static enum command_status run_configure(struct command_ctx *ctx, struct err *err)
{
    struct failpoints *failpoints = router_of(ctx)->failpoints;
    struct bdoc data = {0};
    int64_t times, skip;
    if (!bval_is_str(&ctx->value, "failCommand")) {
        err_set(err, ERR_BadValue, "this fail point does not exist: only failCommand does");
        return COMMAND_ERROR;
    }
    if (!read_mode(ctx->body, &times, &skip, err) || !field_get_doc(ctx->body, "data", &data, err))
        return COMMAND_ERROR;
    pthread_mutex_lock(&failpoints->lock);
    mem_free(failpoints->data);
    failpoints->data = data.data ? mem_copy(data.data, data.len) : NULL;
    failpoints->data_len = data.len;
    failpoints->times = times;
    failpoints->skip = skip;
    pthread_mutex_unlock(&failpoints->lock);
    BSON_APPEND_INT32(&ctx->reply, "count", 0);
    return COMMAND_OK;
}

static const struct command commands[] = {
    {"configureFailPoint", NULL, COMMAND_ADMIN_ONLY | COMMAND_TEST, run_configure},
};

const struct command_family commands_failpoint = COMMAND_FAMILY(commands);
