#include "base/map.h"
#include "base/mem.h"
#include "bson/decimal.h"
#include "bson/keyenc.h"
#include "query/filter_tree.h"
#include "query/schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIQUE_COMPARED = 8, /* arrays up to this size are compared pair by pair, larger ones by hash */
};

/* Equality without regard to the order of fields, as JSON has it. */
static bool same_value(const struct bval *a, const struct bval *b, const struct bval_order *order);

static bool same_document(struct bdoc a, struct bdoc b, const struct bval_order *order)
{
    struct biter iter;
    struct belem elem;
    if (bdoc_count(a) != bdoc_count(b))
        return false;
    biter_init(&iter, a);
    while (biter_next(&iter, &elem)) {
        struct bval other;
        if (!bdoc_find_n(b, elem.key, elem.key_len, &other) || !same_value(&elem.val, &other, order))
            return false;
    }
    return true;
}

static bool same_array(struct bdoc a, struct bdoc b, const struct bval_order *order)
{
    struct biter left;
    struct biter right;
    struct belem x;
    struct belem y;
    biter_init(&left, a);
    biter_init(&right, b);
    for (;;) {
        bool has_x = biter_next(&left, &x);
        bool has_y = biter_next(&right, &y);
        if (!has_x || !has_y)
            return has_x == has_y;
        if (!same_value(&x.val, &y.val, order))
            return false;
    }
}

static bool same_value(const struct bval *a, const struct bval *b, const struct bval_order *order)
{
    if (a->type == BT_DOCUMENT && b->type == BT_DOCUMENT)
        return same_document(bval_doc(a), bval_doc(b), order);
    if (a->type == BT_ARRAY && b->type == BT_ARRAY)
        return same_array(bval_doc(a), bval_doc(b), order);
    return bval_class(a->type) == bval_class(b->type) && bval_compare_ordered(a, b, order) == 0;
}

/* Equal values have equal hashes. */
static uint64_t hash_value(const struct bval *val, const struct bval_order *order, struct buf *key)
{
    struct biter iter;
    struct belem elem;
    uint64_t hash = val->type;
    if (val->type != BT_DOCUMENT && val->type != BT_ARRAY) {
        buf_clear(key);
        keyenc_append_ordered(key, val, false, order);
        return hash_bytes(key->data, key->len);
    }
    biter_init(&iter, bval_doc(val));
    while (biter_next(&iter, &elem)) {
        uint64_t inner = hash_value(&elem.val, order, key);
        if (val->type == BT_DOCUMENT)
            hash += inner * 31 ^ hash_bytes(elem.key, elem.key_len); /* in any order */
        else
            hash = hash * 1099511628211u + inner;
    }
    return hash;
}

struct hashed {
    uint64_t hash;
    struct bval val;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *x = a;
    const struct hashed *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static struct bval find_duplicate_hashed(struct bdoc array, uint32_t count, const struct schema_test *test)
{
    struct hashed *items = mem_alloc_array(count, sizeof *items);
    struct buf key = BUF_INIT;
    struct biter iter;
    struct belem item;
    struct bval found = BVAL_MISSING;
    biter_init(&iter, array);
    for (uint32_t i = 0; i < count && biter_next(&iter, &item); i++)
        items[i] = (struct hashed){hash_value(&item.val, test->order, &key), item.val};
    qsort(items, count, sizeof *items, compare_hashed);
    for (uint32_t i = 1; i < count && found.type == BT_EOO; i++)
        for (uint32_t j = i; j > 0 && items[j - 1].hash == items[i].hash && found.type == BT_EOO; j--)
            if (same_value(&items[i].val, &items[j - 1].val, test->order))
                found = items[i].val;
    buf_deinit(&key);
    mem_free(items);
    return found;
}

struct bval schema_find_duplicate(struct bdoc array, const struct schema_test *test)
{
    struct bval items[UNIQUE_COMPARED];
    struct biter iter;
    struct belem item;
    uint32_t count = bdoc_count(array);
    if (count > UNIQUE_COMPARED)
        return find_duplicate_hashed(array, count, test);
    biter_init(&iter, array);
    for (uint32_t i = 0; biter_next(&iter, &item); i++) {
        for (uint32_t j = 0; j < i; j++)
            if (same_value(&items[j], &item.val, test->order))
                return item.val;
        items[i] = item.val;
    }
    return BVAL_MISSING;
}

bool schema_type_matches(const struct schema *schema, const struct bval *val)
{
    return schema->types == 0 || (schema->types & filter_type_bit(val->type)) != 0;
}

bool schema_enum_matches(const struct schema *schema, const struct bval *val, const struct schema_test *test)
{
    struct biter iter;
    struct belem item;
    if (schema->values.type == BT_EOO)
        return true;
    biter_init(&iter, bval_doc(&schema->values));
    while (biter_next(&iter, &item))
        if (same_value(&item.val, val, test->order))
            return true;
    return false;
}

static bool is_nan(const struct bval *val)
{
    double number;
    return bval_to_f64(val, &number) && isnan(number);
}

bool schema_minimum_matches(const struct schema *schema, const struct bval *val)
{
    if (schema->minimum.type == BT_EOO)
        return true;
    int order = bval_compare(val, &schema->minimum);
    if (is_nan(val) != is_nan(&schema->minimum))
        return false;
    return schema->exclusive_minimum ? order > 0 : order >= 0;
}

bool schema_maximum_matches(const struct schema *schema, const struct bval *val)
{
    if (schema->maximum.type == BT_EOO)
        return true;
    int order = bval_compare(val, &schema->maximum);
    if (is_nan(val) != is_nan(&schema->maximum))
        return false;
    return schema->exclusive_maximum ? order < 0 : order <= 0;
}

bool schema_multiple_matches(const struct schema *schema, const struct bval *val)
{
    if (schema->multiple_of.type == BT_EOO)
        return true;
    return decimal_is_zero(decimal_mod(decimal_from_bval(val), decimal_from_bval(&schema->multiple_of)));
}

bool schema_length_matches(const struct bval *val, int64_t least, int64_t most)
{
    uint32_t len;
    int64_t points = 0;
    if (least < 0 && most < 0)
        return true;
    const char *text = bval_str(val, &len);
    for (uint32_t i = 0; i < len; i++)
        points += ((unsigned char)text[i] & 0xC0) != 0x80;
    return points >= least && (most < 0 || points <= most);
}

bool schema_regex_matches(const struct regex *regex, const char *text, size_t len, struct schema_test *test)
{
    struct err ignored;
    if (test->failed || !regex_step(&ignored)) {
        test->failed = true;
        return false;
    }
    enum regex_outcome outcome = regex_match(regex, text, len);
    test->failed = test->failed || outcome == REGEX_LIMIT;
    return outcome == REGEX_MATCH;
}

static bool string_matches(const struct schema *schema, const struct bval *val, struct schema_test *test)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    return schema_length_matches(val, schema->min_length, schema->max_length) &&
           (schema->pattern == NULL || schema_regex_matches(schema->pattern, text, len, test));
}

const struct schema *schema_of_item(const struct schema *schema, uint32_t place, bool *refused)
{
    *refused = false;
    if (!schema->has_item_list)
        return schema->items;
    if (place < schema->item_list.count)
        return schema->item_list.items[place];
    *refused = schema->no_additional_items;
    return schema->additional_items;
}

static bool array_matches(const struct schema *schema, struct bdoc array, struct schema_test *test)
{
    struct biter iter;
    struct belem item;
    bool each = schema->items != NULL || schema->has_item_list;
    int64_t count = schema->min_items >= 0 || schema->max_items >= 0 ? bdoc_count(array) : 0;
    if (count < schema->min_items || (schema->max_items >= 0 && count > schema->max_items))
        return false;
    biter_init(&iter, array);
    for (uint32_t i = 0; each && biter_next(&iter, &item); i++) {
        bool refused;
        const struct schema *inner = schema_of_item(schema, i, &refused);
        if (refused || (inner != NULL && !schema_matches(inner, &item.val, test)))
            return false;
    }
    return !schema->unique_items || schema_find_duplicate(array, test).type == BT_EOO;
}

const struct schema *schema_find_property(const struct schema *schema, const char *name, size_t len)
{
    for (uint32_t i = 0; i < schema->property_count; i++) {
        const struct schema_property *property = &schema->properties[i];
        if (property->name.len == len && memcmp(property->name.text, name, len) == 0)
            return property->schema;
    }
    return NULL;
}

static bool property_matches(const struct schema *schema, const struct belem *elem, struct schema_test *test)
{
    const struct schema *own = schema_find_property(schema, elem->key, elem->key_len);
    bool named = own != NULL;
    if (own != NULL && !schema_matches(own, &elem->val, test))
        return false;
    for (uint32_t i = 0; i < schema->pattern_count; i++) {
        const struct schema_pattern *pattern = &schema->patterns[i];
        if (!schema_regex_matches(pattern->regex, elem->key, elem->key_len, test))
            continue;
        named = true;
        if (!schema_matches(pattern->schema, &elem->val, test))
            return false;
    }
    if (named)
        return true;
    if (schema->no_additional_properties)
        return false;
    return schema->additional_properties == NULL || schema_matches(schema->additional_properties, &elem->val, test);
}

static bool has_names(const struct schema_names *names, struct bdoc doc)
{
    struct bval ignored;
    for (uint32_t i = 0; i < names->count; i++)
        if (!bdoc_find_n(doc, names->items[i].text, names->items[i].len, &ignored))
            return false;
    return true;
}

static bool dependencies_match(const struct schema *schema, struct bdoc doc, struct schema_test *test)
{
    struct bval ignored;
    for (uint32_t i = 0; i < schema->dependency_count; i++) {
        const struct schema_dependency *dependency = &schema->dependencies[i];
        if (!bdoc_find_n(doc, dependency->name.text, dependency->name.len, &ignored))
            continue;
        if (dependency->schema != NULL ? !schema_matches_document(dependency->schema, doc, test)
                                       : !has_names(&dependency->names, doc))
            return false;
    }
    return true;
}

static bool object_matches(const struct schema *schema, struct bdoc doc, struct schema_test *test)
{
    struct biter iter;
    struct belem elem;
    bool each = schema->property_count > 0 || schema->pattern_count > 0 || schema->no_additional_properties ||
                schema->additional_properties != NULL;
    int64_t count = schema->min_properties >= 0 || schema->max_properties >= 0 ? bdoc_count(doc) : 0;
    if (count < schema->min_properties || (schema->max_properties >= 0 && count > schema->max_properties))
        return false;
    if (!has_names(&schema->required, doc))
        return false;
    biter_init(&iter, doc);
    while (each && biter_next(&iter, &elem))
        if (!property_matches(schema, &elem, test))
            return false;
    return dependencies_match(schema, doc, test);
}

static uint32_t count_matching(const struct schema_list *list, const struct bval *val, struct schema_test *test)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += schema_matches(list->items[i], val, test) ? 1 : 0;
    return count;
}

static bool tree_matches(const struct schema *schema, const struct bval *val, struct schema_test *test)
{
    if (schema->all_of.count > 0 && count_matching(&schema->all_of, val, test) != schema->all_of.count)
        return false;
    if (schema->any_of.count > 0 && count_matching(&schema->any_of, val, test) == 0)
        return false;
    if (schema->one_of.count > 0 && count_matching(&schema->one_of, val, test) != 1)
        return false;
    return schema->not_schema == NULL || !schema_matches(schema->not_schema, val, test);
}

bool schema_matches(const struct schema *schema, const struct bval *val, struct schema_test *test)
{
    bool ok = schema_type_matches(schema, val) && schema_enum_matches(schema, val, test);
    if (ok && bval_is_number(val))
        ok = schema_minimum_matches(schema, val) && schema_maximum_matches(schema, val) &&
             schema_multiple_matches(schema, val);
    else if (ok && val->type == BT_STRING)
        ok = string_matches(schema, val, test);
    else if (ok && val->type == BT_ARRAY)
        ok = array_matches(schema, bval_doc(val), test);
    else if (ok && val->type == BT_DOCUMENT)
        ok = object_matches(schema, bval_doc(val), test);
    return ok && tree_matches(schema, val, test);
}

bool schema_matches_document(const struct schema *schema, struct bdoc doc, struct schema_test *test)
{
    struct bval val = bval_from_doc(doc);
    return schema_matches(schema, &val, test);
}
