#include "document/view_records.h"

#include "storage/catalog.h"

#include <stdio.h>
#include <string.h>

static void views_ns(const char *ns, char out[CATALOG_NS_MAX + 1])
{
    snprintf(out, CATALOG_NS_MAX + 1, "%.*s.system.views", (int)strcspn(ns, "."), ns);
}

static bool make_collection(struct document_apply *apply, const char *ns, const uint8_t *uuid, struct err *err)
{
    uint8_t own[UUID_BYTES];
    if (catalog_find(apply->txn, ns, strlen(ns)) != NULL)
        return true;
    memcpy(own, uuid, sizeof own);
    own[0] ^= 0xff;
    return document_apply_create(apply, ns, own, (struct bdoc){0}, err);
}

static void append_option(bson_t *doc, struct bdoc options, const char *name)
{
    struct bval val;
    if (bdoc_find(options, name, &val))
        bval_append(doc, name, -1, &val);
}

bool view_records_put(struct document_apply *apply, const char *ns, const uint8_t *uuid, struct bdoc options,
                      struct err *err)
{
    char views[CATALOG_NS_MAX + 1];
    bson_t doc = BSON_INITIALIZER;
    views_ns(ns, views);
    BSON_APPEND_UTF8(&doc, "_id", ns);
    append_option(&doc, options, "viewOn");
    append_option(&doc, options, "pipeline");
    append_option(&doc, options, "collation");
    bool ok = make_collection(apply, views, uuid, err) && document_apply_put(apply, views, bdoc_of(&doc), err);
    bson_destroy(&doc);
    return ok;
}

void view_records_remove(struct document_apply *apply, const char *ns)
{
    char views[CATALOG_NS_MAX + 1];
    struct err ignored;
    bson_t id = BSON_INITIALIZER;
    struct bval val;
    views_ns(ns, views);
    BSON_APPEND_UTF8(&id, "_id", ns);
    bdoc_find(bdoc_of(&id), "_id", &val);
    bool known = document_apply_delete(apply, views, &val, &ignored);
    (void)known; /* without the collection there is nothing to remove */
    bson_destroy(&id);
}
