/* Replies: the envelope {ok: 1.0} or {ok: 0.0, errmsg, code, codeName, errorLabels?, details...}, the result of a write
 * batch, and reading such replies on the other side. */
#ifndef SHERD_COMMAND_REPLY_H
#define SHERD_COMMAND_REPLY_H

#include "base/err.h"
#include "bson/value.h"
#include "command/context.h"

#include <stdint.h>

/* {ok: 0.0, errmsg, code, codeName, errorLabels?, fields of err->details}. Appends to `out`. */
void reply_append_error(bson_t *out, const struct err *err, const char *const *labels, unsigned label_count);
/* Appends ok: 1.0. */
void reply_append_ok(bson_t *out);
/* {code, errmsg, details...}: the fields of an element of writeErrors, after its index. */
void reply_append_error_fields(bson_t *out, const struct err *err);

/* Reads a reply: true when it says ok (1, 1.0, true). Else fills err with code and message, the other fields become its
 * details as far as they fit. */
bool reply_check(struct bdoc reply, struct err *err) ERR_WARN_UNUSED;

/* Result of insert, update and delete, gathered statement by statement; init/deinit in the caller's storage. */
struct write_result {
    int64_t n;          /* inserted, matched (upserts included) or deleted */
    int64_t n_modified; /* updates only */
    bson_t upserted;    /* array of {index, _id} */
    uint32_t upserted_count;
    bson_t errors; /* array of {index, code, errmsg, ...} */
    uint32_t error_count;
    bool is_update; /* nModified is reported */
};

/* Beyond so many bytes of errors the messages and details of further ones are left out, as MongoDB does. */
enum { WRITE_RESULT_ERROR_BYTES = 1 << 20 };

void write_result_init(struct write_result *result, bool is_update);
void write_result_deinit(struct write_result *result);
void write_result_add_error(struct write_result *result, int32_t index, const struct err *err);
/* Appends the errors of another result as they are. */
void write_result_take_errors(struct write_result *result, const struct write_result *other);
void write_result_add_upserted(struct write_result *result, int32_t index, const struct bval *id);
/* Appends n, nModified, upserted and writeErrors (the two arrays only when not empty). */
void write_result_append(const struct write_result *result, bson_t *reply);

#endif
