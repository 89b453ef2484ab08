#include "tests/unit/command/command_env.h"

#include "command/fields.h"

/* One reader called on field "f" of a document; what the value is, as a number where it is one. */
struct outcome {
    bool good;
    int32_t code;
    int64_t value;
};

typedef bool read_i64(struct bdoc doc, const char *name, int64_t *out, struct err *err);

static struct outcome run_i64(read_i64 *reader, const char *doc_json)
{
    bson_t *doc = json(doc_json);
    struct err err = {0};
    struct outcome out = {.value = -77};
    out.good = reader(bdoc_of(doc), "f", &out.value, &err);
    out.code = err.code;
    bson_destroy(doc);
    return out;
}

static bool in_0_to_10(struct bdoc doc, const char *name, int64_t *out, struct err *err)
{
    return field_get_i64_in(doc, name, 0, 10, out, err);
}

static bool as_bool(struct bdoc doc, const char *name, int64_t *out, struct err *err)
{
    bool value = false;
    if (!field_get_bool(doc, name, &value, err))
        return false;
    if (bdoc_has(doc, name))
        *out = value;
    return true;
}

static void fields_numbers_are_read_with_the_right_codes(void **state)
{
    (void)state;
    static const struct {
        read_i64 *reader;
        const char *doc;
        struct outcome expected;
    } cases[] = {
        {field_get_i64, "{}", {true, 0, -77}},
        {field_get_i64, "{\"f\": null}", {true, 0, -77}},
        {field_get_i64, "{\"f\": 5}", {true, 0, 5}},
        {field_get_i64, "{\"f\": 5.0}", {true, 0, 5}},
        {field_get_i64, "{\"f\": {\"$numberLong\": \"5000000000\"}}", {true, 0, 5000000000}},
        {field_get_i64, "{\"f\": {\"$numberDecimal\": \"7\"}}", {true, 0, 7}},
        {field_get_i64, "{\"f\": 5.5}", {false, ERR_FailedToParse, -77}},
        {field_get_i64, "{\"f\": 1e30}", {false, ERR_FailedToParse, -77}},
        {field_get_i64, "{\"f\": \"5\"}", {false, ERR_TypeMismatch, -77}},
        {field_get_i64, "{\"f\": true}", {false, ERR_TypeMismatch, -77}},
        {in_0_to_10, "{}", {true, 0, -77}},
        {in_0_to_10, "{\"f\": null}", {true, 0, -77}},
        {in_0_to_10, "{\"f\": 0}", {true, 0, 0}},
        {in_0_to_10, "{\"f\": 10}", {true, 0, 10}},
        {in_0_to_10, "{\"f\": 11}", {false, COMMAND_ERR_OUT_OF_RANGE, -77}},
        {in_0_to_10, "{\"f\": -1}", {false, COMMAND_ERR_OUT_OF_RANGE, -77}},
        {in_0_to_10, "{\"f\": \"a\"}", {false, ERR_TypeMismatch, -77}},
        {as_bool, "{}", {true, 0, -77}},
        {as_bool, "{\"f\": true}", {true, 0, 1}},
        {as_bool, "{\"f\": false}", {true, 0, 0}},
        {as_bool, "{\"f\": 2}", {true, 0, 1}},
        {as_bool, "{\"f\": 0.0}", {true, 0, 0}},
        {as_bool, "{\"f\": \"true\"}", {false, ERR_TypeMismatch, -77}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome got = run_i64(cases[i].reader, cases[i].doc);
        if (got.good != cases[i].expected.good || got.code != cases[i].expected.code ||
            (got.good && got.value != cases[i].expected.value))
            fail_msg("case %zu %s: %d %d %lld", i, cases[i].doc, got.good, got.code, (long long)got.value);
    }
}

enum kind { DOC, ARRAY, STR, UUID, OID, TIMESTAMP, DATE, KINDS };

/* 0: read; otherwise the error's code. */
static int32_t read_as(enum kind kind, struct bdoc doc)
{
    struct err err = {0};
    struct bdoc as_doc;
    const char *as_str;
    const uint8_t *as_uuid;
    const bson_oid_t *as_oid;
    uint64_t as_timestamp;
    int64_t as_date;
    bool good = false;
    switch (kind) {
    case DOC:
        good = field_get_doc(doc, "f", &as_doc, &err);
        break;
    case ARRAY:
        good = field_get_array(doc, "f", &as_doc, &err);
        break;
    case STR:
        good = field_get_str(doc, "f", &as_str, &err);
        break;
    case UUID:
        good = field_get_uuid(doc, "f", &as_uuid, &err);
        break;
    case OID:
        good = field_get_oid(doc, "f", &as_oid, &err);
        break;
    case TIMESTAMP:
        good = field_get_timestamp(doc, "f", &as_timestamp, &err);
        break;
    case DATE:
        good = field_get_date(doc, "f", &as_date, &err);
        break;
    case KINDS:
        break;
    }
    return good ? 0 : err.code;
}

static void fields_of_another_type_are_mismatches(void **state)
{
    (void)state;
    static const char *const docs[KINDS] = {
        [DOC] = "{\"f\": {\"a\": 1}}",
        [ARRAY] = "{\"f\": [1]}",
        [STR] = "{\"f\": \"text\"}",
        [UUID] = "{\"f\": {\"$binary\": {\"base64\": \"AAECAwQFBgcICQoLDA0ODw==\", \"subType\": \"04\"}}}",
        [OID] = "{\"f\": {\"$oid\": \"507f1f77bcf86cd799439011\"}}",
        [TIMESTAMP] = "{\"f\": {\"$timestamp\": {\"t\": 1, \"i\": 2}}}",
        [DATE] = "{\"f\": {\"$date\": {\"$numberLong\": \"5\"}}}",
    };
    for (int value = 0; value < KINDS; value++) {
        bson_t *doc = json(docs[value]);
        for (int kind = 0; kind < KINDS; kind++)
            assert_int_equal(read_as((enum kind)kind, bdoc_of(doc)), kind == value ? 0 : ERR_TypeMismatch);
        bson_destroy(doc);
    }
}

static void fields_short_uuid_and_string_with_nul_are_refused(void **state)
{
    (void)state;
    bson_t *doc = json("{\"f\": {\"$binary\": {\"base64\": \"AAEC\", \"subType\": \"04\"}}}");
    assert_int_equal(read_as(UUID, bdoc_of(doc)), ERR_InvalidUUID);
    bson_destroy(doc);
    bson_t with_nul;
    bson_init(&with_nul);
    bson_append_utf8(&with_nul, "f", -1, "a\0b", 3);
    assert_int_equal(read_as(STR, bdoc_of(&with_nul)), ERR_BadValue);
    bson_destroy(&with_nul);
}

static void fields_unknown_is_40415_generic_is_not(void **state)
{
    (void)state;
    static const char *const known[] = {"find", "filter", NULL};
    struct err err;
    bson_t *doc =
        json("{\"find\": \"c\", \"filter\": {}, \"$db\": \"d\", \"lsid\": {}, \"maxTimeMS\": 1, \"comment\": 1,"
             "\"$sherdVersion\": {}, \"$readPreference\": {}, \"writeConcern\": {}, \"apiVersion\": \"1\"}");
    assert_true(fields_check_known(bdoc_of(doc), "find", known, &err));
    bson_destroy(doc);
    doc = json("{\"find\": \"c\", \"fliter\": {}}");
    assert_false(fields_check_known(bdoc_of(doc), "find", known, &err));
    assert_int_equal(err.code, COMMAND_ERR_FIELD_UNKNOWN);
    assert_string_equal(err.msg, "BSON field 'find.fliter' is an unknown field.");
    bson_destroy(doc);
}

static void fields_that_nobody_reads_are_of_the_right_type_all_the_same(void **state)
{
    (void)state;
    static const char *const known[] = {"find", "allowDiskUse", NULL};
    struct err err;
    bson_t *good = json("{\"find\": \"c\", \"allowDiskUse\": null}");
    bson_t *bad = json("{\"find\": \"c\", \"allowDiskUse\": \"x\"}");
    assert_true(fields_check_known(bdoc_of(good), "find", known, &err));
    assert_false(fields_check_known(bdoc_of(bad), "find", known, &err));
    assert_int_equal(err.code, ERR_TypeMismatch);
    bson_destroy(good);
    bson_destroy(bad);
}

static void fields_behind_a_command_name_of_any_spelling_are_checked(void **state)
{
    (void)state;
    static const char *const known[] = {"filter", NULL};
    struct err err;
    bson_t *good = json("{\"FiNd\": \"c\", \"filter\": {}}");
    bson_t *bad = json("{\"find\": \"c\", \"find\": 1}");
    assert_true(fields_check_arguments(bdoc_of(good), "find", known, &err));
    assert_false(fields_check_arguments(bdoc_of(bad), "find", known, &err));
    assert_int_equal(err.code, COMMAND_ERR_FIELD_UNKNOWN);
    bson_destroy(good);
    bson_destroy(bad);
}

static void fields_missing_or_null_is_40414(void **state)
{
    (void)state;
    struct err err;
    bson_t *doc = json("{\"a\": 0, \"n\": null}");
    assert_true(field_require(bdoc_of(doc), "a", &err));
    assert_false(field_require(bdoc_of(doc), "b", &err));
    assert_int_equal(err.code, COMMAND_ERR_FIELD_MISSING);
    assert_false(field_require(bdoc_of(doc), "n", &err));
    assert_int_equal(err.code, COMMAND_ERR_FIELD_MISSING);
    bson_destroy(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_numbers_are_read_with_the_right_codes),
        cmocka_unit_test(fields_of_another_type_are_mismatches),
        cmocka_unit_test(fields_short_uuid_and_string_with_nul_are_refused),
        cmocka_unit_test(fields_unknown_is_40415_generic_is_not),
        cmocka_unit_test(fields_that_nobody_reads_are_of_the_right_type_all_the_same),
        cmocka_unit_test(fields_behind_a_command_name_of_any_spelling_are_checked),
        cmocka_unit_test(fields_missing_or_null_is_40414),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
