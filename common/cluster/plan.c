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

/* The hashed first field at `point`, the rest at MinKey. */
static void append_point(const struct shardkey *key, int64_t point, bson_t *out)
{
    bson_append_int64(out, shardkey_field_path(key, 0), -1, point);
    for (size_t i = 1; i < shardkey_field_count(key); i++) {
        bson_append_minkey(out, shardkey_field_path(key, i), -1);
    }
}

static void plan_init(struct chunk_plan *plan, size_t count)
{
    plan->items = mem_alloc_array(count, sizeof *plan->items);
    plan->count = count;
    for (size_t i = 0; i < count; i++) {
        bson_init(&plan->items[i].min);
        bson_init(&plan->items[i].max);
    }
}

static void plan_single(const struct shardkey *key, struct chunk_plan *out)
{
    plan_init(out, 1);
    shardkey_global_min(key, &out->items[0].min);
    shardkey_global_max(key, &out->items[0].max);
}

static void plan_hashed(const struct chunk_plan_input *input, int64_t chunks, struct chunk_plan *out)
{
    size_t count = (size_t)chunks;
    int64_t *points = split_points(chunks);
    plan_init(out, count);
    for (size_t i = 0; i < count; i++) {
        struct chunk_plan_item *item = &out->items[i];
        item->shard = i * input->shard_count / count;
        if (i == 0) {
            shardkey_global_min(input->key, &item->min);
        } else {
            append_point(input->key, points[i - 1], &item->min);
        }
        if (i + 1 == count) {
            shardkey_global_max(input->key, &item->max);
        } else {
            append_point(input->key, points[i], &item->max);
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
    for (size_t i = 0; i < plan->count; i++) {
        bson_destroy(&plan->items[i].min);
        bson_destroy(&plan->items[i].max);
    }
    mem_free(plan->items);
    *plan = (struct chunk_plan){0};
}
