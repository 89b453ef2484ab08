#include "cluster/routing.h"

#include "base/check.h"
#include "base/mem.h"
#include "cluster/fields.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct routing_shard {
    const char *name; /* borrowed from one of its chunks */
    struct chunk_version version;
};

/* Neighbouring chunks of one shard: what a scan over the key space steps through. */
struct routing_run {
    struct key_range range; /* borrowed from its chunks */
    size_t shard;
};

struct routing_table {
    atomic_int refs;
    struct collection_entry collection;
    struct chunk_version version; /* the highest among the chunks */
    struct chunk **chunks;        /* sorted, one reference each */
    size_t chunk_count;
    struct routing_shard *shards; /* sorted by name */
    size_t shard_count;
    struct routing_run *runs; /* sorted */
    size_t run_count;
};

static bool optional_doc(struct bdoc reply, const char *name, struct bdoc *out, struct err *err)
{
    struct bval val;
    *out = (struct bdoc){0};
    if (!bdoc_find(reply, name, &val) || val.type == BT_NULL) {
        return true;
    }
    if (val.type != BT_DOCUMENT) {
        return err_set(err, ERR_TypeMismatch, "\"%s\" of a routing reply must be a document or null", name);
    }
    *out = bval_doc(&val);
    return true;
}

bool routing_reply_parse(struct bdoc reply, struct routing_reply *out, struct err *err)
{
    struct routing_reply parsed = {0};
    if (!optional_doc(reply, "database", &parsed.database, err) ||
        !optional_doc(reply, "collection", &parsed.collection, err)) {
        return false;
    }
    if (parsed.collection.data != NULL) {
        struct bdoc version;
        if (!field_array(reply, "chunks", &parsed.chunks, err) || !field_doc(reply, "version", &version, err) ||
            !chunk_version_parse(version, &parsed.version, err)) {
            return false;
        }
    }
    *out = parsed;
    return true;
}

static struct routing_table *table_new(void)
{
    struct routing_table *table = mem_alloc(sizeof *table);
    table->refs = 1;
    return table;
}

static void table_free(struct routing_table *table)
{
    for (size_t i = 0; i < table->chunk_count; i++) {
        chunk_unref(table->chunks[i]);
    }
    mem_free(table->chunks);
    mem_free(table->shards);
    mem_free(table->runs);
    collection_entry_deinit(&table->collection);
    mem_free(table);
}

struct routing_table *routing_table_ref(struct routing_table *table)
{
    atomic_fetch_add_explicit(&table->refs, 1, memory_order_relaxed);
    return table;
}

void routing_table_unref(struct routing_table *table)
{
    if (table != NULL && atomic_fetch_sub_explicit(&table->refs, 1, memory_order_acq_rel) == 1) {
        table_free(table);
    }
}

static int by_name(const void *left, const void *right)
{
    const struct routing_shard *a = left;
    const struct routing_shard *b = right;
    return strcmp(a->name, b->name);
}

/* One entry for each shard name, with the highest version of its chunks. */
static void index_shards(struct routing_table *table)
{
    struct routing_shard *shards = mem_alloc_array(table->chunk_count, sizeof *shards);
    for (size_t i = 0; i < table->chunk_count; i++) {
        shards[i] = (struct routing_shard){.name = table->chunks[i]->shard, .version = table->chunks[i]->version};
    }
    qsort(shards, table->chunk_count, sizeof *shards, by_name);
    size_t count = 0;
    for (size_t i = 0; i < table->chunk_count; i++) {
        if (count > 0 && strcmp(shards[count - 1].name, shards[i].name) == 0) {
            if (chunk_version_compare(&shards[i].version, &shards[count - 1].version) == VERSION_NEWER) {
                shards[count - 1].version = shards[i].version;
            }
        } else {
            shards[count++] = shards[i];
        }
    }
    table->shards = mem_realloc(shards, count * sizeof *shards);
    table->shard_count = count;
}

static void index_runs(struct routing_table *table)
{
    struct routing_run *runs = mem_alloc_array(table->chunk_count, sizeof *runs);
    size_t count = 0;
    for (size_t i = 0; i < table->chunk_count; i++) {
        const struct chunk *chunk = table->chunks[i];
        size_t shard = routing_table_shard_index(table, chunk->shard);
        if (count > 0 && runs[count - 1].shard == shard) {
            runs[count - 1].range.max = chunk->range.max;
        } else {
            runs[count++] = (struct routing_run){.range = chunk->range, .shard = shard};
        }
    }
    table->runs = mem_realloc(runs, count * sizeof *runs);
    table->run_count = count;
}

/* Sorts the chunks, checks them against `version` and builds the indexes. */
static bool table_finish(struct routing_table *table, const struct chunk_version *version, struct err *err)
{
    chunks_sort(table->chunks, table->chunk_count);
    if (!chunks_check_cover(table->collection.key, table->chunks, table->chunk_count, err)) {
        return err_prefix(err, "routing table of %s", table->collection.ns);
    }
    table->version = table->chunks[0]->version;
    for (size_t i = 1; i < table->chunk_count; i++) {
        if (chunk_version_compare(&table->chunks[i]->version, &table->version) == VERSION_NEWER) {
            table->version = table->chunks[i]->version;
        }
    }
    if (chunk_version_compare(&table->version, version) != VERSION_SAME) {
        return err_set(err, ERR_ConflictingOperationInProgress, "the chunks of %s don't reach the announced version",
                       table->collection.ns);
    }
    index_shards(table);
    index_runs(table);
    return true;
}

/* Parses the reply's chunks behind those that are in table->chunks. */
static bool parse_chunks(struct routing_table *table, struct bdoc array, struct err *err)
{
    uint32_t count = bdoc_count(array);
    table->chunks = mem_realloc(table->chunks, (table->chunk_count + count + 1) * sizeof *table->chunks);
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, array); biter_next(&iter, &elem);) {
        struct chunk *chunk;
        if (elem.val.type != BT_DOCUMENT) {
            return err_set(err, ERR_TypeMismatch, "\"chunks\" of a routing reply must hold documents");
        }
        if (!chunk_parse(table->collection.key, &table->collection.epoch, bval_doc(&elem.val), &chunk, err)) {
            return false;
        }
        table->chunks[table->chunk_count++] = chunk;
        if (memcmp(chunk->uuid, table->collection.uuid, sizeof chunk->uuid) != 0) {
            return err_set(err, ERR_BadValue, "a chunk of another collection in a routing reply");
        }
    }
    return true;
}

bool routing_table_build(const struct routing_reply *reply, struct routing_table **out, struct err *err)
{
    CHECK(reply->collection.data != NULL);
    struct routing_table *table = table_new();
    if (!collection_entry_parse(reply->collection, &table->collection, err) ||
        !parse_chunks(table, reply->chunks, err) || !table_finish(table, &reply->version, err)) {
        table_free(table);
        return false;
    }
    *out = table;
    return true;
}

/* Adds references to those of the old chunks that none of the new, sorted ones overlaps. */
static void keep_untouched(struct routing_table *table, const struct routing_table *old)
{
    size_t changed = table->chunk_count;
    size_t next = 0;
    table->chunks = mem_realloc(table->chunks, (changed + old->chunk_count + 1) * sizeof *table->chunks);
    for (size_t i = 0; i < old->chunk_count; i++) {
        struct chunk *chunk = old->chunks[i];
        while (next < changed && key_bytes_compare(table->chunks[next]->range.max, chunk->range.min) <= 0) {
            next++;
        }
        if (next == changed || !key_range_overlaps(table->chunks[next]->range, chunk->range)) {
            table->chunks[table->chunk_count++] = chunk_ref(chunk);
        }
    }
}

bool routing_table_update(struct routing_table *old, const struct routing_reply *reply, struct routing_table **out,
                          struct err *err)
{
    if (reply->collection.data == NULL || memcmp(&reply->version.epoch, &old->version.epoch, sizeof(bson_oid_t)) != 0) {
        return err_set(err, ERR_ConflictingOperationInProgress, "%s was dropped or sharded anew", old->collection.ns);
    }
    if (chunk_version_compare(&reply->version, &old->version) == VERSION_SAME) {
        *out = routing_table_ref(old);
        return true;
    }
    struct routing_table *table = table_new();
    if (!collection_entry_parse(reply->collection, &table->collection, err) ||
        !parse_chunks(table, reply->chunks, err)) {
        table_free(table);
        return false;
    }
    chunks_sort(table->chunks, table->chunk_count);
    keep_untouched(table, old);
    if (!table_finish(table, &reply->version, err)) {
        table_free(table);
        if (err != NULL) {
            err->code = ERR_ConflictingOperationInProgress;
        }
        return false;
    }
    *out = table;
    return true;
}

const struct collection_entry *routing_table_collection(const struct routing_table *table)
{
    return &table->collection;
}

struct shardkey *routing_table_key(const struct routing_table *table)
{
    return table->collection.key;
}

const struct chunk_version *routing_table_version(const struct routing_table *table)
{
    return &table->version;
}

size_t routing_table_chunk_count(const struct routing_table *table)
{
    return table->chunk_count;
}

const struct chunk *routing_table_chunk(const struct routing_table *table, size_t index)
{
    CHECK(index < table->chunk_count);
    return table->chunks[index];
}

size_t routing_table_shard_count(const struct routing_table *table)
{
    return table->shard_count;
}

const char *routing_table_shard_name(const struct routing_table *table, size_t shard)
{
    CHECK(shard < table->shard_count);
    return table->shards[shard].name;
}

size_t routing_table_shard_index(const struct routing_table *table, const char *name)
{
    struct routing_shard wanted = {.name = name};
    const struct routing_shard *found =
        bsearch(&wanted, table->shards, table->shard_count, sizeof *table->shards, by_name);
    return found == NULL ? SIZE_MAX : (size_t)(found - table->shards);
}

struct chunk_version routing_table_shard_version(const struct routing_table *table, size_t shard)
{
    CHECK(shard < table->shard_count);
    return table->shards[shard].version;
}

static bool chunk_same(const struct chunk *a, const struct chunk *b)
{
    return bson_oid_equal(&a->id, &b->id) && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0 &&
           bdoc_same(a->min, b->min) && bdoc_same(a->max, b->max) && strcmp(a->shard, b->shard) == 0 &&
           chunk_version_compare(&a->version, &b->version) == VERSION_SAME && a->since == b->since &&
           a->jumbo == b->jumbo;
}

bool routing_table_equal(const struct routing_table *a, const struct routing_table *b)
{
    if (a->chunk_count != b->chunk_count || strcmp(a->collection.ns, b->collection.ns) != 0 ||
        memcmp(a->collection.uuid, b->collection.uuid, sizeof a->collection.uuid) != 0 ||
        chunk_version_compare(&a->version, &b->version) != VERSION_SAME) {
        return false;
    }
    for (size_t i = 0; i < a->chunk_count; i++) {
        if (!chunk_same(a->chunks[i], b->chunks[i])) {
            return false;
        }
    }
    return true;
}

size_t routing_table_target_key(const struct routing_table *table, struct key_bytes key, const struct chunk **chunk)
{
    const struct chunk *found = table->chunks[chunks_find(table->chunks, table->chunk_count, key)];
    if (chunk != NULL) {
        *chunk = found;
    }
    return routing_table_shard_index(table, found->shard);
}

struct key_range routing_all_keys(void)
{
    static const uint8_t end = KEY_AFTER_PREFIX;
    return (struct key_range){.max = {.data = &end, .len = 1}};
}

/* Index of the run that holds `key`; the first one for keys below it. */
static size_t run_find(const struct routing_table *table, struct key_bytes key)
{
    size_t low = 0;
    size_t high = table->run_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (key_bytes_compare(table->runs[middle].range.min, key) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Every (range, shard) piece of the intervals, in order, appended to `out` as struct routing_run. */
static void cut_intervals(const struct routing_table *table, const struct key_range *intervals, size_t count,
                          struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (key_range_is_empty(intervals[i])) {
            continue;
        }
        for (size_t run = run_find(table, intervals[i].min); run < table->run_count; run++) {
            struct routing_run piece = {
                .range = key_range_intersect(intervals[i], table->runs[run].range),
                .shard = table->runs[run].shard,
            };
            if (key_range_is_empty(piece.range)) {
                break;
            }
            buf_append(out, &piece, sizeof piece);
        }
    }
}

/* Appends the range to the target; joins it with the last one when they touch. */
static void target_add(struct routing_target *target, struct key_range range)
{
    if (target->range_count > 0) {
        struct key_range *last = &target->ranges[target->range_count - 1];
        if (key_bytes_compare(last->max, range.min) == 0) {
            last->max = range.max;
            return;
        }
    }
    target->ranges[target->range_count++] = range;
}

size_t routing_table_target(const struct routing_table *table, const struct key_range *intervals, size_t count,
                            struct arena *arena, struct routing_target **out)
{
    struct buf cut = BUF_INIT;
    cut_intervals(table, intervals, count, &cut);
    const struct routing_run *pieces = (const struct routing_run *)(const void *)cut.data;
    size_t piece_count = cut.len / sizeof *pieces;

    size_t *counts = arena_alloc(arena, table->shard_count * sizeof *counts);
    size_t *target_of = arena_alloc(arena, table->shard_count * sizeof *target_of);
    for (size_t i = 0; i < piece_count; i++) {
        counts[pieces[i].shard]++;
    }
    struct routing_target *targets = arena_alloc(arena, (table->shard_count + 1) * sizeof *targets);
    size_t target_count = 0;
    for (size_t i = 0; i < piece_count; i++) {
        size_t shard = pieces[i].shard;
        if (counts[shard] > 0) {
            struct routing_target *target = &targets[target_count];
            target->shard = shard;
            target->ranges = arena_alloc(arena, counts[shard] * sizeof *target->ranges);
            target_of[shard] = target_count++;
            counts[shard] = 0;
        }
        target_add(&targets[target_of[shard]], pieces[i].range);
    }
    buf_deinit(&cut);
    *out = targets;
    return target_count;
}

struct range_set *routing_table_shard_ranges(const struct routing_table *table, const char *shard)
{
    struct key_range *ranges = mem_alloc_array(table->chunk_count, sizeof *ranges);
    size_t count = 0;
    for (size_t i = 0; i < table->chunk_count; i++) {
        if (strcmp(table->chunks[i]->shard, shard) == 0) {
            ranges[count++] = table->chunks[i]->range;
        }
    }
    struct range_set *set;
    bool ok = range_set_new(ranges, count, &set, NULL);
    CHECK(ok);
    mem_free(ranges);
    return set;
}
