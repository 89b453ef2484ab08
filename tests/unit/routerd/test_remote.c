/* Requests to sets, against members made of in-process rpc servers that answer as a script says. */
#include "support.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "command/reply.h"
#include "routerd/registry.h"
#include "routerd/remote.h"
#include "rpc/server.h"

enum { SCRIPT_MAX = 8 };

enum answer {
    ANSWER_OK,
    ANSWER_NOT_LEADER, /* with a hint at the other member */
    ANSWER_NO_HINT,    /* not the leader, doesn't know who is */
    ANSWER_BUSY,       /* 46, not executed */
    ANSWER_UNKNOWN,    /* 11602: proposed, leadership lost */
    ANSWER_DUPLICATE,  /* 11000 */
    ANSWER_STALE,      /* 13388 */
    ANSWER_HOLD,       /* none until the operation is killed */
};

/* One member of a set. */
struct member {
    struct rpc_server *server;
    char address[64];
    const char *other; /* the hint that it gives */
    bool leads;        /* what it says to a probe */
    enum answer script[SCRIPT_MAX];
    unsigned script_length;
    pthread_mutex_t lock; /* guards what follows: handlers run on nng's threads */
    unsigned asked;       /* commands so far, probes not counted */
    unsigned probed;
    struct rpc_request *held; /* with ANSWER_HOLD */
    int64_t killed_key;       /* of _sherdKillOp; 0: none came */
};

static void reply_error(struct member *member, int32_t code, bool hint, bson_t *out)
{
    struct err err;
    err_set(&err, code, "as the script says");
    reply_append_error(out, &err, NULL, 0);
    if (hint)
        BSON_APPEND_UTF8(out, "leader", member->other);
}

static void make_answer(struct member *member, enum answer answer, bson_t *out)
{
    switch (answer) {
    case ANSWER_OK:
        reply_append_ok(out);
        break;
    case ANSWER_NOT_LEADER:
        reply_error(member, ERR_NotWritablePrimary, true, out);
        break;
    case ANSWER_NO_HINT:
        reply_error(member, ERR_NotWritablePrimary, false, out);
        break;
    case ANSWER_BUSY:
        reply_error(member, ERR_LockBusy, false, out);
        BSON_APPEND_BOOL(out, "notExecuted", true);
        break;
    case ANSWER_UNKNOWN:
        reply_error(member, ERR_InterruptedDueToReplStateChange, false, out);
        break;
    case ANSWER_DUPLICATE:
        reply_error(member, ERR_DuplicateKey, false, out);
        break;
    case ANSWER_STALE:
        reply_error(member, ERR_StaleConfig, false, out);
        break;
    case ANSWER_HOLD:
        break;
    }
}

/* Ends what is held back, as a shard does. */
static void end_held(struct member *member, int64_t key)
{
    bson_t out = BSON_INITIALIZER;
    pthread_mutex_lock(&member->lock);
    struct rpc_request *held = member->held;
    member->held = NULL;
    member->killed_key = key;
    pthread_mutex_unlock(&member->lock);
    reply_error(member, ERR_Interrupted, false, &out);
    if (held)
        rpc_request_reply_doc(held, bdoc_of(&out));
    bson_destroy(&out);
}

static void handle(void *arg, struct rpc_request *request)
{
    struct member *member = arg;
    bson_t out = BSON_INITIALIZER;
    struct bval key;
    if (bdoc_find(request->msg.body, "_sherdKillOp", &key)) {
        end_held(member, bval_i64(&key));
        reply_append_ok(&out);
    } else if (bdoc_has(request->msg.body, "_sherdStatus")) {
        pthread_mutex_lock(&member->lock);
        member->probed++;
        BSON_APPEND_BOOL(&out, "leading", member->leads);
        pthread_mutex_unlock(&member->lock);
        reply_append_ok(&out);
    } else {
        pthread_mutex_lock(&member->lock);
        unsigned at = member->asked++;
        enum answer answer = at < member->script_length ? member->script[at] : ANSWER_OK;
        if (answer == ANSWER_HOLD)
            member->held = request;
        pthread_mutex_unlock(&member->lock);
        if (answer == ANSWER_HOLD)
            return;
        make_answer(member, answer, &out);
    }
    rpc_request_reply_doc(request, bdoc_of(&out));
    bson_destroy(&out);
}

static void member_start(struct member *member)
{
    struct err err;
    *member = (struct member){.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_true(rpc_server_start(&(struct rpc_server_options){.handle = handle, .arg = member}, &member->server, &err));
    snprintf(member->address, sizeof member->address, "127.0.0.1:%u", (unsigned)rpc_server_port(member->server));
}

static void member_stop(struct member *member)
{
    if (member->server) {
        rpc_server_stop(member->server);
        rpc_server_free(member->server);
    }
    member->server = NULL;
}

struct fixture {
    struct router router;
    struct member members[2];
    struct remote_set *set; /* of both */
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof *fixture);
    struct err err;
    char host[160];
    for (int i = 0; i < 2; i++)
        member_start(&fixture->members[i]);
    for (int i = 0; i < 2; i++)
        fixture->members[i].other = fixture->members[1 - i].address;
    snprintf(host, sizeof host, "s/%s,%s", fixture->members[0].address, fixture->members[1].address);
    fixture->router.rpc = rpc_client_new(&(struct rpc_client_options){.name = "test"});
    assert_true(registry_new(&fixture->router, host, &fixture->router.registry, &err));
    fixture->set = registry_config(fixture->router.registry);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    registry_free(fixture->router.registry);
    rpc_client_free(fixture->router.rpc);
    for (int i = 0; i < 2; i++)
        member_stop(&fixture->members[i]);
    mem_free(fixture);
    return 0;
}

static void script(struct member *member, const enum answer *answers, unsigned count)
{
    memcpy(member->script, answers, count * sizeof *answers);
    member->script_length = count;
}

/* Runs one request and returns whether it was answered ok; *out holds what came of it. */
static bool run(struct fixture *fixture, bool repeatable, int64_t limit_ms, struct err *err, bool *unknown)
{
    struct remote_request request;
    remote_request_init(&request, fixture->set, repeatable);
    BSON_APPEND_INT32(&request.body, "ping", 1);
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(&fixture->router, &request, deadline_after_ms(limit_ms), err);
    *unknown = request.unknown;
    remote_request_deinit(&request);
    return ok;
}

static void remote_run_follows_a_leader_hint(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    script(&fixture->members[0], (enum answer[]){ANSWER_NOT_LEADER}, 1);
    assert_true(run(fixture, false, 5000, &err, &unknown));
    assert_int_equal(fixture->members[0].asked, 1);
    assert_int_equal(fixture->members[1].asked, 1);
    assert_true(run(fixture, false, 5000, &err, &unknown));
    assert_int_equal(fixture->members[1].asked, 2);
}

static void remote_run_pauses_when_members_point_at_each_other(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    enum answer refusals[] = {ANSWER_NOT_LEADER, ANSWER_NOT_LEADER, ANSWER_NOT_LEADER, ANSWER_NOT_LEADER};
    int64_t start_ms = clock_now_ms();
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    script(&fixture->members[0], refusals, 4);
    script(&fixture->members[1], refusals, 4);
    assert_true(run(fixture, false, 5000, &err, &unknown));
    assert_true(clock_now_ms() - start_ms >= 200);
}

static void remote_run_gives_up_a_request_that_is_too_large(void **state)
{
    struct fixture *fixture = *state;
    struct remote_request request;
    struct err err;
    uint8_t *bytes = mem_alloc(WIRE_MAX_INTERNAL_BYTES);
    struct wire_piece piece = {.data = bytes, .len = WIRE_MAX_INTERNAL_BYTES};
    struct rpc_sequence sequence = {.name = "documents", .pieces = &piece, .piece_count = 1};
    int64_t start_ms = clock_now_ms();
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    remote_request_init(&request, fixture->set, true);
    BSON_APPEND_INT32(&request.body, "insert", 1);
    request.sequences = &sequence;
    request.sequence_count = 1;
    assert_false(remote_run_one(&fixture->router, &request, deadline_after_ms(5000), &err));
    assert_int_equal(err.code, ERR_BSONObjectTooLarge);
    assert_false(request.unknown);
    assert_true(clock_now_ms() - start_ms < 4000);
    remote_request_deinit(&request);
    mem_free(bytes);
}

static void remote_run_probes_when_nobody_is_known(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    fixture->members[1].leads = true;
    assert_true(run(fixture, false, 5000, &err, &unknown));
    assert_int_equal(fixture->members[0].asked, 0);
    assert_int_equal(fixture->members[1].asked, 1);
}

static void remote_run_holds_during_an_election(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    fixture->members[0].leads = true;
    script(&fixture->members[0], (enum answer[]){ANSWER_NO_HINT, ANSWER_NO_HINT, ANSWER_NO_HINT}, 3);
    assert_true(run(fixture, false, 5000, &err, &unknown));
    assert_int_equal(fixture->members[0].asked, 4);
}

static void remote_run_waits_for_a_busy_shard(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    script(&fixture->members[0], (enum answer[]){ANSWER_BUSY, ANSWER_BUSY}, 2);
    assert_true(run(fixture, false, 5000, &err, &unknown));
    assert_int_equal(fixture->members[0].asked, 3);
}

static void remote_run_unknown_write_is_not_repeated(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    script(&fixture->members[0], (enum answer[]){ANSWER_UNKNOWN}, 1);
    assert_false(run(fixture, false, 5000, &err, &unknown));
    assert_true(unknown);
    assert_int_equal(fixture->members[0].asked, 1);
    assert_int_equal(fixture->members[1].asked, 0);
}

static void remote_run_unknown_read_is_repeated(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    fixture->members[0].leads = true;
    script(&fixture->members[0], (enum answer[]){ANSWER_UNKNOWN}, 1);
    assert_true(run(fixture, true, 5000, &err, &unknown));
    assert_int_equal(fixture->members[0].asked, 2);
}

static void remote_run_other_errors_end_it(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    script(&fixture->members[0], (enum answer[]){ANSWER_DUPLICATE, ANSWER_STALE}, 2);
    assert_false(run(fixture, false, 5000, &err, &unknown));
    assert_int_equal(err.code, ERR_DuplicateKey);
    assert_false(unknown);
    assert_false(run(fixture, true, 5000, &err, &unknown));
    assert_int_equal(err.code, ERR_StaleConfig);
    assert_int_equal(fixture->members[0].asked, 2);
}

static void remote_run_dead_leader_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    member_stop(&fixture->members[0]);
    fixture->members[1].leads = true;
    assert_true(run(fixture, true, 8000, &err, &unknown));
    assert_int_equal(fixture->members[1].asked, 1);
}

static void remote_run_gives_up_at_the_deadline(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    bool unknown;
    int64_t start_ms = clock_now_ms();
    assert_false(run(fixture, false, 300, &err, &unknown));
    assert_int_equal(err.code, ERR_HostUnreachable);
    assert_false(unknown);
    assert_in_range(clock_now_ms() - start_ms, 250, 5000);
    assert_int_equal(fixture->members[0].asked + fixture->members[1].asked, 0);
}

static void remote_run_pinned_member_is_asked_even_if_it_does_not_lead(void **state)
{
    struct fixture *fixture = *state;
    struct remote_request request;
    remote_set_learn_leader(fixture->set, fixture->members[0].address);
    script(&fixture->members[1], (enum answer[]){ANSWER_NOT_LEADER}, 1);
    remote_request_init(&request, fixture->set, false);
    BSON_APPEND_INT32(&request.body, "getMore", 1);
    snprintf(request.pinned, sizeof request.pinned, "%s", fixture->members[1].address);
    struct err err;
    assert_false(remote_run_one(&fixture->router, &request, deadline_after_ms(5000), &err));
    assert_int_equal(err.code, ERR_NotWritablePrimary);
    assert_int_equal(fixture->members[0].asked, 0);
    assert_int_equal(fixture->members[1].asked, 1);
    remote_request_deinit(&request);
}

#define REMOTE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void *kill_soon(void *arg)
{
    clock_sleep_ms(100);
    interrupt_kill(arg, ERR_Interrupted);
    return NULL;
}

static void remote_killed_operation_gives_up_and_ends_its_parts(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->members[0];
    struct interrupt interrupt = {.deadline_ms = DEADLINE_NEVER, .key = 4711};
    struct remote_request request;
    pthread_t thread;
    member->leads = true;
    member->script[0] = ANSWER_HOLD;
    member->script_length = 1;
    remote_request_init(&request, fixture->set, true);
    BSON_APPEND_INT32(&request.body, "find", 1);
    struct interrupt *before = interrupt_enter(&interrupt);
    assert_int_equal(pthread_create(&thread, NULL, kill_soon, &interrupt), 0);
    int64_t begun_ms = clock_now_ms();
    remote_run(&fixture->router, &request, 1, deadline_after_ms(30000));
    interrupt_enter(before);
    assert_true(clock_now_ms() - begun_ms < 5000);
    assert_false(request.ok);
    assert_int_equal(request.err.code, ERR_Interrupted);
    pthread_join(thread, NULL);
    int64_t key = 0;
    for (int i = 0; i < 500 && key == 0; i++) {
        clock_sleep_ms(10);
        pthread_mutex_lock(&member->lock);
        key = member->killed_key;
        pthread_mutex_unlock(&member->lock);
    }
    assert_int_equal(key, 4711);
    remote_request_deinit(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REMOTE_TEST(remote_run_follows_a_leader_hint),
        REMOTE_TEST(remote_run_pauses_when_members_point_at_each_other),
        REMOTE_TEST(remote_run_gives_up_a_request_that_is_too_large),
        REMOTE_TEST(remote_run_probes_when_nobody_is_known),
        REMOTE_TEST(remote_run_holds_during_an_election),
        REMOTE_TEST(remote_run_waits_for_a_busy_shard),
        REMOTE_TEST(remote_run_unknown_write_is_not_repeated),
        REMOTE_TEST(remote_run_unknown_read_is_repeated),
        REMOTE_TEST(remote_run_other_errors_end_it),
        REMOTE_TEST(remote_run_dead_leader_is_replaced),
        REMOTE_TEST(remote_run_gives_up_at_the_deadline),
        REMOTE_TEST(remote_run_pinned_member_is_asked_even_if_it_does_not_lead),
        REMOTE_TEST(remote_killed_operation_gives_up_and_ends_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
