#include "cluster/plan.h"

#include "base/mem.h"

#include <stdlib.h>

static int by_number(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* count - 1 points that cut the int64 space into `count` parts, symmetric around 0 as MongoDB places them. */
static int64_t *split_points(int64_t count)
{
    int64_t *points = mem_alloc_array((size_t)count + 2, sizeof *points);
    if (count == 1) {
        return points;
    }
    int64_t step = INT64_MAX / count * 2;
    int64_t current = 0;
    size_t used = 0;
    if (count % 2 == 0) {
        points[used++] = current;
        current += step;
    } else {
        current += step / 2;
    }
    for (int64_t i = 0; i < (count - 1) / 2; i++) {
        points[used++] = current;
        points[used++] = -current;
        current += step;
    }
    qsort(points, used, sizeof *points, by_number);
    return points;
}

/* A document of the plan's: the hashed first field at `point`, the rest at MinKey. */
static struct bdoc point_bound(struct chunk_plan *plan, const struct shardkey *key, int64_t point)
{
    bson_t bound = BSON_INITIALIZER;
    bson_append_int64(&bound, shardkey_field_path(key, 0), -1, point);
    for (size_t i = 1; i < shardkey_field_count(key); i++) {
        bson_append_minkey(&bound, shardkey_field_path(key, i), -1);
    }
    struct bdoc doc = {.data = arena_copy(&plan->arena, bson_get_data(&bound), bound.len), .len = bound.len};
    bson_destroy(&bound);
    return doc;
}

static struct bdoc global_bound(struct chunk_plan *plan, const struct shardkey *key,
                                void (*append)(const struct shardkey *key, bson_t *out))
{
    bson_t bound = BSON_INITIALIZER;
    append(key, &bound);
    struct bdoc doc = {.data = arena_copy(&plan->arena, bson_get_data(&bound), bound.len), .len = bound.len};
    bson_destroy(&bound);
    return doc;
}

static void plan_init(struct chunk_plan *plan, size_t count)
{
    arena_init(&plan->arena);
    plan->items = arena_alloc(&plan->arena, count * sizeof *plan->items);
    plan->count = count;
}

static void plan_single(const struct shardkey *key, struct chunk_plan *out)
{
    plan_init(out, 1);
    out->items[0].min = global_bound(out, key, shardkey_global_min);
    out->items[0].max = global_bound(out, key, shardkey_global_max);
}

static void plan_hashed(const struct chunk_plan_input *input, int64_t chunks, struct chunk_plan *out)
{
    size_t count = (size_t)chunks;
    int64_t *points = split_points(chunks);
    plan_init(out, count);
    for (size_t i = 0; i < count; i++) {
        struct chunk_plan_item *item = &out->items[i];
        item->shard = i * input->shard_count / count;
        item->min = i == 0 ? global_bound(out, input->key, shardkey_global_min) : out->items[i - 1].max;
        if (i + 1 == count) {
            item->max = global_bound(out, input->key, shardkey_global_max);
        } else {
            item->max = point_bound(out, input->key, points[i]);
        }
    }
    mem_free(points);
}

bool chunk_plan_make(const struct chunk_plan_input *input, struct chunk_plan *out, struct err *err)
{
    bool hashed = shardkey_hashed_field(input->key) == 0;
    if (input->initial_chunks != 0 && !hashed) {
        return err_set(err, ERR_InvalidOptions,
                       "numInitialChunks is not supported when the shard key's first field is not hashed.");
    }
    if (input->initial_chunks != 0 && !input->empty) {
        return err_set(err, ERR_InvalidOptions, "numInitialChunks is not supported when the collection is not empty.");
    }
    int64_t limit = PLAN_MAX_CHUNKS_PER_SHARD * (int64_t)input->shard_count;
    limit = limit < PLAN_MAX_CHUNKS ? limit : PLAN_MAX_CHUNKS;
    if (input->initial_chunks < 0 || input->initial_chunks > limit) {
        return err_set(err, ERR_InvalidOptions, "numInitialChunks must be between 1 and %lld", (long long)limit);
    }
    if (!hashed || !input->empty) {
        plan_single(input->key, out);
        return true;
    }
    int64_t chunks = input->initial_chunks;
    if (chunks == 0) {
        chunks = PLAN_CHUNKS_PER_SHARD * (int64_t)input->shard_count;
        chunks = chunks < limit ? chunks : limit;
    }
    plan_hashed(input, chunks, out);
    return true;
}

void chunk_plan_deinit(struct chunk_plan *plan)
{
    arena_deinit(&plan->arena);
    plan->items = NULL;
    plan->count = 0;
}
