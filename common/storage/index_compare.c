/* Comparing specifications of indexes, and finding indexes by their keys. */
#include "bson/compare.h"
#include "storage/catalog.h"

static struct bval option(struct bdoc spec, const char *name)
{
    struct bval val;
    bdoc_find(spec, name, &val);
    return val;
}

static bool same_option(struct bdoc a, struct bdoc b, const char *name)
{
    struct bval left = option(a, name);
    struct bval right = option(b, name);
    return (left.type == BT_EOO) == (right.type == BT_EOO) && (left.type == BT_EOO || bval_equal(&left, &right));
}

static bool same_options(struct bdoc a, struct bdoc b, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (!same_option(a, b, *names))
            return false;
    }
    return true;
}

/* What makes two indexes on the same fields different indexes. */
static bool same_signature(struct bdoc a, struct bdoc b)
{
    static const char *const names[] = {
        "key", "collation", "partialFilterExpression", "unique", "sparse", "wildcardProjection", NULL};
    return same_options(a, b, names);
}

static bool same_rest(struct bdoc a, struct bdoc b)
{
    static const char *const names[] = {"expireAfterSeconds", "hidden", "prepareUnique", "storageEngine", NULL};
    return same_options(a, b, names);
}

static bool same_name(const struct index_def *index, struct bdoc spec)
{
    return same_option(index->spec, spec, "name");
}

static const struct index_def *find_signature(const struct collection *coll, struct bdoc spec)
{
    for (uint32_t i = 0; i < coll->index_count; i++) {
        if (same_signature(coll->indexes[i]->spec, spec))
            return coll->indexes[i];
    }
    return NULL;
}

/* {_id: 1}: whatever else it says of itself, it is the one that is there. Its collation must be the collection's. */
static enum index_compare compare_id(const struct collection *coll, struct bdoc spec, const struct index_def **existing,
                                     struct err *err)
{
    const struct index_def *index = coll->indexes[0];
    bool wants_cluster = bdoc_has(spec, "clustered");
    if (wants_cluster && !bdoc_has(index->spec, "clustered")) {
        err_set(err, 6243700,
                "Cannot create an index with the option 'clustered' on a collection that isn't clustered");
        return INDEX_CONFLICT;
    }
    if (!same_option(index->spec, spec, "collation")) {
        err_set(err, ERR_BadValue, "The _id index must have the same collation as the collection");
        return INDEX_CONFLICT;
    }
    if (existing != NULL)
        *existing = index;
    return INDEX_EXISTS;
}

static bool is_id_key(struct bdoc spec)
{
    struct bval key = option(spec, "key");
    struct bval id;
    double direction;
    return key.type == BT_DOCUMENT && bdoc_count(bval_doc(&key)) == 1 && bdoc_find(bval_doc(&key), "_id", &id) &&
           bval_to_f64(&id, &direction) && direction == 1;
}

enum index_compare collection_compare_index(const struct collection *coll, struct bdoc normal_spec,
                                            const struct index_def **existing, struct err *err)
{
    if (is_id_key(normal_spec))
        return compare_id(coll, normal_spec, existing, err);
    const struct index_def *twin = find_signature(coll, normal_spec);
    if (twin != NULL && same_name(twin, normal_spec) && same_rest(twin->spec, normal_spec)) {
        if (existing != NULL)
            *existing = twin;
        return INDEX_EXISTS;
    }
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        if (index == twin || !same_name(index, normal_spec))
            continue;
        err_set(err, ERR_IndexKeySpecsConflict,
                "An existing index has the same name as the requested index. When index names are not specified, they "
                "are auto generated and can cause conflicts. Please refer to our documentation. Name: %.100s",
                index->name);
        return INDEX_CONFLICT;
    }
    if (twin == NULL)
        return INDEX_IS_NEW;
    if (same_rest(twin->spec, normal_spec))
        err_set(err, ERR_IndexOptionsConflict, "Index already exists with a different name: %.100s", twin->name);
    else
        err_set(err, ERR_IndexOptionsConflict,
                "An equivalent index already exists with %s name %.100s and different "
                "options",
                same_name(twin, normal_spec) ? "the same" : "a different", twin->name);
    return INDEX_CONFLICT;
}

static bool has_key(const struct index_def *index, struct bdoc key_pattern)
{
    struct bval wanted = bval_from_doc(key_pattern);
    struct bval key = bval_from_doc(index->key_pattern);
    return bval_equal(&key, &wanted);
}

const struct index_def *collection_find_index_key(const struct collection *coll, struct bdoc key_pattern)
{
    for (uint32_t i = 0; i < coll->index_count; i++) {
        if (has_key(coll->indexes[i], key_pattern))
            return coll->indexes[i];
    }
    return NULL;
}

uint32_t collection_count_index_key(const struct collection *coll, struct bdoc key_pattern)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < coll->index_count; i++)
        count += has_key(coll->indexes[i], key_pattern);
    return count;
}
