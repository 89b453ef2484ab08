/* findAndModify: one statement whose document is the answer. The projection is made by the leader when the document
 * comes back. */
#include "command/modify_fields.h"
#include "document/commands.h"
#include "document/write_op.h"
#include "storage/store.h"

static unsigned flags_of(const struct modify_fields *request)
{
    return (request->remove ? STATEMENT_DELETE : 0U) | (request->upsert ? STATEMENT_UPSERT : 0U) |
           (request->want_new ? STATEMENT_WANT_AFTER : STATEMENT_WANT_BEFORE);
}

enum command_status find_and_modify_run(struct command_ctx *ctx, struct err *err)
{
    struct modify_fields request;
    struct statement statement;
    struct write_op *op = write_op_new(ctx);
    op->is_modify = true;
    if (!command_ns(ctx, &op->ns, err) || !modify_fields_read(ctx->body, &request, err) ||
        !request_version(ctx, &op->version, err) ||
        (!request.remove && !store_check_space(document_engine_store(op->engine), err))) {
        write_op_free(op);
        return COMMAND_ERROR;
    }
    struct write_fields fields = modify_fields_statement(&request);
    op->is_delete = request.remove;
    op->let = request.let;
    op->modify_fields = request.fields;
    op->expected_uuid = request.uuid;
    op->bypass_validation = request.bypass_validation;
    write_statement_from_fields(&fields, &statement);
    statement.flags = flags_of(&request);
    write_op_start_one(op, &statement, &fields);
    return COMMAND_PARKED;
}
