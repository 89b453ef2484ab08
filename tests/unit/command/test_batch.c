#include "tests/unit/command/command_env.h"

#include "command/batch.h"
#include "command/fields.h"

static int32_t init_code(struct command_ctx *ctx, struct batch *batch)
{
    struct err err = {0};
    assert_true(command_parse(ctx, &err));
    return batch_init(batch, ctx, "documents", &err) ? 0 : err.code;
}

/* The sum of the fields "a". */
static int64_t sum(const struct batch *batch)
{
    struct batch_iter iter;
    struct bdoc doc;
    int64_t total = 0;
    uint32_t count = 0;
    for (batch_iter_init(&iter, batch); batch_next(&iter, &doc); count++) {
        struct bval val;
        int64_t number = 0;
        assert_int_equal(iter.index, count + 1);
        assert_true(bdoc_find(doc, "a", &val) && bval_to_i64(&val, &number));
        total += number;
    }
    assert_int_equal(count, batch->count);
    return total;
}

static void batch_array_and_sequence_read_alike(void **state)
{
    (void)state;
    struct batch batch;
    struct command_ctx *ctx = ctx_of(
        "{\"insert\": \"c\", \"documents\": [{\"a\": 1}, {\"a\": 2}, {\"a\": 3}], \"$db\": \"d\"}", NULL, NULL, 0);
    assert_int_equal(init_code(ctx, &batch), 0);
    assert_false(batch.in_sequence);
    assert_int_equal(sum(&batch), 6);
    command_ctx_free(ctx);
    ctx = ctx_of("{\"insert\": \"c\", \"$db\": \"d\"}", "documents", "{\"a\": 7}", 5);
    assert_int_equal(init_code(ctx, &batch), 0);
    assert_true(batch.in_sequence);
    assert_int_equal(sum(&batch), 35);
    command_ctx_free(ctx);
}

static void batch_wrong_ones_have_their_codes(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *sequence;
        int count;
        int32_t code;
    } cases[] = {
        {"{\"insert\": \"c\", \"$db\": \"d\"}", NULL, 0, COMMAND_ERR_FIELD_MISSING},
        {"{\"insert\": \"c\", \"$db\": \"d\", \"documents\": []}", NULL, 0, ERR_InvalidLength},
        {"{\"insert\": \"c\", \"$db\": \"d\"}", "documents", 0, ERR_InvalidLength},
        {"{\"insert\": \"c\", \"$db\": \"d\"}", "documents", COMMAND_BATCH_MAX, 0},
        {"{\"insert\": \"c\", \"$db\": \"d\"}", "documents", COMMAND_BATCH_MAX + 1, ERR_InvalidLength},
        {"{\"insert\": \"c\", \"$db\": \"d\"}", "updates", 1, COMMAND_ERR_FIELD_MISSING},
        {"{\"insert\": \"c\", \"$db\": \"d\", \"documents\": {}}", NULL, 0, ERR_TypeMismatch},
        {"{\"insert\": \"c\", \"$db\": \"d\", \"documents\": [1]}", NULL, 0, ERR_TypeMismatch},
        {"{\"insert\": \"c\", \"$db\": \"d\", \"documents\": [{}, []]}", NULL, 0, ERR_TypeMismatch},
        {"{\"insert\": \"c\", \"$db\": \"d\", \"documents\": [{}]}", "documents", 1, ERR_FailedToParse},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct batch batch;
        struct command_ctx *ctx = ctx_of(cases[i].body, cases[i].sequence, "{}", cases[i].count);
        assert_int_equal(init_code(ctx, &batch), cases[i].code);
        command_ctx_free(ctx);
    }
}

static void batch_sequences_that_the_command_does_not_know_are_refused(void **state)
{
    (void)state;
    static const char *const known[] = {"documents", NULL};
    struct err err = {0};
    struct command_ctx *ctx = ctx_of("{\"insert\": \"c\", \"$db\": \"d\"}", "documents", "{}", 1);
    assert_true(command_parse(ctx, &err) && batch_check_sequences(ctx, known, &err));
    command_ctx_free(ctx);
    ctx = ctx_of("{\"insert\": \"c\", \"documents\": [{}], \"$db\": \"d\"}", "nonsense", "{}", 1);
    assert_true(command_parse(ctx, &err));
    assert_false(batch_check_sequences(ctx, known, &err));
    assert_int_equal(err.code, COMMAND_ERR_FIELD_UNKNOWN);
    command_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_array_and_sequence_read_alike),
        cmocka_unit_test(batch_wrong_ones_have_their_codes),
        cmocka_unit_test(batch_sequences_that_the_command_does_not_know_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
