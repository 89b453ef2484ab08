/* Exact counters of ranges that begin to exist: by a split, a merge, or because the shard won them with documents
 * inside. Such a range is pending; a position moves through the shard key index, in log entries, and adds what it
 * passes. A write before the position changes the counter, one behind it doesn't: the position will meet its document.
 * So every document is counted once whatever is written meanwhile. */
#include "shardd/ownership.h"
#include "shardd/ownership_apply.h"
#include "storage/counters.h"
#include "storage/cursor.h"
#include "storage/records.h"

#include "base/mem.h"

#include <string.h>

/* An index whose order is that of the shard key and that holds every document once. */
static const struct index_def *find_index(const struct collection *coll, const struct document_view *view)
{
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        if (index->state != INDEX_READY || index->sparse || index->multikey || index->partial.data != NULL)
            continue;
        bool serves = index->field_count >= shardkey_field_count(view->key);
        for (size_t f = 0; serves && f < shardkey_field_count(view->key); f++)
            serves = strcmp(index->fields[f].path, shardkey_field_path(view->key, f)) == 0 &&
                     !index->fields[f].descending && index->fields[f].hashed == shardkey_field_is_hashed(view->key, f);
        if (serves)
            return index;
    }
    return NULL;
}

static const struct collection *find_coll(struct document_apply *apply, const struct document_view *view)
{
    const struct collection *coll = catalog_find(apply->txn, view->ns, strlen(view->ns));
    return coll != NULL && memcmp(coll->uuid, view->uuid, UUID_BYTES) == 0 ? coll : NULL;
}

/* ---- one pass over documents ---- */

struct counting {
    struct document_apply *apply;
    const struct collection *coll;
    const struct document_view *view;
    struct buf key;       /* of the document at hand */
    struct buf last;      /* of the one before it */
    struct counter delta; /* of the range at hand, not yet added */
    size_t range;         /* SIZE_MAX: none */
};

static void flush(struct counting *counting)
{
    if (counting->range == SIZE_MAX || counting->delta.docs == 0)
        return;
    struct key_range range = range_set_at(counting->view->ranges, counting->range);
    counter_range_add(counting->apply->txn, counting->coll, range.min.data, range.min.len, &counting->delta);
    counting->delta = (struct counter){0};
}

static void count_doc(struct counting *counting, uint32_t bytes)
{
    const struct document_view *view = counting->view;
    struct key_bytes key = key_bytes_of(&counting->key);
    if (!range_set_contains(view->pending, key))
        return;
    size_t range = range_set_find(view->ranges, key);
    if (range != counting->range)
        flush(counting);
    counting->range = range;
    counting->delta.docs++;
    counting->delta.bytes += bytes;
}

static bool take_key(struct counting *counting, struct bdoc doc)
{
    buf_clear(&counting->key);
    return shardkey_encode_doc(counting->view->key, doc, &counting->key, NULL);
}

static bool key_changed(const struct counting *counting)
{
    return key_bytes_compare(key_bytes_of(&counting->key), key_bytes_of(&counting->last)) != 0;
}

/* *ended: the index holds nothing behind. */
static void count_by_index(struct counting *counting, const struct index_def *index, uint32_t max_docs, bool *ended)
{
    struct index_cursor cursor = {0};
    struct index_entry entry;
    struct buf scratch = BUF_INIT;
    struct index_bounds bounds = {
        .low = counting->view->position.data, .low_len = (uint32_t)counting->view->position.len, .low_inclusive = true};
    uint32_t done = 0;
    *ended = true;
    index_cursor_open(&cursor, counting->apply->txn, index, &bounds, false);
    while (index_cursor_next(&cursor, &entry)) {
        struct bdoc doc;
        if (!record_get(counting->apply->txn, counting->coll, entry.record_id, &scratch, &doc) ||
            !take_key(counting, doc))
            continue;
        /* Only between two key values may the position stand. */
        if (done >= max_docs && key_changed(counting)) {
            *ended = false;
            break;
        }
        count_doc(counting, doc.len);
        buf_clear(&counting->last);
        buf_append(&counting->last, counting->key.data, counting->key.len);
        done++;
    }
    index_cursor_close(&cursor);
    buf_deinit(&scratch);
}

/* Without such an index everything behind the position is counted at once. The position isn't at the beginning when the
 * index that was walked along so far became multikey. */
static void count_by_record(struct counting *counting)
{
    struct record_cursor cursor = {0};
    struct bdoc doc;
    record_cursor_open(&cursor, counting->apply->txn, counting->coll, false);
    while (record_cursor_next(&cursor, NULL, &doc)) {
        if (take_key(counting, doc) &&
            key_bytes_compare(key_bytes_of(&counting->key), key_bytes_of(&counting->view->position)) >= 0)
            count_doc(counting, doc.len);
    }
    record_cursor_close(&cursor);
}

static bool put_recount(struct document_apply *apply, const struct document_view *view, const struct buf *position,
                        struct err *err)
{
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "_id", view->ns);
    BSON_APPEND_INT64(&doc, "gen", ownership_bump(apply));
    bson_append_binary(&doc, "uuid", -1, BSON_SUBTYPE_UUID, view->uuid, CLUSTER_UUID_BYTES);
    bson_append_binary(&doc, "position", -1, BSON_SUBTYPE_BINARY, position->data, (uint32_t)position->len);
    ranges_append(&doc, "pending", view->pending);
    bool ok = ownership_put(apply, OWNERSHIP_RECOUNT_NS, &doc, err);
    bson_destroy(&doc);
    return ok;
}

bool recount_step(struct document_apply *apply, const struct document_view *view, uint32_t max_docs, bool *more,
                  struct err *err)
{
    struct counting counting = {.apply = apply, .coll = find_coll(apply, view), .view = view, .range = SIZE_MAX};
    bool ended = true;
    if (counting.coll != NULL) {
        const struct index_def *index = find_index(counting.coll, view);
        if (index != NULL)
            count_by_index(&counting, index, max_docs, &ended);
        else
            count_by_record(&counting);
        flush(&counting);
    }
    *more = !ended;
    bool ok = true;
    if (ended) {
        ownership_delete(apply, OWNERSHIP_RECOUNT_NS, view->ns);
        ownership_bump(apply);
    } else {
        buf_append_u8(&counting.last, KEY_AFTER_PREFIX);
        ok = put_recount(apply, view, &counting.last, err);
    }
    buf_deinit(&counting.key);
    buf_deinit(&counting.last);
    return ok;
}

/* ---- beginning ---- */

static bool same_range(struct key_range a, struct key_range b)
{
    return key_bytes_compare(a.min, b.min) == 0 && key_bytes_compare(a.max, b.max) == 0;
}

/* The range exists before and after, and its counter is complete. */
static bool keeps_counter(const struct document_view *before, struct key_range range)
{
    if (before == NULL || before->ranges == NULL)
        return false;
    size_t index = range_set_find(before->ranges, range.min);
    if (index == SIZE_MAX || !same_range(range_set_at(before->ranges, index), range))
        return false;
    return before->pending == NULL || !range_set_contains(before->pending, range.min);
}

static void drop_counters(struct document_apply *apply, const struct collection *coll,
                          const struct document_view *before)
{
    for (size_t i = 0; before != NULL && before->ranges != NULL && i < range_set_count(before->ranges); i++) {
        struct key_range range = range_set_at(before->ranges, i);
        counter_range_delete(apply->txn, coll, range.min.data, range.min.len);
    }
}

/* Counters of ranges that stay are carried over the reset of all the others. */
static bool reset_counters(struct document_apply *apply, const struct collection *coll,
                           const struct document_view *before, struct document_view *after, struct err *err)
{
    size_t count = after->ranges == NULL ? 0 : range_set_count(after->ranges);
    struct key_range *pending = mem_alloc_array(count + 1, sizeof *pending);
    struct counter *kept = mem_alloc_array(count + 1, sizeof *kept);
    size_t pending_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct key_range range = range_set_at(after->ranges, i);
        if (keeps_counter(before, range))
            counter_range(apply->txn, coll, range.min.data, range.min.len, &kept[i]);
        else
            pending[pending_count++] = range;
    }
    drop_counters(apply, coll, before);
    for (size_t i = 0; i < count; i++) {
        struct key_range range = range_set_at(after->ranges, i);
        counter_range_set(apply->txn, coll, range.min.data, range.min.len, &kept[i]);
    }
    bool ok = pending_count == 0 || range_set_new(pending, pending_count, &after->pending, err);
    mem_free(pending);
    mem_free(kept);
    return ok;
}

bool recount_begin(struct document_apply *apply, const struct document_view *before, struct document_view *after,
                   int64_t generation, struct err *err)
{
    const struct collection *coll = find_coll(apply, after);
    struct counter total = {0};
    bool more;
    (void)generation;
    ownership_delete(apply, OWNERSHIP_RECOUNT_NS, after->ns);
    if (coll == NULL)
        return true;
    counter_collection(apply->txn, coll, &total);
    if (total.docs == 0) {
        drop_counters(apply, coll, before);
        return true;
    }
    if (!reset_counters(apply, coll, before, after, err))
        return false;
    return after->pending == NULL || recount_step(apply, after, RECOUNT_INLINE_DOCS, &more, err);
}
