#include "document/log.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <bson/bson.h>

#include <string.h>

enum {
    RESULT_OK = 0,
    RESULT_ERR = 1,
    RESULT_ERR_HEADER = 1 + 4 + 4 + 4, /* tag, code, length of the message, length of the details */
};

bool document_busy_set(struct err *err, const char *why)
{
    bson_t details = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&details, "notExecuted", true);
    err_set(err, ERR_LockBusy, "%s; nothing was executed", why);
    err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
    return false;
}

void document_result_encode_ok_header(struct buf *out)
{
    buf_append_u8(out, RESULT_OK);
}

void document_result_encode_err(struct buf *out, const struct err *err)
{
    size_t msg_len = strlen(err->msg);
    buf_append_u8(out, RESULT_ERR);
    buf_append_le32(out, (uint32_t)err->code);
    buf_append_le32(out, (uint32_t)msg_len);
    buf_append_le32(out, err->details_len);
    buf_append(out, err->msg, msg_len);
    buf_append(out, err->details, err->details_len);
}

static bool parse_err(const uint8_t *data, size_t len, struct document_result *out)
{
    if (len < RESULT_ERR_HEADER)
        return false;
    uint32_t msg_len = load_le32(data + 5);
    uint32_t details_len = load_le32(data + 9);
    if (msg_len >= ERR_MSG_MAX || details_len > ERR_DETAILS_MAX || len != RESULT_ERR_HEADER + msg_len + details_len)
        return false;
    out->ok = false;
    out->err.code = (int32_t)load_le32(data + 1);
    memcpy(out->err.msg, data + RESULT_ERR_HEADER, msg_len);
    out->err.msg[msg_len] = '\0';
    out->err.details_len = details_len;
    memcpy(out->err.details, data + RESULT_ERR_HEADER + msg_len, details_len);
    return true;
}

bool document_result_parse(const uint8_t *data, size_t len, struct document_result *out)
{
    if (len == 0)
        return false;
    out->outcome = DOCUMENT_APPLIED;
    out->leader = NULL;
    if (data[0] == RESULT_ERR)
        return parse_err(data, len, out);
    out->ok = true;
    out->data = data + 1;
    out->len = len - 1;
    return data[0] == RESULT_OK;
}

/* Shared by the waiting thread and the completion; the last of the two frees it. */
struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int refs;
    bool done;
    bool ok;
    struct err err;
    struct buf data;
};

static void waiter_unref(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->mutex);
    bool last = --waiter->refs == 0;
    pthread_mutex_unlock(&waiter->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&waiter->mutex);
    pthread_cond_destroy(&waiter->cond);
    buf_deinit(&waiter->data);
    mem_free(waiter);
}

static void wait_done(void *arg, const struct document_result *result)
{
    struct waiter *waiter = arg;
    pthread_mutex_lock(&waiter->mutex);
    waiter->done = true;
    waiter->ok = result->outcome == DOCUMENT_APPLIED && result->ok;
    if (waiter->ok)
        buf_append(&waiter->data, result->data, result->len);
    else
        waiter->err = result->err;
    pthread_cond_signal(&waiter->cond);
    pthread_mutex_unlock(&waiter->mutex);
    waiter_unref(waiter);
}

bool document_log_wait(const struct document_log *log, uint8_t *command, size_t len, int64_t deadline_ms,
                       struct buf *result, struct err *err)
{
    struct waiter *waiter = mem_alloc(sizeof *waiter);
    pthread_mutex_init(&waiter->mutex, NULL);
    thread_cond_init(&waiter->cond);
    waiter->refs = 2;
    log->propose(log->arg, command, len, wait_done, waiter);
    pthread_mutex_lock(&waiter->mutex);
    while (!waiter->done && !deadline_passed(deadline_ms))
        thread_cond_wait_until(&waiter->cond, &waiter->mutex, deadline_ms);
    bool ok = waiter->done && waiter->ok;
    if (!waiter->done)
        err_set(err, ERR_InterruptedDueToReplStateChange, "the operation's outcome was not known before its deadline");
    else if (!ok && err != NULL)
        *err = waiter->err;
    if (ok && result != NULL)
        buf_append(result, waiter->data.data, waiter->data.len);
    pthread_mutex_unlock(&waiter->mutex);
    waiter_unref(waiter);
    return ok;
}
