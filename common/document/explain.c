#include "document/explain.h"

enum command_status explain_of(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    (void)verbosity;
    err_set(err, ERR_NotImplemented, "explain of %s is not supported", ctx->name);
    return COMMAND_ERROR;
}
