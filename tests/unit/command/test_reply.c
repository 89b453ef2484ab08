#include "tests/unit/command/command_env.h"

#include "command/reply.h"

static void expect_doc(const bson_t *doc, const char *expected_json)
{
    answered = bson_copy(doc);
    expect_answer(expected_json);
}

static void reply_error_has_the_envelope(void **state)
{
    (void)state;
    struct err err = {0};
    static const char *const labels[] = {"RetryableWriteError"};
    bson_t reply;
    err_set(&err, ERR_DuplicateKey, "E11000 duplicate");
    bson_t *details = json("{\"keyPattern\": {\"a\": 1}, \"keyValue\": {\"a\": 5}}");
    err_set_details(&err, bson_get_data(details), details->len);
    bson_init(&reply);
    reply_append_error(&reply, &err, labels, 1);
    expect_doc(&reply,
               "{\"ok\": 0.0, \"errmsg\": \"E11000 duplicate\", \"code\": 11000, \"codeName\": \"DuplicateKey\","
               "\"errorLabels\": [\"RetryableWriteError\"], \"keyPattern\": {\"a\": 1}, \"keyValue\": {\"a\": 5}}");
    bson_destroy(&reply);
    bson_destroy(details);
}

/* What one daemon writes, the other reads back. */
static void reply_check_reads_an_error_back(void **state)
{
    (void)state;
    struct err err = {0};
    struct err back = {0};
    bson_t reply;
    err_set(&err, ERR_StaleConfig, "stale");
    bson_t *details = json("{\"ns\": \"a.b\"}");
    err_set_details(&err, bson_get_data(details), details->len);
    bson_init(&reply);
    reply_append_error(&reply, &err, NULL, 0);
    assert_false(reply_check(bdoc_of(&reply), &back));
    assert_int_equal(back.code, ERR_StaleConfig);
    assert_string_equal(back.msg, "stale");
    assert_int_equal(back.details_len, details->len);
    assert_memory_equal(back.details, bson_get_data(details), details->len);
    bson_destroy(&reply);
    bson_destroy(details);
}

static void reply_check_takes_any_ok(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        int32_t code; /* 0: good */
    } cases[] = {
        {"{\"ok\": 1}", 0},
        {"{\"ok\": 1.0}", 0},
        {"{\"ok\": true}", 0},
        {"{\"ok\": {\"$numberLong\": \"1\"}}", 0},
        {"{\"ok\": 0}", ERR_UnknownError},
        {"{}", ERR_UnknownError},
        {"{\"ok\": 0, \"code\": 26}", 26},
        {"{\"ok\": 0, \"code\": 26.0, \"errmsg\": 5}", 26},
        {"{\"ok\": 0, \"code\": \"x\"}", ERR_UnknownError},
        {"{\"ok\": 0, \"code\": 1e20}", ERR_UnknownError},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {0};
        bson_t *reply = json(cases[i].reply);
        bool good = reply_check(bdoc_of(reply), &err);
        assert_int_equal(good, cases[i].code == 0);
        assert_int_equal(err.code, cases[i].code);
        bson_destroy(reply);
    }
}

static void reply_check_leaves_out_details_that_do_not_fit(void **state)
{
    (void)state;
    bson_t reply;
    struct err err = {0};
    char text[ERR_DETAILS_MAX + 1];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bson_init(&reply);
    BSON_APPEND_INT32(&reply, "ok", 0);
    BSON_APPEND_UTF8(&reply, "huge", text);
    BSON_APPEND_UTF8(&reply, "small", "s");
    assert_false(reply_check(bdoc_of(&reply), &err));
    struct bdoc details = {.data = err.details, .len = err.details_len};
    assert_true(bdoc_has(details, "small"));
    assert_false(bdoc_has(details, "huge"));
    bson_destroy(&reply);
}

static void write_result_is_reported(void **state)
{
    (void)state;
    struct write_result result;
    bson_t reply;
    write_result_init(&result, false);
    result.n = 3;
    bson_init(&reply);
    write_result_append(&result, &reply);
    expect_doc(&reply, "{\"n\": 3}");
    bson_destroy(&reply);
    write_result_deinit(&result);

    write_result_init(&result, true);
    result.n = 2;
    result.n_modified = 1;
    bson_t *id = json("{\"_id\": \"x\"}");
    struct bval val;
    assert_true(bdoc_find(bdoc_of(id), "_id", &val));
    write_result_add_upserted(&result, 4, &val);
    struct err err = {0};
    err_set(&err, ERR_ImmutableField, "immutable");
    write_result_add_error(&result, 7, &err);
    bson_init(&reply);
    write_result_append(&result, &reply);
    expect_doc(&reply, "{\"n\": 2, \"nModified\": 1, \"upserted\": [{\"index\": 4, \"_id\": \"x\"}],"
                       "\"writeErrors\": [{\"index\": 7, \"code\": 66, \"errmsg\": \"immutable\"}]}");
    bson_destroy(&reply);
    bson_destroy(id);
    write_result_deinit(&result);
}

static void write_result_bounds_the_text_of_errors(void **state)
{
    (void)state;
    struct write_result result;
    struct err err = {0};
    char text[500];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_DuplicateKey, "%s", text);
    write_result_init(&result, false);
    for (int32_t i = 0; i < 100000; i++)
        write_result_add_error(&result, i, &err);
    assert_int_equal(result.error_count, 100000);
    assert_true(result.errors.len < 8 << 20);
    bson_t reply;
    bson_init(&reply);
    write_result_append(&result, &reply);
    assert_true(bdoc_validate(bson_get_data(&reply), reply.len, 10, &err));
    bson_destroy(&reply);
    write_result_deinit(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reply_error_has_the_envelope),
        cmocka_unit_test(reply_check_reads_an_error_back),
        cmocka_unit_test(reply_check_takes_any_ok),
        cmocka_unit_test(reply_check_leaves_out_details_that_do_not_fit),
        cmocka_unit_test(write_result_is_reported),
        cmocka_unit_test(write_result_bounds_the_text_of_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
