/* Connections that come and go under load. The number of rounds is the first argument (100,000 for a long soak). */
#include "tests/unit/rpc/rpc_env.h"

#include "base/random.h"
#include "base/thread.h"

#include <dirent.h>
#include <stdlib.h>

static int rounds = 300;

static int count_entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static enum rpc_outcome ask(struct rpc_client *client, const char *address)
{
    struct rpc_call call;
    struct err err;
    bson_t doc;
    bool good = rpc_call_run(&call, client, address, env_doc(&doc, "ping", 1), deadline_after_ms(5000), &err);
    enum rpc_outcome outcome = call.outcome;
    assert_int_equal(good, outcome == RPC_REPLY);
    rpc_call_deinit(&call);
    bson_destroy(&doc);
    return outcome;
}

/* Each round a client of its own: connect, hello, some calls, close while calls are under way. */
static void soak_clients_come_and_go(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    struct rpc_call calls[8];
    bson_t doc;
    env_doc(&doc, "ping", 1);
    int descriptors = 0;
    for (int i = 0; i < rounds; i++) {
        struct rpc_client *client = env_client();
        if (i % 3 != 0)
            assert_int_equal(ask(client, address), RPC_REPLY);
        for (int j = 0; j < 8; j++) {
            rpc_call_init(&calls[j], client, deadline_after_ms(5000));
            rpc_call_start(&calls[j], address, &(struct rpc_body){.body = bdoc_of(&doc)});
        }
        rpc_client_free(client);
        for (int j = 0; j < 8; j++) {
            assert_true(rpc_call_is_over(&calls[j]));
            rpc_call_deinit(&calls[j]);
        }
        if (i == rounds / 3)
            descriptors = count_entries("/proc/self/fd");
    }
    /* The last connections may still be on their way out. */
    int now = 0;
    for (int i = 0; i < 2000 && ((now = count_entries("/proc/self/fd")) > descriptors + 4 || i == 0); i++)
        clock_sleep_ms(1);
    assert_true(now <= descriptors + 4);
    bson_destroy(&doc);
    env_server_end(server);
}

struct caller {
    struct rpc_client *client;
    const char *address;
    atomic_bool *stop;
    atomic_uint *replies;
};

static void *call_until_stopped(void *arg)
{
    struct caller *caller = arg;
    while (!atomic_load(caller->stop))
        if (ask(caller->client, caller->address) == RPC_REPLY)
            atomic_fetch_add(caller->replies, 1);
    return NULL;
}

/* One client, callers on several threads, and a server that restarts: every call ends, the client always comes back. */
static void soak_server_restarts_under_load(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    uint16_t port = rpc_server_port(server);
    atomic_bool stop = false;
    atomic_uint replies = 0;
    struct caller caller = {env_client(), address, &stop, &replies};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        thread_start(&threads[i], "caller", call_until_stopped, &caller);
    for (int i = 0; i < rounds / 10; i++) {
        unsigned before = atomic_load(&replies);
        for (int wait = 0; wait < 10000 && atomic_load(&replies) < before + 20; wait++)
            clock_sleep_ms(1);
        assert_true(atomic_load(&replies) >= before + 20);
        env_server_end(server);
        struct rpc_server_options options = {.port = port, .handle = env_echo};
        struct err err;
        if (!rpc_server_start(&options, &server, &err))
            fail_msg("%s", err.msg);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    rpc_client_free(caller.client);
    env_server_end(server);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soak_clients_come_and_go),
        cmocka_unit_test(soak_server_restarts_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
