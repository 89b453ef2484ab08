#include "configd/writes.h"

#include "base/check.h"
#include "base/mem.h"
#include "bson/compare.h"
#include "cluster/fields.h"
#include "configd/names.h"

#include <string.h>

/* What the writes do to one collection. */
struct touched {
    const struct metadata_writes *writes;
    const struct metadata_view *view;
    uint8_t uuid[CLUSTER_UUID_BYTES];
    bool had_entry;
    bool has_entry;
    bool erases_chunks;
    struct collection_entry entry; /* of has_entry, else of had_entry */
    struct chunk **before;         /* stored chunks that the writes replace or erase; one reference each */
    size_t before_count;
    struct chunk **after; /* chunks that the writes put */
    size_t after_count;
};

static bool is_put(const struct metadata_write *write, const char *ns)
{
    return write->kind == WRITE_PUT && strcmp(write->ns, ns) == 0;
}

static bool uuid_of(struct bdoc doc, uint8_t out[CLUSTER_UUID_BYTES])
{
    return field_uuid(doc, "uuid", out, NULL);
}

/* The entry that the writes put for this uuid. */
static bool find_put_entry(const struct touched *touched, struct collection_entry *out)
{
    for (size_t i = 0; i < touched->writes->count; i++) {
        const struct metadata_write *write = &touched->writes->items[i];
        uint8_t uuid[CLUSTER_UUID_BYTES];
        if (is_put(write, NS_COLLECTIONS) && uuid_of(write->doc, uuid) &&
            memcmp(uuid, touched->uuid, sizeof uuid) == 0) {
            return collection_entry_parse(write->doc, out, NULL);
        }
    }
    return false;
}

/* True when the writes erase or replace the document of that namespace in config.collections. */
static bool entry_goes(const struct metadata_writes *writes, const char *ns)
{
    for (size_t i = 0; i < writes->count; i++) {
        const struct metadata_write *write = &writes->items[i];
        if (write->kind != WRITE_ERASE_CHUNKS && strcmp(write->ns, NS_COLLECTIONS) == 0 &&
            bval_is_str(&write->id, ns)) {
            return true;
        }
    }
    return false;
}

/* A namespace has one entry, an entry keeps its key and epoch. */
static bool find_entries(struct touched *touched, struct err *err)
{
    struct collection_entry stored = {0};
    struct collection_entry put = {0};
    touched->had_entry = view_collection_by_uuid(touched->view, touched->uuid, &stored);
    bool is_put_again = find_put_entry(touched, &put);
    bool ok = true;
    if (touched->had_entry && is_put_again &&
        (strcmp(stored.ns, put.ns) != 0 || !bson_oid_equal(&stored.epoch, &put.epoch) ||
         !shardkey_equal(stored.key, put.key))) {
        ok = err_set(err, ERR_BadValue, "name, epoch and key of a sharded collection can't change");
    }
    touched->has_entry = is_put_again || (touched->had_entry && !entry_goes(touched->writes, stored.ns));
    if (is_put_again) {
        touched->entry = put;
        collection_entry_deinit(&stored);
    } else {
        touched->entry = stored;
        collection_entry_deinit(&put);
    }
    return ok;
}

static bool add_put_chunk(struct touched *touched, const struct metadata_write *write, struct err *err)
{
    struct chunk **slot = &touched->after[touched->after_count];
    if (!chunk_parse(touched->entry.key, &touched->entry.epoch, write->doc, slot, err)) {
        return false;
    }
    touched->after_count++;
    struct shard_entry shard;
    if (!view_shard(touched->view, (*slot)->shard, &shard)) {
        return err_set(err, ERR_ShardNotFound, "a chunk can't be on shard %s: there is none", (*slot)->shard);
    }
    return true;
}

/* The stored chunk that a put or erase of that _id touches, if it is the collection's. */
static bool add_stored_chunk(struct touched *touched, const struct bval *id, struct err *err)
{
    struct bdoc doc;
    uint8_t uuid[CLUSTER_UUID_BYTES];
    if (!touched->had_entry || !view_get(touched->view, NS_CHUNKS, id, &doc) || !uuid_of(doc, uuid) ||
        memcmp(uuid, touched->uuid, sizeof uuid) != 0) {
        return true;
    }
    if (!chunk_parse(touched->entry.key, &touched->entry.epoch, doc, &touched->before[touched->before_count], err)) {
        return false;
    }
    touched->before_count++;
    return true;
}

static bool gather_chunks(struct touched *touched, struct err *err)
{
    const struct metadata_writes *writes = touched->writes;
    touched->before = mem_alloc_array(writes->count + 1, sizeof *touched->before);
    touched->after = mem_alloc_array(writes->count + 1, sizeof *touched->after);
    for (size_t i = 0; i < writes->count; i++) {
        const struct metadata_write *write = &writes->items[i];
        if (write->kind == WRITE_ERASE_CHUNKS) {
            touched->erases_chunks |= memcmp(write->uuid, touched->uuid, sizeof write->uuid) == 0;
            continue;
        }
        if (strcmp(write->ns, NS_CHUNKS) != 0) {
            continue;
        }
        uint8_t uuid[CLUSTER_UUID_BYTES];
        if (!add_stored_chunk(touched, &write->id, err)) {
            return false;
        }
        bool ours =
            write->kind == WRITE_PUT && uuid_of(write->doc, uuid) && memcmp(uuid, touched->uuid, sizeof uuid) == 0;
        if (ours && !touched->has_entry) {
            return err_set(err, ERR_RangeOverlapConflict, "a chunk without a sharded collection");
        }
        if (ours && !add_put_chunk(touched, write, err)) {
            return false;
        }
    }
    chunks_sort(touched->before, touched->before_count);
    chunks_sort(touched->after, touched->after_count);
    return true;
}

/* Joins neighbours from `*index` on into one range. False at the end; *overlap is set when two chunks overlap. */
static bool next_joined(struct chunk *const *chunks, size_t count, size_t *index, struct key_range *out, bool *overlap)
{
    if (*index == count) {
        return false;
    }
    *out = chunks[(*index)++]->range;
    while (*index < count) {
        int order = key_bytes_compare(out->max, chunks[*index]->range.min);
        if (order < 0) {
            return true;
        }
        *overlap |= order > 0;
        out->max = chunks[(*index)++]->range.max;
    }
    return true;
}

/* The new chunks cover exactly what the replaced ones covered. */
static bool check_exchange(const struct touched *touched, struct err *err)
{
    size_t old_index = 0;
    size_t new_index = 0;
    for (;;) {
        struct key_range old_range = {0};
        struct key_range new_range = {0};
        bool overlap = false;
        bool more_old = next_joined(touched->before, touched->before_count, &old_index, &old_range, &overlap);
        bool more_new = next_joined(touched->after, touched->after_count, &new_index, &new_range, &overlap);
        if (overlap || more_old != more_new || key_bytes_compare(old_range.min, new_range.min) != 0 ||
            key_bytes_compare(old_range.max, new_range.max) != 0) {
            return err_set(err, ERR_RangeOverlapConflict, "the new chunks of %s don't cover what the old ones did",
                           touched->entry.ns);
        }
        if (!more_old) {
            return true;
        }
    }
}

/* Routers read what is newer than what they have: a version is never given twice nor out of order. */
static bool check_versions(const struct touched *touched, struct err *err)
{
    struct chunk_version newest;
    bool any = view_collection_version(touched->view, &touched->entry, &newest);
    for (size_t i = 0; i < touched->after_count; i++) {
        const struct chunk_version *version = &touched->after[i]->version;
        if (any && chunk_version_compare(version, &newest) != VERSION_NEWER) {
            return err_set(err, ERR_RangeOverlapConflict, "chunk version %lld|%lld of %s is not new",
                           (long long)version->major, (long long)version->minor, touched->entry.ns);
        }
        for (size_t j = 0; j < i && touched->had_entry; j++) {
            if (chunk_version_compare(version, &touched->after[j]->version) == VERSION_SAME) {
                return err_set(err, ERR_RangeOverlapConflict, "two new chunks of %s have one version",
                               touched->entry.ns);
            }
        }
    }
    return true;
}

static bool check_gathered(const struct touched *touched, struct err *err)
{
    struct chunk_version any;
    if (!touched->has_entry) {
        if (touched->had_entry && !touched->erases_chunks) {
            return err_set(err, ERR_RangeOverlapConflict, "%s goes without its chunks", touched->entry.ns);
        }
        return true;
    }
    if (!touched->had_entry) {
        if (touched->erases_chunks || view_collection_version(touched->view, &touched->entry, &any)) {
            return err_set(err, ERR_RangeOverlapConflict, "%s has chunks already", touched->entry.ns);
        }
        return chunks_check_cover(touched->entry.key, touched->after, touched->after_count, err);
    }
    if (touched->erases_chunks) {
        return err_set(err, ERR_RangeOverlapConflict, "the chunks of %s go without it", touched->entry.ns);
    }
    return check_exchange(touched, err) && check_versions(touched, err);
}

static bool check_collection(const struct metadata_writes *writes, const struct metadata_view *view,
                             const uint8_t uuid[CLUSTER_UUID_BYTES], struct err *err)
{
    struct touched touched = {.writes = writes, .view = view};
    memcpy(touched.uuid, uuid, sizeof touched.uuid);
    bool ok = find_entries(&touched, err) && gather_chunks(&touched, err) && check_gathered(&touched, err);
    view_chunks_unref(touched.before, touched.before_count);
    view_chunks_unref(touched.after, touched.after_count);
    mem_free(touched.before);
    mem_free(touched.after);
    collection_entry_deinit(&touched.entry);
    return ok;
}

struct uuid_set {
    uint8_t (*uuids)[CLUSTER_UUID_BYTES];
    size_t count;
};

static void uuid_set_add(struct uuid_set *set, const uint8_t uuid[CLUSTER_UUID_BYTES])
{
    /* The newest first: neighbouring writes mostly mean the same collection. */
    for (size_t i = set->count; i-- > 0;) {
        if (memcmp(set->uuids[i], uuid, CLUSTER_UUID_BYTES) == 0) {
            return;
        }
    }
    memcpy(set->uuids[set->count++], uuid, CLUSTER_UUID_BYTES);
}

/* Collections whose chunks or entry one write touches: what it puts, and what was there. */
static bool add_touched(struct uuid_set *set, const struct metadata_write *write, const struct metadata_view *view,
                        struct err *err)
{
    uint8_t uuid[CLUSTER_UUID_BYTES];
    struct bdoc stored;
    if (write->kind == WRITE_ERASE_CHUNKS) {
        uuid_set_add(set, write->uuid);
        return true;
    }
    if (strcmp(write->ns, NS_CHUNKS) != 0 && strcmp(write->ns, NS_COLLECTIONS) != 0) {
        return true;
    }
    if (write->kind == WRITE_PUT) {
        if (!field_uuid(write->doc, "uuid", uuid, err)) {
            return false;
        }
        uuid_set_add(set, uuid);
    }
    if (view_get(view, write->ns, &write->id, &stored) && uuid_of(stored, uuid)) {
        uuid_set_add(set, uuid);
    }
    return true;
}

bool writes_check_chunks(const struct metadata_writes *writes, const struct metadata_view *view, struct err *err)
{
    struct uuid_set set = {.uuids = arena_alloc(view->arena, (2 * writes->count + 1) * CLUSTER_UUID_BYTES)};
    for (size_t i = 0; i < writes->count; i++) {
        if (!add_touched(&set, &writes->items[i], view, err)) {
            return false;
        }
    }
    for (size_t i = 0; i < set.count; i++) {
        if (!check_collection(writes, view, set.uuids[i], err)) {
            return false;
        }
    }
    return true;
}
