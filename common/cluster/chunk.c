#include "cluster/chunk.h"

#include "base/mem.h"
#include "cluster/fields.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t *place(uint8_t **to, const void *from, size_t len)
{
    uint8_t *at = *to;
    memcpy(at, from, len);
    *to += len;
    return at;
}

static struct chunk *chunk_lay_out(const struct chunk_spec *spec, const struct buf *min, const struct buf *max)
{
    size_t shard_size = strlen(spec->shard) + 1;
    struct chunk *chunk = mem_alloc(sizeof *chunk + spec->min.len + spec->max.len + min->len + max->len + shard_size);
    uint8_t *to = (uint8_t *)(chunk + 1);
    chunk->refs = 1;
    chunk->id = *spec->id;
    memcpy(chunk->uuid, spec->uuid, sizeof chunk->uuid);
    chunk->min = (struct bdoc){.data = place(&to, spec->min.data, spec->min.len), .len = spec->min.len};
    chunk->max = (struct bdoc){.data = place(&to, spec->max.data, spec->max.len), .len = spec->max.len};
    chunk->range.min = (struct key_bytes){.data = place(&to, min->data, min->len), .len = (uint32_t)min->len};
    chunk->range.max = (struct key_bytes){.data = place(&to, max->data, max->len), .len = (uint32_t)max->len};
    chunk->shard = (const char *)place(&to, spec->shard, shard_size);
    chunk->version = spec->version;
    chunk->since = spec->since;
    chunk->jumbo = spec->jumbo;
    return chunk;
}

bool chunk_new(const struct shardkey *key, const struct chunk_spec *spec, struct chunk **out, struct err *err)
{
    struct buf min = BUF_INIT;
    struct buf max = BUF_INIT;
    bool ok = false;
    if (!shardkey_encode_bound(key, spec->min, &min, err) || !shardkey_encode_bound(key, spec->max, &max, err)) {
        goto out;
    }
    if (key_bytes_compare(key_bytes_of(&min), key_bytes_of(&max)) >= 0) {
        err_set(err, ERR_BadValue, "the lower bound of a chunk must be below its upper bound");
        goto out;
    }
    *out = chunk_lay_out(spec, &min, &max);
    ok = true;
out:
    buf_deinit(&min);
    buf_deinit(&max);
    return ok;
}

bool chunk_parse(const struct shardkey *key, const bson_oid_t *epoch, struct bdoc doc, struct chunk **out,
                 struct err *err)
{
    bson_oid_t id;
    uint8_t uuid[CLUSTER_UUID_BYTES];
    char shard[CLUSTER_SHARD_NAME_MAX + 1];
    uint64_t lastmod;
    struct chunk_spec spec = {.id = &id, .uuid = uuid, .shard = shard, .version.epoch = *epoch};
    if (!field_oid(doc, "_id", &id, err) || !field_uuid(doc, "uuid", uuid, err) ||
        !field_doc(doc, "min", &spec.min, err) || !field_doc(doc, "max", &spec.max, err) ||
        !field_str(doc, "shard", shard, sizeof shard, err) || !field_timestamp(doc, "lastmod", &lastmod, err)) {
        return false;
    }
    if (bdoc_has(doc, "onCurrentShardSince") && !field_timestamp(doc, "onCurrentShardSince", &spec.since, err)) {
        return false;
    }
    chunk_version_set_timestamp(&spec.version, lastmod);
    spec.jumbo = field_flag(doc, "jumbo");
    return chunk_new(key, &spec, out, err);
}

void chunk_append(bson_t *to, const struct chunk *chunk)
{
    bson_append_oid(to, "_id", -1, &chunk->id);
    append_uuid(to, "uuid", chunk->uuid);
    append_bdoc(to, "min", chunk->min);
    append_bdoc(to, "max", chunk->max);
    bson_append_utf8(to, "shard", -1, chunk->shard, -1);
    append_timestamp(to, "lastmod", chunk_version_to_timestamp(&chunk->version));
    append_timestamp(to, "onCurrentShardSince", chunk->since);
    bson_t history;
    bson_t first;
    bson_append_array_begin(to, "history", -1, &history);
    bson_append_document_begin(&history, "0", -1, &first);
    append_timestamp(&first, "validAfter", chunk->since);
    bson_append_utf8(&first, "shard", -1, chunk->shard, -1);
    bson_append_document_end(&history, &first);
    bson_append_array_end(to, &history);
    if (chunk->jumbo) {
        bson_append_bool(to, "jumbo", -1, true);
    }
}

struct chunk *chunk_ref(struct chunk *chunk)
{
    atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
    return chunk;
}

void chunk_unref(struct chunk *chunk)
{
    if (chunk != NULL && atomic_fetch_sub_explicit(&chunk->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(chunk);
    }
}

static int by_min(const void *left, const void *right)
{
    const struct chunk *const *a = left;
    const struct chunk *const *b = right;
    return key_bytes_compare((*a)->range.min, (*b)->range.min);
}

void chunks_sort(struct chunk **chunks, size_t count)
{
    if (count > 1) {
        qsort(chunks, count, sizeof *chunks, by_min);
    }
}

static int by_timestamp(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static bool check_versions_differ(struct chunk *const *chunks, size_t count, struct err *err)
{
    uint64_t *versions = mem_alloc_array(count, sizeof *versions);
    for (size_t i = 0; i < count; i++) {
        versions[i] = chunk_version_to_timestamp(&chunks[i]->version);
    }
    qsort(versions, count, sizeof *versions, by_timestamp);
    bool ok = true;
    for (size_t i = 1; i < count && ok; i++) {
        if (versions[i] == versions[i - 1]) {
            ok = err_set(err, ERR_RangeOverlapConflict, "two chunks have the version %u|%u",
                         (unsigned)(versions[i] >> 32), (unsigned)versions[i]);
        }
    }
    mem_free(versions);
    return ok;
}

bool chunks_check_cover(const struct shardkey *key, struct chunk *const *sorted, size_t count, struct err *err)
{
    if (count == 0) {
        return err_set(err, ERR_RangeOverlapConflict, "a sharded collection has no chunk");
    }
    if (!shardkey_bound_is_global_min(key, sorted[0]->min)) {
        return err_set(err, ERR_RangeOverlapConflict, "the first chunk doesn't begin at MinKey");
    }
    if (!shardkey_bound_is_global_max(key, sorted[count - 1]->max)) {
        return err_set(err, ERR_RangeOverlapConflict, "the last chunk doesn't end at MaxKey");
    }
    for (size_t i = 1; i < count; i++) {
        int order = key_bytes_compare(sorted[i - 1]->range.max, sorted[i]->range.min);
        if (order != 0) {
            return err_set(err, ERR_RangeOverlapConflict, "%s between chunk %zu of shard %s and the next one",
                           order < 0 ? "hole" : "overlap", i - 1, sorted[i - 1]->shard);
        }
    }
    return check_versions_differ(sorted, count, err);
}

size_t chunks_find(struct chunk *const *sorted, size_t count, struct key_bytes key)
{
    size_t low = 0;
    size_t high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (key_bytes_compare(sorted[middle]->range.min, key) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
