/* $jsonSchema: draft 4 as MongoDB understands it, compiled once and tested on values without a heap allocation (but for
 * large arrays with uniqueItems). Used by filter_compile, filter_match and explain_failure; not for other folders.
 * https://www.mongodb.com/docs/manual/reference/operator/query/jsonSchema/ */
#ifndef SHERD_QUERY_SCHEMA_H
#define SHERD_QUERY_SCHEMA_H

#include "base/arena.h"
#include "bson/compare.h"
#include "expr/regex.h"

enum {
    SCHEMA_MAX_DEPTH = 50, /* schemas within schemas */
};

struct schema;

struct schema_list {
    struct schema **items;
    uint32_t count;
};

struct schema_name {
    const char *text;
    uint32_t len;
};

struct schema_names {
    struct schema_name *items;
    uint32_t count;
};

struct schema_property {
    struct schema_name name;
    struct schema *schema;
};

/* patternProperties */
struct schema_pattern {
    const char *text;
    struct regex *regex; /* goes with the arena */
    struct schema *schema;
};

/* One of `schema` and `names` counts. */
struct schema_dependency {
    struct schema_name name;
    struct schema *schema; /* NULL: names are required */
    struct schema_names names;
};

struct schema {
    struct bdoc source;
    uint32_t types;     /* bits of filter_type_bit; 0: any */
    struct bval values; /* enum: an array; BT_EOO: none */
    /* numbers */
    struct bval minimum; /* BT_EOO: none, and so below */
    struct bval maximum;
    bool exclusive_minimum;
    bool exclusive_maximum;
    struct bval multiple_of;
    /* strings */
    int64_t min_length; /* code points; -1: none, and so below */
    int64_t max_length;
    struct regex *pattern;
    /* arrays */
    int64_t min_items;
    int64_t max_items;
    bool unique_items;
    struct schema *items; /* of every item; NULL: none */
    bool has_item_list;   /* items is a list: each place has a schema */
    struct schema_list item_list;
    bool no_additional_items; /* additionalItems: false */
    struct schema *additional_items;
    /* objects */
    int64_t min_properties;
    int64_t max_properties;
    struct schema_names required;
    struct schema_property *properties;
    uint32_t property_count;
    struct schema_pattern *patterns;
    uint32_t pattern_count;
    bool no_additional_properties;
    struct schema *additional_properties;
    struct schema_dependency *dependencies;
    uint32_t dependency_count;
    /* other schemas */
    struct schema_list all_of;
    struct schema_list any_of;
    struct schema_list one_of;
    struct schema *not_schema;
};

struct schema_facts {
    bool has_regex; /* pattern or patternProperties */
    bool has_order; /* strings are compared (enum, uniqueItems) */
};

/* `spec` is borrowed. Errors: 14 TypeMismatch for operands of a wrong type, 9 FailedToParse for unknown keywords and
 * values out of range, 2 BadValue for type names and regular expressions. */
bool schema_compile(struct arena *arena, const struct bval *spec, struct schema **out, struct schema_facts *facts,
                    struct err *err) ERR_WARN_UNUSED;

/* One test. */
struct schema_test {
    const struct bval_order *order; /* of strings; NULL: by bytes */
    bool failed;                    /* a regular expression gave up */
    size_t max_len;                 /* of the buffer that an explanation goes to: beyond it values are left out */
};

bool schema_matches(const struct schema *schema, const struct bval *val, struct schema_test *test);
bool schema_matches_document(const struct schema *schema, struct bdoc doc, struct schema_test *test);

/* For explanations: each keyword alone. `val` of the type that the keyword is about. */
bool schema_type_matches(const struct schema *schema, const struct bval *val);
bool schema_enum_matches(const struct schema *schema, const struct bval *val, const struct schema_test *test);
bool schema_minimum_matches(const struct schema *schema, const struct bval *val);
bool schema_maximum_matches(const struct schema *schema, const struct bval *val);
bool schema_multiple_matches(const struct schema *schema, const struct bval *val);
bool schema_length_matches(const struct bval *val, int64_t least, int64_t most);
bool schema_regex_matches(const struct regex *regex, const char *text, size_t len, struct schema_test *test);
/* The first item that has an equal before it; BT_EOO: there is none. */
struct bval schema_find_duplicate(struct bdoc array, const struct schema_test *test);
const struct schema *schema_find_property(const struct schema *schema, const char *name, size_t len);
/* The schema of the item at a place; NULL: anything goes. *refused: additionalItems is false. */
const struct schema *schema_of_item(const struct schema *schema, uint32_t place, bool *refused);

#endif
