#include "storage/index_partial.h"

#include <string.h>

static bool refused(const char *what, struct err *err)
{
    return err_set(err, ERR_CannotCreateIndex, "Expression not supported in partial index: %.60s", what);
}

static bool has_regex(const struct bval *list)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(list));
    while (biter_next(&iter, &elem)) {
        if (elem.val.type == BT_REGEX)
            return true;
    }
    return false;
}

static bool check_operator(const struct belem *op, struct err *err)
{
    static const char *const simple[] = {"$eq", "$gt", "$gte", "$lt", "$lte", "$type"};
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++) {
        if (strcmp(op->key, simple[i]) == 0)
            return true;
    }
    if (strcmp(op->key, "$exists") == 0)
        return bval_truthy(&op->val) || refused("$exists: false", err);
    if (strcmp(op->key, "$in") == 0)
        return !has_regex(&op->val) || refused("$regex", err);
    return refused(op->key, err);
}

static bool check_field(const struct bval *val, struct err *err)
{
    struct biter iter;
    struct belem op;
    if (val->type == BT_REGEX)
        return refused("$regex", err);
    if (val->type != BT_DOCUMENT)
        return true;
    biter_init(&iter, bval_doc(val));
    while (biter_next(&iter, &op)) {
        if (op.key[0] != '$' || strcmp(op.key, "$ref") == 0 || strcmp(op.key, "$id") == 0 || strcmp(op.key, "$db") == 0)
            return true; /* a document to be equal to */
        if (!check_operator(&op, err))
            return false;
    }
    return true;
}

static bool check_branches(const struct bval *list, struct err *err)
{
    struct biter iter;
    struct belem branch;
    biter_init(&iter, bval_doc(list));
    while (biter_next(&iter, &branch)) {
        if (!partial_check(bval_doc(&branch.val), err))
            return false;
    }
    return true;
}

bool partial_check(struct bdoc filter, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, filter);
    while (biter_next(&iter, &elem)) {
        bool ok;
        if (strcmp(elem.key, "$and") == 0 || strcmp(elem.key, "$or") == 0)
            ok = check_branches(&elem.val, err);
        else if (strcmp(elem.key, "$comment") == 0)
            ok = true;
        else if (elem.key[0] == '$')
            ok = refused(elem.key, err);
        else
            ok = check_field(&elem.val, err);
        if (!ok)
            return false;
    }
    return true;
}
