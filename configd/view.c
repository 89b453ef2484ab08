#include "configd/view.h"

#include "base/mem.h"
#include "bson/keyenc.h"
#include "cluster/fields.h"
#include "configd/names.h"
#include "document/apply.h"
#include "storage/cursor.h"
#include "storage/records.h"

#include <stdlib.h>
#include <string.h>

static const char sequence_key[] = "configd.sequence";

int64_t view_sequence(const struct metadata_view *view)
{
    const void *value;
    size_t len;
    if (!store_meta_get(view->txn, sequence_key, sizeof sequence_key - 1, &value, &len) || len != sizeof(int64_t)) {
        return 0;
    }
    return (int64_t)load_le64(value);
}

void view_set_sequence(const struct metadata_view *view, int64_t sequence)
{
    uint8_t value[sizeof sequence];
    store_le64(value, (uint64_t)sequence);
    store_meta_put(view->txn, sequence_key, sizeof sequence_key - 1, value, sizeof value);
}

struct bval view_str_value(struct arena *arena, const char *text)
{
    uint32_t len = (uint32_t)strlen(text) + 1;
    uint8_t *data = arena_alloc(arena, len + 4);
    store_le32(data, len);
    memcpy(data + 4, text, len);
    return (struct bval){.type = BT_STRING, .len = len + 4, .data = data};
}

bool view_get(const struct metadata_view *view, const char *ns, const struct bval *id, struct bdoc *out)
{
    return document_get(view->txn, ns, id, view->arena, out);
}

bool view_get_str(const struct metadata_view *view, const char *ns, const char *id, struct bdoc *out)
{
    struct bval val = view_str_value(view->arena, id);
    return view_get(view, ns, &val, out);
}

bool view_each(const struct metadata_view *view, const char *ns, struct bdoc match,
               bool (*visit)(void *arg, struct bdoc doc), void *arg, struct err *err)
{
    return document_scan(view->txn, ns, match, visit, arg, err);
}

bool view_shard(const struct metadata_view *view, const char *name, struct shard_entry *out)
{
    struct bdoc doc;
    return view_get_str(view, NS_SHARDS, name, &doc) && shard_entry_parse(doc, out, NULL);
}

struct shard_list {
    struct shard_entry *entries; /* heap, grown by doubling */
    size_t count;
    size_t cap;
};

static bool add_shard(void *arg, struct bdoc doc)
{
    struct shard_list *list = arg;
    if (list->count == list->cap) {
        list->cap = list->cap == 0 ? 8 : list->cap * 2;
        list->entries = mem_realloc(list->entries, list->cap * sizeof *list->entries);
    }
    if (shard_entry_parse(doc, &list->entries[list->count], NULL)) {
        list->count++;
    }
    return true;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct shard_entry *)left)->name, ((const struct shard_entry *)right)->name);
}

size_t view_shards(const struct metadata_view *view, struct shard_entry **out)
{
    struct shard_list list = {0};
    *out = NULL;
    if (view_each(view, NS_SHARDS, (struct bdoc){0}, add_shard, &list, NULL) && list.count > 0) {
        qsort(list.entries, list.count, sizeof *list.entries, by_name);
        *out = arena_copy(view->arena, list.entries, list.count * sizeof *list.entries);
    }
    mem_free(list.entries);
    return list.count;
}

bool view_database(const struct metadata_view *view, const char *db, struct database_entry *out)
{
    struct bdoc doc;
    return view_get_str(view, NS_DATABASES, db, &doc) && database_entry_parse(doc, out, NULL);
}

bool view_collection(const struct metadata_view *view, const char *ns, struct collection_entry *out)
{
    struct bdoc doc;
    return view_get_str(view, NS_COLLECTIONS, ns, &doc) && collection_entry_parse(doc, out, NULL);
}

struct bval view_uuid_value(struct arena *arena, const uint8_t uuid[CLUSTER_UUID_BYTES])
{
    uint8_t *data = arena_alloc(arena, 5 + CLUSTER_UUID_BYTES);
    store_le32(data, CLUSTER_UUID_BYTES);
    data[4] = BSON_SUBTYPE_UUID;
    memcpy(data + 5, uuid, CLUSTER_UUID_BYTES);
    return (struct bval){.type = BT_BINARY, .len = 5 + CLUSTER_UUID_BYTES, .data = data};
}

/* A walk over one index of a config collection: the entries whose first field is a uuid. */
struct index_walk {
    const struct collection *coll;
    const struct index_def *index; /* NULL: there is no such collection or index (yet) */
    struct index_cursor cursor;
    struct buf low;
    struct buf high;
    struct buf scratch;
};

static void index_walk_init(struct index_walk *walk, const struct metadata_view *view, const char *ns,
                            const char *index_name, const uint8_t uuid[CLUSTER_UUID_BYTES])
{
    *walk = (struct index_walk){.coll = catalog_find(view->txn, ns, strlen(ns))};
    walk->index = walk->coll == NULL ? NULL : collection_find_index(walk->coll, index_name);
    struct bval val = view_uuid_value(view->arena, uuid);
    keyenc_append(&walk->low, &val, false);
    keyenc_append(&walk->high, &val, false);
}

static void index_walk_start(struct index_walk *walk, const struct metadata_view *view, bool backward)
{
    struct index_bounds bounds = {
        .low = walk->low.data,
        .low_len = (uint32_t)walk->low.len,
        .high = walk->high.data,
        .high_len = (uint32_t)walk->high.len,
        .low_inclusive = true,
        .high_inclusive = true,
    };
    if (walk->index != NULL) {
        index_cursor_open(&walk->cursor, view->txn, walk->index, &bounds, backward);
    }
}

static bool index_walk_next(struct index_walk *walk, const struct metadata_view *view, struct bdoc *doc)
{
    struct index_entry entry;
    return walk->index != NULL && index_cursor_next(&walk->cursor, &entry) &&
           record_get(view->txn, walk->coll, entry.record_id, &walk->scratch, doc);
}

static void index_walk_close(struct index_walk *walk)
{
    index_cursor_close(&walk->cursor);
    buf_deinit(&walk->low);
    buf_deinit(&walk->high);
    buf_deinit(&walk->scratch);
}

bool view_collection_by_uuid(const struct metadata_view *view, const uint8_t uuid[CLUSTER_UUID_BYTES],
                             struct collection_entry *out)
{
    struct index_walk walk;
    struct bdoc doc;
    index_walk_init(&walk, view, NS_COLLECTIONS, INDEX_COLLECTIONS_UUID, uuid);
    index_walk_start(&walk, view, false);
    bool found = index_walk_next(&walk, view, &doc) && collection_entry_parse(doc, out, NULL);
    index_walk_close(&walk);
    return found;
}

void view_each_chunk(const struct metadata_view *view, const uint8_t uuid[CLUSTER_UUID_BYTES], uint64_t since,
                     bool (*visit)(void *arg, struct bdoc doc), void *arg)
{
    struct index_walk walk;
    struct bdoc doc;
    uint8_t bytes[sizeof since];
    index_walk_init(&walk, view, NS_CHUNKS, INDEX_CHUNKS_LASTMOD, uuid);
    store_le64(bytes, since);
    struct bval timestamp = {.type = BT_TIMESTAMP, .len = sizeof bytes, .data = bytes};
    keyenc_append(&walk.low, &timestamp, false);
    index_walk_start(&walk, view, false);
    while (index_walk_next(&walk, view, &doc) && visit(arg, doc)) {
    }
    index_walk_close(&walk);
}

bool view_collection_version(const struct metadata_view *view, const struct collection_entry *entry,
                             struct chunk_version *out)
{
    struct index_walk walk;
    struct bdoc doc;
    uint64_t lastmod;
    index_walk_init(&walk, view, NS_CHUNKS, INDEX_CHUNKS_LASTMOD, entry->uuid);
    index_walk_start(&walk, view, true);
    bool found = index_walk_next(&walk, view, &doc) && field_timestamp(doc, "lastmod", &lastmod, NULL);
    if (found) {
        out->epoch = entry->epoch;
        chunk_version_set_timestamp(out, lastmod);
    }
    index_walk_close(&walk);
    return found;
}

bool view_chunk_at(const struct metadata_view *view, const struct collection_entry *entry, struct bdoc min,
                   struct chunk **out)
{
    struct index_walk walk;
    struct bdoc doc;
    struct bval val = bval_from_doc(min);
    index_walk_init(&walk, view, NS_CHUNKS, INDEX_CHUNKS_MIN, entry->uuid);
    keyenc_append(&walk.low, &val, false);
    keyenc_append(&walk.high, &val, false);
    index_walk_start(&walk, view, false);
    bool found = index_walk_next(&walk, view, &doc) && chunk_parse(entry->key, &entry->epoch, doc, out, NULL);
    index_walk_close(&walk);
    return found;
}

struct chunk_list {
    const struct collection_entry *entry;
    struct chunk **chunks; /* heap, grown by doubling */
    size_t count;
    size_t cap;
    struct err *err;
    bool failed;
};

static bool add_chunk(void *arg, struct bdoc doc)
{
    struct chunk_list *list = arg;
    if (list->count == list->cap) {
        list->cap = list->cap == 0 ? 16 : list->cap * 2;
        list->chunks = mem_realloc(list->chunks, list->cap * sizeof *list->chunks);
    }
    list->failed = !chunk_parse(list->entry->key, &list->entry->epoch, doc, &list->chunks[list->count], list->err);
    list->count += !list->failed;
    return !list->failed;
}

bool view_chunks(const struct metadata_view *view, const struct collection_entry *entry, struct chunk ***out,
                 size_t *count, struct err *err)
{
    struct chunk_list list = {.entry = entry, .err = err};
    view_each_chunk(view, entry->uuid, 0, add_chunk, &list);
    if (list.failed) {
        view_chunks_unref(list.chunks, list.count);
        mem_free(list.chunks);
        return false;
    }
    chunks_sort(list.chunks, list.count);
    *out = list.count == 0 ? NULL : arena_copy(view->arena, list.chunks, list.count * sizeof *list.chunks);
    *count = list.count;
    mem_free(list.chunks);
    return true;
}

void view_chunks_unref(struct chunk **chunks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        chunk_unref(chunks[i]);
    }
}
