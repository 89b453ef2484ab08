#include "tests/unit/cmocka_all.h"

#include "async/loop.h"
#include "base/clock.h"
#include "base/thread.h"

#include <signal.h>
#include <unistd.h>

enum { MAILS = 1000 };

struct mail {
    struct loop_mail mail;
    struct loop *loop;
    int number;
    int *last; /* number of the mail before */
};

static void on_mail(struct loop_mail *mail)
{
    struct mail *self = (struct mail *)mail;
    assert_int_equal(self->number, *self->last + 1);
    *self->last = self->number;
    if (self->number == MAILS - 1)
        loop_stop(self->loop);
}

static void *post_all(void *arg)
{
    struct mail *mails = arg;
    for (int i = 0; i < MAILS; i++)
        loop_post(mails[i].loop, &mails[i].mail);
    return NULL;
}

static void loop_post_from_a_thread_runs_in_order(void **state)
{
    (void)state;
    static struct mail mails[MAILS];
    int last = -1;
    struct loop *loop = loop_new();
    for (int i = 0; i < MAILS; i++)
        mails[i] = (struct mail){.mail.run = on_mail, .loop = loop, .number = i, .last = &last};
    pthread_t thread;
    thread_start(&thread, "post", post_all, mails);
    loop_run(loop);
    thread_join(thread);
    assert_int_equal(last, MAILS - 1);
    loop_free(loop);
}

static void loop_free_runs_what_was_posted(void **state)
{
    (void)state;
    int last = 4;
    struct loop *loop = loop_new();
    struct mail mail = {.mail.run = on_mail, .loop = loop, .number = 5, .last = &last};
    loop_post(loop, &mail.mail);
    loop_free(loop);
    assert_int_equal(last, 5);
    loop_free(NULL);
}

static void loop_stop_before_run_returns_at_once(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    loop_stop(loop);
    loop_run(loop);
    loop_free(loop);
}

struct ticks {
    struct loop *loop;
    int count;
};

static void on_tick(void *arg)
{
    struct ticks *ticks = arg;
    if (++ticks->count == 5)
        loop_stop(ticks->loop);
}

static void loop_timer_repeats(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct ticks ticks = {.loop = loop};
    int64_t start_ms = clock_now_ms();
    struct loop_timer *timer = loop_timer_new(loop, 10, 2, on_tick, &ticks);
    loop_run(loop);
    assert_int_equal(ticks.count, 5);
    assert_true(clock_now_ms() - start_ms >= 17);
    loop_timer_free(timer);
    loop_timer_free(NULL);
    loop_free(loop);
}

static void on_usr1(void *arg, int signum)
{
    assert_int_equal(signum, SIGUSR1);
    on_tick(arg);
}

static void loop_signal_calls_back(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct ticks ticks = {.loop = loop, .count = 4};
    struct err err;
    assert_true(loop_on_signal(loop, SIGUSR1, on_usr1, &ticks, &err));
    kill(getpid(), SIGUSR1);
    loop_run(loop);
    assert_int_equal(ticks.count, 5);
    assert_false(loop_on_signal(loop, SIGKILL, on_usr1, &ticks, &err));
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_post_from_a_thread_runs_in_order),
        cmocka_unit_test(loop_free_runs_what_was_posted),
        cmocka_unit_test(loop_stop_before_run_returns_at_once),
        cmocka_unit_test(loop_timer_repeats),
        cmocka_unit_test(loop_signal_calls_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
