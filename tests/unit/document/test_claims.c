#include "tests/unit/cmocka_all.h"

#include "document/claims.h"

static const struct document_claim_key key_a = {.space = 1, .id = 7};
static const struct document_claim_key key_b = {.space = 1 | DOCUMENT_CLAIM_UPSERT, .id = 7};

static void count_wake(void *arg)
{
    ++*(int *)arg;
}

static void claims_try_gives_a_key_to_one_holder(void **state)
{
    (void)state;
    struct document_claims *claims = document_claims_new();
    struct document_claim_holder first = {0};
    struct document_claim_holder second = {0};
    assert_true(document_claims_try(claims, key_a, &first));
    assert_true(document_claims_try(claims, key_a, &first));
    assert_false(document_claims_try(claims, key_a, &second));
    assert_true(document_claims_try(claims, key_b, &second));
    document_claims_release(claims, &first);
    assert_true(document_claims_try(claims, key_a, &second));
    document_claims_release(claims, &second);
    assert_false(document_claims_is_held(claims, key_a));
    document_claims_free(claims);
}

static void claims_release_wakes_each_waiter_once(void **state)
{
    (void)state;
    struct document_claims *claims = document_claims_new();
    struct document_claim_holder holder = {0};
    int woken = 0;
    struct document_claim_waiter waiters[3];
    assert_true(document_claims_try(claims, key_a, &holder));
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct document_claim_waiter){.wake = count_wake, .arg = &woken};
        assert_true(document_claims_wait(claims, key_a, &waiters[i]));
    }
    document_claims_release(claims, &holder);
    assert_int_equal(woken, 3);
    assert_false(document_claims_wait(claims, key_a, &waiters[0]));
    document_claims_release(claims, &holder);
    assert_int_equal(woken, 3);
    document_claims_free(claims);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_try_gives_a_key_to_one_holder),
        cmocka_unit_test(claims_release_wakes_each_waiter_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
