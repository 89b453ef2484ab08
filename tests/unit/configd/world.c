#include "world.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "cluster/fields.h"
#include "cluster/routing.h"
#include "configd/commit.h"
#include "configd/names.h"
#include "configd/routing.h"
#include "storage/store.h"

#include <stdio.h>
#include <unistd.h>

static bool world_apply(struct world *world, bool bootstrap, const struct buf *payload)
{
    struct store_txn *txn;
    struct arena arena;
    struct buf result = BUF_INIT;
    arena_init(&arena);
    assert_true(store_write_begin(world->store, &txn, &world->err));
    struct document_apply apply = {.txn = txn, .arena = &arena, .index = ++world->index};
    bool ok =
        (bootstrap ? bootstrap_apply : commit_apply)(NULL, &apply, payload->data, payload->len, &result, &world->err);
    store_write_commit(txn, world->index);
    buf_deinit(&result);
    arena_deinit(&arena);
    return ok;
}

int world_setup(void **state)
{
    struct world *world = mem_alloc(sizeof *world);
    log_set_level(LOG_LEVEL_WARN);
    strcpy(world->dir, "/tmp/sherd-configd-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    struct store_options options = {
        .dir = world->dir, .create = true, .map_bytes = UINT64_C(1) << 30, .ahead_bytes = 1 << 20};
    if (!store_open(&options, &world->store, &world->err)) {
        fail_msg("%s", world->err.msg);
    }
    world->now_ms = INT64_C(1700000000000);
    struct buf payload = BUF_INIT;
    bootstrap_encode(&payload);
    if (!world_apply(world, true, &payload)) {
        fail_msg("%s", world->err.msg);
    }
    /* A second leader bootstraps again: nothing happens. */
    assert_true(world_apply(world, true, &payload));
    buf_deinit(&payload);
    *state = world;
    return 0;
}

int world_teardown(void **state)
{
    struct world *world = *state;
    char command[128];
    store_close(world->store);
    snprintf(command, sizeof command, "rm -rf '%s'", world->dir);
    int status = system(command);
    if (world->reply != NULL) {
        bson_destroy(world->reply);
    }
    mem_free(world);
    return status;
}

static void set_reply(struct world *world, const bson_t *reply)
{
    if (world->reply != NULL) {
        bson_destroy(world->reply);
    }
    world->reply = bson_copy(reply);
}

bool world_change(struct world *world, change_plan_cb *plan, const bson_t *request)
{
    struct arena arena;
    struct change change;
    struct buf payload = BUF_INIT;
    arena_init(&arena);
    struct metadata_view view = {.arena = &arena};
    assert_true(store_read_begin(world->store, &view.txn, &world->err));
    change_init(&change, &view, "127.0.0.1:27700", world->now_ms);
    bool ok = plan(&change, bdoc_of(request), &world->err);
    store_read_end(view.txn);
    if (ok && change.write_count > 0) {
        change_encode(&change, true, &payload);
        ok = world_apply(world, false, &payload);
    }
    if (ok) {
        set_reply(world, &change.reply);
    }
    buf_deinit(&payload);
    change_deinit(&change);
    arena_deinit(&arena);
    return ok;
}

__attribute__((format(printf, 3, 0))) static bool change_from_json(struct world *world, change_plan_cb *plan,
                                                                   const char *format, va_list arguments)
{
    char json[8192];
    bson_error_t error;
    int len = vsnprintf(json, sizeof json, format, arguments);
    assert_true(len > 0 && (size_t)len < sizeof json);
    bson_t *request = bson_new_from_json((const uint8_t *)json, len, &error);
    if (request == NULL) {
        fail_msg("bad JSON %s: %s", json, error.message);
    }
    bool ok = world_change(world, plan, request);
    bson_destroy(request);
    return ok;
}

bool world_change_json(struct world *world, change_plan_cb *plan, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool ok = change_from_json(world, plan, format, arguments);
    va_end(arguments);
    return ok;
}

void world_must(struct world *world, change_plan_cb *plan, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool ok = change_from_json(world, plan, format, arguments);
    va_end(arguments);
    if (!ok) {
        fail_msg("refused: %s: %s", format, world->err.msg);
    }
}

void world_refuses(struct world *world, int32_t code, change_plan_cb *plan, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool ok = change_from_json(world, plan, format, arguments);
    va_end(arguments);
    if (ok) {
        fail_msg("accepted: %s", format);
    }
    if (world->err.code != code) {
        fail_msg("%s: expected %d, got %d: %s", format, code, world->err.code, world->err.msg);
    }
}

bool world_commit_json(struct world *world, const char *json)
{
    bson_error_t error;
    struct buf payload = BUF_INIT;
    bson_t *command = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (command == NULL) {
        fail_msg("bad JSON %s: %s", json, error.message);
    }
    buf_append(&payload, bson_get_data(command), command->len);
    bool ok = world_apply(world, false, &payload);
    buf_deinit(&payload);
    bson_destroy(command);
    return ok;
}

bool world_reply_has(struct world *world, const char *field)
{
    return bdoc_has(bdoc_of(world->reply), field);
}

const char *world_reply_str(struct world *world, const char *field)
{
    struct bval val;
    uint32_t len;
    if (!bdoc_find(bdoc_of(world->reply), field, &val) || val.type != BT_STRING) {
        fail_msg("no string %s in the reply", field);
    }
    return bval_str(&val, &len);
}

int64_t world_reply_i64(struct world *world, const char *field)
{
    struct bval val;
    int64_t number = 0;
    if (!bdoc_find(bdoc_of(world->reply), field, &val) || !bval_to_i64(&val, &number)) {
        fail_msg("no number %s in the reply", field);
    }
    return number;
}

static bool count_one(void *arg, struct bdoc doc)
{
    (void)doc;
    ++*(size_t *)arg;
    return true;
}

size_t world_count(struct world *world, const char *ns, const char *match)
{
    struct arena arena;
    bson_error_t error;
    size_t count = 0;
    arena_init(&arena);
    struct metadata_view view = {.arena = &arena};
    bson_t *filter = bson_new_from_json((const uint8_t *)match, -1, &error);
    assert_non_null(filter);
    assert_true(store_read_begin(world->store, &view.txn, &world->err));
    if (!view_each(&view, ns, bdoc_of(filter), count_one, &count, &world->err)) {
        fail_msg("%s: %s", ns, world->err.msg);
    }
    store_read_end(view.txn);
    bson_destroy(filter);
    arena_deinit(&arena);
    return count;
}

bson_t *world_routing(struct world *world, const char *ns, const struct chunk_version *since)
{
    struct arena arena;
    arena_init(&arena);
    struct metadata_view view = {.arena = &arena};
    bson_t request = BSON_INITIALIZER;
    bson_append_utf8(&request, "_configsvrGetRouting", -1, ns, -1);
    if (since != NULL) {
        bson_append_oid(&request, "epoch", -1, &since->epoch);
        bson_append_int64(&request, "major", -1, since->major);
        bson_append_int64(&request, "minor", -1, since->minor);
    }
    bson_t *reply = bson_new();
    assert_true(store_read_begin(world->store, &view.txn, &world->err));
    if (!routing_answer(&view, bdoc_of(&request), reply, &world->err)) {
        fail_msg("%s", world->err.msg);
    }
    store_read_end(view.txn);
    bson_destroy(&request);
    arena_deinit(&arena);
    return reply;
}

struct chunk_check {
    struct metadata_view view;
    size_t chunks;
};

static bool check_collection(void *arg, struct bdoc doc)
{
    struct chunk_check *check = arg;
    struct collection_entry entry;
    struct chunk **chunks = NULL;
    size_t count = 0;
    struct err err;
    if (!collection_entry_parse(doc, &entry, &err) || !view_chunks(&check->view, &entry, &chunks, &count, &err) ||
        !chunks_check_cover(entry.key, chunks, count, &err)) {
        fail_msg("%s", err.msg);
    }
    check->chunks += count;
    view_chunks_unref(chunks, count);
    collection_entry_deinit(&entry);
    return true;
}

void world_check_chunks(struct world *world)
{
    struct arena arena;
    struct chunk_check check = {.view.arena = &arena};
    size_t all = 0;
    arena_init(&arena);
    assert_true(store_read_begin(world->store, &check.view.txn, &world->err));
    assert_true(view_each(&check.view, NS_COLLECTIONS, (struct bdoc){0}, check_collection, &check, &world->err));
    assert_true(view_each(&check.view, NS_CHUNKS, (struct bdoc){0}, count_one, &all, &world->err));
    /* None belongs to a collection that is gone. */
    assert_int_equal(check.chunks, all);
    store_read_end(check.view.txn);
    arena_deinit(&arena);
}

void world_add_shards(struct world *world, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        world_must(world, plan_add_shard,
                   "{\"_configsvrCommitAddShard\": 1, \"name\": \"shard%zu\", \"host\": \"shard%zu/127.0.0.1:%zu\"}", i,
                   i, 27710 + i);
    }
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"db\", \"primaryShard\": \"shard0\"}");
}

void world_shard(struct world *world, const char *ns, const char *key, const char *options)
{
    uint8_t uuid[CLUSTER_UUID_BYTES];
    char hex[2 * CLUSTER_UUID_BYTES + 5];
    random_uuid(uuid);
    snprintf(hex, sizeof hex, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0], uuid[1],
             uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8], uuid[9], uuid[10], uuid[11], uuid[12],
             uuid[13], uuid[14], uuid[15]);
    world_must(
        world, plan_shard_begin,
        "{\"_configsvrShardCollectionBegin\": \"%s\", \"op\": {\"$uuid\": \"%s\"}, \"uuid\": {\"$uuid\": \"%s\"}, "
        "\"key\": %s%s}",
        ns, hex, hex, key, options);
    world_must(world, plan_shard_commit, "{\"_configsvrShardCollectionCommit\": \"%s\", \"op\": {\"$uuid\": \"%s\"}}",
               ns, hex);
}
