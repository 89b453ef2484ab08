/* Logical sessions. A session needs no state here: shards keep the records of retryable writes under the session's id,
 * and cursors end by themselves. Transactions over several documents are refused. */
#include "base/random.h"
#include "routerd/commands.h"
#include "routerd/router.h"

static enum command_status run_start_session(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    enum { TIMEOUT_MINUTES = 30 };
    uint8_t uuid[16];
    bson_t id;
    random_uuid(uuid);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "id", &id);
    BSON_APPEND_BINARY(&id, "id", BSON_SUBTYPE_UUID, uuid, sizeof uuid);
    bson_append_document_end(&ctx->reply, &id);
    BSON_APPEND_INT32(&ctx->reply, "timeoutMinutes", TIMEOUT_MINUTES);
    return COMMAND_OK;
}

static enum command_status run_sessions(struct command_ctx *ctx, struct err *err)
{
    if (ctx->value.type != BT_ARRAY) {
        err_set(err, ERR_TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type 'array'", ctx->name,
                ctx->name, bval_type_name(ctx->value.type));
        return COMMAND_ERROR;
    }
    return COMMAND_OK;
}

static enum command_status run_end_transaction(struct command_ctx *ctx, struct err *err)
{
    (void)ctx;
    err_set(err, ERR_NoSuchTransaction, "no transaction is under way: transactions are not supported");
    return COMMAND_ERROR;
}

static const struct command commands[] = {
    {"startSession", NULL, 0, run_start_session},
    {"endSessions", NULL, COMMAND_NO_AUTH, run_sessions},
    {"refreshSessions", NULL, 0, run_sessions},
    {"commitTransaction", NULL, COMMAND_ADMIN_ONLY, run_end_transaction},
    {"abortTransaction", NULL, COMMAND_ADMIN_ONLY, run_end_transaction},
};

const struct command_family commands_session = COMMAND_FAMILY(commands);
