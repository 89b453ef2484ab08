/* Documents: $mergeObjects, $objectToArray, $arrayToObject, $getField; and $type. */
#include "base/map.h"
#include "base/random.h"
#include "bson/hash.h"
#include "expr/expr_tree.h"

#include <string.h>

/* A document under construction as a list of fields: a later one replaces the value of an earlier. */
struct fields {
    struct belem *items;
    size_t count;
    size_t capacity;
};

static void fields_set(struct arena *arena, struct fields *fields, const struct belem *elem)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (fields->items[i].key_len == elem->key_len && memcmp(fields->items[i].key, elem->key, elem->key_len) == 0) {
            fields->items[i].val = elem->val;
            return;
        }
    }
    if (fields->count == fields->capacity) {
        size_t capacity = fields->capacity == 0 ? 16 : fields->capacity * 2;
        struct belem *items = arena_alloc(arena, capacity * sizeof *items);
        if (fields->count > 0)
            memcpy(items, fields->items, fields->count * sizeof *items);
        fields->items = items;
        fields->capacity = capacity;
    }
    fields->items[fields->count++] = *elem;
}

static bool fields_document(struct expr_scope *s, const struct fields *fields, struct bval *out)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    for (size_t i = 0; i < fields->count; i++)
        write_elem(&buf, &fields->items[i]);
    write_end(&buf, start);
    if (!expr_check_size(s, buf.len)) {
        buf_deinit(&buf);
        return false;
    }
    *out = make_doc(s->scratch, &buf, BT_DOCUMENT);
    return true;
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
    while (biter_next(&iter, &elem))
        fields_set(s->scratch, fields, &elem);
    return true;
}

static bool op_merge_objects(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct fields fields = {0};
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (call->arg_count > 1 || args[i].type != BT_ARRAY) {
            if (!merge_one(s, &fields, &args[i]))
                return false;
            continue;
        }
        /* A single array stands for its elements. */
        struct expr_items items = expr_array_items(s, &args[i]);
        for (size_t j = 0; j < items.count; j++)
            if (!merge_one(s, &fields, &items.items[j]))
                return false;
    }
    return fields_document(s, &fields, out);
}

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
        struct buf buf = BUF_INIT;
        size_t start = write_begin(&buf);
        write_str(&buf, "k", elem.key, elem.key_len);
        write_value(&buf, "v", 1, &elem.val);
        write_end(&buf, start);
        items[count++] = make_doc(s->scratch, &buf, BT_DOCUMENT);
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
        struct belem field;
        uint8_t type = items.items[i].type;
        if (type != BT_DOCUMENT && type != BT_ARRAY)
            return err_set(s->err, 40398, "Unrecognised input type format for $arrayToObject: %s",
                           bval_type_name(type));
        if (type != items.items[0].type)
            return err_set(
                s->err, type == BT_ARRAY ? 40391 : 40396,
                "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects");
        if (!pair_field(s, &items.items[i], &field))
            return false;
        fields_set(s->scratch, &fields, &field);
    }
    return fields_document(s, &fields, out);
}

static bool op_get_field(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    uint32_t len;
    if (args[0].type != BT_STRING)
        return err_set(s->err, 5654602, "$getField requires 'field' to evaluate to type String, but got %s",
                       bval_type_name(args[0].type));
    const char *name = bval_str(&args[0], &len);
    struct bval input = call->args[1] != NULL ? args[1] : bval_from_doc(s->root);
    if (expr_is_nullish(&input))
        *out = input.type == BT_EOO ? BVAL_MISSING : BVAL_NULL;
    else if (input.type != BT_DOCUMENT)
        *out = BVAL_MISSING;
    else
        bdoc_find_n(bval_doc(&input), name, len, out);
    return true;
}

/* {$getField: "a"}, {$getField: {field: "a", input: ...}}. */
static bool compile_get_field(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct bval field = *operand;
    struct bval input = BVAL_MISSING;
    if (operand->type == BT_DOCUMENT && bdoc_find(bval_doc(operand), "field", &field))
        bdoc_find(bval_doc(operand), "input", &input);
    expr_reserve_args(c, call, 2);
    if (field.type == BT_STRING) {
        call->args[0] = expr_new_constant(c, &field);
    } else if (!expr_compile_arg(c, call, 0, &field)) {
        return false;
    }
    return input.type == BT_EOO || expr_compile_arg(c, call, 1, &input);
}

/* Arguments: field, input, value. The name is taken as it is: dots and dollars are part of it. */
static bool op_set_field(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct biter iter;
    struct belem elem;
    uint32_t len;
    bool done = false;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[1]))
        return true;
    if (args[1].type != BT_DOCUMENT)
        return err_set(s->err, 4161105, "%s requires 'input' to evaluate to type Object", call->op->name);
    if (args[0].type != BT_STRING)
        return err_set(s->err, 4161107, "%s requires 'field' to evaluate to a constant string", call->op->name);
    const char *name = bval_str(&args[0], &len);
    if (strlen(name) != len)
        return err_set(s->err, 9534700, "%s: 'field' cannot contain an embedded null byte", call->op->name);
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    biter_init(&iter, bval_doc(&args[1]));
    while (biter_next(&iter, &elem)) {
        bool same = !done && elem.key_len == len && memcmp(elem.key, name, len) == 0;
        done = done || same;
        write_value(&buf, elem.key, elem.key_len, same ? &args[2] : &elem.val);
    }
    if (!done)
        write_value(&buf, name, len, &args[2]);
    write_end(&buf, start);
    *out = make_doc(s->scratch, &buf, BT_DOCUMENT);
    return true;
}

/* {field: ..., input: ..., value: ...}; $unsetField is $setField with a missing value. */
static bool compile_set_field(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    static const char *const names[] = {"field", "input", "value"};
    uint32_t count = (uint32_t)call->op->tag;
    struct biter iter;
    struct belem elem;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 4161100, "%s only supports an object as its argument", call->op->name);
    expr_reserve_args(c, call, 3);
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        uint32_t place = 0;
        while (place < count && strcmp(names[place], elem.key) != 0)
            place++;
        if (place == count)
            return err_set(c->err, 4161101, "%s found an unknown argument: %s", call->op->name, elem.key);
        if (!expr_compile_arg(c, call, place, &elem.val))
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (call->args[i] == NULL)
            return err_set(c->err, 4161102, "%s requires '%s' to be specified", call->op->name, names[i]);
    if (!expr_is_constant(call->args[0]))
        return err_set(c->err, 4161106, "%s requires 'field' to evaluate to a constant", call->op->name);
    return true;
}

static bool op_bson_size(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_DOCUMENT)
        return err_set(s->err, 31393, "$bsonSize requires a document input, found: %s", bval_type_name(args[0].type));
    *out = make_i32(s->scratch, (int32_t)args[0].len);
    return true;
}

static bool op_hashed_key(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = make_i64(s->scratch, bval_hash(&args[0]));
    return true;
}

/* A number in [0, 1) out of the seed and the document: the same again when a command is repeated with its seed. */
static bool op_rand(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    struct prng prng = {call->seed ^ hash_bytes(s->root.data, s->root.len)};
    *out = make_f64(s->scratch, (double)(prng_next(&prng) >> 11) / 9007199254740992.0);
    return true;
}

static bool compile_rand(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    bool empty = (operand->type == BT_DOCUMENT || operand->type == BT_ARRAY) && bdoc_is_empty(bval_doc(operand));
    if (!empty)
        return err_set(c->err, 3040501, "$rand does not currently accept arguments");
    uint64_t seed = c->env == NULL ? 0 : c->env->random != 0 ? c->env->random : (uint64_t)c->env->now_ms;
    struct prng prng = {seed + ++c->rand_count};
    call->seed = prng_next(&prng);
    return true;
}

static bool op_type(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    const char *name = bval_type_name(args[0].type);
    *out = make_str(s->scratch, name, strlen(name));
    return true;
}

static bool op_is_number(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)s;
    (void)call;
    *out = make_bool(bval_is_number(&args[0]));
    return true;
}

const struct expr_operator expr_ops_object[] = {
    {"$mergeObjects", 0, -1, false, op_merge_objects, NULL, NULL, 0},
    {"$objectToArray", 1, 1, false, op_object_to_array, NULL, NULL, 0},
    {"$arrayToObject", 1, 1, false, op_array_to_object, NULL, NULL, 0},
    {"$getField", 1, 2, false, op_get_field, NULL, compile_get_field, 0},
    {"$setField", 3, 3, false, op_set_field, NULL, compile_set_field, 3},
    {"$unsetField", 2, 2, false, op_set_field, NULL, compile_set_field, 2},
    {"$bsonSize", 1, 1, false, op_bson_size, NULL, NULL, 0},
    {"$toHashedIndexKey", 1, 1, false, op_hashed_key, NULL, NULL, 0},
    {"$rand", 0, 0, true, op_rand, NULL, compile_rand, 0},
    {"$type", 1, 1, false, op_type, NULL, NULL, 0},
    {"$isNumber", 1, 1, false, op_is_number, NULL, NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
