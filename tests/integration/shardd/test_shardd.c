/* A real shardd of one member, driven over rpc: documents, kill -9, a second process on its data, a clean stop. */
#include "tests/unit/cmocka_all.h"

#include "base/clock.h"
#include "base/mem.h"
#include "command/reply.h"
#include "rpc/client.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PORT = 27640,
    START_MS = 20000,
};

static const char *binary;

struct member {
    char dir[64];
    char db[80];
    char address[32];
    int port;
    pid_t pid;
    struct rpc_client *client;
};

/* Runs the program with the arguments; its output goes to DIR/log. */
static pid_t spawn(struct member *member, const char *const *arguments)
{
    char log[96];
    snprintf(log, sizeof log, "%s/log", member->dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    const char *argv[16] = {binary};
    for (int i = 0; arguments[i] != NULL; i++)
        argv[i + 1] = arguments[i];
    execv(binary, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int wait_for(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The reply's JSON when it says ok; NULL otherwise. */
static bson_t *ask(struct member *member, const char *json, int64_t timeout_ms)
{
    struct rpc_call call;
    struct err err;
    bson_error_t error;
    char *text = mem_copy_str(json);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    bson_t *body = bson_new_from_json((const uint8_t *)text, -1, &error);
    assert_non_null(body);
    bson_t *reply = NULL;
    if (rpc_call_run(&call, member->client, member->address, bdoc_of(body), deadline_after_ms(timeout_ms), &err))
        reply = bson_new_from_data(call.reply.body.data, call.reply.body.len);
    rpc_call_deinit(&call);
    bson_destroy(body);
    mem_free(text);
    return reply;
}

static bool leads(struct member *member)
{
    struct bval val;
    bson_t *reply = ask(member, "{'_sherdStatus': 1, '$db': 'admin'}", 1000);
    bool leading = reply != NULL && bdoc_find(bdoc_of(reply), "leading", &val) && bval_truthy(&val);
    if (reply != NULL)
        bson_destroy(reply);
    return leading;
}

static void start(struct member *member)
{
    const char *const arguments[] = {"--dbpath", member->db, "--max-data-gib", "16", NULL};
    member->pid = spawn(member, arguments);
    int64_t deadline_ms = deadline_after_ms(START_MS);
    while (!leads(member)) {
        assert_false(deadline_passed(deadline_ms));
        clock_sleep_ms(20);
    }
}

static void make(struct member *member, int port)
{
    char number[16];
    struct rpc_client_options options = {.name = "test"};
    snprintf(member->dir, sizeof member->dir, "/tmp/sherd-shardd-XXXXXX");
    assert_non_null(mkdtemp(member->dir));
    snprintf(member->db, sizeof member->db, "%s/db", member->dir);
    snprintf(member->address, sizeof member->address, "127.0.0.1:%d", port);
    snprintf(number, sizeof number, "%d", port);
    member->port = port;
    member->client = rpc_client_new(&options);
    const char *const arguments[] = {"--init", "--dbpath", member->db,       "--port", number,
                                     "--set",  "s1",       "--max-data-gib", "16",     NULL};
    assert_int_equal(wait_for(spawn(member, arguments)), 0);
}

static void destroy(struct member *member)
{
    char line[128];
    rpc_client_free(member->client);
    snprintf(line, sizeof line, "rm -rf %s", member->dir);
    assert_int_equal(system(line), 0);
}

static int64_t number_in(const bson_t *reply, const char *path)
{
    bson_iter_t iter;
    bson_iter_t found;
    assert_non_null(reply);
    assert_true(bson_iter_init(&iter, reply));
    if (!bson_iter_find_descendant(&iter, path, &found)) {
        char *json = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("no %s in %s", path, json);
    }
    return bson_iter_as_int64(&found);
}

static void expect(struct member *member, const char *json, const char *path, int64_t number)
{
    bson_t *reply = ask(member, json, 10000);
    assert_int_equal(number_in(reply, path), number);
    bson_destroy(reply);
}

static void shardd_serves_documents(void **state)
{
    (void)state;
    struct member member;
    make(&member, PORT);
    start(&member);
    expect(&member, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 5}, {'_id': 2, 'a': 6}, {'_id': 3}], '$db': 't'}",
           "n", 3);
    expect(&member, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$inc': {'a': 1}}}], '$db': 't'}", "nModified",
           1);
    expect(&member, "{'delete': 'c', 'deletes': [{'q': {'_id': 3}, 'limit': 1}], '$db': 't'}", "n", 1);
    expect(&member, "{'find': 'c', 'filter': {'_id': 1}, '$db': 't'}", "cursor.firstBatch.0.a", 6);
    expect(&member, "{'count': 'c', '$db': 't', 'readConcern': {'level': 'linearizable'}}", "n", 2);
    expect(&member, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}], '$db': 't'}",
           "numIndexesAfter", 2);
    expect(&member, "{'nonsense': 1, '$db': 't'}", "code", 59);
    assert_int_equal(kill(member.pid, SIGTERM), 0);
    assert_int_equal(wait_for(member.pid), 0);
    start(&member);
    expect(&member, "{'count': 'c', 'query': {'a': 6}, '$db': 't'}", "n", 2);
    kill(member.pid, SIGTERM);
    assert_int_equal(wait_for(member.pid), 0);
    destroy(&member);
}

static void shardd_keeps_acknowledged_writes_over_kill(void **state)
{
    (void)state;
    struct member member;
    int64_t acknowledged = 0;
    make(&member, PORT + 1);
    for (int round = 0; round < 4; round++) {
        start(&member);
        bson_t *reply = ask(&member, "{'count': 'c', '$db': 't'}", 10000);
        assert_true(number_in(reply, "n") >= acknowledged);
        acknowledged = number_in(reply, "n");
        bson_destroy(reply);
        for (int i = 0; i < 50; i++) {
            char command[128];
            snprintf(command, sizeof command, "{'insert': 'c', 'documents': [{'_id': %d}], '$db': 't'}",
                     round * 1000 + i);
            expect(&member, command, "n", 1);
            acknowledged++;
        }
        kill(member.pid, SIGKILL);
        assert_int_equal(wait_for(member.pid), 128 + SIGKILL);
    }
    start(&member);
    expect(&member, "{'count': 'c', '$db': 't'}", "n", acknowledged);
    bson_t *reply = ask(&member, "{'validate': 'c', '$db': 't'}", 10000);
    assert_int_equal(number_in(reply, "valid"), 1);
    bson_destroy(reply);
    kill(member.pid, SIGTERM);
    assert_int_equal(wait_for(member.pid), 0);
    destroy(&member);
}

static void shardd_refuses_to_start_with_one_line(void **state)
{
    (void)state;
    struct member member;
    make(&member, PORT + 2);
    start(&member);
    const char *const second[] = {"--dbpath", member.db, NULL};
    assert_int_equal(wait_for(spawn(&member, second)), 1);
    const char *const again[] = {"--init", "--dbpath", member.db, NULL};
    assert_int_equal(wait_for(spawn(&member, again)), 1);
    const char *const nothing[] = {"--dbpath", "/tmp/sherd-not-there", NULL};
    assert_int_equal(wait_for(spawn(&member, nothing)), 1);
    const char *const unknown[] = {"--nonsense", NULL};
    assert_int_equal(wait_for(spawn(&member, unknown)), 1);
    struct member other;
    make(&other, PORT + 2);
    const char *const taken[] = {"--dbpath", other.db, NULL};
    assert_int_equal(wait_for(spawn(&other, taken)), 1);
    kill(member.pid, SIGTERM);
    assert_int_equal(wait_for(member.pid), 0);
    destroy(&member);
    destroy(&other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shardd_serves_documents),
        cmocka_unit_test(shardd_keeps_acknowledged_writes_over_kill),
        cmocka_unit_test(shardd_refuses_to_start_with_one_line),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s SHARDD\n", argv[0]);
        return 2;
    }
    binary = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
