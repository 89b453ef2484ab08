#include "command/modify_fields.h"

#include "command/field_spec.h"

#include <stddef.h>

static bool read_all(struct bdoc body, struct modify_fields *out, struct err *err)
{
#define AT(member) offsetof(struct modify_fields, member)
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
    *out = (struct modify_fields){.query = bdoc_empty()};
    return fields_read(body, "findAndModify", &specs, out, err);
}

static bool check_remove(const struct modify_fields *request, bool has_update, struct err *err)
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

static bool check(const struct modify_fields *request, struct err *err)
{
    bool has_update = request->update.type != BT_EOO;
    if (request->remove)
        return check_remove(request, has_update, err);
    if (!has_update)
        return err_set(err, ERR_FailedToParse, "Either an update or remove=true must be specified");
    return request->update.type == BT_DOCUMENT || request->array_filters.data == NULL ||
           err_set(err, ERR_FailedToParse, "Cannot specify arrayFilters and a pipeline update");
}

bool modify_fields_read(struct bdoc body, struct modify_fields *out, struct err *err)
{
    return read_all(body, out, err) && check(out, err);
}

struct write_fields modify_fields_statement(const struct modify_fields *fields)
{
    return (struct write_fields){
        .q = fields->query,
        .u = fields->update,
        .sort = fields->sort,
        .array_filters = fields->array_filters,
        .collation = fields->collation,
        .hint = fields->hint,
        .upsert = fields->upsert,
    };
}
