#include "bson/compare.h"
#include "tests/unit/bson/random_value.h"
#include "tests/unit/cmocka_all.h"

#include <strings.h>

static bson_t *from_json(const char *json)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (doc == NULL)
        print_error("%s: %s\n", json, error.message);
    assert_non_null(doc);
    return doc;
}

static int compare_json(const char *a, const char *b)
{
    bson_t *a_doc = from_json(a);
    bson_t *b_doc = from_json(b);
    struct bval a_val = random_value_of(a_doc);
    struct bval b_val = random_value_of(b_doc);
    int sign = bval_compare(&a_val, &b_val);
    int mirrored = bval_compare(&b_val, &a_val);
    assert_int_equal((sign > 0) - (sign < 0), (mirrored < 0) - (mirrored > 0));
    bson_destroy(a_doc);
    bson_destroy(b_doc);
    return sign;
}

/* Every value is less than each that comes later in the list. */
static void assert_ascending(const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++) {
            int sign = compare_json(list[i], list[j]);
            if (i == j ? sign != 0 : sign >= 0)
                print_error("%s against %s: %d\n", list[i], list[j], sign);
            assert_true(i == j ? sign == 0 : sign < 0);
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define INT(text)    "{\"v\": {\"$numberInt\": \"" text "\"}}"
#define LONG(text)   "{\"v\": {\"$numberLong\": \"" text "\"}}"
#define DBL(text)    "{\"v\": {\"$numberDouble\": \"" text "\"}}"
#define DEC(text)    "{\"v\": {\"$numberDecimal\": \"" text "\"}}"

static void compare_classes_follow_the_documented_order(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "{\"v\": {\"$minKey\": 1}}",
        "{\"v\": {\"$undefined\": true}}",
        "{\"v\": null}",
        INT("5"),
        "{\"v\": \"a\"}",
        "{\"v\": {\"a\": 1}}",
        "{\"v\": [1]}",
        "{\"v\": {\"$binary\": {\"base64\": \"AA==\", \"subType\": \"00\"}}}",
        "{\"v\": {\"$oid\": \"000000000000000000000000\"}}",
        "{\"v\": false}",
        "{\"v\": {\"$date\": {\"$numberLong\": \"-1\"}}}",
        "{\"v\": {\"$timestamp\": {\"t\": 0, \"i\": 1}}}",
        "{\"v\": {\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}}",
        "{\"v\": {\"$dbPointer\": {\"$ref\": \"a\", \"$id\": {\"$oid\": \"000000000000000000000000\"}}}}",
        "{\"v\": {\"$code\": \"a\"}}",
        "{\"v\": {\"$code\": \"a\", \"$scope\": {}}}",
        "{\"v\": {\"$maxKey\": 1}}",
    };
    assert_ascending(ascending, COUNT(ascending));
}

static void compare_numbers_is_exact_across_types(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        DBL("NaN"),
        DBL("-Infinity"),
        DEC("-1E+400"),
        DBL("-1.7976931348623157e308"),
        LONG("-9223372036854775808"),
        LONG("-9007199254740993"),
        DBL("-9007199254740992"),
        DEC("-1.1"),
        INT("-1"),
        DEC("-1E-400"),
        INT("0"),
        DEC("1E-6176"),
        DBL("4.9406564584124654e-324"),
        DEC("0.1"), /* the double 0.1 is a little larger */
        DBL("0.1"),
        DEC("0.1000000000000000055511151231257828"),
        DBL("0.3"), /* and the double 0.3 a little smaller */
        DEC("0.3"),
        INT("1"),
        DBL("1.5"),
        DBL("9007199254740992"),
        DEC("9007199254740992.5"),
        LONG("9007199254740993"),
        DBL("9007199254740994"),
        DBL("9223372036854774784"),
        LONG("9223372036854775807"),
        DEC("9223372036854775807.5"),
        DBL("9223372036854775808"),
        DEC("9223372036854775808.5"),
        DBL("1e23"), /* is 99999999999999991611392 */
        DEC("1E+23"),
        DBL("1.7976931348623157e308"),
        DEC("1.797693134862315708145274237317044E+308"),
        DEC("9.999999999999999999999999999999999E+6144"),
        DBL("Infinity"),
    };
    assert_ascending(ascending, COUNT(ascending));
}

static void compare_equal_numbers_of_all_types_gives_zero(void **state)
{
    (void)state;
    assert_int_equal(compare_json(INT("1"), DBL("1.0")), 0);
    assert_int_equal(compare_json(INT("1"), LONG("1")), 0);
    assert_int_equal(compare_json(INT("1"), DEC("1.000")), 0);
    assert_int_equal(compare_json(DBL("0.0"), DBL("-0.0")), 0);
    assert_int_equal(compare_json(INT("0"), DEC("-0E+3")), 0);
    assert_int_equal(compare_json(DBL("NaN"), DEC("NaN")), 0);
    assert_int_equal(compare_json(DBL("-Infinity"), DEC("-Infinity")), 0);
    assert_int_equal(compare_json(DBL("0.5"), DEC("0.50")), 0);
    assert_int_equal(compare_json(DBL("9223372036854775808"), DEC("9223372036854775808")), 0);
    assert_int_equal(compare_json(LONG("9007199254740993"), DEC("9007199254740993")), 0);
}

static void compare_strings_goes_by_bytes_then_length(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "{\"v\": \"\"}",         "{\"v\": \"A\"}",         "{\"v\": \"a\"}",
        "{\"v\": \"a\\u0000\"}", "{\"v\": \"a\\u0000b\"}", "{\"v\": \"ab\"}",
        "{\"v\": \"\\u00e9\"}",  "{\"v\": \"\\uffee\"}",   "{\"v\": \"\\ud83d\\ude00\"}",
    };
    assert_ascending(ascending, COUNT(ascending));
    assert_int_equal(compare_json("{\"v\": \"a\"}", "{\"v\": {\"$symbol\": \"a\"}}"), 0);
}

static void compare_documents_goes_by_class_then_name_then_value(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "{\"v\": {}}",
        "{\"v\": {\"b\": null}}",
        "{\"v\": {\"z\": 1}}", /* number below string, whatever the names */
        "{\"v\": {\"a\": \"x\"}}",
        "{\"v\": {\"a\": \"x\", \"b\": 1}}",
        "{\"v\": {\"b\": \"\"}}",
    };
    assert_ascending(ascending, COUNT(ascending));
}

static void compare_arrays_goes_by_element_then_length(void **state)
{
    (void)state;
    static const char *const ascending[] = {"{\"v\": []}",  "{\"v\": [1]}",     "{\"v\": [1, 1]}",
                                            "{\"v\": [2]}", "{\"v\": [\"a\"]}", "{\"v\": [[]]}"};
    assert_ascending(ascending, COUNT(ascending));
}

static void compare_binary_goes_by_length_subtype_bytes(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "{\"v\": {\"$binary\": {\"base64\": \"\", \"subType\": \"80\"}}}",
        "{\"v\": {\"$binary\": {\"base64\": \"/w==\", \"subType\": \"00\"}}}",
        "{\"v\": {\"$binary\": {\"base64\": \"AA==\", \"subType\": \"05\"}}}",
        "{\"v\": {\"$binary\": {\"base64\": \"AAA=\", \"subType\": \"00\"}}}",
    };
    assert_ascending(ascending, COUNT(ascending));
}

static void compare_dates_signed_and_timestamps_unsigned(void **state)
{
    (void)state;
    assert_true(compare_json("{\"v\": {\"$date\": {\"$numberLong\": \"-5\"}}}",
                             "{\"v\": {\"$date\": {\"$numberLong\": \"5\"}}}") < 0);
    assert_true(compare_json("{\"v\": {\"$timestamp\": {\"t\": 1, \"i\": 9}}}",
                             "{\"v\": {\"$timestamp\": {\"t\": 4294967295, \"i\": 1}}}") < 0);
}

static int ignore_case(const void *arg, const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    (void)arg;
    int order = strncasecmp(a, b, a_len < b_len ? a_len : b_len);
    return order != 0 ? order : (int)a_len - (int)b_len;
}

static void compare_with_an_order_uses_it_at_every_depth(void **state)
{
    (void)state;
    bson_t *a = from_json("{\"v\": {\"a\": [\"X\"]}}");
    bson_t *b = from_json("{\"v\": {\"a\": [\"x\"]}}");
    struct bval a_val = random_value_of(a);
    struct bval b_val = random_value_of(b);
    struct bval_order order = {.compare_strings = ignore_case};
    assert_int_equal(bval_compare_ordered(&a_val, &b_val, &order), 0);
    assert_true(bval_compare(&a_val, &b_val) < 0);
    bson_destroy(a);
    bson_destroy(b);
}

/* Transitivity over random triples: the order is a total one. */
static void compare_random_numbers_is_transitive(void **state)
{
    (void)state;
    struct prng prng = {42};
    for (int i = 0; i < 20000; i++) {
        bson_t *docs[3];
        struct bval vals[3];
        for (int n = 0; n < 3; n++) {
            docs[n] = random_number_new(&prng);
            vals[n] = random_value_of(docs[n]);
        }
        if (bval_compare(&vals[0], &vals[1]) <= 0 && bval_compare(&vals[1], &vals[2]) <= 0)
            assert_true(bval_compare(&vals[0], &vals[2]) <= 0);
        for (int n = 0; n < 3; n++)
            bson_destroy(docs[n]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare_classes_follow_the_documented_order),
        cmocka_unit_test(compare_numbers_is_exact_across_types),
        cmocka_unit_test(compare_equal_numbers_of_all_types_gives_zero),
        cmocka_unit_test(compare_strings_goes_by_bytes_then_length),
        cmocka_unit_test(compare_documents_goes_by_class_then_name_then_value),
        cmocka_unit_test(compare_arrays_goes_by_element_then_length),
        cmocka_unit_test(compare_binary_goes_by_length_subtype_bytes),
        cmocka_unit_test(compare_dates_signed_and_timestamps_unsigned),
        cmocka_unit_test(compare_with_an_order_uses_it_at_every_depth),
        cmocka_unit_test(compare_random_numbers_is_transitive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
