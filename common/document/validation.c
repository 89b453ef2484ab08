#include "document/validation.h"

#include "document/request_order.h"
#include "document/traits.h"
#include "storage/store.h"

#include <string.h>

static const char *copy_text(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_copy_str(arena, text, strlen(text));
}

/* Another version than the last look's. */
static bool take_validator(struct validation *validation, const struct collection *coll, struct arena *arena,
                           struct err *err)
{
    const struct validator *validator = &collection_traits(coll)->validator;
    validation->validator = *validator;
    validation->validator.source = (struct bdoc){
        .data = arena_copy(arena, validator->source.data, validator->source.len), .len = validator->source.len};
    return request_order_of((struct bdoc){0}, coll, arena, &validation->env.order, err) &&
           validator_compile(arena, &validation->validator, &validation->env, &validation->filter, err);
}

static bool look(struct validation *validation, const struct collection *coll, struct arena *arena, struct err *err)
{
    const struct collection_traits *traits = collection_traits(coll);
    bool needed = !validation->bypass && validator_needs_leader(&traits->validator);
    validation->many_ids = coll->many_ids;
    if (validation->time_field == NULL && traits->time_field != NULL) {
        validation->time_field = copy_text(arena, traits->time_field);
        validation->meta_field = copy_text(arena, traits->meta_field);
    }
    if (!needed)
        validation->filter = NULL;
    else if ((validation->filter == NULL || validation->validator.version != traits->validator.version) &&
             !take_validator(validation, coll, arena, err))
        return false;
    if (validation->filter != NULL)
        validation->tested = validation->validator.version;
    return true;
}

bool validation_look(struct validation *validation, struct document_engine *engine, const char *ns, int64_t now_ms,
                     struct arena *arena, struct err *err)
{
    struct store_txn *txn;
    validation->tested = validation->bypass ? VALIDATOR_BYPASSED : VALIDATOR_UNCHECKED;
    validation->many_ids = false;
    validation->env.now_ms = now_ms;
    if (!store_read_begin(document_engine_store(engine), &txn, err))
        return false;
    const struct collection *coll = catalog_find(txn, ns, strlen(ns));
    bool ok = coll == NULL || look(validation, coll, arena, err);
    if (coll == NULL)
        validation->filter = NULL;
    store_read_end(txn);
    return ok;
}

bool validation_check(const struct validation *validation, struct bdoc before, struct bdoc after, struct err *err)
{
    return validation->filter == NULL ||
           validator_check(&validation->validator, validation->filter, before, after, err);
}

/* ---- time series ---- */

static bool refuse_update(struct err *err, const char *why)
{
    return err_set(err, ERR_InvalidOptions, "Cannot perform an update on a time-series collection %s", why);
}

static bool is_meta_path(const struct validation *validation, const char *path)
{
    size_t len = validation->meta_field == NULL ? 0 : strlen(validation->meta_field);
    return len > 0 && strncmp(path, validation->meta_field, len) == 0 && (path[len] == '\0' || path[len] == '.');
}

/* Every name in the filter is the meta field or an operator. */
static bool filter_is_on_meta(const struct validation *validation, struct bdoc filter, int levels)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, filter);
    while (biter_next(&iter, &elem)) {
        bool logical = strcmp(elem.key, "$and") == 0 || strcmp(elem.key, "$or") == 0 || strcmp(elem.key, "$nor") == 0;
        if (!logical) {
            if (!is_meta_path(validation, elem.key))
                return false;
            continue;
        }
        struct biter clauses;
        struct belem clause;
        if (levels == 0 || elem.val.type != BT_ARRAY)
            return false;
        biter_init(&clauses, bval_doc(&elem.val));
        while (biter_next(&clauses, &clause)) {
            if (clause.val.type != BT_DOCUMENT || !filter_is_on_meta(validation, bval_doc(&clause.val), levels - 1))
                return false;
        }
    }
    return true;
}

static bool update_is_on_meta(const struct validation *validation, const struct bval *update)
{
    struct biter iter;
    struct belem elem;
    struct biter fields;
    struct belem field;
    if (update->type != BT_DOCUMENT)
        return false;
    biter_init(&iter, bval_doc(update));
    while (biter_next(&iter, &elem)) {
        if (elem.key[0] != '$' || elem.val.type != BT_DOCUMENT)
            return false;
        bool is_rename = strcmp(elem.key, "$rename") == 0;
        biter_init(&fields, bval_doc(&elem.val));
        while (biter_next(&fields, &field)) {
            uint32_t len;
            if (!is_meta_path(validation, field.key) ||
                (is_rename && (field.val.type != BT_STRING || !is_meta_path(validation, bval_str(&field.val, &len)))))
                return false;
        }
    }
    return true;
}

bool validation_check_update(const struct validation *validation, struct bdoc filter, const struct bval *update,
                             bool multi, bool upsert, struct err *err)
{
    if (validation->time_field == NULL || !validation->many_ids)
        return true;
    if (upsert)
        return refuse_update(err, "with upsert: true");
    if (!multi)
        return refuse_update(err, "unless multi: true");
    if (validation->meta_field == NULL)
        return refuse_update(err, "which has no metaField");
    if (!filter_is_on_meta(validation, filter, FILTER_MAX_DEPTH))
        return refuse_update(err, "when querying on a field that is not the metaField");
    return update_is_on_meta(validation, update) ||
           refuse_update(err, "when updating a field that is not the metaField");
}
