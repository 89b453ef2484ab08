/* Collections between their stored form and struct collection. Stored, in the catalog database:
 *   {id: int64, uuid: binary 4, ns: string, options: {...},
 *    indexes: [{id: int64, spec: {...}, state: int32, multikey: bool}]} */
#include "base/mem.h"
#include "storage/snapshot.h"

void collection_object_unref(struct collection_object *object)
{
    if (object == NULL || atomic_fetch_sub(&object->refs, 1) != 1)
        return;
    for (uint32_t i = 0; i < object->def.index_count; i++) {
        struct index_object *index = (struct index_object *)object->def.indexes[i];
        if (index->gen_ready)
            keygen_deinit(&index->gen);
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
    struct biter iter;
    struct belem elem;
    biter_init(&iter, def->key_pattern);
    while (biter_next(&iter, &elem)) {
        struct index_field *field = &def->fields[def->field_count++];
        field->path = elem.key;
        field->path_len = elem.key_len;
        field->dotted = memchr(elem.key, '.', elem.key_len) != NULL;
        field->hashed = bval_is_str(&elem.val, "hashed");
        double direction = 1;
        if (bval_to_f64(&elem.val, &direction))
            field->descending = direction < 0;
        def->hashed |= field->hashed;
        if (field->dotted || field->hashed)
            index->simple = false;
    }
    def->is_id = def->field_count == 1 && strcmp(def->fields[0].path, "_id") == 0 && !def->hashed;
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
    def->multikey = flag(stored, "multikey");
    def->spec = copy_doc(arena, bval_doc(&spec));
    if (!bdoc_find(def->spec, "key", &val) || val.type != BT_DOCUMENT)
        return damaged(err, "an index without a key");
    def->key_pattern = bval_doc(&val);
    if (!bdoc_find(def->spec, "name", &val) || val.type != BT_STRING)
        return damaged(err, "an index without a name");
    uint32_t name_len;
    def->name = bval_str(&val, &name_len);
    parse_fields(arena, index);
    def->unique = flag(def->spec, "unique") || def->is_id;
    def->sparse = flag(def->spec, "sparse");
    if (!keygen_init(&index->gen, def->key_pattern, err))
        return false;
    index->gen_ready = true;
    if (bdoc_find(def->spec, "partialFilterExpression", &val) && val.type == BT_DOCUMENT) {
        def->partial = bval_doc(&val);
        if (store->hooks.compile == NULL)
            return damaged(err, "a partial index, but no filters here");
        def->filter = store->hooks.compile(def->partial, err);
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
    def->options = copy_doc(&object->arena, bval_doc(&options));
    return parse_indexes(store, object, bval_doc(&indexes), err);
}

bool collection_object_parse(const struct store *store, struct bdoc stored, struct collection_object **out,
                             struct err *err)
{
    struct collection_object *object = mem_alloc(sizeof *object);
    atomic_init(&object->refs, 1);
    arena_init(&object->arena);
    if (!bdoc_validate(stored.data, stored.len, BDOC_MAX_WIRE_DEPTH, err) || !parse(store, object, stored, err)) {
        collection_object_unref(object);
        return false;
    }
    *out = object;
    return true;
}
