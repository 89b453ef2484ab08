#include "document/read_txn.h"

#include "command/fields.h"
#include "document/views.h"

#include <string.h>

bool read_txn_open_any(struct read_txn *read, struct document_engine *engine, const char *ns, struct bdoc version,
                       struct err *err)
{
    *read = (struct read_txn){.engine = engine};
    if (!store_read_begin(document_engine_store(engine), &read->txn, err))
        return false;
    const struct document_ownership *ownership = document_engine_ownership(engine);
    if (ownership != NULL) {
        struct document_access access = {.ns = ns, .version = version};
        if (!ownership->open(ownership->arg, read->txn, &access, &read->view, err)) {
            read_txn_close(read);
            return false;
        }
        read->check_visible = read->view != NULL && !ownership->all_visible(read->view);
    }
    read->coll = catalog_find(read->txn, ns, strlen(ns));
    return true;
}

bool read_txn_open(struct read_txn *read, struct document_engine *engine, const char *ns, struct bdoc version,
                   struct err *err)
{
    if (!read_txn_open_any(read, engine, ns, version, err))
        return false;
    if (read->coll == NULL || !read->coll->is_view)
        return true;
    (void)views_refuse_read(read->txn, read->coll, err);
    read_txn_close(read);
    return false;
}

void read_txn_close(struct read_txn *read)
{
    if (read->view != NULL) {
        const struct document_ownership *ownership = document_engine_ownership(read->engine);
        ownership->close(ownership->arg, read->view);
    }
    store_read_end(read->txn);
    *read = (struct read_txn){0};
}

const struct document_view *read_txn_filter_view(const struct read_txn *read)
{
    return read->check_visible ? read->view : NULL;
}

bool request_version(const struct command_ctx *ctx, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    return field_get_doc(ctx->body, "$sherdVersion", out, err);
}

static int index_of(const char *const *known, const char *name)
{
    for (int i = 0; known[i] != NULL; i++) {
        if (known[i][0] == name[0] && strcmp(known[i], name) == 0)
            return i;
    }
    return -1;
}

bool request_fields(struct bdoc body, const char *const *known, uint64_t *present, struct err *err)
{
    struct biter iter;
    struct belem elem;
    *present = 0;
    biter_init(&iter, body);
    while (biter_next(&iter, &elem)) {
        int index = index_of(known, elem.key);
        if (index >= 0)
            *present |= UINT64_C(1) << index;
        else if (!field_is_generic(elem.key))
            return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s.%s' is an unknown field.", known[0],
                           elem.key);
    }
    return true;
}

bool request_check_collation(struct bdoc doc, struct err *err)
{
    struct bdoc collation = {0};
    struct bval locale;
    if (!field_get_doc(doc, "collation", &collation, err))
        return false;
    if (collation.data == NULL || bdoc_is_empty(collation))
        return true;
    if (!bdoc_find(collation, "locale", &locale))
        return err_set(err, ERR_BadValue, "BSON field 'collation.locale' is missing but a required field");
    if (bval_is_str(&locale, "simple"))
        return true;
    return err_set(err, ERR_NotImplemented, "collation is not supported: only {locale: \"simple\"} is");
}
