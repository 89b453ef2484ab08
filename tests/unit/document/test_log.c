#include "tests/unit/cmocka_all.h"

#include "base/clock.h"
#include "base/mem.h"
#include "document/log.h"

#include <string.h>

/* A log whose outcome the test chooses. */
struct fake {
    enum document_outcome outcome;
    bool silent; /* never answers */
    document_done_cb *done;
    void *done_arg;
};

static void propose(void *arg, uint8_t *command, size_t len, document_done_cb *done, void *done_arg)
{
    struct fake *fake = arg;
    struct document_result result = {
        .outcome = fake->outcome, .ok = fake->outcome == DOCUMENT_APPLIED, .data = command, .len = len};
    if (!result.ok)
        err_set(&result.err, ERR_NotWritablePrimary, "not the leader");
    fake->done = done;
    fake->done_arg = done_arg;
    if (!fake->silent)
        done(done_arg, &result);
    mem_free(command);
}

static void log_wait_gives_result_or_error(void **state)
{
    (void)state;
    struct fake fake = {.outcome = DOCUMENT_APPLIED};
    struct document_log log = {.arg = &fake, .propose = propose};
    struct buf result = BUF_INIT;
    struct err err;
    assert_true(document_log_wait(&log, mem_copy("abc", 3), 3, deadline_after_ms(1000), &result, &err));
    assert_int_equal(result.len, 3);
    assert_memory_equal(result.data, "abc", 3);
    fake.outcome = DOCUMENT_NOT_LEADER;
    assert_false(document_log_wait(&log, mem_copy("abc", 3), 3, deadline_after_ms(1000), NULL, &err));
    assert_int_equal(err.code, ERR_NotWritablePrimary);
    buf_deinit(&result);
}

static void log_wait_past_its_deadline_is_unknown(void **state)
{
    (void)state;
    struct fake fake = {.outcome = DOCUMENT_APPLIED, .silent = true};
    struct document_log log = {.arg = &fake, .propose = propose};
    struct document_result late = {.outcome = DOCUMENT_APPLIED, .ok = true};
    struct err err;
    assert_false(document_log_wait(&log, mem_copy("abc", 3), 3, deadline_after_ms(10), NULL, &err));
    assert_int_equal(err.code, ERR_InterruptedDueToReplStateChange);
    /* The answer that comes too late meets nobody, and frees what is left. */
    fake.done(fake.done_arg, &late);
}

static void log_result_survives_encoding_and_refuses_damage(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct document_result out;
    struct err err;
    document_busy_set(&err, "busy");
    document_result_encode_err(&bytes, &err);
    assert_true(document_result_parse(bytes.data, bytes.len, &out));
    assert_false(out.ok);
    assert_int_equal(out.err.code, ERR_LockBusy);
    assert_int_equal(out.err.details_len, err.details_len);
    for (size_t len = 0; len < bytes.len; len++)
        assert_false(document_result_parse(bytes.data, len, &out));
    buf_clear(&bytes);
    document_result_encode_ok_header(&bytes);
    buf_append(&bytes, "xy", 2);
    assert_true(document_result_parse(bytes.data, bytes.len, &out));
    assert_true(out.ok);
    assert_int_equal(out.len, 2);
    bytes.data[0] = 9;
    assert_false(document_result_parse(bytes.data, bytes.len, &out));
    buf_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_wait_gives_result_or_error),
        cmocka_unit_test(log_wait_past_its_deadline_is_unknown),
        cmocka_unit_test(log_result_survives_encoding_and_refuses_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
