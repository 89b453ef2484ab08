#include "shell/connection.h"
#include "shell/interrupt.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/shell/fake_router.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

/* What the router's thread saw, and what it shall do next. */
struct script {
    _Atomic enum fake_action next;
    _Atomic int commands;
    _Atomic bool has_db;
    _Atomic uint32_t sequence_count; /* documents in the last message's sequence */
};

static enum fake_action handle(void *arg, const struct wire_msg *msg, bson_t *reply)
{
    struct script *script = arg;
    struct bval db;
    script->commands++;
    script->has_db = bdoc_find(msg->body, "$db", &db) && bval_is_str(&db, "shop");
    script->sequence_count = msg->sequence_count > 0 ? msg->sequences[0].count : 0;
    BSON_APPEND_INT32(reply, "answer", script->commands);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
    enum fake_action action = script->next;
    script->next = FAKE_REPLY;
    if (action == FAKE_SILENCE)
        raise(SIGINT);
    return action;
}

struct fixture {
    struct script script;
    struct fake_router router;
    struct connection *conn;
};

static void open_fixture(struct fixture *fixture, const char *hosts_before)
{
    char text[128];
    struct uri uri;
    struct err err;
    *fixture = (struct fixture){.router = {.handle = handle}};
    fixture->router.arg = &fixture->script;
    fake_router_start(&fixture->router);
    snprintf(text, sizeof text, "mongodb://%s127.0.0.1:%d/?connectTimeoutMS=2000", hosts_before, fixture->router.port);
    assert_true(uri_parse(text, &uri, &err));
    fixture->conn = connection_new(&uri);
    interrupt_install();
    interrupt_clear();
}

static void close_fixture(struct fixture *fixture)
{
    connection_free(fixture->conn);
    fake_router_stop(&fixture->router);
}

static bool ping(struct fixture *fixture, int *answer, struct err *err)
{
    bson_t command = BSON_INITIALIZER;
    struct bdoc reply;
    struct bval val;
    BSON_APPEND_INT32(&command, "ping", 1);
    bool ok = connection_run(fixture->conn, "shop", bdoc_of(&command), NULL, &reply, err);
    bson_destroy(&command);
    if (ok) {
        assert_true(bdoc_find(reply, "answer", &val));
        *answer = bval_i32(&val);
    }
    return ok;
}

static void run_sends_the_database_and_gives_the_reply(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    int answer;
    open_fixture(&fixture, "");
    assert_true(ping(&fixture, &answer, &err));
    assert_int_equal(answer, 1);
    assert_true(fixture.script.has_db);
    assert_true(ping(&fixture, &answer, &err));
    assert_int_equal(answer, 2);
    close_fixture(&fixture);
}

static void run_sends_documents_as_a_sequence(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    struct bdoc reply;
    bson_t command = BSON_INITIALIZER;
    open_fixture(&fixture, "");
    BSON_APPEND_UTF8(&command, "insert", "c");
    static const uint8_t two[] = {5, 0, 0, 0, 0, 5, 0, 0, 0, 0};
    struct connection_sequence sequence = {.name = "documents", .data = two, .len = sizeof two};
    assert_true(connection_run(fixture.conn, "shop", bdoc_of(&command), &sequence, &reply, &err));
    assert_int_equal(fixture.script.sequence_count, 2);
    bson_destroy(&command);
    close_fixture(&fixture);
}

static void dead_host_is_passed_over(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    int answer;
    open_fixture(&fixture, "127.0.0.1:1,");
    assert_true(ping(&fixture, &answer, &err));
    assert_non_null(strstr(connection_address(fixture.conn), "127.0.0.1:"));
    close_fixture(&fixture);
}

static void closed_connection_is_an_error_once_and_then_replaced(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    int answer;
    open_fixture(&fixture, "");
    fixture.script.next = FAKE_CLOSE;
    assert_false(ping(&fixture, &answer, &err));
    assert_int_equal(err.code, ERR_SocketException);
    assert_true((err_categories(err.code) & ERR_CAT_NETWORK) != 0);
    assert_true(ping(&fixture, &answer, &err));
    close_fixture(&fixture);
}

static void interrupt_ends_a_wait_and_the_next_command_works(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    int answer;
    open_fixture(&fixture, "");
    fixture.script.next = FAKE_SILENCE;
    assert_false(ping(&fixture, &answer, &err));
    assert_int_equal(err.code, ERR_Interrupted);
    interrupt_clear();
    assert_true(ping(&fixture, &answer, &err));
    close_fixture(&fixture);
}

static void nobody_listening_is_a_network_error(void **state)
{
    (void)state;
    struct uri uri;
    struct err err;
    assert_true(uri_parse("mongodb://127.0.0.1:1", &uri, &err));
    struct connection *conn = connection_new(&uri);
    assert_false(connection_ensure(conn, &err));
    assert_int_equal(err.code, ERR_HostUnreachable);
    connection_free(conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_sends_the_database_and_gives_the_reply),
        cmocka_unit_test(run_sends_documents_as_a_sequence),
        cmocka_unit_test(dead_host_is_passed_over),
        cmocka_unit_test(closed_connection_is_an_error_once_and_then_replaced),
        cmocka_unit_test(interrupt_ends_a_wait_and_the_next_command_works),
        cmocka_unit_test(nobody_listening_is_a_network_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
