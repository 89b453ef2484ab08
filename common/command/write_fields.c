#include "command/write_fields.h"

#include "command/field_spec.h"

#include <stddef.h>

#define AT(member)   offsetof(struct write_fields, member)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

bool write_fields_read_update(struct bdoc statement, struct write_fields *out, struct err *err)
{
    static const struct field_spec list[] = {
        {"q", FIELD_DOC, AT(q), true},
        {"u", FIELD_UPDATE, AT(u), true},
        {"multi", FIELD_BOOL, AT(multi), false},
        {"upsert", FIELD_BOOL, AT(upsert), false},
        {"arrayFilters", FIELD_DOC_ARRAY, AT(array_filters), false},
        {"collation", FIELD_DOC, AT(collation), false},
        {"hint", FIELD_HINT, AT(hint), false},
        {"sort", FIELD_DOC, AT(sort), false},
        {"c", FIELD_DOC, AT(constants), false},
        {"upsertSupplied", FIELD_BOOL, AT(upsert_supplied), false},
        {"sampleId", FIELD_IGNORED, 0, false},
    };
    static const struct field_specs specs = {list, COUNT(list), false};
    *out = (struct write_fields){.multi = false};
    if (!fields_read(statement, "update.updates", &specs, out, err))
        return false;
    return out->sort.data == NULL || !out->multi ||
           err_set(err, ERR_FailedToParse, "Cannot specify sort with multi=true");
}

bool write_fields_read_delete(struct bdoc statement, struct write_fields *out, struct err *err)
{
    static const struct field_spec list[] = {
        {"q", FIELD_DOC, AT(q), true},
        {"limit", FIELD_LIMIT, AT(multi), true},
        {"collation", FIELD_DOC, AT(collation), false},
        {"hint", FIELD_HINT, AT(hint), false},
        {"sampleId", FIELD_IGNORED, 0, false},
    };
    static const struct field_specs specs = {list, COUNT(list), false};
    *out = (struct write_fields){.multi = false};
    return fields_read(statement, "delete.deletes", &specs, out, err);
}
