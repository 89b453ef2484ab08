/* What a filter says about each field of a key, with and without arrays. */
#include "query/bounds.h"

#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

enum { NONE = 0, FIRST_PART = 1, SECOND_PART = 2, EVERYWHERE = 3 };

struct said {
    const char *filter;
    const char *key;
    unsigned arrays[2]; /* of the first two fields */
    const char *intervals;
    bool exact;
};

static void append_value(struct buf *out, const struct bval *val)
{
    char text[60];
    int64_t number;
    double real;
    uint32_t len;
    if (bval_to_i64(val, &number))
        snprintf(text, sizeof text, "%lld", (long long)number);
    else if (bval_is_number(val) && bval_to_f64(val, &real))
        snprintf(text, sizeof text, "%g", real);
    else if (val->type == BT_STRING)
        snprintf(text, sizeof text, "'%s'", bval_str(val, &len));
    else
        snprintf(text, sizeof text, "%s",
                 val->type == BT_MIN_KEY   ? "min"
                 : val->type == BT_MAX_KEY ? "max"
                                           : bval_type_name(val->type));
    buf_append(out, text, strlen(text));
}

/* "[1,1] (2,inf] | all" */
static void show(const struct key_bounds *bounds, struct buf *out)
{
    for (uint32_t i = 0; i < bounds->field_count; i++) {
        const struct value_list *list = &bounds->fields[i];
        if (i > 0)
            buf_append(out, " | ", 3);
        if (list->full)
            buf_append(out, "all", 3);
        for (uint32_t j = 0; !list->full && j < list->count; j++) {
            const struct value_interval *item = &list->items[j];
            if (j > 0)
                buf_append_u8(out, ' ');
            buf_append_u8(out, item->first_open ? '(' : '[');
            append_value(out, &item->first);
            buf_append_u8(out, ',');
            append_value(out, &item->last);
            buf_append_u8(out, item->last_open ? ')' : ']');
        }
    }
    buf_append_u8(out, 0);
}

static void check(const struct said *said)
{
    struct arena arena;
    struct filter *filter;
    struct bounds_pattern pattern;
    struct key_bounds bounds;
    struct err err = {0};
    struct buf text = BUF_INIT;
    arena_init(&arena);
    if (!filter_compile(&arena, json_doc(&arena, said->filter), NULL, &filter, &err) ||
        !bounds_pattern_parse(json_doc(&arena, said->key), &pattern, &err))
        fail_msg("%s: %s", said->filter, err.msg);
    for (uint32_t i = 0; i < pattern.field_count && i < 2; i++)
        pattern.fields[i].arrays = said->arrays[i];
    key_bounds_of(&arena, filter, &pattern, &bounds);
    show(&bounds, &text);
    if (strcmp((const char *)text.data, said->intervals) != 0)
        fail_msg("%s on %s: %s instead of %s", said->filter, said->key, (const char *)text.data, said->intervals);
    if (bounds.exact != said->exact)
        fail_msg("%s on %s: exact %d", said->filter, said->key, bounds.exact);
    assert_int_equal(bounds.rest == NULL, bounds.exact);
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void bounds_of_each_operator_are_its_values(void **state)
{
    static const struct said cases[] = {
        {"{'a': 5}", "{'a': 1}", {NONE}, "[5,5]", true},
        {"{'a': {'$gt': 5}}", "{'a': 1}", {NONE}, "(5,inf]", true},
        {"{'a': {'$lte': 5}}", "{'a': -1}", {NONE}, "[5,-inf]", true},
        {"{'a': {'$gt': 1, '$lt': 5}}", "{'a': 1}", {NONE}, "(1,5)", true},
        {"{'a': {'$in': [3, 1, 'x']}}", "{'a': 1}", {NONE}, "[1,1] [3,3] ['x','x']", true},
        {"{'a': {'$ne': 5}}", "{'a': 1}", {NONE}, "[min,5) (5,max]", true},
        {"{'a': {'$nin': [1, 5]}}", "{'a': 1}", {NONE}, "[min,1) (1,5) (5,max]", true},
        {"{'a': {'$not': {'$gt': 5}}}", "{'a': 1}", {NONE}, "[min,5] (inf,max]", true},
        {"{'a': null}", "{'a': 1}", {NONE}, "[null,null]", true},
        {"{'a': {'$ne': null}}", "{'a': 1}", {NONE}, "[min,null) (null,max]", true},
        {"{'a': {'$exists': false}}", "{'a': 1}", {NONE}, "[null,null]", false},
        {"{'a': {'$exists': true}}", "{'a': 1}", {NONE}, "all", false},
        {"{'a': {'$type': 'date'}}", "{'a': 1}", {NONE}, "[date,date]", true},
        {"{'a': {'$type': 'int'}}", "{'a': 1}", {NONE}, "[-inf,inf]", false},
        {"{'a': {'$type': 'number'}}", "{'a': 1}", {NONE}, "[-inf,inf]", true},
        {"{'a': {'$regex': '^ab'}}", "{'a': 1}", {NONE}, "['ab','ac') [regex,regex]", true},
        {"{'a': {'$regex': '^ab.*c'}}", "{'a': 1}", {NONE}, "['ab','ac') [regex,regex]", false},
        {"{'a': {'$mod': [2, 0]}}", "{'a': 1}", {NONE}, "[-inf,inf]", false},
        {"{'a': {'$size': 2}}", "{'a': 1}", {NONE}, "all", false},
        {"{'a': [7, 8]}", "{'a': 1}", {FIRST_PART}, "[7,7] [array,array]", false},
        {"{'a': {'$gt': 5}, 'b': 3}", "{'a': 1, 'b': 1}", {NONE, NONE}, "(5,inf] | [3,3]", true},
        {"{'b': 3}", "{'a': 1, 'b': 1}", {NONE, NONE}, "all | [3,3]", true},
        {"{'$or': [{'a': 1}, {'a': {'$gt': 7}}]}", "{'a': 1}", {NONE}, "[1,1] (7,inf]", true},
        {"{'$or': [{'a': 1}, {'b': 7}]}", "{'a': 1}", {NONE}, "all", false},
        {"{'$nor': [{'a': 1}, {'a': {'$gt': 7}}]}", "{'a': 1}", {NONE}, "[min,1) (1,7] (inf,max]", true},
        {"{'a': {'b': 5}}", "{'a.b': 1}", {NONE}, "[5,5]", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

static void bounds_of_arrays_come_from_one_element(void **state)
{
    static const struct said cases[] = {
        /* two predicates may be met by two elements */
        {"{'a': {'$gt': 1, '$lt': 5}}", "{'a': 1}", {FIRST_PART}, "(1,inf]", false},
        {"{'a': {'$elemMatch': {'$gt': 1, '$lt': 5}}}", "{'a': 1}", {FIRST_PART}, "(1,5)", false},
        /* a negation holds for every element */
        {"{'a': {'$gt': 1, '$ne': 5}}", "{'a': 1}", {FIRST_PART}, "(1,5) (5,inf]", false},
        {"{'a': 5}", "{'a': 1}", {FIRST_PART}, "[5,5]", true},
        {"{'a': {'$all': [3, 5]}}", "{'a': 1}", {FIRST_PART}, "[3,3]", false},
        /* fields below one array belong to one element only in $elemMatch */
        {"{'a.b': 1, 'a.c': 2}", "{'a.b': 1, 'a.c': 1}", {FIRST_PART, FIRST_PART}, "[1,1] | all", false},
        {"{'a': {'$elemMatch': {'b': 1, 'c': 2}}}",
         "{'a.b': 1, 'a.c': 1}",
         {FIRST_PART, FIRST_PART},
         "[1,1] | [2,2]",
         false},
        {"{'a': {'$elemMatch': {'b': {'$gt': 1, '$lt': 5}}}}", "{'a.b': 1}", {FIRST_PART}, "(1,5)", false},
        {"{'a': {'$elemMatch': {'b': {'$gt': 1, '$lt': 5}}}}", "{'a.b': 1}", {EVERYWHERE}, "(1,inf]", false},
        {"{'a.b': {'$gt': 1, '$lt': 5}}", "{'a.b': 1}", {SECOND_PART}, "(1,inf]", false},
        {"{'a': 1, 'b': 2}", "{'a': 1, 'b': 1}", {FIRST_PART, NONE}, "[1,1] | [2,2]", true},
        /* elements without the path have the key of a missing field, and no filter finds them by null */
        {"{'a.b': null}", "{'a.b': 1}", {FIRST_PART}, "[null,null]", false},
        {"{'a.b': {'$ne': null}}", "{'a.b': 1}", {FIRST_PART}, "all", false},
        {"{'a.b': {'$ne': null}}", "{'a.b': 1}", {NONE}, "[min,null) (null,max]", true},
        /* positions select what the keys don't tell */
        {"{'a.0': 5}", "{'a.0': 1}", {FIRST_PART}, "all", false},
        {"{'a.0': 5}", "{'a.0': 1}", {NONE}, "[5,5]", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_of_each_operator_are_its_values),
        cmocka_unit_test(bounds_of_arrays_come_from_one_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
