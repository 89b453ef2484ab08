/* Specifications: what is accepted, what is refused with which code, and the form in which it is printed. */
#include "bson/extjson.h"
#include "collation/collation.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static bson_t *from_json(const char *json)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (doc == NULL)
        fail_msg("%s: %s", json, error.message);
    return doc;
}

static bool open_json(const char *json, struct collation **out, struct err *err)
{
    bson_t *spec = from_json(json);
    bool ok = collation_open(bdoc_of(spec), out, err);
    bson_destroy(spec);
    return ok;
}

/* The normal form of a specification equals a document, but for the version, which is ICU's. */
static void expect_normal(const char *json, const char *normal)
{
    struct collation *collation;
    struct err err = {0};
    if (!open_json(json, &collation, &err))
        fail_msg("%s: %d %s", json, err.code, err.msg);
    bson_t *expected = from_json(normal);
    if (collation != NULL)
        BSON_APPEND_UTF8(expected, "version", collation_version());
    bson_t got = BSON_INITIALIZER;
    collation_normal_spec(collation, &got);
    if (!bson_equal(&got, expected)) {
        char *text = bson_as_relaxed_extended_json(&got, NULL);
        fail_msg("%s: %s", json, text);
    }
    bson_destroy(&got);
    bson_destroy(expected);
    collation_unref(collation);
}

#define REST                                                                                                           \
    "\"numericOrdering\": false, \"alternate\": \"non-ignorable\", \"maxVariable\": \"punct\", "                       \
    "\"normalization\": false, "

static void spec_normal_form_names_every_option(void **state)
{
    (void)state;
    expect_normal("{\"locale\": \"en\"}", "{\"locale\": \"en\", \"caseLevel\": false, \"caseFirst\": \"off\", "
                                          "\"strength\": 3, " REST "\"backwards\": false}");
    expect_normal("{\"strength\": {\"$numberDouble\": \"2\"}, \"locale\": \"de@collation=phonebook\"}",
                  "{\"locale\": \"de@collation=phonebook\", \"caseLevel\": false, \"caseFirst\": \"off\", "
                  "\"strength\": 2, " REST "\"backwards\": false}");
    expect_normal("{\"locale\": \"sv\", \"caseLevel\": true, \"caseFirst\": \"lower\", \"strength\": 1, "
                  "\"numericOrdering\": true, \"alternate\": \"shifted\", \"maxVariable\": \"space\", "
                  "\"normalization\": true, \"backwards\": false}",
                  "{\"locale\": \"sv\", \"caseLevel\": true, \"caseFirst\": \"lower\", \"strength\": 1, "
                  "\"numericOrdering\": true, \"alternate\": \"shifted\", \"maxVariable\": \"space\", "
                  "\"normalization\": true, \"backwards\": false}");
    expect_normal("{\"locale\": \"simple\"}", "{\"locale\": \"simple\"}");
}

static void spec_without_options_takes_those_of_the_locale(void **state)
{
    (void)state;
    expect_normal("{\"locale\": \"fr_CA\"}", "{\"locale\": \"fr_CA\", \"caseLevel\": false, \"caseFirst\": \"off\", "
                                             "\"strength\": 3, " REST "\"backwards\": true}");
    expect_normal("{\"locale\": \"fr_CA\", \"backwards\": false}",
                  "{\"locale\": \"fr_CA\", \"caseLevel\": false, \"caseFirst\": \"off\", \"strength\": 3, " REST
                  "\"backwards\": false}");
    expect_normal("{\"locale\": \"da\"}", "{\"locale\": \"da\", \"caseLevel\": false, \"caseFirst\": \"upper\", "
                                          "\"strength\": 3, " REST "\"backwards\": false}");
}

static void spec_malformed_is_refused_with_code(void **state)
{
    static const struct {
        const char *spec;
        int code;
    } cases[] = {
        {"{}", 40414},
        {"{\"strength\": 2}", 40414},
        {"{\"locale\": 1}", 14},
        {"{\"locale\": null}", 14},
        {"{\"locale\": \"\"}", 2},
        {"{\"locale\": \"a\\u0000b\"}", 2},
        {"{\"locale\": \"nowhere\"}", 2},
        {"{\"locale\": \"EN\"}", 2},
        {"{\"locale\": \"en-US\"}", 2},
        {"{\"locale\": \"de@collation=nope\"}", 2},
        {"{\"locale\": \"en@colStrength=primary\"}", 2},
        {"{\"locale\": \"x_invalid\"}", 2},
        {"{\"locale\": \"i-invalid\"}", 2},
        {"{\"locale\": \"en\", \"locale\": \"de\"}", 40413},
        {"{\"locale\": \"en\", \"nope\": 1}", 40415},
        {"{\"locale\": \"en\", \"strength\": 0}", 51024},
        {"{\"locale\": \"en\", \"strength\": 6}", 51024},
        {"{\"locale\": \"en\", \"strength\": 1.5}", 2},
        {"{\"locale\": \"en\", \"strength\": \"1\"}", 14},
        {"{\"locale\": \"en\", \"caseLevel\": 1}", 14},
        {"{\"locale\": \"en\", \"caseFirst\": \"both\"}", 2},
        {"{\"locale\": \"en\", \"caseFirst\": true}", 14},
        {"{\"locale\": \"en\", \"alternate\": \"x\"}", 2},
        {"{\"locale\": \"en\", \"maxVariable\": \"symbol\"}", 2},
        {"{\"locale\": \"en\", \"numericOrdering\": \"yes\"}", 14},
        {"{\"locale\": \"en\", \"version\": \"1.0\"}", 161},
        {"{\"locale\": \"en\", \"version\": 57}", 14},
        {"{\"locale\": \"simple\", \"strength\": 2}", 9},
        {"{\"locale\": \"en\", \"strength\": 1, \"backwards\": true}", 2},
        {"{\"locale\": \"fr_CA\", \"strength\": 1}", 2}, /* its locale's own options count */
        {"{\"locale\": \"da\", \"strength\": 2}", 2},
        {"{\"locale\": \"en\", \"strength\": 2, \"caseFirst\": \"upper\"}", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct collation *collation;
        struct err err = {0};
        if (open_json(cases[i].spec, &collation, &err))
            fail_msg("%s was accepted", cases[i].spec);
        if (err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].spec, err.code, err.msg);
    }
}

static void spec_names_the_locale_that_was_meant(void **state)
{
    (void)state;
    struct collation *collation;
    struct err err = {0};
    assert_false(open_json("{\"locale\": \"en-US\"}", &collation, &err));
    assert_non_null(strstr(err.msg, "Did you mean 'en_US'?"));
}

static void spec_of_the_same_meaning_is_the_same_collation(void **state)
{
    (void)state;
    struct collation *one;
    struct collation *two;
    struct collation *other;
    struct err err = {0};
    assert_true(open_json("{\"locale\": \"en\", \"strength\": 2}", &one, &err));
    assert_true(open_json("{\"strength\": 2, \"caseFirst\": \"off\", \"locale\": \"en\"}", &two, &err));
    assert_true(open_json("{\"locale\": \"en\"}", &other, &err));
    assert_ptr_equal(one, two);
    assert_ptr_not_equal(one, other);
    assert_true(bval_order_same(collation_order(one), collation_order(two)));
    assert_false(bval_order_same(collation_order(one), collation_order(other)));
    assert_false(bval_order_same(collation_order(one), collation_order(NULL)));
    assert_true(bval_order_same(NULL, NULL));
    collation_unref(one);
    collation_unref(two);
    collation_unref(other);
}

static void spec_stored_by_another_version_opens(void **state)
{
    (void)state;
    struct collation *stored;
    struct collation *now;
    struct err err = {0};
    bson_t *spec = from_json("{\"locale\": \"sv\", \"strength\": 1, \"version\": \"57.1\"}");
    assert_false(collation_open(bdoc_of(spec), &stored, &err));
    assert_true(collation_open_stored(bdoc_of(spec), &stored, &err));
    assert_false(collation_open(bdoc_of(spec), &now, &err)); /* having been stored doesn't make it acceptable */
    assert_true(open_json("{\"locale\": \"sv\", \"strength\": 1}", &now, &err));
    assert_ptr_equal(stored, now);
    collation_unref(stored);
    collation_unref(now);
    bson_destroy(spec);
    bson_t *bad = from_json("{\"locale\": \"nowhere\"}");
    assert_false(collation_open_stored(bdoc_of(bad), &stored, &err));
    assert_int_equal(err.code, ERR_BadValue);
    bson_destroy(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_normal_form_names_every_option),
        cmocka_unit_test(spec_without_options_takes_those_of_the_locale),
        cmocka_unit_test(spec_malformed_is_refused_with_code),
        cmocka_unit_test(spec_names_the_locale_that_was_meant),
        cmocka_unit_test(spec_of_the_same_meaning_is_the_same_collation),
        cmocka_unit_test(spec_stored_by_another_version_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
