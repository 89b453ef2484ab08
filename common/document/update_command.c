/* update, delete */
#include "command/fields.h"
#include "document/commands.h"
#include "document/write_op.h"
#include "storage/store.h"

static bool parse_common(struct write_op *op, const char *const *known, const char *field, struct err *err)
{
    struct command_ctx *ctx = op->ctx;
    return command_ns(ctx, &op->ns, err) && fields_check_known(ctx->body, ctx->name, known, err) &&
           field_get_bool(ctx->body, "ordered", &op->ordered, err) && field_get_doc(ctx->body, "let", &op->let, err) &&
           request_version(ctx, &op->version, err) && batch_init(&op->batch, ctx, field, err);
}

enum command_status update_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"update", "updates", "ordered", "bypassDocumentValidation",
                                        "let",    "comment", NULL};
    struct write_op *op = write_op_new(ctx);
    if (!parse_common(op, known, "updates", err) || !store_check_space(document_engine_store(op->engine), err))
        goto failed;
    write_op_start(op);
    return COMMAND_PARKED;
failed:
    write_op_free(op);
    return COMMAND_ERROR;
}

enum command_status delete_run(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"delete", "deletes", "ordered", "let", "comment", NULL};
    struct write_op *op = write_op_new(ctx);
    op->is_delete = true;
    if (!parse_common(op, known, "deletes", err))
        goto failed;
    write_op_start(op);
    return COMMAND_PARKED;
failed:
    write_op_free(op);
    return COMMAND_ERROR;
}
