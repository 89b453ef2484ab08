#include "routerd/cursors.h"
#include "tests/unit/cmocka_all.h"

static struct router_cursor *add(struct cursor_table *table)
{
    struct err err;
    struct router_cursor *cursor = router_cursor_new(NULL, "d.c");
    assert_true(cursor_table_add(table, cursor, &err));
    return cursor;
}

static void cursors_are_bounded_in_bytes(void **state)
{
    (void)state;
    struct err err;
    struct cursor_table *table = cursor_table_new(NULL);
    struct router_cursor *one = add(table);
    struct router_cursor *two = add(table);
    buf_reserve(&one->made, CURSORS_MAX_BYTES / 4 * 3);
    buf_reserve(&two->made, CURSORS_MAX_BYTES / 4 * 3);
    assert_true(cursor_table_may_keep(table, one, &err));
    assert_false(cursor_table_may_keep(table, two, &err));
    assert_int_equal(err.code, ERR_ExceededMemoryLimit);
    /* What one gives up is another's. */
    cursor_table_give(table, one, true);
    assert_true(cursor_table_may_keep(table, two, &err));
    assert_true(cursor_table_may_keep(table, two, &err));
    cursor_table_give(table, two, false);
    assert_int_equal(cursor_table_count(table), 1);
    cursor_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursors_are_bounded_in_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
