#include "update/update_tree.h"

#include <ctype.h>
#include <string.h>

/* The name before the first dot of a predicate, looked for inside $and, $or and $nor. */
static bool filter_name(struct update_compiler *c, struct bdoc doc, const char **name, size_t *len)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (elem.key[0] == '$' && elem.val.type == BT_ARRAY) {
            struct biter inner;
            struct belem item;
            biter_init(&inner, bval_doc(&elem.val));
            while (biter_next(&inner, &item))
                if (item.val.type == BT_DOCUMENT && !filter_name(c, bval_doc(&item.val), name, len))
                    return false;
            continue;
        }
        if (elem.key[0] == '$')
            continue;
        size_t part = strcspn(elem.key, ".");
        if (*name != NULL && (*len != part || memcmp(*name, elem.key, part) != 0))
            return err_set(c->err, ERR_FailedToParse,
                           "Error parsing array filter :: caused by :: Expected a single top-level field name, found "
                           "'%.*s' and '%.*s'",
                           (int)*len, *name, (int)part, elem.key);
        *name = elem.key;
        *len = part;
    }
    return true;
}

static bool check_name(struct update_compiler *c, const char *name, size_t len)
{
    bool good = len > 0 && islower((unsigned char)name[0]) != 0;
    for (size_t i = 1; good && i < len; i++)
        good = isalnum((unsigned char)name[i]) != 0;
    if (good)
        return true;
    return err_set(c->err, ERR_BadValue,
                   "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string "
                   "beginning with a lowercase letter, found '%.*s'",
                   (int)len, name);
}

static bool compile_filter(struct update_compiler *c, struct bdoc doc)
{
    const char *name = NULL;
    size_t len = 0;
    if (!filter_name(c, doc, &name, &len))
        return false;
    if (name == NULL)
        return err_set(c->err, ERR_FailedToParse,
                       "Cannot use an expression without a top-level field name in arrayFilters");
    if (!check_name(c, name, len))
        return false;
    if (update_find_array_filter(c->update, name, len) != NULL)
        return err_set(c->err, ERR_FailedToParse,
                       "Found multiple array filters with the same top-level field name %.*s", (int)len, name);
    struct array_filter *filter = &c->update->filters[c->update->filter_count];
    if (!filter_compile(c->arena, doc, c->options->env, &filter->filter, c->err))
        return err_prefix(c->err, "Error parsing array filter :: caused by :");
    filter->name = arena_copy_str(c->arena, name, len);
    c->update->deterministic = c->update->deterministic && filter_is_deterministic(filter->filter);
    c->update->filter_count++;
    return true;
}

bool update_compile_array_filters(struct update_compiler *c)
{
    struct bdoc list = c->options->array_filters;
    if (list.data == NULL)
        return true;
    uint32_t count = bdoc_count(list);
    if (count > UPDATE_MAX_ARRAY_FILTERS)
        return err_set(c->err, ERR_BadValue, "an update has at most %d array filters", UPDATE_MAX_ARRAY_FILTERS);
    c->update->filters = arena_alloc(c->arena, (count + 1) * sizeof *c->update->filters);
    struct biter iter;
    struct belem item;
    biter_init(&iter, list);
    while (biter_next(&iter, &item)) {
        if (item.val.type != BT_DOCUMENT)
            return err_set(c->err, ERR_TypeMismatch, "BSON field 'arrayFilters' holds a %s, expected objects",
                           bval_type_name(item.val.type));
        if (!compile_filter(c, bval_doc(&item.val)))
            return false;
    }
    return true;
}

struct array_filter *update_find_array_filter(const struct update *update, const char *name, size_t len)
{
    for (uint32_t i = 0; i < update->filter_count; i++)
        if (strlen(update->filters[i].name) == len && memcmp(update->filters[i].name, name, len) == 0)
            return &update->filters[i];
    return NULL;
}
