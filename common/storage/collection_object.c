/* Collections between their stored form and struct collection. Stored, in the catalog database:
 *   {id: int64, uuid: binary 4, ns: string, options: {...},
 *    indexes: [{id: int64, spec: {...}, state: int32, multikey: bool, paths: [int64 for each field],
 *     buildGroup: int64}]}; paths only when multikey, buildGroup only while several are built together. */
#include "base/mem.h"
#include "collation/collation.h"
#include "storage/snapshot.h"

enum { ERR_INCOMPATIBLE_COLLATION = 161 };

void collection_object_unref(struct collection_object *object)
{
    if (object == NULL || atomic_fetch_sub(&object->refs, 1) != 1)
        return;
    if (object->def.traits != NULL)
        object->store->collection_hooks.free(object->def.traits);
    for (uint32_t i = 0; i < object->def.index_count; i++) {
        struct index_object *index = (struct index_object *)object->def.indexes[i];
        if (index->gen_ready)
            keygen_deinit(&index->gen);
        collation_unref(index->collation);
        if (index->def.filter != NULL)
            index->store->hooks.free(index->def.filter);
    }
    arena_deinit(&object->arena);
    mem_free(object);
}

static bool damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_InvalidBSON, "the catalog is damaged: %s", what);
}

static struct bdoc copy_doc(struct arena *arena, struct bdoc doc)
{
    return (struct bdoc){arena_copy(arena, doc.data, doc.len), doc.len};
}

static bool find_u32(struct bdoc doc, const char *name, uint32_t *out)
{
    struct bval val;
    int64_t number;
    if (!bdoc_find(doc, name, &val) || !bval_to_i64(&val, &number) || number < 0 || number > UINT32_MAX)
        return false;
    *out = (uint32_t)number;
    return true;
}

static bool flag(struct bdoc doc, const char *name)
{
    struct bval val;
    return bdoc_find(doc, name, &val) && bval_truthy(&val);
}

static void parse_fields(struct arena *arena, struct index_object *index)
{
    struct index_def *def = &index->def;
    def->fields = arena_alloc(arena, (bdoc_count(def->key_pattern) + 1u) * sizeof *def->fields);
    index->simple = true;
    double only_direction = 0; /* {_id: 2} is an index like any other */
    struct biter iter;
    struct belem elem;
    biter_init(&iter, def->key_pattern);
    while (biter_next(&iter, &elem)) {
        struct index_field *field = &def->fields[def->field_count++];
        field->path = elem.key;
        field->path_len = elem.key_len;
        field->dotted = memchr(elem.key, '.', elem.key_len) != NULL;
        field->hashed = bval_is_str(&elem.val, "hashed");
        field->wildcard = wildcard_is_field(elem.key, elem.key_len);
        if (field->wildcard) {
            def->wildcard = true;
            def->wildcard_field = def->field_count - 1;
        }
        double direction = 1;
        if (bval_to_f64(&elem.val, &direction)) {
            field->descending = direction < 0;
            only_direction = direction;
        }
        def->hashed |= field->hashed;
        if (field->dotted || field->hashed || field->wildcard)
            index->simple = false;
    }
    def->is_id = def->field_count == 1 && strcmp(def->fields[0].path, "_id") == 0 && only_direction == 1;
}

static void parse_multikey(struct index_def *def, struct bdoc stored)
{
    struct bval paths;
    struct biter iter;
    struct belem elem;
    def->multikey = flag(stored, "multikey");
    if (!bdoc_find(stored, "paths", &paths) || paths.type != BT_ARRAY)
        return;
    biter_init(&iter, bval_doc(&paths));
    for (uint32_t i = 0; i < def->field_count && biter_next(&iter, &elem); i++) {
        if (elem.val.type == BT_INT64)
            def->fields[i].multikey = (uint64_t)bval_i64(&elem.val);
    }
}

static void parse_flags(struct index_def *def)
{
    struct bval val;
    double seconds;
    def->unique = flag(def->spec, "unique") || def->is_id;
    def->prepare_unique = flag(def->spec, "prepareUnique");
    def->sparse = flag(def->spec, "sparse");
    def->hidden = flag(def->spec, "hidden");
    def->ttl = bdoc_find(def->spec, "expireAfterSeconds", &val) && bval_to_f64(&val, &seconds) && seconds >= 0 &&
               seconds <= INT32_MAX;
    def->expire_after_seconds = def->ttl ? (int64_t)seconds : 0;
}

/* Keys were made by the ICU of this version: another one may order strings differently. */
static bool parse_collation(struct index_object *index, struct err *err)
{
    struct bval val;
    struct bval version;
    if (!bdoc_find(index->def.spec, "collation", &val) || val.type != BT_DOCUMENT)
        return true;
    if (!bdoc_find(bval_doc(&val), "version", &version) || !bval_is_str(&version, collation_version()))
        return err_set(err, ERR_INCOMPATIBLE_COLLATION,
                       "the index %.100s was built with another version of ICU's collations than this program's (%s): "
                       "start it with the libicu of before, or copy the data through a dump",
                       index->def.name, collation_version());
    if (!collation_open_stored(bval_doc(&val), &index->collation, err))
        return false;
    index->def.order = collation_order(index->collation);
    return true;
}

static void parse_wildcard(struct arena *arena, struct index_object *index)
{
    const struct index_def *def = &index->def;
    struct bval val;
    if (!def->wildcard)
        return;
    const struct index_field *field = &def->fields[def->wildcard_field];
    bool projected = bdoc_find(def->spec, "wildcardProjection", &val) && val.type == BT_DOCUMENT;
    wildcard_parse(arena, field->path, field->path_len, projected ? bval_doc(&val) : (struct bdoc){0},
                   &index->wildcard);
}

static bool parse_index(const struct store *store, struct arena *arena, struct bdoc stored, struct index_object *index,
                        struct err *err)
{
    struct index_def *def = &index->def;
    struct bval spec;
    struct bval val;
    uint32_t state = 0;
    if (!find_u32(stored, "id", &def->id) || !find_u32(stored, "state", &state) || state > INDEX_FAILED ||
        !bdoc_find(stored, "spec", &spec) || spec.type != BT_DOCUMENT)
        return damaged(err, "an index");
    index->store = store;
    def->state = (enum index_state)state;
    def->spec = copy_doc(arena, bval_doc(&spec));
    if (!bdoc_find(def->spec, "key", &val) || val.type != BT_DOCUMENT)
        return damaged(err, "an index without a key");
    def->key_pattern = bval_doc(&val);
    if (!bdoc_find(def->spec, "name", &val) || val.type != BT_STRING)
        return damaged(err, "an index without a name");
    uint32_t name_len;
    def->name = bval_str(&val, &name_len);
    parse_fields(arena, index);
    parse_flags(def);
    parse_multikey(def, stored);
    if (!find_u32(stored, "buildGroup", &def->build_group))
        def->build_group = 0;
    parse_wildcard(arena, index);
    if (!parse_collation(index, err) || !keygen_init(&index->gen, def->key_pattern, def->order, err))
        return false;
    index->gen_ready = true;
    if (bdoc_find(def->spec, "partialFilterExpression", &val) && val.type == BT_DOCUMENT) {
        def->partial = bval_doc(&val);
        if (store->hooks.compile == NULL)
            return damaged(err, "a partial index, but no filters here");
        def->filter = store->hooks.compile(def->partial, def->order, err);
        return def->filter != NULL;
    }
    return true;
}

static bool parse_indexes(const struct store *store, struct collection_object *object, struct bdoc list,
                          struct err *err)
{
    uint32_t count = bdoc_count(list);
    struct index_def **indexes = arena_alloc(&object->arena, (count + 1u) * sizeof(void *));
    object->def.indexes = indexes;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, list);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return damaged(err, "the list of indexes");
        struct index_object *index = arena_alloc(&object->arena, sizeof *index);
        indexes[object->def.index_count++] = &index->def;
        if (!parse_index(store, &object->arena, bval_doc(&elem.val), index, err))
            return false;
    }
    return true;
}

static void read_options(const struct store *store, struct collection_object *object, struct bdoc options)
{
    struct collection *def = &object->def;
    struct bval val;
    def->options = copy_doc(&object->arena, options);
    def->is_view = bdoc_find(options, "viewOn", &val);
    def->capped = flag(options, "capped");
    def->many_ids = bdoc_find(options, "timeseries", &val);
    def->clustered = bdoc_find(options, "clusteredIndex", &val);
    if (store->collection_hooks.make != NULL)
        def->traits = store->collection_hooks.make(def->options);
}

static bool parse(const struct store *store, struct collection_object *object, struct bdoc stored, struct err *err)
{
    struct collection *def = &object->def;
    struct bval uuid;
    struct bval ns;
    struct bval options;
    struct bval indexes;
    if (!find_u32(stored, "id", &def->id) || !bdoc_find(stored, "uuid", &uuid) || uuid.type != BT_BINARY ||
        !bdoc_find(stored, "ns", &ns) || ns.type != BT_STRING || !bdoc_find(stored, "options", &options) ||
        options.type != BT_DOCUMENT || !bdoc_find(stored, "indexes", &indexes) || indexes.type != BT_ARRAY)
        return damaged(err, "a collection");
    uint8_t subtype;
    uint32_t len;
    const uint8_t *bytes = bval_binary(&uuid, &subtype, &len);
    if (len != UUID_BYTES)
        return damaged(err, "a collection's uuid");
    memcpy(def->uuid, bytes, UUID_BYTES);
    const char *text = bval_str(&ns, &len);
    def->ns = arena_copy_str(&object->arena, text, len);
    def->ns_len = len;
    const char *dot = strchr(def->ns, '.');
    if (dot == NULL)
        return damaged(err, "a collection's name");
    def->db_len = (uint32_t)(dot - def->ns);
    def->name = dot + 1;
    read_options(store, object, bval_doc(&options));
    if (!parse_indexes(store, object, bval_doc(&indexes), err))
        return false;
    if (def->many_ids && def->index_count > 0)
        def->indexes[0]->unique = false;
    return true;
}

bool collection_object_parse(const struct store *store, struct bdoc stored, struct collection_object **out,
                             struct err *err)
{
    struct collection_object *object = mem_alloc(sizeof *object);
    atomic_init(&object->refs, 1);
    arena_init(&object->arena);
    object->store = store;
    if (!bdoc_validate(stored.data, stored.len, BDOC_MAX_WIRE_DEPTH, err) || !parse(store, object, stored, err)) {
        collection_object_unref(object);
        return false;
    }
    *out = object;
    return true;
}
