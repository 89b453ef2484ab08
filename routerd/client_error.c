#include "routerd/client_error.h"

#include "base/clock.h"
#include "command/table.h"

bool client_error_is_stale(int32_t code)
{
    return err_categories(code) & ERR_CAT_STALE;
}

int32_t client_error_code(int32_t code, bool unknown)
{
    enum { LEGACY_NOT_PRIMARY = 10058, NOT_PRIMARY_OR_RECOVERING = 13436 };
    if (code == ERR_InterruptedDueToReplStateChange)
        return ERR_NetworkTimeout;
    if ((err_categories(code) & ERR_CAT_NOT_PRIMARY) || code == ERR_InterruptedAtShutdown ||
        code == LEGACY_NOT_PRIMARY || code == NOT_PRIMARY_OR_RECOVERING || client_error_is_stale(code))
        return unknown ? ERR_NetworkTimeout : ERR_HostUnreachable;
    return code == ERR_LockBusy ? ERR_WriteConflict : code;
}

void client_error_make(struct command_ctx *ctx, bool unknown, struct err *err)
{
    int32_t code = client_error_code(err->code, unknown);
    bool inside = code != err->code || (err_categories(code) & ERR_CAT_NETWORK);
    if (inside) {
        err->code = code;
        err->details_len = 0;
    }
    if (ctx->max_time_ms > 0 && deadline_passed(ctx->deadline_ms) && inside) {
        err_set(err, ERR_MaxTimeMSExpired, "operation exceeded time limit");
        return;
    }
    bool write = ctx->command && (ctx->command->flags & COMMAND_WRITE);
    if (unknown && write)
        (void)err_prefix(err, "the write may or may not have been carried out");
    else if (inside && write && ctx->label_count == 0 && bdoc_has(ctx->body, "txnNumber"))
        command_ctx_add_label(ctx, "RetryableWriteError");
}

bool client_error_from(struct command_ctx *ctx, const struct remote_request *request, struct err *err)
{
    *err = request->err;
    client_error_make(ctx, request->unknown, err);
    return false;
}
