#include "base/mem.h"
#include "document/request_order.h"
#include "document/write_op.h"

#include <string.h>

enum {
    ERR_CONSTANTS_WITHOUT_PIPELINE = 51198,
    PLAIN_FILTER_DEPTH = 2, /* levels of $and in a filter that needs no compiling */
};

static void set_flag(struct statement *statement, unsigned flag, bool on)
{
    statement->flags |= on ? flag : 0;
}

void write_statement_from_fields(const struct write_fields *fields, struct statement *out)
{
    *out = (struct statement){
        .filter = fields->q, .update = fields->u, .array_filters = fields->array_filters, .sort = fields->sort};
    set_flag(out, STATEMENT_MULTI, fields->multi);
    set_flag(out, STATEMENT_UPSERT, fields->upsert);
    set_flag(out, STATEMENT_DELETE, fields->u.type == BT_EOO);
}

bool write_parse_update(struct bdoc doc, struct statement *out, struct write_fields *fields, struct err *err)
{
    if (!write_fields_read_update(doc, fields, err))
        return false;
    write_statement_from_fields(fields, out);
    return true;
}

bool write_parse_delete(struct bdoc doc, struct statement *out, struct write_fields *fields, struct err *err)
{
    if (!write_fields_read_delete(doc, fields, err))
        return false;
    write_statement_from_fields(fields, out);
    return true;
}

static bool is_plain_value(uint8_t type)
{
    return type != BT_DOCUMENT && type != BT_ARRAY && type != BT_REGEX && type != BT_UNDEFINED;
}

/* {$eq: v} is v. */
static struct bval strip_eq(const struct bval *val)
{
    struct biter iter;
    struct belem only;
    if (val->type != BT_DOCUMENT || bdoc_count(bval_doc(val)) != 1)
        return *val;
    biter_init(&iter, bval_doc(val));
    (void)biter_next(&iter, &only);
    return strcmp(only.key, "$eq") == 0 ? only.val : *val;
}

static bool each_is_plain(struct bdoc filter, int depth, struct bval *id);

/* The operand of $and. */
static bool all_are_plain(const struct bval *list, int depth, struct bval *id)
{
    struct biter iter;
    struct belem elem;
    if (list->type != BT_ARRAY || depth == 0 || bdoc_is_empty(bval_doc(list)))
        return false;
    biter_init(&iter, bval_doc(list));
    while (biter_next(&iter, &elem))
        if (elem.val.type != BT_DOCUMENT || !each_is_plain(bval_doc(&elem.val), depth - 1, id))
            return false;
    return true;
}

static bool each_is_plain(struct bdoc filter, int depth, struct bval *id)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, filter);
    while (biter_next(&iter, &elem)) {
        struct bval val = strip_eq(&elem.val);
        bool plain = elem.key[0] == '$' ? strcmp(elem.key, "$and") == 0 && all_are_plain(&elem.val, depth, id)
                                        : is_plain_value(val.type);
        if (!plain)
            return false;
        if (id->type == BT_EOO && strcmp(elem.key, "_id") == 0)
            *id = val;
    }
    return true;
}

bool write_plain_id(struct bdoc filter, struct bval *id)
{
    *id = BVAL_MISSING;
    return each_is_plain(filter, PLAIN_FILTER_DEPTH, id) && id->type != BT_EOO;
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

bool write_is_plain_by_id(const struct write_op *op, const struct statement *statement,
                          const struct write_fields *fields)
{
    struct bval id;
    return op->default_order == NULL && op->validation.filter == NULL && !op->validation.many_ids &&
           fields->collation.data == NULL && fields->constants.data == NULL && !fields->upsert_supplied &&
           fields->hint.type == BT_EOO && statement->sort.data == NULL && statement->array_filters.data == NULL &&
           write_plain_id(statement->filter, &id) && update_is_plain(&statement->update);
}

/* The statement's collation, or the collection's. */
static bool open_order(const struct write_op *op, struct write_current *current, struct err *err)
{
    struct bdoc spec = current->fields.collation;
    current->env.order = op->default_order;
    return spec.data == NULL || bdoc_is_empty(spec) ||
           request_order_of(spec, NULL, &current->arena, &current->env.order, err);
}

/* `let` and over it the statement's constants, which are values and no expressions. */
static struct bdoc join_variables(struct arena *arena, struct bdoc let, struct bdoc constants)
{
    bson_t all = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    bson_t literal;
    if (let.data != NULL)
        for (biter_init(&iter, let); biter_next(&iter, &elem);)
            if (!bdoc_has(constants, elem.key))
                bval_append(&all, elem.key, (int)elem.key_len, &elem.val);
    for (biter_init(&iter, constants); biter_next(&iter, &elem);) {
        bson_append_document_begin(&all, elem.key, (int)elem.key_len, &literal);
        bval_append(&literal, "$literal", -1, &elem.val);
        bson_append_document_end(&all, &literal);
    }
    struct bdoc joined = {.data = arena_copy(arena, bson_get_data(&all), all.len), .len = all.len};
    bson_destroy(&all);
    return joined;
}

static bool check_constants(const struct write_fields *fields, struct err *err)
{
    struct bval supplied;
    if (fields->constants.data != NULL && fields->u.type != BT_ARRAY)
        return err_set(err, ERR_CONSTANTS_WITHOUT_PIPELINE,
                       "Constant values may only be specified for pipeline updates");
    if (!fields->upsert_supplied)
        return true;
    if (!fields->upsert || fields->constants.data == NULL || !bdoc_find(fields->constants, "new", &supplied) ||
        supplied.type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse,
                       "upsertSupplied needs upsert: true and the document to insert as the constant 'new'");
    return true;
}

static bool compile_update(struct write_current *current, struct err *err)
{
    const struct statement *statement = &current->statement;
    struct update_options options = {
        .env = &current->update_env,
        .array_filters = statement->array_filters,
        .multi = (statement->flags & STATEMENT_MULTI) != 0,
        .upsert = (statement->flags & STATEMENT_UPSERT) != 0,
    };
    current->update_env = current->env;
    if (!check_constants(&current->fields, err))
        return false;
    if (current->fields.constants.data != NULL)
        current->update_env.let = join_variables(&current->arena, current->env.let, current->fields.constants);
    return update_compile(&current->arena, &statement->update, &options, &current->update, err);
}

/* {$natural: 1} as hint or sort means the order of the records and is neither an index nor a field. */
static void take_natural(struct write_current *current)
{
    struct statement *statement = &current->statement;
    struct bval *hint = &current->fields.hint;
    if (statement->sort.data != NULL && bdoc_is_empty(statement->sort))
        statement->sort = (struct bdoc){0};
    if (hint->type == BT_DOCUMENT)
        current->natural = sort_spec_natural(bval_doc(hint));
    if (current->natural != 0)
        *hint = BVAL_MISSING;
    int sort = statement->sort.data != NULL ? sort_spec_natural(statement->sort) : 0;
    if (sort != 0) {
        current->natural = sort;
        statement->sort = (struct bdoc){0};
    }
}

bool write_current_compile(struct write_op *op, struct err *err)
{
    struct write_current *current = &op->current;
    struct statement *statement = &current->statement;
    current->env = op->env;
    take_natural(current);
    if (!open_order(op, current, err) ||
        !filter_compile(&current->arena, statement->filter, &current->env, &current->filter, err))
        return false;
    if (statement->sort.data != NULL &&
        !sort_spec_compile(&current->arena, statement->sort, current->env.order, &current->sort, err))
        return false;
    current->image = !filter_is_deterministic(current->filter) || (current->sort != NULL && current->env.order != NULL);
    if (!(statement->flags & STATEMENT_DELETE)) {
        if (!compile_update(current, err))
            return false;
        current->image |= !update_is_deterministic(current->update);
    }
    write_current_decide(op);
    return (statement->flags & STATEMENT_DELETE) ||
           validation_check_update(&op->validation, statement->filter, &statement->update,
                                   (statement->flags & STATEMENT_MULTI) != 0,
                                   (statement->flags & STATEMENT_UPSERT) != 0, err);
}

void write_current_decide(struct write_op *op)
{
    struct write_current *current = &op->current;
    struct statement *statement = &current->statement;
    struct bval id;
    bool by_id = filter_equality(current->filter, "_id", &id) && is_plain_value(id.type);
    if (op->validation.filter != NULL && !(statement->flags & STATEMENT_DELETE))
        current->image = true;
    statement->flags &= ~(unsigned)STATEMENT_BY_ID;
    bool free_choice = current->fields.hint.type == BT_EOO && current->natural == 0;
    if (by_id && !current->image && free_choice && !op->validation.many_ids)
        statement->flags |= STATEMENT_BY_ID;
    if (current->image)
        statement->flags |= STATEMENT_IMAGE;
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
