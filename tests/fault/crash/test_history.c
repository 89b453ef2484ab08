#include "tests/unit/cmocka_all.h"

#include "history.h"

#include <string.h>

/* A history from a journal's text. */
static struct history *history_of(const char *journal)
{
    struct history *history = history_new();
    struct err err;
    if (!journal_parse(journal, history_add, history, &err)) {
        fail_msg("%s", err.msg);
    }
    return history;
}

static void see(struct history *history, const char *id, int64_t value)
{
    char pad[PAD_BYTES + 1];
    journal_pad(id, pad);
    history_observe(history, id, value, pad);
}

/* The report must show exactly one violation, of that kind. */
static void expect_one(struct history *history, enum violation what)
{
    struct history_report report;
    history_finish(history, NULL, NULL, &report);
    for (size_t i = 0; i < VIOLATION_COUNT; i++) {
        assert_int_equal(report.violations[i], i == what ? 1 : 0);
    }
    assert_false(history_report_clean(&report));
    history_free(history);
}

static void expect_clean(struct history *history)
{
    struct history_report report;
    history_finish(history, NULL, NULL, &report);
    assert_true(history_report_clean(&report));
    history_free(history);
}

static void history_of_what_was_written_is_clean(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n+ insert b 2\n= ok\n+ set b 3\n= ok\n+ insert c 4\n= ok\n"
                                         "+ delete c 0\n= ok\n+ counter k 0\n= ok\n+ inc k 5\n= ok\n+ inc k 2\n= ok\n");
    see(history, "a", 1);
    see(history, "b", 3);
    history_observe(history, "k", 7, NULL);
    struct history_report report;
    history_finish(history, NULL, NULL, &report);
    assert_true(history_report_clean(&report));
    assert_int_equal(report.expected, 2);
    assert_int_equal(report.observed, 2);
    assert_int_equal(report.counters, 1);
    assert_int_equal(report.acked, 8);
    history_free(history);
}

static void history_without_an_acknowledged_insert_is_lost(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n+ insert b 1\n= ok\n");
    see(history, "b", 1);
    expect_one(history, VIOLATION_LOST);
}

static void history_with_an_old_value_is_lost(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n+ set a 2\n= ok\n");
    see(history, "a", 1);
    expect_one(history, VIOLATION_LOST);
}

static void history_with_an_unknown_value_takes_both(void **state)
{
    (void)state;
    for (int64_t value = 1; value <= 3; value++) {
        struct history *history = history_of("+ insert a 1\n= ok\n+ set a 2\n= unknown\n");
        see(history, "a", value);
        if (value <= 2) {
            expect_clean(history);
        } else {
            expect_one(history, VIOLATION_LOST);
        }
    }
}

static void history_with_a_stranger_is_invented(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n");
    see(history, "a", 1);
    see(history, "z", 1);
    expect_one(history, VIOLATION_INVENTED);
    history = history_of("+ insert a 1\n= none\n");
    see(history, "a", 1);
    expect_one(history, VIOLATION_INVENTED);
}

static void history_with_a_deleted_document_is_resurrected(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n+ delete a 0\n= ok\n");
    see(history, "a", 1);
    expect_one(history, VIOLATION_RESURRECTED);
}

static void history_with_a_document_twice_is_duplicate(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n");
    see(history, "a", 1);
    see(history, "a", 1);
    expect_one(history, VIOLATION_DUPLICATE);
}

static void history_counter_outside_its_bounds_shows(void **state)
{
    (void)state;
    const char *journal = "+ counter k 0\n= ok\n+ inc k 3\n= ok\n+ inc k 4\n= unknown\n+ inc k 8\n= none\n";
    for (int64_t value = 0; value <= 10; value++) {
        struct history *history = history_of(journal);
        history_observe(history, "k", value, NULL);
        if (value >= 3 && value <= 7) {
            expect_clean(history);
        } else {
            expect_one(history, VIOLATION_COUNTER);
        }
    }
    struct history *history = history_of(journal);
    expect_one(history, VIOLATION_LOST);
}

static void history_uncertain_documents_may_be_there_or_not(void **state)
{
    (void)state;
    const char *journal = "+ insert a 1\n= unknown\n+ insert b 1\n= ok\n+ delete b 0\n= unknown\n+ insert c 1\n";
    expect_clean(history_of(journal));
    struct history *history = history_of(journal);
    see(history, "a", 1);
    see(history, "b", 1);
    see(history, "c", 1);
    expect_clean(history);
}

static void history_with_a_damaged_text_shows(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n");
    history_observe(history, "a", 1, "something else");
    expect_one(history, VIOLATION_DAMAGED);
}

static void history_not_found_during_the_load_shows(void **state)
{
    (void)state;
    struct history *history = history_of("+ insert a 1\n= ok\n+ set a 2\n= missing\n");
    see(history, "a", 1);
    expect_one(history, VIOLATION_DURING);
}

static void history_allows_judges_point_reads(void **state)
{
    (void)state;
    struct history *history =
        history_of("+ insert a 1\n= ok\n+ insert b 1\n= unknown\n+ insert c 1\n= ok\n+ delete c 0\n= ok\n");
    assert_true(history_allows(history, "a", true, 1));
    assert_false(history_allows(history, "a", true, 2));
    assert_false(history_allows(history, "a", false, 0));
    assert_true(history_allows(history, "b", false, 0));
    assert_true(history_allows(history, "b", true, 1));
    assert_false(history_allows(history, "c", true, 1));
    assert_false(history_allows(history, "stranger", true, 1));
    const void *position = NULL;
    assert_string_equal(history_next_expected(history, &position), "a");
    assert_null(history_next_expected(history, &position));
    history_free(history);
}

static void history_documents_go_with_their_collection(void **state)
{
    (void)state;
    const char *kept = "+ shard x 1\n= ok\n+ insert x/1 1\n= ok\n";
    struct history *history = history_of(kept);
    history_observe_collection(history, "x");
    expect_one(history, VIOLATION_LOST);
    history = history_of(kept);
    see(history, "x/1", 1);
    expect_one(history, VIOLATION_LOST);

    const char *dropped = "+ shard x 1\n= ok\n+ insert x/1 1\n= ok\n+ drop x 0\n= ok\n";
    expect_clean(history_of(dropped));
    history = history_of(dropped);
    see(history, "x/1", 1);
    expect_one(history, VIOLATION_RESURRECTED);
    history = history_of(dropped);
    history_observe_collection(history, "x");
    expect_one(history, VIOLATION_RESURRECTED);

    const char *unsure = "+ shard x 1\n= ok\n+ insert x/1 1\n= ok\n+ drop x 0\n= unknown\n";
    expect_clean(history_of(unsure));
    history = history_of(unsure);
    history_observe_collection(history, "x");
    see(history, "x/1", 1);
    expect_clean(history);

    history = history_of(kept);
    history_observe_collection(history, "x");
    see(history, "x/1", 1);
    history_observe_collection(history, "y");
    expect_one(history, VIOLATION_INVENTED);
}

static void journal_parse_refuses_nonsense(void **state)
{
    (void)state;
    const char *bad[] = {"x\n", "+ insert a\n", "+ fly a 1\n", "= ok\n", "+ insert a 1\n= perhaps\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct history *history = history_new();
        struct err err;
        assert_false(journal_parse(bad[i], history_add, history, &err));
        history_free(history);
    }
    /* The last line of a killed writer. */
    struct history *history = history_of("+ insert a 1\n= ok\n+ ins");
    see(history, "a", 1);
    expect_clean(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_of_what_was_written_is_clean),
        cmocka_unit_test(history_without_an_acknowledged_insert_is_lost),
        cmocka_unit_test(history_with_an_old_value_is_lost),
        cmocka_unit_test(history_with_an_unknown_value_takes_both),
        cmocka_unit_test(history_with_a_stranger_is_invented),
        cmocka_unit_test(history_with_a_deleted_document_is_resurrected),
        cmocka_unit_test(history_with_a_document_twice_is_duplicate),
        cmocka_unit_test(history_counter_outside_its_bounds_shows),
        cmocka_unit_test(history_uncertain_documents_may_be_there_or_not),
        cmocka_unit_test(history_with_a_damaged_text_shows),
        cmocka_unit_test(history_not_found_during_the_load_shows),
        cmocka_unit_test(history_allows_judges_point_reads),
        cmocka_unit_test(history_documents_go_with_their_collection),
        cmocka_unit_test(journal_parse_refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
