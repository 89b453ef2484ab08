#include "support.h"

#include "base/mem.h"
#include "base/random.h"
#include "cluster/fields.h"
#include "cluster/routing.h"

enum { MODEL_MAX_CHUNKS = 64, MODEL_SHARDS = 4, MODEL_KEYS = 1000 };

/* A collection sharded by {a: 1} over the numbers 0 .. MODEL_KEYS, as the config service would hold it. */
struct model {
    struct arena arena;
    struct collection_entry collection;
    struct chunk_version version;
    size_t count;
    int64_t mins[MODEL_MAX_CHUNKS]; /* -1: MinKey */
    int shards[MODEL_MAX_CHUNKS];
    uint64_t versions[MODEL_MAX_CHUNKS];
};

static const char *const shard_names[MODEL_SHARDS] = {"s0", "s1", "s2", "s3"};

static void model_init(struct model *model)
{
    *model = (struct model){.count = 1, .mins = {-1}, .version = {.epoch.bytes = {1}, .major = 1}};
    arena_init(&model->arena);
    model->collection =
        (struct collection_entry){.ns = "db.c", .uuid = {1}, .epoch = model->version.epoch, .timestamp = 1};
    model->collection.key = json_key(&model->arena, "{\"a\": 1}");
    model->versions[0] = chunk_version_to_timestamp(&model->version);
}

static void model_deinit(struct model *model)
{
    collection_entry_deinit(&model->collection);
    arena_deinit(&model->arena);
}

static uint64_t next_minor(struct model *model)
{
    model->version.minor++;
    return chunk_version_to_timestamp(&model->version);
}

static uint64_t next_major(struct model *model)
{
    model->version.major++;
    model->version.minor = 0;
    return chunk_version_to_timestamp(&model->version);
}

static size_t model_find(const struct model *model, int64_t key)
{
    size_t index = 0;
    while (index + 1 < model->count && model->mins[index + 1] <= key) {
        index++;
    }
    return index;
}

static void model_split(struct model *model, int64_t at)
{
    size_t index = model_find(model, at);
    if (model->mins[index] == at || model->count == MODEL_MAX_CHUNKS) {
        return;
    }
    size_t after = model->count - index - 1;
    memmove(&model->mins[index + 2], &model->mins[index + 1], after * sizeof model->mins[0]);
    memmove(&model->shards[index + 2], &model->shards[index + 1], after * sizeof model->shards[0]);
    memmove(&model->versions[index + 2], &model->versions[index + 1], after * sizeof model->versions[0]);
    model->mins[index + 1] = at;
    model->shards[index + 1] = model->shards[index];
    model->versions[index] = next_minor(model);
    model->versions[index + 1] = next_minor(model);
    model->count++;
}

static void model_merge(struct model *model, size_t index)
{
    if (index + 1 >= model->count || model->shards[index] != model->shards[index + 1]) {
        return;
    }
    size_t after = model->count - index - 2;
    memmove(&model->mins[index + 1], &model->mins[index + 2], after * sizeof model->mins[0]);
    memmove(&model->shards[index + 1], &model->shards[index + 2], after * sizeof model->shards[0]);
    memmove(&model->versions[index + 1], &model->versions[index + 2], after * sizeof model->versions[0]);
    model->versions[index] = next_minor(model);
    model->count--;
}

static void model_move(struct model *model, size_t index, int to)
{
    int from = model->shards[index];
    model->shards[index] = to;
    model->versions[index] = next_major(model);
    for (size_t i = 0; i < model->count; i++) {
        if (model->shards[i] == from && from != to) {
            model->versions[i] = next_minor(model);
            return;
        }
    }
}

static void append_bound(bson_t *to, const char *name, int64_t value, bool is_end)
{
    bson_t bound;
    bson_append_document_begin(to, name, -1, &bound);
    if (value >= 0 && !is_end) {
        bson_append_int64(&bound, "a", -1, value);
    } else if (is_end) {
        bson_append_maxkey(&bound, "a", -1);
    } else {
        bson_append_minkey(&bound, "a", -1);
    }
    bson_append_document_end(to, &bound);
}

static void append_chunk(const struct model *model, size_t index, bson_t *to)
{
    bson_oid_t id = {0};
    memcpy(id.bytes, &model->versions[index], sizeof model->versions[index]);
    bool last = index + 1 == model->count;
    bson_append_oid(to, "_id", -1, &id);
    append_uuid(to, "uuid", model->collection.uuid);
    append_bound(to, "min", model->mins[index], false);
    append_bound(to, "max", last ? 0 : model->mins[index + 1], last);
    bson_append_utf8(to, "shard", -1, shard_names[model->shards[index]], -1);
    append_timestamp(to, "lastmod", model->versions[index]);
}

/* The answer of _configsvrGetRouting with the chunks at or above `since`. */
static void model_reply(const struct model *model, uint64_t since, bson_t *out)
{
    bson_t inner;
    bson_t chunks;
    bson_init(out);
    bson_append_null(out, "database", -1);
    bson_append_document_begin(out, "collection", -1, &inner);
    collection_entry_append(&inner, &model->collection);
    bson_append_document_end(out, &inner);
    bson_append_array_begin(out, "chunks", -1, &chunks);
    uint32_t used = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->versions[i] >= since) {
            char text[16];
            const char *name;
            bson_uint32_to_string(used++, &name, text, sizeof text);
            bson_append_document_begin(&chunks, name, -1, &inner);
            append_chunk(model, i, &inner);
            bson_append_document_end(&chunks, &inner);
        }
    }
    bson_append_array_end(out, &chunks);
    chunk_version_append(out, "version", &model->version);
}

static struct routing_table *model_table(const struct model *model)
{
    bson_t doc;
    struct routing_reply reply;
    struct routing_table *table = NULL;
    struct err err;
    model_reply(model, 0, &doc);
    if (!routing_reply_parse(bdoc_of(&doc), &reply, &err) || !routing_table_build(&reply, &table, &err)) {
        fail_msg("%s", err.msg);
    }
    bson_destroy(&doc);
    return table;
}

static bool model_update(const struct model *model, struct routing_table *old, struct routing_table **out,
                         struct err *err)
{
    bson_t doc;
    struct routing_reply reply;
    model_reply(model, chunk_version_to_timestamp(routing_table_version(old)), &doc);
    bool ok = routing_reply_parse(bdoc_of(&doc), &reply, err) && routing_table_update(old, &reply, out, err);
    bson_destroy(&doc);
    return ok;
}

static struct key_bytes number_key(struct model *model, int64_t number)
{
    char json[64];
    snprintf(json, sizeof json, "{\"a\": {\"$numberLong\": \"%lld\"}}", (long long)number);
    return json_doc_key(&model->arena, model->collection.key, json);
}

static void routing_table_build_knows_shards_and_versions(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    model_split(&model, 100);
    model_split(&model, 200);
    model_move(&model, 1, 2);
    struct routing_table *table = model_table(&model);
    assert_int_equal(routing_table_chunk_count(table), 3);
    assert_int_equal(routing_table_shard_count(table), 2);
    assert_string_equal(routing_table_shard_name(table, 1), "s2");
    assert_int_equal(routing_table_shard_version(table, 1).major, 2);
    assert_int_equal(routing_table_shard_version(table, 1).minor, 0);
    assert_int_equal(routing_table_shard_version(table, 0).minor, 1);
    assert_true(routing_table_shard_index(table, "s1") == SIZE_MAX);
    assert_int_equal(chunk_version_compare(routing_table_version(table), &model.version), VERSION_SAME);
    routing_table_unref(table);
    model_deinit(&model);
}

static void routing_table_target_key_follows_the_chunks(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    model_split(&model, 100);
    model_move(&model, 1, 3);
    struct routing_table *table = model_table(&model);
    const struct chunk *chunk;
    assert_int_equal(routing_table_target_key(table, number_key(&model, 99), &chunk), 0);
    assert_string_equal(chunk->shard, "s0");
    assert_int_equal(routing_table_target_key(table, number_key(&model, 100), &chunk), 1);
    assert_string_equal(chunk->shard, "s3");
    routing_table_unref(table);
    model_deinit(&model);
}

static void routing_table_target_joins_and_clips(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    for (int64_t at = 100; at <= 400; at += 100) {
        model_split(&model, at);
    }
    model_move(&model, 2, 1); /* [200, 300) */
    struct routing_table *table = model_table(&model);
    struct key_range intervals[] = {
        {.min = number_key(&model, 50), .max = number_key(&model, 150)},
        {.min = number_key(&model, 250), .max = number_key(&model, 450)},
    };
    struct routing_target *targets;
    size_t count = routing_table_target(table, intervals, 2, &model.arena, &targets);
    assert_int_equal(count, 2);
    assert_string_equal(routing_table_shard_name(table, targets[0].shard), "s0");
    assert_int_equal(targets[0].range_count, 2);
    assert_int_equal(key_bytes_compare(targets[0].ranges[0].min, intervals[0].min), 0);
    assert_int_equal(key_bytes_compare(targets[0].ranges[0].max, intervals[0].max), 0);
    assert_int_equal(key_bytes_compare(targets[0].ranges[1].min, number_key(&model, 300)), 0);
    assert_int_equal(key_bytes_compare(targets[0].ranges[1].max, intervals[1].max), 0);
    assert_int_equal(targets[1].range_count, 1);
    assert_int_equal(key_bytes_compare(targets[1].ranges[0].min, intervals[1].min), 0);
    assert_int_equal(key_bytes_compare(targets[1].ranges[0].max, number_key(&model, 300)), 0);

    struct key_range touching[] = {
        {.min = number_key(&model, 1), .max = number_key(&model, 2)},
        {.min = number_key(&model, 2), .max = number_key(&model, 3)},
        {.min = number_key(&model, 9), .max = number_key(&model, 9)},
    };
    count = routing_table_target(table, touching, 3, &model.arena, &targets);
    assert_int_equal(count, 1);
    assert_int_equal(targets[0].range_count, 1);
    assert_int_equal(routing_table_target(table, touching + 2, 1, &model.arena, &targets), 0);
    routing_table_unref(table);
    model_deinit(&model);
}

static void routing_table_target_everything_names_each_shard_once(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    for (int64_t at = 100; at <= 400; at += 100) {
        model_split(&model, at);
    }
    model_move(&model, 1, 1);
    model_move(&model, 3, 2);
    struct routing_table *table = model_table(&model);
    struct key_range all = routing_all_keys();
    struct routing_target *targets;
    assert_int_equal(routing_table_target(table, &all, 1, &model.arena, &targets), 3);
    for (size_t i = 0; i < 3; i++) {
        const char *name = routing_table_shard_name(table, targets[i].shard);
        struct range_set *owned = routing_table_shard_ranges(table, name);
        for (size_t r = 0; r < targets[i].range_count; r++) {
            assert_true(range_set_covers(owned, targets[i].ranges[r]));
        }
        range_set_free(owned);
    }
    struct range_set *none = routing_table_shard_ranges(table, "nobody");
    assert_int_equal(range_set_count(none), 0);
    range_set_free(none);
    routing_table_unref(table);
    model_deinit(&model);
}

static void routing_table_update_without_a_change_is_the_old_table(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    struct routing_table *table = model_table(&model);
    struct routing_table *same;
    struct err err;
    assert_true(model_update(&model, table, &same, &err));
    assert_ptr_equal(same, table);
    routing_table_unref(same);
    routing_table_unref(table);
    model_deinit(&model);
}

static void routing_table_update_with_a_gap_asks_for_everything(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    struct routing_table *old = model_table(&model);
    model_split(&model, 100);
    model_split(&model, 200);
    struct routing_reply reply;
    struct routing_table *table;
    struct err err;
    bson_t doc;
    /* As if the answer to a newer version came: the chunk below 100 is missing. */
    model_reply(&model, model.versions[1], &doc);
    assert_true(routing_reply_parse(bdoc_of(&doc), &reply, &err));
    assert_false(routing_table_update(old, &reply, &table, &err));
    assert_int_equal(err.code, ERR_ConflictingOperationInProgress);
    bson_destroy(&doc);
    /* And another epoch. */
    model.version.epoch.bytes[0]++;
    model.collection.epoch = model.version.epoch;
    assert_false(model_update(&model, old, &table, &err));
    assert_int_equal(err.code, ERR_ConflictingOperationInProgress);
    routing_table_unref(old);
    model_deinit(&model);
}

static void routing_table_build_refuses_a_short_reply(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    model_split(&model, 100);
    struct routing_reply reply;
    struct routing_table *table;
    struct err err;
    bson_t doc;
    model_reply(&model, model.versions[1], &doc);
    assert_true(routing_reply_parse(bdoc_of(&doc), &reply, &err));
    assert_false(routing_table_build(&reply, &table, &err));
    assert_int_equal(err.code, ERR_RangeOverlapConflict);
    bson_destroy(&doc);
    model_deinit(&model);
}

static void random_change(struct model *model, struct prng *prng)
{
    size_t index = (size_t)prng_below(prng, model->count);
    switch (prng_below(prng, 4)) {
    case 0:
    case 1:
        model_split(model, (int64_t)prng_below(prng, MODEL_KEYS));
        break;
    case 2:
        model_merge(model, index);
        break;
    default:
        model_move(model, index, (int)prng_below(prng, MODEL_SHARDS));
        break;
    }
}

static void check_points(struct model *model, const struct routing_table *table, struct prng *prng)
{
    for (int i = 0; i < 10; i++) {
        int64_t number = (int64_t)prng_below(prng, MODEL_KEYS);
        size_t shard = routing_table_target_key(table, number_key(model, number), NULL);
        assert_string_equal(routing_table_shard_name(table, shard),
                            shard_names[model->shards[model_find(model, number)]]);
    }
}

/* From any older version the incremental refresh gives what a full load gives. */
static void routing_table_update_from_any_version_equals_a_full_load(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        enum { STEPS = 60 };
        struct prng prng = {.state = seed};
        struct model model;
        struct routing_table *history[STEPS];
        model_init(&model);
        for (size_t step = 0; step < STEPS; step++) {
            random_change(&model, &prng);
            history[step] = model_table(&model);
            check_points(&model, history[step], &prng);
            for (size_t old = 0; old < step; old++) {
                struct routing_table *updated = NULL;
                struct err err;
                if (!model_update(&model, history[old], &updated, &err)) {
                    fail_msg("seed %llu step %zu from %zu: %s", (unsigned long long)seed, step, old, err.msg);
                }
                assert_true(routing_table_equal(updated, history[step]));
                routing_table_unref(updated);
            }
        }
        for (size_t step = 0; step < STEPS; step++) {
            routing_table_unref(history[step]);
        }
        model_deinit(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routing_table_build_knows_shards_and_versions),
        cmocka_unit_test(routing_table_target_key_follows_the_chunks),
        cmocka_unit_test(routing_table_target_joins_and_clips),
        cmocka_unit_test(routing_table_target_everything_names_each_shard_once),
        cmocka_unit_test(routing_table_update_without_a_change_is_the_old_table),
        cmocka_unit_test(routing_table_update_with_a_gap_asks_for_everything),
        cmocka_unit_test(routing_table_build_refuses_a_short_reply),
        cmocka_unit_test(routing_table_update_from_any_version_equals_a_full_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
