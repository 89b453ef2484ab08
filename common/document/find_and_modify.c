/* findAndModify: one statement whose document is the answer. The projection is made by the leader when the document
 * comes back. */
#include "command/field_spec.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/write_op.h"
#include "storage/store.h"

#include <stddef.h>

/* The command's fields. */
struct modify_request {
    struct bdoc query;
    struct bdoc sort;
    struct bdoc fields;
    struct bdoc array_filters;
    struct bdoc collation;
    struct bdoc let;
    struct bval hint;
    struct bval update;
    const uint8_t *uuid;
    bool remove;
    bool want_new;
    bool upsert;
    bool bypass_validation;
};

static bool parse(struct bdoc body, struct modify_request *out, struct err *err)
{
#define AT(member) offsetof(struct modify_request, member)
    static const struct field_spec list[] = {
        {"query", FIELD_DOC, AT(query), false},
        {"update", FIELD_UPDATE, AT(update), false},
        {"sort", FIELD_DOC, AT(sort), false},
        {"remove", FIELD_FLAG, AT(remove), false},
        {"new", FIELD_FLAG, AT(want_new), false},
        {"upsert", FIELD_FLAG, AT(upsert), false},
        {"fields", FIELD_DOC, AT(fields), false},
        {"arrayFilters", FIELD_DOC_ARRAY, AT(array_filters), false},
        {"collation", FIELD_DOC, AT(collation), false},
        {"hint", FIELD_HINT, AT(hint), false},
        {"let", FIELD_DOC, AT(let), false},
        {"bypassDocumentValidation", FIELD_FLAG, AT(bypass_validation), false},
        {"bypassEmptyTsReplacement", FIELD_IGNORED, 0, false},
        {"collectionUUID", FIELD_UUID, AT(uuid), false},
        {"runtimeConstants", FIELD_IGNORED, 0, false},
        {"sampleId", FIELD_IGNORED, 0, false},
    };
#undef AT
    static const struct field_specs specs = {list, sizeof list / sizeof list[0], true};
    *out = (struct modify_request){.query = bdoc_empty()};
    return fields_read(body, "findAndModify", &specs, out, err);
}

static bool check_remove(const struct modify_request *request, bool has_update, struct err *err)
{
    if (has_update)
        return err_set(err, ERR_FailedToParse, "Cannot specify both an 'update' and 'remove'=true");
    if (request->upsert)
        return err_set(err, ERR_FailedToParse, "Cannot specify both 'upsert'=true and 'remove'=true ");
    if (request->want_new)
        return err_set(
            err, ERR_FailedToParse,
            "Cannot specify both 'new'=true and 'remove'=true; 'remove' always returns the deleted document");
    return request->array_filters.data == NULL ||
           err_set(err, ERR_FailedToParse, "Cannot specify arrayFilters and remove=true");
}

static bool check(const struct modify_request *request, struct err *err)
{
    bool has_update = request->update.type != BT_EOO;
    if (request->remove)
        return check_remove(request, has_update, err);
    if (!has_update)
        return err_set(err, ERR_FailedToParse, "Either an update or remove=true must be specified");
    return request->update.type == BT_DOCUMENT || request->array_filters.data == NULL ||
           err_set(err, ERR_FailedToParse, "Cannot specify arrayFilters and a pipeline update");
}

static unsigned flags_of(const struct modify_request *request)
{
    return (request->remove ? STATEMENT_DELETE : 0U) | (request->upsert ? STATEMENT_UPSERT : 0U) |
           (request->want_new ? STATEMENT_WANT_AFTER : STATEMENT_WANT_BEFORE);
}

enum command_status find_and_modify_run(struct command_ctx *ctx, struct err *err)
{
    struct modify_request request;
    struct statement statement;
    struct write_op *op = write_op_new(ctx);
    op->is_modify = true;
    if (!command_ns(ctx, &op->ns, err) || !parse(ctx->body, &request, err) || !check(&request, err) ||
        !request_version(ctx, &op->version, err) ||
        (!request.remove && !store_check_space(document_engine_store(op->engine), err))) {
        write_op_free(op);
        return COMMAND_ERROR;
    }
    struct write_fields fields = {
        .q = request.query,
        .u = request.update,
        .sort = request.sort,
        .array_filters = request.array_filters,
        .collation = request.collation,
        .hint = request.hint,
    };
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
