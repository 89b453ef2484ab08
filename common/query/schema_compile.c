#include "query/schema.h"

#include "query/filter_tree.h"

#include <string.h>

struct compiler {
    struct arena *arena;
    struct err *err;
    struct schema_facts *facts;
    int depth;
};

typedef bool keyword_fn(struct compiler *c, struct schema *schema, const struct belem *elem);

static bool must_be(struct compiler *c, const struct belem *elem, const char *what)
{
    return err_set(c->err, ERR_TypeMismatch, "$jsonSchema keyword '%s' must be %s", elem->key, what);
}

static struct schema *compile_schema(struct compiler *c, const struct bval *spec, const char *keyword);

static void free_regex(void *arg)
{
    regex_free(arg);
}

static bool compile_regex(struct compiler *c, const char *pattern, struct regex **out)
{
    if (!regex_compile(pattern, "", out, c->err)) {
        c->err->code = ERR_BadValue;
        return false;
    }
    arena_on_deinit(c->arena, free_regex, *out);
    c->facts->has_regex = true;
    return true;
}

/* A bit set of types: one name or a list of names without repetition. */
static bool add_type(struct compiler *c, const struct belem *elem, const struct bval *name, uint32_t *types)
{
    static const char *const json[] = {"object", "array", "number", "boolean", "string", "null"};
    static const uint8_t json_types[] = {BT_DOCUMENT, BT_ARRAY, 0, BT_BOOL, BT_STRING, BT_NULL};
    bool is_bson = strcmp(elem->key, "bsonType") == 0;
    uint32_t bits = 0;
    if (name->type != BT_STRING)
        return must_be(c, elem, "a string or an array of strings");
    if (bval_is_str(name, "number"))
        bits = filter_type_bit(BT_DOUBLE) | filter_type_bit(BT_INT32) | filter_type_bit(BT_INT64) |
               filter_type_bit(BT_DECIMAL128);
    for (size_t i = 0; !is_bson && bits == 0 && i < sizeof json / sizeof *json; i++)
        if (bval_is_str(name, json[i]))
            bits = filter_type_bit(json_types[i]);
    for (unsigned type = 1; is_bson && bits == 0 && type < 256; type++) {
        bool exists = type <= BT_DECIMAL128 || type == BT_MIN_KEY || type == BT_MAX_KEY;
        if (exists && bval_is_str(name, bval_type_name((uint8_t)type)))
            bits = filter_type_bit((uint8_t)type);
    }
    uint32_t len;
    if (bits == 0)
        return err_set(c->err, ERR_BadValue, "unknown type name for $jsonSchema keyword '%s': %.64s", elem->key,
                       bval_str(name, &len));
    if ((*types & bits) == bits)
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword '%s' has duplicate value", elem->key);
    *types |= bits;
    return true;
}

static bool keyword_type(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    struct biter iter;
    struct belem item;
    if (schema->types != 0)
        return err_set(c->err, ERR_FailedToParse, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
    if (elem->val.type != BT_ARRAY)
        return add_type(c, elem, &elem->val, &schema->types);
    if (bdoc_is_empty(bval_doc(&elem->val)))
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword '%s' must name at least one type", elem->key);
    biter_init(&iter, bval_doc(&elem->val));
    while (biter_next(&iter, &item))
        if (!add_type(c, elem, &item.val, &schema->types))
            return false;
    return true;
}

static bool keyword_enum(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    if (elem->val.type != BT_ARRAY)
        return must_be(c, elem, "an array");
    struct bdoc list = bval_doc(&elem->val);
    if (bdoc_is_empty(list))
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array");
    struct schema_test test = {0};
    if (schema_find_duplicate(list, &test).type != BT_EOO)
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword 'enum' array cannot contain duplicate values");
    schema->values = elem->val;
    c->facts->has_order = c->facts->has_order || bval_order_concerns(&elem->val);
    return true;
}

static bool keyword_number(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    if (!bval_is_number(&elem->val))
        return must_be(c, elem, "a number");
    if (strcmp(elem->key, "minimum") == 0) {
        schema->minimum = elem->val;
    } else if (strcmp(elem->key, "maximum") == 0) {
        schema->maximum = elem->val;
    } else {
        double number;
        if (!bval_to_f64(&elem->val, &number) || !(number > 0))
            return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword 'multipleOf' must have a positive value");
        schema->multiple_of = elem->val;
    }
    return true;
}

static bool keyword_flag(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    if (elem->val.type != BT_BOOL)
        return must_be(c, elem, "a boolean");
    bool value = bval_bool(&elem->val);
    if (strcmp(elem->key, "uniqueItems") == 0) {
        schema->unique_items = value;
        c->facts->has_order = c->facts->has_order || value;
        return true;
    }
    bool minimum = strcmp(elem->key, "exclusiveMinimum") == 0;
    if (!bdoc_has(schema->source, minimum ? "minimum" : "maximum"))
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword '%s' must be present if %s is present",
                       minimum ? "minimum" : "maximum", elem->key);
    if (minimum)
        schema->exclusive_minimum = value;
    else
        schema->exclusive_maximum = value;
    return true;
}

static bool keyword_count(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    struct {
        const char *name;
        int64_t *to;
    } places[] = {
        {"minLength", &schema->min_length},         {"maxLength", &schema->max_length},
        {"minItems", &schema->min_items},           {"maxItems", &schema->max_items},
        {"minProperties", &schema->min_properties}, {"maxProperties", &schema->max_properties},
    };
    int64_t number;
    if (!bval_is_number(&elem->val))
        return must_be(c, elem, "a number");
    if (!bval_to_i64(&elem->val, &number) || number < 0)
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword '%s' must be a non-negative integer", elem->key);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(places[i].name, elem->key) == 0)
            *places[i].to = number;
    return true;
}

static bool keyword_pattern(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    uint32_t len;
    if (elem->val.type != BT_STRING)
        return must_be(c, elem, "a string");
    return compile_regex(c, bval_str(&elem->val, &len), &schema->pattern);
}

/* Text for people: checked and kept in the source. */
static bool keyword_text(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    (void)schema;
    return elem->val.type == BT_STRING || must_be(c, elem, "a string");
}

static bool compile_names(struct compiler *c, const struct belem *elem, const struct bval *list,
                          struct schema_names *out)
{
    struct biter iter;
    struct belem item;
    if (list->type != BT_ARRAY)
        return must_be(c, elem, "an array of strings");
    uint32_t count = bdoc_count(bval_doc(list));
    if (count == 0)
        return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword '%s' cannot be an empty array", elem->key);
    *out = (struct schema_names){.items = arena_alloc(c->arena, count * sizeof *out->items)};
    biter_init(&iter, bval_doc(list));
    while (biter_next(&iter, &item)) {
        struct schema_name *name = &out->items[out->count];
        if (item.val.type != BT_STRING)
            return must_be(c, elem, "an array of strings");
        name->text = bval_str(&item.val, &name->len);
        for (uint32_t i = 0; i < out->count; i++)
            if (out->items[i].len == name->len && memcmp(out->items[i].text, name->text, name->len) == 0)
                return err_set(c->err, ERR_FailedToParse,
                               "$jsonSchema keyword '%s' array cannot contain duplicate values", elem->key);
        out->count++;
    }
    return true;
}

static bool keyword_required(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    return compile_names(c, elem, &elem->val, &schema->required);
}

static bool keyword_properties(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    struct biter iter;
    struct belem item;
    if (elem->val.type != BT_DOCUMENT)
        return must_be(c, elem, "an object");
    struct bdoc doc = bval_doc(&elem->val);
    schema->property_count = 0;
    schema->properties = arena_alloc(c->arena, (bdoc_count(doc) + 1) * sizeof *schema->properties);
    biter_init(&iter, doc);
    while (biter_next(&iter, &item)) {
        struct schema_property *property = &schema->properties[schema->property_count++];
        property->name = (struct schema_name){item.key, item.key_len};
        property->schema = compile_schema(c, &item.val, item.key);
        if (property->schema == NULL)
            return false;
    }
    return true;
}

static bool keyword_patterns(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    struct biter iter;
    struct belem item;
    if (elem->val.type != BT_DOCUMENT)
        return must_be(c, elem, "an object");
    struct bdoc doc = bval_doc(&elem->val);
    schema->pattern_count = 0;
    schema->patterns = arena_alloc(c->arena, (bdoc_count(doc) + 1) * sizeof *schema->patterns);
    biter_init(&iter, doc);
    while (biter_next(&iter, &item)) {
        struct schema_pattern *pattern = &schema->patterns[schema->pattern_count];
        pattern->text = item.key;
        pattern->schema = compile_schema(c, &item.val, item.key);
        if (pattern->schema == NULL || !compile_regex(c, item.key, &pattern->regex))
            return false;
        schema->pattern_count++;
    }
    return true;
}

/* additionalProperties, additionalItems: a boolean or a schema. */
static bool keyword_additional(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    bool properties = strcmp(elem->key, "additionalProperties") == 0;
    bool *refused = properties ? &schema->no_additional_properties : &schema->no_additional_items;
    struct schema **to = properties ? &schema->additional_properties : &schema->additional_items;
    if (elem->val.type == BT_BOOL) {
        *refused = !bval_bool(&elem->val);
        return true;
    }
    if (elem->val.type != BT_DOCUMENT)
        return must_be(c, elem, "an object or a boolean");
    *to = compile_schema(c, &elem->val, elem->key);
    return *to != NULL;
}

static bool compile_list(struct compiler *c, const struct belem *elem, struct schema_list *out)
{
    struct biter iter;
    struct belem item;
    struct bdoc list = bval_doc(&elem->val);
    *out = (struct schema_list){.items = arena_alloc(c->arena, (bdoc_count(list) + 1) * sizeof(struct schema *))};
    biter_init(&iter, list);
    while (biter_next(&iter, &item)) {
        if (item.val.type != BT_DOCUMENT)
            return must_be(c, elem, "an array of objects");
        out->items[out->count] = compile_schema(c, &item.val, elem->key);
        if (out->items[out->count++] == NULL)
            return false;
    }
    return true;
}

static bool keyword_items(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    if (elem->val.type == BT_ARRAY) {
        schema->has_item_list = true;
        return compile_list(c, elem, &schema->item_list);
    }
    if (elem->val.type != BT_DOCUMENT)
        return must_be(c, elem, "an object or an array");
    schema->items = compile_schema(c, &elem->val, elem->key);
    return schema->items != NULL;
}

static bool keyword_tree(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    struct schema_list *to = strcmp(elem->key, "allOf") == 0   ? &schema->all_of
                             : strcmp(elem->key, "anyOf") == 0 ? &schema->any_of
                                                               : &schema->one_of;
    if (elem->val.type != BT_ARRAY)
        return must_be(c, elem, "an array");
    if (bdoc_is_empty(bval_doc(&elem->val)))
        return err_set(c->err, ERR_BadValue, "$jsonSchema keyword '%s' must be a non-empty array", elem->key);
    return compile_list(c, elem, to);
}

static bool keyword_not(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    if (elem->val.type != BT_DOCUMENT)
        return must_be(c, elem, "an object");
    schema->not_schema = compile_schema(c, &elem->val, elem->key);
    return schema->not_schema != NULL;
}

static bool keyword_dependencies(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    struct biter iter;
    struct belem item;
    if (elem->val.type != BT_DOCUMENT)
        return must_be(c, elem, "an object");
    struct bdoc doc = bval_doc(&elem->val);
    schema->dependency_count = 0;
    schema->dependencies = arena_alloc(c->arena, (bdoc_count(doc) + 1) * sizeof *schema->dependencies);
    biter_init(&iter, doc);
    while (biter_next(&iter, &item)) {
        struct schema_dependency *dependency = &schema->dependencies[schema->dependency_count++];
        dependency->name = (struct schema_name){item.key, item.key_len};
        if (item.val.type == BT_DOCUMENT) {
            dependency->schema = compile_schema(c, &item.val, item.key);
            if (dependency->schema == NULL)
                return false;
        } else if (!compile_names(c, elem, &item.val, &dependency->names)) {
            return false;
        }
    }
    return true;
}

static const struct {
    const char *name;
    keyword_fn *compile;
} keywords[] = {
    {"type", keyword_type},
    {"bsonType", keyword_type},
    {"enum", keyword_enum},
    {"minimum", keyword_number},
    {"maximum", keyword_number},
    {"exclusiveMinimum", keyword_flag},
    {"exclusiveMaximum", keyword_flag},
    {"multipleOf", keyword_number},
    {"minLength", keyword_count},
    {"maxLength", keyword_count},
    {"pattern", keyword_pattern},
    {"minItems", keyword_count},
    {"maxItems", keyword_count},
    {"uniqueItems", keyword_flag},
    {"items", keyword_items},
    {"additionalItems", keyword_additional},
    {"minProperties", keyword_count},
    {"maxProperties", keyword_count},
    {"required", keyword_required},
    {"properties", keyword_properties},
    {"patternProperties", keyword_patterns},
    {"additionalProperties", keyword_additional},
    {"dependencies", keyword_dependencies},
    {"allOf", keyword_tree},
    {"anyOf", keyword_tree},
    {"oneOf", keyword_tree},
    {"not", keyword_not},
    {"title", keyword_text},
    {"description", keyword_text},
};

static bool compile_keyword(struct compiler *c, struct schema *schema, const struct belem *elem)
{
    static const char *const unsupported[] = {"$ref",   "$schema", "default",         "definitions",
                                              "format", "id",      "encryptMetadata", "encrypt"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, elem->key) == 0)
            return keywords[i].compile(c, schema, elem);
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (strcmp(unsupported[i], elem->key) == 0)
            return err_set(c->err, ERR_FailedToParse, "$jsonSchema keyword '%s' is not supported", elem->key);
    return err_set(c->err, ERR_FailedToParse, "Unknown $jsonSchema keyword: %s", elem->key);
}

static struct schema *compile_schema(struct compiler *c, const struct bval *spec, const char *keyword)
{
    struct biter iter;
    struct belem elem;
    if (spec->type != BT_DOCUMENT) {
        err_set(c->err, ERR_TypeMismatch, "the schema of '%s' in a $jsonSchema must be an object", keyword);
        return NULL;
    }
    if (++c->depth > SCHEMA_MAX_DEPTH) {
        err_set(c->err, ERR_FailedToParse, "a $jsonSchema is nested more than %d levels deep", SCHEMA_MAX_DEPTH);
        return NULL;
    }
    struct schema *schema = arena_alloc(c->arena, sizeof *schema);
    *schema = (struct schema){.source = bval_doc(spec),
                              .min_length = -1,
                              .max_length = -1,
                              .min_items = -1,
                              .max_items = -1,
                              .min_properties = -1,
                              .max_properties = -1};
    biter_init(&iter, schema->source);
    while (biter_next(&iter, &elem))
        if (!compile_keyword(c, schema, &elem))
            return NULL;
    c->depth--;
    return schema;
}

bool schema_compile(struct arena *arena, const struct bval *spec, struct schema **out, struct schema_facts *facts,
                    struct err *err)
{
    struct compiler c = {.arena = arena, .err = err, .facts = facts};
    *facts = (struct schema_facts){0};
    *out = compile_schema(&c, spec, "$jsonSchema");
    return *out != NULL;
}
