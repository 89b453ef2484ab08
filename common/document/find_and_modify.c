/* findAndModify: one statement whose document is the answer. The projection is made by the leader when the document
 * comes back. */
#include "base/clock.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/write_op.h"
#include "storage/store.h"

struct modify_request {
    bool remove;
    bool want_new;
    bool upsert;
    struct bval update;
};

static bool parse(struct write_op *op, struct modify_request *request, struct statement *statement, struct bval *hint,
                  struct err *err)
{
    static const char *const known[] = {"findAndModify", "findandmodify",
                                        "query",         "sort",
                                        "remove",        "update",
                                        "new",           "fields",
                                        "upsert",        "arrayFilters",
                                        "collation",     "hint",
                                        "let",           "bypassDocumentValidation",
                                        "comment",       NULL};
    struct bdoc body = op->ctx->body;
    statement->filter = bdoc_empty();
    bdoc_find(body, "hint", hint);
    bdoc_find(body, "update", &request->update);
    return command_ns(op->ctx, &op->ns, err) && fields_check_known(body, "findAndModify", known, err) &&
           field_get_doc(body, "query", &statement->filter, err) &&
           field_get_doc(body, "sort", &statement->sort, err) &&
           field_get_bool(body, "remove", &request->remove, err) &&
           field_get_bool(body, "new", &request->want_new, err) &&
           field_get_bool(body, "upsert", &request->upsert, err) && field_get_doc(body, "let", &op->let, err) &&
           field_get_doc(body, "fields", &op->modify_fields, err) &&
           field_get_array(body, "arrayFilters", &statement->array_filters, err) &&
           request_version(op->ctx, &op->version, err) && request_check_collation(body, err);
}

static bool check(const struct modify_request *request, const struct statement *statement, struct err *err)
{
    if (request->remove && statement->array_filters.data != NULL)
        return err_set(err, ERR_FailedToParse, "Cannot specify arrayFilters and remove=true");
    bool has_update = request->update.type != BT_EOO && request->update.type != BT_NULL;
    if (request->remove && has_update)
        return err_set(err, ERR_FailedToParse, "Cannot specify both an 'update' and 'remove'=true");
    if (!request->remove && !has_update)
        return err_set(err, ERR_FailedToParse, "Either an update or remove=true must be specified");
    if (request->remove && request->upsert)
        return err_set(err, ERR_FailedToParse, "Cannot specify both 'upsert'=true and 'remove'=true ");
    if (request->remove && request->want_new)
        return err_set(
            err, ERR_FailedToParse,
            "Cannot specify both 'new'=true and 'remove'=true; 'remove' always returns the deleted document");
    return request->remove || request->update.type == BT_DOCUMENT || request->update.type == BT_ARRAY ||
           err_set(err, ERR_FailedToParse, "Update argument must be either an object or an array");
}

/* The projection is known to be right before anything is written. */
static bool check_fields(struct write_op *op, struct bdoc filter, struct err *err)
{
    if (op->modify_fields.data == NULL || bdoc_is_empty(op->modify_fields))
        return true;
    struct filter *compiled;
    op->env = (struct expr_env){.now_ms = clock_wall_ms(), .let = op->let};
    if (!filter_compile(&op->ctx->arena, filter, &op->env, &compiled, err))
        return false;
    op->modify_filter = compiled;
    return projection_compile(
        &op->ctx->arena, op->modify_fields,
        &(struct projection_options){.kind = PROJECTION_FIND, .filter = compiled, .env = &op->env},
        &op->modify_projection, err);
}

enum command_status find_and_modify_run(struct command_ctx *ctx, struct err *err)
{
    struct modify_request request = {0};
    struct statement statement = {0};
    struct bval hint = BVAL_MISSING;
    struct write_op *op = write_op_new(ctx);
    op->is_modify = true;
    if (!parse(op, &request, &statement, &hint, err) || !check(&request, &statement, err) ||
        (!request.remove && !store_check_space(document_engine_store(op->engine), err)) ||
        !check_fields(op, statement.filter, err)) {
        write_op_free(op);
        return COMMAND_ERROR;
    }
    op->is_delete = request.remove;
    if (request.remove)
        statement.flags |= STATEMENT_DELETE;
    else
        statement.update = request.update;
    if (request.upsert)
        statement.flags |= STATEMENT_UPSERT;
    statement.flags |= request.want_new ? STATEMENT_WANT_AFTER : STATEMENT_WANT_BEFORE;
    if (hint.type == BT_DOCUMENT && bdoc_is_empty(bval_doc(&hint)))
        hint = BVAL_MISSING;
    write_op_start_one(op, &statement, &hint);
    return COMMAND_PARKED;
}
