/* update, delete */
#include "command/field_spec.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/write_op.h"
#include "storage/store.h"

#include <stddef.h>

#define AT(member) offsetof(struct write_op, member)

static const struct field_spec update_fields[] = {
    {"updates", FIELD_ARRAY, AT(statements), false},
    {"ordered", FIELD_BOOL, AT(ordered), false},
    {"let", FIELD_DOC, AT(let), false},
    {"bypassDocumentValidation", FIELD_FLAG, AT(bypass_validation), false},
    {"bypassEmptyTsReplacement", FIELD_IGNORED, 0, false},
    {"collectionUUID", FIELD_UUID, AT(expected_uuid), false},
    {"runtimeConstants", FIELD_IGNORED, 0, false},
};

static const struct field_spec delete_fields[] = {
    {"deletes", FIELD_ARRAY, AT(statements), false},
    {"ordered", FIELD_BOOL, AT(ordered), false},
    {"let", FIELD_DOC, AT(let), false},
    {"bypassDocumentValidation", FIELD_FLAG, AT(bypass_validation), false},
    {"collectionUUID", FIELD_UUID, AT(expected_uuid), false},
    {"runtimeConstants", FIELD_IGNORED, 0, false},
};

static bool parse(struct write_op *op, const char *name, const struct field_specs *specs, struct err *err)
{
    struct command_ctx *ctx = op->ctx;
    return command_ns(ctx, &op->ns, err) && fields_read(ctx->body, name, specs, op, err) &&
           request_version(ctx, &op->version, err) && batch_init(&op->batch, ctx, specs->list[0].name, err);
}

enum command_status update_run(struct command_ctx *ctx, struct err *err)
{
    static const struct field_specs specs = {update_fields, sizeof update_fields / sizeof update_fields[0], true};
    struct write_op *op = write_op_new(ctx);
    if (!parse(op, "update", &specs, err) || !store_check_space(document_engine_store(op->engine), err)) {
        write_op_free(op);
        return COMMAND_ERROR;
    }
    write_op_start(op);
    return COMMAND_PARKED;
}

enum command_status delete_run(struct command_ctx *ctx, struct err *err)
{
    static const struct field_specs specs = {delete_fields, sizeof delete_fields / sizeof delete_fields[0], true};
    struct write_op *op = write_op_new(ctx);
    op->is_delete = true;
    if (!parse(op, "delete", &specs, err)) {
        write_op_free(op);
        return COMMAND_ERROR;
    }
    write_op_start(op);
    return COMMAND_PARKED;
}
