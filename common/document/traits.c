#include "document/traits.h"

#include "base/map.h"
#include "base/mem.h"
#include "collation/collation.h"

#include <string.h>

/* What the hook makes: the traits and what they point at. */
struct traits_object {
    struct collection_traits traits; /* first: struct collection's pointer is one of these */
    struct expr_env env;             /* of the validator */
    struct collation *collation;     /* of the collection; NULL: simple */
    struct arena arena;
};

static struct bdoc find_doc(struct bdoc doc, const char *name)
{
    struct bval val;
    bool found = bdoc_find(doc, name, &val) && (val.type == BT_DOCUMENT || val.type == BT_ARRAY);
    return found ? bval_doc(&val) : (struct bdoc){0};
}

static const char *find_str(struct bdoc doc, const char *name)
{
    struct bval val;
    uint32_t len;
    return doc.data != NULL && bdoc_find(doc, name, &val) && val.type == BT_STRING ? bval_str(&val, &len) : NULL;
}

static int64_t find_i64(struct bdoc doc, const char *name, int64_t otherwise)
{
    struct bval val;
    int64_t number;
    return bdoc_find(doc, name, &val) && bval_to_i64(&val, &number) ? number : otherwise;
}

/* The validator compares strings as the collection does. */
static bool compile_validator(struct traits_object *object, struct filter **filter)
{
    const struct collection_traits *traits = &object->traits;
    struct err ignored;
    if (traits->collation.data != NULL && !collation_open_stored(traits->collation, &object->collation, &ignored))
        return false;
    object->env.order = collation_order(object->collation);
    return filter_compile(&object->arena, traits->validator.source, &object->env, filter, &ignored);
}

static void read_validator(struct traits_object *object, struct bdoc options)
{
    struct validator *out = &object->traits.validator;
    const char *level = find_str(options, "validationLevel");
    const char *action = find_str(options, "validationAction");
    struct filter *filter = NULL;
    out->source = find_doc(options, "validator");
    if (level != NULL && !validator_level_parse(level, &out->level))
        out->level = VALIDATOR_STRICT;
    if (action != NULL && !validator_action_parse(action, &out->action))
        out->action = VALIDATOR_ERROR;
    if (out->source.data == NULL)
        return;
    out->version = hash_bytes(out->source.data, out->source.len) ^ ((uint64_t)out->level << 8) ^ (uint64_t)out->action;
    if (out->version <= VALIDATOR_BYPASSED)
        out->version = VALIDATOR_BYPASSED + 1;
    if (!compile_validator(object, &filter))
        return;
    out->deterministic = filter_is_deterministic(filter);
    if (out->deterministic)
        out->filter = filter;
}

static void read_kind(struct bdoc options, struct collection_traits *out)
{
    struct bdoc timeseries = find_doc(options, "timeseries");
    out->view_on = find_str(options, "viewOn");
    out->pipeline = find_doc(options, "pipeline");
    out->time_field = find_str(timeseries, "timeField");
    out->meta_field = find_str(timeseries, "metaField");
    if (out->view_on != NULL)
        out->kind = COLLECTION_VIEW;
    else if (out->time_field != NULL)
        out->kind = COLLECTION_TIMESERIES;
}

static void *make(struct bdoc options)
{
    struct traits_object *object = mem_alloc(sizeof *object);
    struct collection_traits *traits = &object->traits;
    struct bval val;
    arena_init(&object->arena);
    read_kind(options, traits);
    traits->capped = bdoc_find(options, "capped", &val) && bval_truthy(&val);
    traits->capped_bytes = traits->capped ? find_i64(options, "size", 0) : 0;
    traits->capped_docs = traits->capped ? find_i64(options, "max", 0) : 0;
    traits->clustered = bdoc_has(options, "clusteredIndex");
    traits->expire_after = find_i64(options, "expireAfterSeconds", -1);
    traits->collation = find_doc(options, "collation");
    read_validator(object, options);
    return traits;
}

static void free_traits(void *traits)
{
    struct traits_object *object = traits;
    arena_deinit(&object->arena);
    collation_unref(object->collation);
    mem_free(object);
}

const struct collection_traits *collection_traits(const struct collection *coll)
{
    static const struct collection_traits plain = {.expire_after = -1};
    return coll->traits != NULL ? coll->traits : &plain;
}

struct store_collection_hooks traits_store_hooks(void)
{
    return (struct store_collection_hooks){.make = make, .free = free_traits};
}
