#include "query/explain_schema.h"

#include "expr/writer.h"

#include <string.h>

/* The list of broken rules while it grows. */
struct rules {
    const struct schema *schema;
    const struct bval *val;
    struct schema_test *test;
    struct buf *out;
    uint32_t count;
};

static void write_text(struct buf *out, const char *key, const char *text)
{
    write_str(out, key, text, strlen(text));
}

static size_t begin_item(struct buf *out, uint32_t index)
{
    char name[WRITER_INDEX_BYTES];
    size_t len = write_index_name(name, index);
    return write_begin_field(out, name, len, BT_DOCUMENT);
}

static size_t begin_list(struct buf *out, const char *name)
{
    return write_begin_field(out, name, strlen(name), BT_ARRAY);
}

/* Opens {operatorName: keyword. */
static size_t begin_rule(struct rules *r, const char *keyword)
{
    size_t start = begin_item(r->out, r->count++);
    write_text(r->out, "operatorName", keyword);
    return start;
}

/* Values may be large, and repeat with each rule. */
static void put_value(struct rules *r, const char *key, const struct bval *val)
{
    if (r->out->len <= r->test->max_len)
        write_value(r->out, key, strlen(key), val);
}

/* specifiedAs: {keyword: operand}. */
static void write_specified(struct rules *r, const char *keyword, const char *also)
{
    struct bval operand;
    size_t start = write_begin_field(r->out, "specifiedAs", 11, BT_DOCUMENT);
    if (bdoc_find(r->schema->source, keyword, &operand))
        put_value(r, keyword, &operand);
    if (also != NULL && bdoc_find(r->schema->source, also, &operand))
        put_value(r, also, &operand);
    write_end(r->out, start);
}

/* A rule about the value itself. */
static size_t begin_reason(struct rules *r, const char *keyword, const char *also, const char *reason)
{
    size_t start = begin_rule(r, keyword);
    write_specified(r, keyword, also);
    write_text(r->out, "reason", reason);
    return start;
}

static void add_reason(struct rules *r, const char *keyword, const char *also, const char *reason)
{
    size_t start = begin_reason(r, keyword, also, reason);
    put_value(r, "consideredValue", r->val);
    write_end(r->out, start);
}

void schema_explain_texts(const struct schema *schema, struct buf *out)
{
    static const char *const names[] = {"title", "description"};
    struct bval text;
    for (size_t i = 0; i < 2; i++)
        if (bdoc_find(schema->source, names[i], &text))
            write_value(out, names[i], strlen(names[i]), &text);
}

static void explain_type(struct rules *r)
{
    if (schema_type_matches(r->schema, r->val))
        return;
    const char *keyword = bdoc_has(r->schema->source, "bsonType") ? "bsonType" : "type";
    size_t start = begin_reason(r, keyword, NULL, "type did not match");
    put_value(r, "consideredValue", r->val);
    write_text(r->out, "consideredType", bval_type_name(r->val->type));
    write_end(r->out, start);
}

static void explain_number(struct rules *r)
{
    if (!schema_minimum_matches(r->schema, r->val))
        add_reason(r, "minimum", "exclusiveMinimum", "comparison failed");
    if (!schema_maximum_matches(r->schema, r->val))
        add_reason(r, "maximum", "exclusiveMaximum", "comparison failed");
    if (!schema_multiple_matches(r->schema, r->val))
        add_reason(r, "multipleOf", NULL, "considered value is not a multiple of the specified value");
}

static void explain_string(struct rules *r)
{
    uint32_t len;
    const char *text = bval_str(r->val, &len);
    if (!schema_length_matches(r->val, r->schema->min_length, -1))
        add_reason(r, "minLength", NULL, "specified string length was not satisfied");
    if (!schema_length_matches(r->val, -1, r->schema->max_length))
        add_reason(r, "maxLength", NULL, "specified string length was not satisfied");
    if (r->schema->pattern != NULL && !schema_regex_matches(r->schema->pattern, text, len, r->test))
        add_reason(r, "pattern", NULL, "regular expression did not match");
}

/* The first item that its schema refuses. */
static void explain_items(struct rules *r)
{
    struct biter iter;
    struct belem item;
    biter_init(&iter, bval_doc(r->val));
    for (uint32_t i = 0; biter_next(&iter, &item); i++) {
        bool refused;
        const struct schema *inner = schema_of_item(r->schema, i, &refused);
        bool additional = r->schema->has_item_list && i >= r->schema->item_list.count;
        if (refused) {
            size_t start = begin_rule(r, "additionalItems");
            write_specified(r, "additionalItems", NULL);
            write_text(r->out, "reason", "found additional items");
            size_t list = begin_list(r->out, "additionalItems");
            uint32_t count = 0;
            do
                write_item(r->out, count++, &item.val);
            while (biter_next(&iter, &item));
            write_end(r->out, list);
            write_end(r->out, start);
            return;
        }
        if (inner == NULL || schema_matches(inner, &item.val, r->test))
            continue;
        size_t start = begin_rule(r, additional ? "additionalItems" : "items");
        write_text(r->out, "reason", "At least one item did not match the sub-schema");
        write_i32(r->out, "itemIndex", (int32_t)i);
        schema_explain(inner, &item.val, r->test, "details", r->out);
        write_end(r->out, start);
        return;
    }
}

static void explain_array(struct rules *r)
{
    struct bdoc array = bval_doc(r->val);
    int64_t count = bdoc_count(array);
    if (count < r->schema->min_items)
        add_reason(r, "minItems", NULL, "array did not match specified length");
    if (r->schema->max_items >= 0 && count > r->schema->max_items)
        add_reason(r, "maxItems", NULL, "array did not match specified length");
    struct bval duplicate = r->schema->unique_items ? schema_find_duplicate(array, r->test) : BVAL_MISSING;
    if (duplicate.type != BT_EOO) {
        size_t start = begin_reason(r, "uniqueItems", NULL, "found a duplicate item");
        put_value(r, "consideredValue", r->val);
        put_value(r, "duplicatedValue", &duplicate);
        write_end(r->out, start);
    }
    explain_items(r);
}

static bool has_field(const struct rules *r, const struct schema_name *name)
{
    struct bval ignored;
    return bdoc_find_n(bval_doc(r->val), name->text, name->len, &ignored);
}

/* Appends the names that the object lacks as an array; false: it lacks none and nothing was written. */
static bool write_missing(struct rules *r, const struct schema_names *names)
{
    bool any = false;
    for (uint32_t i = 0; i < names->count; i++)
        any = any || !has_field(r, &names->items[i]);
    if (!any)
        return false;
    size_t list = begin_list(r->out, "missingProperties");
    uint32_t count = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        if (has_field(r, &names->items[i]))
            continue;
        char index[WRITER_INDEX_BYTES];
        write_index_name(index, count++);
        write_str(r->out, index, names->items[i].text, names->items[i].len);
    }
    write_end(r->out, list);
    return true;
}

static void explain_required(struct rules *r)
{
    size_t before = r->out->len;
    size_t start = begin_rule(r, "required");
    write_specified(r, "required", NULL);
    if (write_missing(r, &r->schema->required)) {
        write_end(r->out, start);
    } else {
        r->out->len = before;
        r->count--;
    }
}

/* {propertyName, title, description, details}. */
static void write_property(struct rules *r, uint32_t index, const struct belem *elem, const struct schema *schema,
                           const char *regex)
{
    size_t start = begin_item(r->out, index);
    write_str(r->out, "propertyName", elem->key, elem->key_len);
    if (regex != NULL)
        write_text(r->out, "regexMatched", regex);
    schema_explain_texts(schema, r->out);
    schema_explain(schema, &elem->val, r->test, "details", r->out);
    write_end(r->out, start);
}

static void explain_properties(struct rules *r)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    size_t before = r->out->len;
    size_t start = begin_rule(r, "properties");
    size_t list = begin_list(r->out, "propertiesNotSatisfied");
    biter_init(&iter, bval_doc(r->val));
    while (biter_next(&iter, &elem)) {
        const struct schema *own = schema_find_property(r->schema, elem.key, elem.key_len);
        if (own != NULL && !schema_matches(own, &elem.val, r->test))
            write_property(r, count++, &elem, own, NULL);
    }
    write_end(r->out, list);
    write_end(r->out, start);
    if (count == 0) {
        r->out->len = before;
        r->count--;
    }
}

static void explain_patterns(struct rules *r)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    size_t before = r->out->len;
    size_t start = begin_rule(r, "patternProperties");
    size_t list = begin_list(r->out, "details");
    biter_init(&iter, bval_doc(r->val));
    while (biter_next(&iter, &elem)) {
        for (uint32_t i = 0; i < r->schema->pattern_count; i++) {
            const struct schema_pattern *pattern = &r->schema->patterns[i];
            if (schema_regex_matches(pattern->regex, elem.key, elem.key_len, r->test) &&
                !schema_matches(pattern->schema, &elem.val, r->test))
                write_property(r, count++, &elem, pattern->schema, pattern->text);
        }
    }
    write_end(r->out, list);
    write_end(r->out, start);
    if (count == 0) {
        r->out->len = before;
        r->count--;
    }
}

static bool is_additional(struct rules *r, const struct belem *elem)
{
    if (schema_find_property(r->schema, elem->key, elem->key_len) != NULL)
        return false;
    for (uint32_t i = 0; i < r->schema->pattern_count; i++)
        if (schema_regex_matches(r->schema->patterns[i].regex, elem->key, elem->key_len, r->test))
            return false;
    return true;
}

static void explain_additional(struct rules *r)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    const struct schema *inner = r->schema->additional_properties;
    if (!r->schema->no_additional_properties && inner == NULL)
        return;
    size_t before = r->out->len;
    size_t start = begin_rule(r, "additionalProperties");
    size_t list = 0;
    if (inner == NULL) {
        write_specified(r, "additionalProperties", NULL);
        list = begin_list(r->out, "additionalProperties");
    } else {
        write_text(r->out, "reason", "at least one additional property did not match the subschema");
    }
    biter_init(&iter, bval_doc(r->val));
    while (biter_next(&iter, &elem)) {
        if (!is_additional(r, &elem) || (inner != NULL && schema_matches(inner, &elem.val, r->test)))
            continue;
        if (inner != NULL) {
            write_str(r->out, "failingProperty", elem.key, elem.key_len);
            schema_explain(inner, &elem.val, r->test, "details", r->out);
            count++;
            break;
        }
        char index[WRITER_INDEX_BYTES];
        write_index_name(index, count++);
        write_str(r->out, index, elem.key, elem.key_len);
    }
    if (inner == NULL)
        write_end(r->out, list);
    write_end(r->out, start);
    if (count == 0) {
        r->out->len = before;
        r->count--;
    }
}

static void explain_dependencies(struct rules *r)
{
    uint32_t count = 0;
    size_t before = r->out->len;
    size_t start = begin_rule(r, "dependencies");
    size_t list = begin_list(r->out, "failingDependencies");
    for (uint32_t i = 0; i < r->schema->dependency_count; i++) {
        const struct schema_dependency *dependency = &r->schema->dependencies[i];
        if (!has_field(r, &dependency->name))
            continue;
        if (dependency->schema != NULL && schema_matches(dependency->schema, r->val, r->test))
            continue;
        size_t unwritten = r->out->len;
        size_t item = begin_item(r->out, count++);
        write_str(r->out, "conditionalProperty", dependency->name.text, dependency->name.len);
        bool failed = true;
        if (dependency->schema != NULL)
            schema_explain(dependency->schema, r->val, r->test, "details", r->out);
        else
            failed = write_missing(r, &dependency->names);
        write_end(r->out, item);
        if (!failed) {
            r->out->len = unwritten;
            count--;
        }
    }
    write_end(r->out, list);
    write_end(r->out, start);
    if (count == 0) {
        r->out->len = before;
        r->count--;
    }
}

static void explain_object(struct rules *r)
{
    int64_t count = bdoc_count(bval_doc(r->val));
    bool too_few = count < r->schema->min_properties;
    bool too_many = r->schema->max_properties >= 0 && count > r->schema->max_properties;
    if (too_few || too_many) {
        size_t start = begin_reason(r, too_few ? "minProperties" : "maxProperties", NULL,
                                    "specified number of properties was not satisfied");
        put_value(r, "consideredValue", r->val);
        write_i32(r->out, "numberOfProperties", (int32_t)count);
        write_end(r->out, start);
    }
    explain_required(r);
    explain_properties(r);
    explain_patterns(r);
    explain_additional(r);
    explain_dependencies(r);
}

/* Each schema of the list that refuses the value. */
static void write_refusing(struct rules *r, const struct schema_list *list)
{
    uint32_t count = 0;
    size_t array = begin_list(r->out, "schemasNotSatisfied");
    for (uint32_t i = 0; i < list->count; i++) {
        if (schema_matches(list->items[i], r->val, r->test))
            continue;
        size_t item = begin_item(r->out, count++);
        write_i32(r->out, "index", (int32_t)i);
        schema_explain_texts(list->items[i], r->out);
        schema_explain(list->items[i], r->val, r->test, "details", r->out);
        write_end(r->out, item);
    }
    write_end(r->out, array);
}

static uint32_t count_matching(const struct rules *r, const struct schema_list *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += schema_matches(list->items[i], r->val, r->test) ? 1 : 0;
    return count;
}

static void explain_list(struct rules *r, const char *keyword, const struct schema_list *list, uint32_t least,
                         uint32_t most)
{
    uint32_t matching = count_matching(r, list);
    if (list->count == 0 || (matching >= least && matching <= most))
        return;
    size_t start = begin_rule(r, keyword);
    if (matching < least) {
        write_refusing(r, list);
    } else {
        uint32_t count = 0;
        write_text(r->out, "reason", "more than one subschema matched");
        size_t array = begin_list(r->out, "matchingSchemaIndexes");
        for (uint32_t i = 0; i < list->count; i++) {
            if (!schema_matches(list->items[i], r->val, r->test))
                continue;
            char index[WRITER_INDEX_BYTES];
            write_index_name(index, count++);
            write_i32(r->out, index, (int32_t)i);
        }
        write_end(r->out, array);
    }
    write_end(r->out, start);
}

void schema_explain(const struct schema *schema, const struct bval *val, struct schema_test *test, const char *name,
                    struct buf *out)
{
    struct rules r = {.schema = schema, .val = val, .test = test, .out = out};
    size_t list = begin_list(out, name);
    explain_type(&r);
    if (!schema_enum_matches(schema, val, test))
        add_reason(&r, "enum", NULL, "value was not found in enum");
    if (bval_is_number(val))
        explain_number(&r);
    else if (val->type == BT_STRING)
        explain_string(&r);
    else if (val->type == BT_ARRAY)
        explain_array(&r);
    else if (val->type == BT_DOCUMENT)
        explain_object(&r);
    explain_list(&r, "allOf", &schema->all_of, schema->all_of.count, UINT32_MAX);
    explain_list(&r, "anyOf", &schema->any_of, 1, UINT32_MAX);
    explain_list(&r, "oneOf", &schema->one_of, 1, 1);
    if (schema->not_schema != NULL && schema_matches(schema->not_schema, val, test)) {
        size_t start = begin_rule(&r, "not");
        write_text(out, "reason", "child expression matched");
        write_end(out, start);
    }
    write_end(out, list);
}
