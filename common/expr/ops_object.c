/* Documents: $mergeObjects, $objectToArray, $arrayToObject. */
#include "base/interrupt.h"
#include "base/map.h"
#include "expr/expr_tree.h"

#include <string.h>

enum {
    FIELDS_SCANNED = 16, /* beyond that many fields they are found by hash */
};

/* A document under construction as a list of fields: a later one replaces the value of an earlier. */
struct fields {
    struct belem *items;
    size_t count;
    size_t capacity;
    struct map places; /* name -> items index + 1, once there are many */
};

static void *place_pointer(size_t index)
{
    return (void *)(uintptr_t)(index + 1);
}

static struct belem *fields_find(struct fields *fields, const struct belem *elem)
{
    if (fields->count > FIELDS_SCANNED) {
        uintptr_t place = (uintptr_t)map_get(&fields->places, elem->key, elem->key_len);
        return place == 0 ? NULL : &fields->items[place - 1];
    }
    for (size_t i = 0; i < fields->count; i++)
        if (fields->items[i].key_len == elem->key_len && memcmp(fields->items[i].key, elem->key, elem->key_len) == 0)
            return &fields->items[i];
    return NULL;
}

static void fields_set(struct arena *arena, struct fields *fields, const struct belem *elem)
{
    struct belem *older = fields_find(fields, elem);
    if (older != NULL) {
        older->val = elem->val;
        return;
    }
    if (fields->count == fields->capacity) {
        size_t capacity = fields->capacity == 0 ? FIELDS_SCANNED : fields->capacity * 2;
        struct belem *items = arena_alloc(arena, capacity * sizeof *items);
        if (fields->count > 0)
            memcpy(items, fields->items, fields->count * sizeof *items);
        fields->items = items;
        fields->capacity = capacity;
    }
    fields->items[fields->count++] = *elem;
    size_t first = fields->count == FIELDS_SCANNED + 1 ? 0 : fields->count - 1;
    for (size_t i = first; fields->count > FIELDS_SCANNED && i < fields->count; i++)
        map_put(&fields->places, fields->items[i].key, fields->items[i].key_len, place_pointer(i));
}

/* The document, after which `fields` hold nothing. */
static bool fields_document(struct expr_scope *s, struct fields *fields, struct bval *out)
{
    struct expr_name *names = arena_alloc(s->scratch, (fields->count + 1) * sizeof *names);
    struct bval *values = arena_alloc(s->scratch, (fields->count + 1) * sizeof *values);
    for (size_t i = 0; i < fields->count; i++) {
        names[i] = (struct expr_name){fields->items[i].key, fields->items[i].key_len};
        values[i] = fields->items[i].val;
    }
    map_deinit(&fields->places);
    return expr_make_document(s, names, values, fields->count, out);
}

/* The same after an error. */
static bool fields_drop(struct fields *fields)
{
    map_deinit(&fields->places);
    return false;
}

static bool merge_one(struct expr_scope *s, struct fields *fields, const struct bval *val)
{
    struct biter iter;
    struct belem elem;
    if (expr_is_nullish(val))
        return true;
    if (val->type != BT_DOCUMENT)
        return err_set(s->err, 40400, "$mergeObjects requires object inputs, but input is of type %s",
                       bval_type_name(val->type));
    biter_init(&iter, bval_doc(val));
    while (biter_next(&iter, &elem)) {
        if (!interrupt_step(s->err))
            return false;
        fields_set(s->scratch, fields, &elem);
    }
    return true;
}

static bool op_merge_objects(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct fields fields = {0};
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (call->arg_count > 1 || args[i].type != BT_ARRAY) {
            if (!merge_one(s, &fields, &args[i]))
                return fields_drop(&fields);
            continue;
        }
        /* A single array stands for its elements. */
        struct expr_items items = expr_array_items(s, &args[i]);
        for (size_t j = 0; j < items.count; j++)
            if (!merge_one(s, &fields, &items.items[j]))
                return fields_drop(&fields);
    }
    return fields_document(s, &fields, out);
}

static const struct expr_name pair_names[] = {{"k", 1}, {"v", 1}};

static bool op_object_to_array(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_DOCUMENT)
        return err_set(s->err, 40390, "$objectToArray requires a document input, found: %s",
                       bval_type_name(args[0].type));
    struct bdoc doc = bval_doc(&args[0]);
    struct bval *items = arena_alloc(s->scratch, (bdoc_count(doc) + 1) * sizeof *items);
    size_t count = 0;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        struct bval pair[2] = {make_str(s->scratch, elem.key, elem.key_len), elem.val};
        if (!expr_check_scratch(s) || !expr_make_document(s, pair_names, pair, 2, &items[count++]))
            return false;
    }
    return expr_make_array(s, items, count, out);
}

static bool key_of(struct expr_scope *s, const struct bval *key, struct belem *out)
{
    if (key->type != BT_STRING)
        return err_set(s->err, 40394,
                       "$arrayToObject requires an array of key-value pairs, where the key must be of type "
                       "string. Found key type: %s",
                       bval_type_name(key->type));
    out->key = bval_str(key, &out->key_len);
    if (strlen(out->key) != out->key_len)
        return err_set(s->err, 4940400, "Key field cannot contain an embedded null byte");
    return true;
}

static bool pair_field(struct expr_scope *s, const struct bval *item, struct belem *out)
{
    struct expr_items pair = expr_array_items(s, item);
    if (item->type == BT_ARRAY) {
        if (pair.count != 2)
            return err_set(s->err, 40397, "$arrayToObject requires an array of size 2 arrays, found array of size: %zu",
                           pair.count);
        out->val = pair.items[1];
        return key_of(s, &pair.items[0], out);
    }
    struct bval key;
    if (pair.count != 2)
        return err_set(s->err, 40392,
                       "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%zu",
                       pair.count);
    if (!bdoc_find(bval_doc(item), "k", &key) || !bdoc_find(bval_doc(item), "v", &out->val))
        return err_set(s->err, 40393,
                       "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both");
    return key_of(s, &key, out);
}

static bool add_pair(struct expr_scope *s, struct fields *fields, const struct expr_items *items, size_t i)
{
    struct belem field;
    uint8_t type = items->items[i].type;
    if (type != BT_DOCUMENT && type != BT_ARRAY)
        return err_set(s->err, 40398, "Unrecognised input type format for $arrayToObject: %s", bval_type_name(type));
    if (type != items->items[0].type)
        return err_set(s->err, type == BT_ARRAY ? 40391 : 40396,
                       "$arrayToObject requires a consistent input format. Elements must all be arrays or all be "
                       "objects");
    if (!pair_field(s, &items->items[i], &field))
        return false;
    fields_set(s->scratch, fields, &field);
    return true;
}

static bool op_array_to_object(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 40386, "$arrayToObject requires an array input, found: %s",
                       bval_type_name(args[0].type));
    struct expr_items items = expr_array_items(s, &args[0]);
    struct fields fields = {0};
    for (size_t i = 0; i < items.count; i++) {
        if (!interrupt_step(s->err) || !add_pair(s, &fields, &items, i))
            return fields_drop(&fields);
    }
    return fields_document(s, &fields, out);
}

const struct expr_operator expr_ops_object[] = {
    {"$mergeObjects", 0, -1, false, op_merge_objects, NULL, NULL, 0},
    {"$objectToArray", 1, 1, false, op_object_to_array, NULL, NULL, 0},
    {"$arrayToObject", 1, 1, false, op_array_to_object, NULL, NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
