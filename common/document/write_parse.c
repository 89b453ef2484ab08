#include "base/mem.h"
#include "command/fields.h"
#include "document/write_op.h"

#include <string.h>

static bool parse_common(struct bdoc doc, struct statement *out, struct bval *hint, struct err *err)
{
    bdoc_find(doc, "hint", hint);
    if (hint->type == BT_DOCUMENT && bdoc_is_empty(bval_doc(hint)))
        *hint = BVAL_MISSING;
    return field_require(doc, "q", err) && field_get_doc(doc, "q", &out->filter, err) &&
           request_check_collation(doc, err);
}

static bool parse_u(struct bdoc doc, const char *name, struct statement *out, struct err *err)
{
    if (!bdoc_find(doc, name, &out->update))
        return err_set(err, COMMAND_ERR_FIELD_MISSING, "BSON field 'update.updates.%s' is missing but a required field",
                       name);
    return out->update.type == BT_DOCUMENT || out->update.type == BT_ARRAY ||
           err_set(err, ERR_FailedToParse, "Update argument must be either an object or an array");
}

static void set_flag(struct statement *statement, unsigned flag, bool on)
{
    statement->flags |= on ? flag : 0;
}

bool write_parse_update(struct bdoc doc, struct statement *out, struct bval *hint, struct err *err)
{
    static const char *const known[] = {"q", "u",    "multi",          "upsert", "arrayFilters", "collation", "hint",
                                        "c", "sort", "upsertSupplied", NULL};
    bool multi = false;
    bool upsert = false;
    *out = (struct statement){.flags = 0};
    if (!fields_check_known(doc, "update.updates", known, err) || !parse_common(doc, out, hint, err) ||
        !parse_u(doc, "u", out, err) || !field_get_bool(doc, "multi", &multi, err) ||
        !field_get_bool(doc, "upsert", &upsert, err) ||
        !field_get_array(doc, "arrayFilters", &out->array_filters, err) || !field_get_doc(doc, "sort", &out->sort, err))
        return false;
    if (bdoc_has(doc, "c"))
        return err_set(err, ERR_NotImplemented, "update doesn't support variables for pipelines ('c')");
    if (out->sort.data != NULL && multi)
        return err_set(err, ERR_FailedToParse, "Cannot specify sort with multi=true");
    set_flag(out, STATEMENT_MULTI, multi);
    set_flag(out, STATEMENT_UPSERT, upsert);
    return true;
}

bool write_parse_delete(struct bdoc doc, struct statement *out, struct bval *hint, struct err *err)
{
    static const char *const known[] = {"q", "limit", "collation", "hint", NULL};
    int64_t limit = 0;
    *out = (struct statement){.flags = STATEMENT_DELETE};
    if (!fields_check_known(doc, "delete.deletes", known, err) || !parse_common(doc, out, hint, err) ||
        !field_require(doc, "limit", err) || !field_get_i64(doc, "limit", &limit, err))
        return false;
    if (limit != 0 && limit != 1)
        return err_set(err, ERR_FailedToParse, "The limit field in delete objects must be 0 or 1. Got %lld",
                       (long long)limit);
    set_flag(out, STATEMENT_MULTI, limit == 0);
    return true;
}

static bool is_plain_value(uint8_t type)
{
    return type != BT_DOCUMENT && type != BT_ARRAY && type != BT_REGEX && type != BT_UNDEFINED;
}

/* Only equalities of plain values, one of them for _id. */
static bool filter_is_plain(struct bdoc filter)
{
    struct biter iter;
    struct belem elem;
    bool has_id = false;
    biter_init(&iter, filter);
    while (biter_next(&iter, &elem)) {
        if (!is_plain_value(elem.val.type) || elem.key[0] == '$')
            return false;
        has_id |= strcmp(elem.key, "_id") == 0;
    }
    return has_id;
}

/* Operators whose operands are never predicates, so that no regular expression can hide in them. */
static bool update_is_plain(const struct bval *update)
{
    static const char *const plain[] = {"$set", "$unset", "$inc", "$setOnInsert", "$mul",        "$min",
                                        "$max", "$push",  "$pop", "$rename",      "$currentDate"};
    struct biter iter;
    struct belem elem;
    if (update->type == BT_EOO)
        return true;
    if (update->type != BT_DOCUMENT)
        return false;
    biter_init(&iter, bval_doc(update));
    while (biter_next(&iter, &elem)) {
        bool known = elem.key[0] != '$';
        for (size_t i = 0; i < sizeof plain / sizeof plain[0] && !known; i++)
            known = strcmp(elem.key, plain[i]) == 0;
        if (!known)
            return false;
    }
    return true;
}

bool write_is_plain_by_id(const struct statement *statement, const struct bval *hint)
{
    return hint->type == BT_EOO && statement->sort.data == NULL && statement->array_filters.data == NULL &&
           filter_is_plain(statement->filter) && update_is_plain(&statement->update);
}

bool write_current_compile(struct write_op *op, struct err *err)
{
    struct write_current *current = &op->current;
    struct statement *statement = &current->statement;
    if (!filter_compile(&current->arena, statement->filter, &op->env, &current->filter, err))
        return false;
    if (statement->sort.data != NULL && bdoc_is_empty(statement->sort))
        statement->sort = (struct bdoc){0};
    if (statement->sort.data != NULL &&
        !sort_spec_compile(&current->arena, statement->sort, op->env.order, &current->sort, err))
        return false;
    current->image = !filter_is_deterministic(current->filter);
    if (!(statement->flags & STATEMENT_DELETE)) {
        struct update_options options = {
            .env = &op->env,
            .array_filters = statement->array_filters,
            .multi = (statement->flags & STATEMENT_MULTI) != 0,
            .upsert = (statement->flags & STATEMENT_UPSERT) != 0,
        };
        if (!update_compile(&current->arena, &statement->update, &options, &current->update, err))
            return false;
        current->image |= !update_is_deterministic(current->update);
    }
    struct bval id;
    bool by_id = filter_equality(current->filter, "_id", &id) && is_plain_value(id.type);
    if (by_id && !current->image && current->hint.type == BT_EOO)
        statement->flags |= STATEMENT_BY_ID;
    if (current->image)
        statement->flags |= STATEMENT_IMAGE;
    return true;
}

void write_current_deinit(struct write_current *current)
{
    filter_release(current->filter);
    update_release(current->update);
    mem_free(current->records);
    arena_deinit(&current->chunk);
    arena_deinit(&current->arena);
    *current = (struct write_current){0};
}
