/* Operators on single values: $set, $unset, $inc, $mul, $min, $max, $rename, $setOnInsert, $currentDate, $bit. */
#include "bson/compare.h"
#include "bson/path.h"
#include "update/update_tree.h"

#include <string.h>

static void set_value(struct outcome *out, struct bval value)
{
    *out = (struct outcome){.kind = OUTCOME_SET, .value = value};
}

static bool apply_set(struct applier *a, const struct update_op *op, const struct bval *existing, struct outcome *out)
{
    (void)a;
    (void)existing;
    set_value(out, op->arg);
    return true;
}

static bool apply_set_on_insert(struct applier *a, const struct update_op *op, const struct bval *existing,
                                struct outcome *out)
{
    (void)existing;
    if (a->insert)
        set_value(out, op->arg);
    return true;
}

static bool apply_unset(struct applier *a, const struct update_op *op, const struct bval *existing, struct outcome *out)
{
    (void)a;
    (void)op;
    out->kind = existing->type == BT_EOO ? OUTCOME_KEEP : OUTCOME_REMOVE;
    return true;
}

static bool compile_number(struct update_compiler *c, struct update_op *op)
{
    if (bval_is_number(&op->arg))
        return true;
    bool inc = strcmp(op->operator_of->name, "$inc") == 0;
    return err_set(c->err, ERR_TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}",
                   inc ? "increment" : "multiply", op->path, bval_type_name(op->arg.type));
}

static bool apply_number(struct applier *a, const struct update_op *op, const struct bval *existing,
                         struct outcome *out)
{
    bool inc = strcmp(op->operator_of->name, "$inc") == 0;
    struct number arg = number_of(&op->arg);
    struct number result;
    if (existing->type == BT_EOO) {
        struct number zero = number_i32(0);
        if (inc)
            set_value(out, op->arg);
        else if (number_multiply(&zero, &arg, NUMBER_REFUSE, &result))
            set_value(out, number_value(&a->scratch, &result));
        return true;
    }
    if (!bval_is_number(existing))
        return err_set(a->err, ERR_TypeMismatch,
                       "Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' of non-numeric type %s",
                       op->operator_of->name, update_id_text(a), op->path, bval_type_name(existing->type));
    struct number old = number_of(existing);
    bool ok =
        inc ? number_add(&old, &arg, NUMBER_REFUSE, &result) : number_multiply(&old, &arg, NUMBER_REFUSE, &result);
    if (!ok)
        return err_set(a->err, ERR_BadValue,
                       "Failed to apply %s operations to current value ((NumberLong)%lld) for "
                       "document {%s}",
                       op->operator_of->name, (long long)old.i64, update_id_text(a));
    /* The same value stays as it is written (1E+3, -0.0), but for NaN, which equals nothing. */
    struct bval changed = number_value(&a->scratch, &result);
    bool same = changed.type == existing->type && bval_compare(&changed, existing) == 0 && !number_is_nan(&result);
    *out = (struct outcome){.kind = same ? OUTCOME_KEEP : OUTCOME_CHANGE, .value = changed};
    return true;
}

static bool compile_min_max(struct update_compiler *c, struct update_op *op)
{
    update_note_order(c, &op->arg);
    return true;
}

static bool apply_min_max(struct applier *a, const struct update_op *op, const struct bval *existing,
                          struct outcome *out)
{
    bool min = strcmp(op->operator_of->name, "$min") == 0;
    int order = existing->type == BT_EOO ? 0 : bval_compare_ordered(&op->arg, existing, a->update->order);
    if (existing->type == BT_EOO || (min ? order < 0 : order > 0))
        set_value(out, op->arg);
    return true;
}

static bool compile_current_date(struct update_compiler *c, struct update_op *op)
{
    struct bval type;
    if (op->arg.type == BT_BOOL)
        return true;
    if (op->arg.type != BT_DOCUMENT)
        return err_set(
            c->err, ERR_BadValue,
            "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: "
            "'timestamp/date'}).",
            bval_type_name(op->arg.type));
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(&op->arg));
    while (biter_next(&iter, &elem))
        if (strcmp(elem.key, "$type") != 0)
            return err_set(c->err, ERR_BadValue, "Unrecognized $currentDate option: %s", elem.key);
    bdoc_find(bval_doc(&op->arg), "$type", &type);
    op->now_as_timestamp = bval_is_str(&type, "timestamp");
    if (!op->now_as_timestamp && !bval_is_str(&type, "date"))
        return err_set(
            c->err, ERR_BadValue,
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: "
            "'date'}}}");
    return true;
}

static bool apply_current_date(struct applier *a, const struct update_op *op, const struct bval *existing,
                               struct outcome *out)
{
    (void)existing;
    int64_t now_ms = a->update->now_ms;
    if (op->now_as_timestamp)
        set_value(out, make_timestamp(&a->scratch, (uint64_t)(now_ms / 1000) << 32 | 1));
    else
        set_value(out, make_date(&a->scratch, now_ms));
    return true;
}

static bool compile_rename(struct update_compiler *c, struct update_op *op)
{
    uint32_t len;
    const char *from = op->path;
    if (op->arg.type != BT_STRING)
        return err_set(c->err, ERR_BadValue, "The 'to' field for $rename must be a string: %s: %s", from,
                       bval_type_name(op->arg.type));
    const char *to = bval_str(&op->arg, &len);
    if (strlen(to) != len)
        return err_set(c->err, ERR_BadValue, "The 'to' field for $rename cannot contain an embedded null byte");
    if (strchr(from, '$') != NULL)
        return err_set(c->err, ERR_BadValue, "The source field for $rename may not be dynamic: %s", from);
    if (strchr(to, '$') != NULL)
        return err_set(c->err, ERR_BadValue, "The destination field for $rename may not be dynamic: %s", to);
    if (strcmp(from, to) == 0)
        return err_set(c->err, ERR_BadValue, "The source and target field for $rename must differ: %s: \"%s\"", from,
                       to);
    size_t from_len = strlen(from);
    bool above = strncmp(from, to, from_len) == 0 && to[from_len] == '.';
    bool below = strncmp(from, to, len) == 0 && from[len] == '.';
    if (above || below)
        return err_set(c->err, ERR_BadValue,
                       "The source and target field for $rename must not be on the same path: %s: \"%s\"", from, to);
    /* Two operators: the target is set, the source removed. Paths that contain each other collide like any others. */
    struct update_op *target = arena_alloc(c->arena, sizeof *target);
    *target = *op;
    target->path = to;
    target->source = from;
    if (!update_add_op(c, target))
        return false;
    return true;
}

/* Where a path leads when array positions are followed too. */
struct rename_walk {
    struct bval val;    /* BT_EOO: missing */
    bool through_array; /* an array was entered or would be */
    bool blocked;       /* a scalar, or an array without that position name, is in the way */
};

static struct rename_walk walk_path(struct bdoc doc, const char *path)
{
    struct rename_walk walk = {.val = bval_from_doc(doc)};
    for (;;) {
        size_t len = strcspn(path, ".");
        bool digits = strspn(path, "0123456789") == len;
        bool array = walk.val.type == BT_ARRAY;
        walk.through_array = walk.through_array || array;
        walk.blocked = array ? !digits : walk.val.type != BT_DOCUMENT;
        if (walk.blocked || !bdoc_find_n(bval_doc(&walk.val), path, len, &walk.val)) {
            walk.val = BVAL_MISSING;
            return walk;
        }
        if (path[len] == 0)
            return walk;
        path += len + 1;
    }
}

/* The target half sets, the source half removes; all checks are the target's. */
static bool apply_rename(struct applier *a, const struct update_op *op, const struct bval *existing,
                         struct outcome *out)
{
    if (op->source == NULL)
        return apply_unset(a, op, existing, out);
    struct rename_walk from = walk_path(a->doc, op->source);
    if (from.val.type == BT_EOO && !from.blocked)
        return true;
    if (!update_check_rename(a, op))
        return false;
    set_value(out, from.val);
    return true;
}

bool update_rename_has_source(struct applier *a, const struct update_op *op)
{
    struct rename_walk from = walk_path(a->doc, op->source);
    return from.val.type != BT_EOO || from.blocked;
}

bool update_check_rename(struct applier *a, const struct update_op *op)
{
    struct rename_walk from = walk_path(a->doc, op->source);
    struct rename_walk to = walk_path(a->doc, op->path);
    if (from.blocked)
        return err_set(a->err, ERR_PathNotViable, "Cannot follow the source path '%s' in doc with %s", op->source,
                       update_id_text(a));
    if (from.through_array)
        return err_set(a->err, ERR_BadValue,
                       "The source field cannot be an array element, '%s' in doc with %s has an array "
                       "field on its path",
                       op->source, update_id_text(a));
    if (to.through_array)
        return err_set(a->err, ERR_BadValue,
                       "The destination field cannot be an array element, '%s' in doc with %s has an "
                       "array field on its path",
                       op->path, update_id_text(a));
    return true;
}

static bool compile_bit(struct update_compiler *c, struct update_op *op)
{
    struct biter iter;
    struct belem elem;
    if (op->arg.type != BT_DOCUMENT)
        return err_set(
            c->err, ERR_BadValue,
            "The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: "
            "{and/or/xor: #}}",
            bval_type_name(op->arg.type));
    biter_init(&iter, bval_doc(&op->arg));
    bool any = false;
    while (biter_next(&iter, &elem)) {
        any = true;
        bool known = strcmp(elem.key, "and") == 0 || strcmp(elem.key, "or") == 0 || strcmp(elem.key, "xor") == 0;
        if (!known)
            return err_set(
                c->err, ERR_BadValue,
                "The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator",
                elem.key);
        if (elem.val.type != BT_INT32 && elem.val.type != BT_INT64)
            return err_set(c->err, ERR_BadValue,
                           "The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here",
                           bval_type_name(elem.val.type));
    }
    if (!any)
        return err_set(
            c->err, ERR_BadValue,
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}");
    return true;
}

static bool apply_bit(struct applier *a, const struct update_op *op, const struct bval *existing, struct outcome *out)
{
    struct biter iter;
    struct belem elem;
    struct number value = number_i32(0);
    if (existing->type == BT_INT32 || existing->type == BT_INT64)
        value = number_of(existing);
    else if (existing->type != BT_EOO)
        return err_set(a->err, ERR_BadValue,
                       "Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s",
                       update_id_text(a), op->path, bval_type_name(existing->type));
    biter_init(&iter, bval_doc(&op->arg));
    while (biter_next(&iter, &elem)) {
        struct number arg = number_of(&elem.val);
        uint8_t type = number_wider(value.type, arg.type);
        if (strcmp(elem.key, "and") == 0)
            value.i64 &= arg.i64;
        else if (strcmp(elem.key, "or") == 0)
            value.i64 |= arg.i64;
        else
            value.i64 ^= arg.i64;
        value.type = type;
    }
    set_value(out, number_value(&a->scratch, &value));
    return true;
}

const struct update_operator update_operators_value[] = {
    {"$set", NULL, apply_set, CREATES_ALWAYS, true},
    {"$setOnInsert", NULL, apply_set_on_insert, CREATES_ON_INSERT, false},
    {"$unset", NULL, apply_unset, CREATES_NEVER, false},
    {"$inc", compile_number, apply_number, CREATES_ALWAYS, true},
    {"$mul", compile_number, apply_number, CREATES_ALWAYS, true},
    {"$min", compile_min_max, apply_min_max, CREATES_ALWAYS, true},
    {"$max", compile_min_max, apply_min_max, CREATES_ALWAYS, true},
    {"$currentDate", compile_current_date, apply_current_date, CREATES_ALWAYS, true},
    {"$rename", compile_rename, apply_rename, CREATES_IF_SOURCE, false},
    {"$bit", compile_bit, apply_bit, CREATES_ALWAYS, true},
    {NULL, NULL, NULL, CREATES_NEVER, false},
};
