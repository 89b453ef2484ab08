#include "query/filter_print.h"

#include "query/filter_tree.h"

#include <string.h>

enum {
    PRINT_MAX_BIT_POSITIONS = 10000, /* of one $bits mask */
};

static void append_node(bson_t *out, const struct filter_node *node);
static void append_operator(bson_t *out, const struct filter_node *node);

static void append_at(bson_t *array, uint32_t index, const struct bval *value)
{
    char digits[16];
    const char *key;
    size_t len = bson_uint32_to_string(index, &key, digits, sizeof digits);
    bval_append(array, key, (int)len, value);
}

/* {$and: [...]}. */
static void append_list(bson_t *out, const char *name, const struct filter_nodes *nodes)
{
    bson_t list;
    bson_t item;
    bson_append_array_begin(out, name, -1, &list);
    for (uint32_t i = 0; i < nodes->count; i++) {
        char digits[16];
        const char *key;
        size_t len = bson_uint32_to_string(i, &key, digits, sizeof digits);
        bson_append_document_begin(&list, key, (int)len, &item);
        append_node(&item, nodes->items[i]);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(out, &list);
}

static void append_members(bson_t *out, const struct filter_members *in)
{
    bson_t list;
    uint32_t n = 0;
    BSON_APPEND_ARRAY_BEGIN(out, "$in", &list);
    for (uint32_t i = 0; i < in->count; i++)
        append_at(&list, n++, &in->values[i]);
    for (uint32_t i = 0; i < in->regex_count; i++)
        append_at(&list, n++, &in->regexes[i]->value);
    bson_append_array_end(out, &list);
}

static void append_types(bson_t *out, uint32_t types)
{
    bson_t list;
    uint32_t n = 0;
    BSON_APPEND_ARRAY_BEGIN(out, "$type", &list);
    for (int code = -1; code <= 127; code++) {
        bool printable = code == -1 || code == 127 || (code >= BT_DOUBLE && code <= BT_DECIMAL128);
        uint8_t type = code == -1 ? BT_MIN_KEY : code == 127 ? BT_MAX_KEY : (uint8_t)code;
        if (!printable || (types & filter_type_bit(type)) == 0)
            continue;
        char digits[16];
        const char *key;
        bson_uint32_to_string(n++, &key, digits, sizeof digits);
        BSON_APPEND_INT32(&list, key, code);
    }
    bson_append_array_end(out, &list);
}

static void append_bits(bson_t *out, const struct filter_node *node)
{
    static const char *const names[] = {
        [FILTER_BITS_ALL_SET] = "$bitsAllSet",
        [FILTER_BITS_ALL_CLEAR] = "$bitsAllClear",
        [FILTER_BITS_ANY_SET] = "$bitsAnySet",
        [FILTER_BITS_ANY_CLEAR] = "$bitsAnyClear",
    };
    bson_t list;
    uint32_t n = 0;
    bson_append_array_begin(out, names[node->bits.kind], -1, &list);
    for (uint32_t bit = 0; bit / 8 < node->bits.mask_len && n < PRINT_MAX_BIT_POSITIONS; bit++) {
        if ((node->bits.mask[bit / 8] >> bit % 8 & 1) == 0)
            continue;
        char digits[16];
        const char *key;
        bson_uint32_to_string(n++, &key, digits, sizeof digits);
        BSON_APPEND_INT32(&list, key, (int32_t)bit);
    }
    bson_append_array_end(out, &list);
}

static void append_regex(bson_t *out, const struct filter_node *node)
{
    const char *flags;
    const char *pattern = bval_regex(&node->value, &flags);
    BSON_APPEND_UTF8(out, "$regex", pattern);
    if (flags[0] != '\0')
        BSON_APPEND_UTF8(out, "$options", flags);
}

static void append_mod(bson_t *out, const struct filter_node *node)
{
    bson_t list;
    BSON_APPEND_ARRAY_BEGIN(out, "$mod", &list);
    BSON_APPEND_INT64(&list, "0", node->mod.divisor);
    BSON_APPEND_INT64(&list, "1", node->mod.remainder);
    bson_append_array_end(out, &list);
}

static void append_elem_match(bson_t *out, const struct filter_node *node)
{
    bson_t inner;
    BSON_APPEND_DOCUMENT_BEGIN(out, "$elemMatch", &inner);
    for (uint32_t i = 0; i < node->children.count; i++) {
        if (node->op == FILTER_ELEM_VALUE)
            append_operator(&inner, node->children.items[i]);
        else
            append_node(&inner, node->children.items[i]);
    }
    bson_append_document_end(out, &inner);
}

static bool is_tree(const struct filter_node *node)
{
    switch (node->op) {
    case FILTER_AND:
    case FILTER_OR:
    case FILTER_NOR:
    case FILTER_NOT:
    case FILTER_EXPR:
    case FILTER_SCHEMA:
    case FILTER_SAMPLE:
    case FILTER_TRUE:
    case FILTER_FALSE:
        return true;
    default:
        return false;
    }
}

static void append_compared(bson_t *out, const struct filter_node *node)
{
    static const char *const names[] = {
        [FILTER_EQ] = "$eq", [FILTER_LT] = "$lt", [FILTER_LTE] = "$lte", [FILTER_GT] = "$gt", [FILTER_GTE] = "$gte",
    };
    bval_append(out, node->implied && node->op == FILTER_EQ ? "$_internalExprEq" : names[node->op], -1, &node->value);
}

/* {$gt: 5} without its path. */
static void append_operator(bson_t *out, const struct filter_node *node)
{
    bson_t inner;
    switch (node->op) {
    case FILTER_EQ:
    case FILTER_LT:
    case FILTER_LTE:
    case FILTER_GT:
    case FILTER_GTE:
        append_compared(out, node);
        break;
    case FILTER_IN:
        append_members(out, &node->in);
        break;
    case FILTER_EXISTS:
        BSON_APPEND_BOOL(out, "$exists", true);
        break;
    case FILTER_TYPE:
        append_types(out, node->types);
        break;
    case FILTER_MOD:
        append_mod(out, node);
        break;
    case FILTER_REGEX:
        append_regex(out, node);
        break;
    case FILTER_BITS:
        append_bits(out, node);
        break;
    case FILTER_SIZE:
        BSON_APPEND_INT32(out, "$size", (int32_t)node->size);
        break;
    case FILTER_ELEM_DOCUMENT:
    case FILTER_ELEM_VALUE:
        append_elem_match(out, node);
        break;
    case FILTER_NOT:
        BSON_APPEND_DOCUMENT_BEGIN(out, "$not", &inner);
        append_operator(&inner, node->children.items[0]);
        bson_append_document_end(out, &inner);
        break;
    case FILTER_AND: /* of the operators of one $not or $elemMatch */
        for (uint32_t i = 0; i < node->children.count; i++)
            append_operator(out, node->children.items[i]);
        break;
    default:
        if (is_tree(node))
            append_node(out, node);
        break;
    }
}

/* The path that all leaves below a $not are on; NULL when it is none or several. */
static const char *path_below(const struct filter_node *node)
{
    if (!is_tree(node))
        return node->path.text;
    if (node->op != FILTER_AND && node->op != FILTER_NOT)
        return NULL;
    const char *path = NULL;
    for (uint32_t i = 0; i < node->children.count; i++) {
        const char *here = path_below(node->children.items[i]);
        if (here == NULL || (path != NULL && strcmp(path, here) != 0))
            return NULL;
        path = here;
    }
    return path;
}

static void append_leaf(bson_t *out, const char *path, const struct filter_node *node)
{
    bson_t inner;
    bson_append_document_begin(out, path, -1, &inner);
    append_operator(&inner, node);
    bson_append_document_end(out, &inner);
}

static void append_node(bson_t *out, const struct filter_node *node)
{
    switch (node->op) {
    case FILTER_AND:
        append_list(out, "$and", &node->children);
        break;
    case FILTER_OR:
        append_list(out, "$or", &node->children);
        break;
    case FILTER_NOR:
        append_list(out, "$nor", &node->children);
        break;
    case FILTER_NOT: {
        const char *path = path_below(node);
        if (path != NULL)
            append_leaf(out, path, node);
        else
            append_list(out, "$nor", &node->children);
        break;
    }
    case FILTER_EXPR:
        bval_append(out, "$expr", -1, &node->value);
        break;
    case FILTER_SCHEMA:
        bval_append(out, "$jsonSchema", -1, &node->value);
        break;
    case FILTER_SAMPLE:
        bval_append(out, "$sampleRate", -1, &node->value);
        break;
    case FILTER_TRUE:
        BSON_APPEND_INT32(out, "$alwaysTrue", 1);
        break;
    case FILTER_FALSE:
        BSON_APPEND_INT32(out, "$alwaysFalse", 1);
        break;
    default:
        append_leaf(out, node->path.text, node);
        break;
    }
}

void filter_append_parsed(const struct filter *filter, bson_t *out)
{
    if (!filter_is_empty(filter))
        append_node(out, filter->root);
}
