/* Part of the crash test: whether all members of a set hold the same bytes. usage: crash_replicas HOST:PORT ...
 * Asks every member for the logical hash of its store and the index it belongs to, again until all are at one index.
 * Exit status 0: equal; 1: different; 2: not all answered, or they never came to one index (some write goes on). */
#include "base/clock.h"
#include "cluster/fields.h"
#include "rpc/client.h"

#include <stdio.h>
#include <string.h>

enum {
    MEMBERS_MAX = 9,
    CALL_MS = 5000,
    PATIENCE_MS = 30000,
    HASH_MAX = 63,
};

struct member_state {
    int64_t applied;
    char hash[HASH_MAX + 1];
};

static bool ask(struct rpc_client *client, const char *address, struct member_state *out, struct err *err)
{
    struct rpc_call call;
    bson_t request = BSON_INITIALIZER;
    bson_append_int32(&request, "_sherdHash", -1, 1);
    bson_append_utf8(&request, "$db", -1, "admin", -1);
    bool ok = rpc_call_run(&call, client, address, bdoc_of(&request), deadline_after_ms(CALL_MS), err) &&
              field_str(call.reply.body, "hash", out->hash, sizeof out->hash, err) &&
              field_i64(call.reply.body, "applied", &out->applied, err);
    rpc_call_deinit(&call);
    bson_destroy(&request);
    return ok;
}

/* True when all answered and are at one index. */
static bool ask_all(struct rpc_client *client, char **addresses, int count, struct member_state *states,
                    struct err *err)
{
    for (int i = 0; i < count; i++) {
        if (!ask(client, addresses[i], &states[i], err)) {
            return err_prefix(err, "%s", addresses[i]);
        }
        if (states[i].applied != states[0].applied) {
            return err_set(err, ERR_OperationFailed, "%s is at index %lld, %s at %lld", addresses[i],
                           (long long)states[i].applied, addresses[0], (long long)states[0].applied);
        }
    }
    return true;
}

static int compare(char **addresses, int count, const struct member_state *states)
{
    for (int i = 1; i < count; i++) {
        if (strcmp(states[i].hash, states[0].hash) != 0) {
            fprintf(stderr, "replicas: at index %lld %s has %s, %s has %s\n", (long long)states[0].applied,
                    addresses[0], states[0].hash, addresses[i], states[i].hash);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct member_state states[MEMBERS_MAX];
    struct err err;
    int count = argc - 1;
    if (count < 1 || count > MEMBERS_MAX) {
        fprintf(stderr, "usage: crash_replicas HOST:PORT ...\n");
        return 2;
    }
    const struct rpc_client_options options = {.name = "crash_replicas"};
    struct rpc_client *client = rpc_client_new(&options);
    int64_t deadline = deadline_after_ms(PATIENCE_MS);
    bool ok;
    while (!(ok = ask_all(client, argv + 1, count, states, &err)) && !deadline_passed(deadline)) {
        clock_sleep_ms(100);
    }
    int status = ok ? compare(argv + 1, count, states) : 2;
    if (!ok) {
        fprintf(stderr, "replicas: %s\n", err.msg);
    }
    rpc_client_free(client);
    return status;
}
