#include "routerd/dispatch.h"

#include "base/mem.h"
#include "command/fields.h"
#include "command/table.h"
#include "routerd/let_values.h"
#include "routerd/request.h"
#include "routerd/router.h"
#include "routerd/session.h"
#include "routerd/write_concern.h"
#include "wire/client_server.h"

#include <string.h>

void dispatch_opened(void *arg, struct client_conn *conn)
{
    (void)arg;
    client_conn_set_data(conn, mem_alloc(sizeof(struct session)));
}

void dispatch_closed(void *arg, struct client_conn *conn)
{
    (void)arg;
    mem_free(client_conn_data(conn));
}

/* A copy of a reply with what a fail point adds. */
static struct wire_frame *reply_with(struct wire_frame *reply, const struct failpoint_outcome *outcome)
{
    struct wire_msg msg;
    struct err err;
    if (!wire_msg_parse(reply->data, reply->len, WIRE_PARSE_TRUSTED, &msg, &err))
        return reply;
    static const char *const own[] = {"writeConcernError", "errorLabels", NULL};
    bson_t out = BSON_INITIALIZER;
    struct bval value = bval_from_doc(outcome->write_concern_error);
    request_append_body(&out, msg.body, own);
    bval_append(&out, "writeConcernError", -1, &value);
    if (outcome->labels.data) {
        value = (struct bval){.type = BT_ARRAY, .data = outcome->labels.data, .len = outcome->labels.len};
        bval_append(&out, "errorLabels", -1, &value);
    }
    struct wire_frame *changed = wire_frame_of_doc(bdoc_of(&out));
    bson_destroy(&out);
    wire_frame_unref(reply);
    return changed;
}

static void respond(struct command_ctx *ctx, struct wire_frame *reply)
{
    struct session *session = ctx->session;
    if (session->failpoint.write_concern_error.data)
        reply = reply_with(reply, &session->failpoint);
    session->failpoint = (struct failpoint_outcome){0};
    client_request_reply(ctx->request, reply);
}

static bool check_session(const struct command_ctx *ctx, struct err *err)
{
    struct bdoc lsid = {0};
    const uint8_t *id = NULL;
    int64_t number = 0;
    if (!field_get_doc(ctx->body, "lsid", &lsid, err) || (lsid.data && !field_get_uuid(lsid, "id", &id, err)) ||
        !field_get_i64(ctx->body, "txnNumber", &number, err))
        return false;
    if (lsid.data && !id)
        return err_set(err, COMMAND_ERR_FIELD_MISSING, "BSON field 'lsid.id' is missing but a required field");
    if (!lsid.data && bdoc_has(ctx->body, "txnNumber"))
        return err_set(err, ERR_InvalidOptions, "Transaction number requires a session ID to also be specified");
    bool ends = strcmp(ctx->name, "commitTransaction") == 0 || strcmp(ctx->name, "abortTransaction") == 0;
    /* Drivers take the code of an illegal operation for a server that lacks retryable writes, and say so instead. */
    if (bdoc_has(ctx->body, "autocommit") && !ends)
        return err_set(err, ERR_OperationNotSupportedInTransaction,
                       "transactions over several documents are not supported");
    return true;
}

static bool check_api(const struct command_ctx *ctx, struct err *err)
{
    const char *version = NULL;
    if (!field_get_str(ctx->body, "apiVersion", &version, err))
        return false;
    if (version && strcmp(version, "1") != 0)
        return err_set(err, ERR_APIVersionError, "API version must be \"1\"");
    if (!version && bdoc_has(ctx->body, "apiStrict"))
        return err_set(err, ERR_APIVersionError, "apiStrict needs apiVersion");
    return true;
}

static bool prepare(struct command_ctx *ctx, bool *close, struct err *err)
{
    struct router *router = router_of(ctx);
    struct session *session = ctx->session;
    *close = false;
    if (!command_parse(ctx, err))
        return false;
    if (router->options.test_commands) {
        failpoints_check(router->failpoints, ctx, session->app_name, &session->failpoint, err);
        *close = session->failpoint.effect == FAILPOINT_CLOSE;
        if (session->failpoint.effect != FAILPOINT_NONE)
            return false;
    }
    return check_session(ctx, err) && check_api(ctx, err) && concerns_check(ctx, err) && let_values_resolve(ctx, err);
}

/* What only reads ends with its client; a write goes on to an end that somebody may ask for later. */
static bool client_has_gone(void *arg)
{
    const struct command_ctx *ctx = arg;
    const struct client_request *request = ctx->request;
    return !(ctx->command->flags & COMMAND_WRITE) && client_conn_is_closed(request->conn);
}

void dispatch_request(void *arg, struct client_request *request)
{
    struct router *router = arg;
    struct command_ctx *ctx = command_ctx_new(request->frame, &request->msg);
    struct err err;
    bool close;
    ctx->daemon = router;
    ctx->request = request;
    ctx->session = client_conn_data(request->conn);
    ctx->respond = respond;
    ctx->ops = router->ops;
    ctx->op.client = client_conn_peer(request->conn);
    ctx->op.connection_id = client_conn_id(request->conn);
    ctx->op.app_name = ((struct session *)ctx->session)->app_name;
    ctx->op.interrupt.gone = client_has_gone;
    ctx->op.interrupt.gone_arg = ctx;
    if (prepare(ctx, &close, &err)) {
        command_run(router->commands, ctx);
    } else if (close) {
        command_ctx_free(ctx);
        client_request_drop(request);
    } else {
        command_finish(ctx, &err);
    }
}
