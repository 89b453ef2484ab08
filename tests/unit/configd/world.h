/* A config service without a network: a store in a directory of its own, changes planned and applied at once as the
 * leader and the log would. */
#ifndef SHERD_TESTS_UNIT_CONFIGD_WORLD_H
#define SHERD_TESTS_UNIT_CONFIGD_WORLD_H

#include "tests/unit/cmocka_all.h"

#include "configd/plans.h"

struct store;

struct world {
    char dir[64];
    struct store *store;
    uint64_t index; /* of the last log entry */
    int64_t now_ms; /* the leader's clock */
    bson_t *reply;  /* of the last change; replaced by each */
    struct err err; /* of the last change */
};

/* cmocka fixtures: *state is a struct world, bootstrapped. */
int world_setup(void **state);
int world_teardown(void **state);

/* Plans `plan` on the newest state and applies it. False: refused, world->err says why. */
bool world_change(struct world *world, change_plan_cb *plan, const bson_t *request);
/* The same with a request in extended JSON. */
bool world_change_json(struct world *world, change_plan_cb *plan, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails the test when the change is refused. */
void world_must(struct world *world, change_plan_cb *plan, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails the test unless the change is refused with that code. */
void world_refuses(struct world *world, int32_t code, change_plan_cb *plan, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A commit made by hand: {sequence?, writes: [...]} in extended JSON. */
bool world_commit_json(struct world *world, const char *json);

/* The value of a string or number field of the last reply. */
const char *world_reply_str(struct world *world, const char *field);
int64_t world_reply_i64(struct world *world, const char *field);
bool world_reply_has(struct world *world, const char *field);

/* Number of documents that match (extended JSON). */
size_t world_count(struct world *world, const char *ns, const char *match);
/* The answer of _configsvrGetRouting, with a version when `since` isn't NULL. The caller destroys it. */
struct chunk_version;
bson_t *world_routing(struct world *world, const char *ns, const struct chunk_version *since);
/* Fails the test unless invariant 6 holds for every sharded collection. */
void world_check_chunks(struct world *world);
/* shard0..shardN-1, and a database `db` on shard0. */
void world_add_shards(struct world *world, size_t count);
/* Begins and commits. `options` are more fields of the begin request, each after a comma. */
void world_shard(struct world *world, const char *ns, const char *key, const char *options);

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

#endif
