#include "document/request_order.h"

#include "command/fields.h"

/* The collection's default; a reference of the caller's. */
static bool open_default(const struct collection *coll, struct collation **out, struct err *err)
{
    struct bval spec;
    *out = NULL;
    if (coll == NULL || !bdoc_find(coll->options, "collation", &spec) || spec.type != BT_DOCUMENT)
        return true;
    return collation_open_stored(bval_doc(&spec), out, err);
}

bool request_order_of(struct bdoc collation, const struct collection *coll, struct arena *arena,
                      const struct bval_order **out, struct err *err)
{
    struct collation *effective;
    bool given = collation.data != NULL && !bdoc_is_empty(collation);
    if (!(given ? collation_open(collation, &effective, err) : open_default(coll, &effective, err)))
        return false;
    collation_keep(effective, arena);
    *out = collation_order(effective);
    collation_unref(effective);
    return true;
}

bool request_order(struct bdoc request, const struct collection *coll, struct arena *arena,
                   const struct bval_order **out, struct err *err)
{
    struct bdoc collation = {0};
    return field_get_doc(request, "collation", &collation, err) && request_order_of(collation, coll, arena, out, err);
}

bool request_order_check(struct bdoc request, struct err *err)
{
    struct bdoc spec = {0};
    struct collation *collation;
    if (!field_get_doc(request, "collation", &spec, err))
        return false;
    if (spec.data == NULL || bdoc_is_empty(spec))
        return true;
    if (!collation_open(spec, &collation, err))
        return false;
    collation_unref(collation);
    return true;
}
