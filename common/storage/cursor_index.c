/* Index cursors. LMDB's order is the order of keys but for runs of long keys (entries.h). A place that is asked for is
 * first found roughly, by the part of the key that LMDB has; then entries before it are passed over, which only happens
 * inside a run. */
#include "storage/cursor.h"
#include "storage/index_run.h"

#include "base/check.h"
#include "bson/keyenc.h"

enum { POSITION_ID = 8 };

void index_cursor_open(struct index_cursor *cursor, struct store_txn *txn, const struct index_def *index,
                       const struct index_bounds *bounds, bool backward)
{
    *cursor = (struct index_cursor){.txn = txn, .index_id = index->id, .backward = backward, .bounds = *bounds};
    cursor->mdb = env_cursor_take(txn, STORE_DB_ENTRIES);
}

void index_cursor_close(struct index_cursor *cursor)
{
    if (cursor->mdb != NULL)
        env_cursor_give(cursor->txn, STORE_DB_ENTRIES, cursor->mdb);
    cursor->mdb = NULL;
    index_run_free(cursor->run);
    cursor->run = NULL;
    buf_deinit(&cursor->target);
    buf_deinit(&cursor->key);
}

/* A bound or a target that is a prefix of the key counts as equal. */
static int compare_prefix(const uint8_t *key, uint32_t key_len, const uint8_t *bound, uint32_t bound_len)
{
    int order = memcmp(key, bound, key_len < bound_len ? key_len : bound_len);
    return order != 0 ? order : key_len < bound_len ? -1 : 0;
}

/* ---- places ---- */

/* Writes the LMDB key from which a travel to (key, edge) begins. Before: the smallest that can belong to an entry whose
 * key begins with `key`; after: above all of those. No encoded key goes on with the byte 0xff. */
static size_t edge_key(uint8_t out[ENV_KEY_MAX], uint32_t index_id, const uint8_t *key, uint32_t len, bool after)
{
    uint32_t kept = len < ENTRY_PREFIX ? len : ENTRY_PREFIX;
    store_be32(out, index_id);
    if (kept > 0)
        memcpy(out + ENTRY_HEAD, key, kept);
    if (!after)
        return ENTRY_HEAD + kept;
    memset(out + ENTRY_HEAD + kept, 0xff, ENTRY_HASH + ENTRY_ID);
    return ENTRY_HEAD + kept + ENTRY_HASH + ENTRY_ID;
}

/* Stands on the first entry at or above `from`, or, going down, on the last one below it. */
static bool seek(struct index_cursor *cursor, uint8_t *from, size_t len, MDB_val *key, MDB_val *value)
{
    *key = (MDB_val){len, from};
    bool found = env_cursor_get(cursor->mdb, key, value, MDB_SET_RANGE);
    if (!cursor->backward)
        return found;
    return env_cursor_get(cursor->mdb, key, value, found ? MDB_PREV : MDB_LAST);
}

static bool seek_place(struct index_cursor *cursor, MDB_val *key, MDB_val *value)
{
    uint8_t from[ENV_KEY_MAX + ENTRY_ID];
    const uint8_t *place = cursor->target.data;
    uint32_t place_len = (uint32_t)cursor->target.len;
    bool beyond = cursor->place == INDEX_PLACE_BEYOND;
    if (cursor->place == INDEX_PLACE_START) {
        place = cursor->backward ? cursor->bounds.high : cursor->bounds.low;
        place_len = cursor->backward ? cursor->bounds.high_len : cursor->bounds.low_len;
        beyond = place_len > 0 && !(cursor->backward ? cursor->bounds.high_inclusive : cursor->bounds.low_inclusive);
    }
    size_t len;
    if (cursor->place == INDEX_PLACE_AFTER && place_len <= ENTRY_SHORT_MAX)
        len = entry_encode(from, cursor->index_id, place, place_len,
                           cursor->backward ? cursor->target_id : cursor->target_id + 1);
    else if (place_len > ENTRY_PREFIX) /* somewhere in a run: all of it, and what comes before is passed over */
        len = edge_key(from, cursor->index_id, place, place_len, cursor->backward);
    else
        len = edge_key(from, cursor->index_id, place, place_len, beyond != cursor->backward);
    return seek(cursor, from, len, key, value);
}

/* True for an entry that lies before the wanted place. */
static bool before_place(const struct index_cursor *cursor, const struct index_entry *entry)
{
    if (cursor->place == INDEX_PLACE_START || cursor->place == INDEX_PLACE_MOVING)
        return false;
    int order = compare_prefix(entry->key, entry->key_len, cursor->target.data, (uint32_t)cursor->target.len);
    if (cursor->backward)
        order = -order;
    switch (cursor->place) {
    case INDEX_PLACE_AT:
        return order < 0;
    case INDEX_PLACE_BEYOND:
        return order <= 0;
    case INDEX_PLACE_AFTER:
        return order < 0 || (order == 0 && (cursor->backward ? entry->record_id >= cursor->target_id
                                                             : entry->record_id <= cursor->target_id));
    case INDEX_PLACE_START:
    case INDEX_PLACE_MOVING:
        break;
    }
    return false;
}

/* -1: before the bounds in the direction of travel, 1: beyond them, 0: inside. */
static int against_bounds(const struct index_cursor *cursor, const struct index_entry *entry)
{
    const struct index_bounds *bounds = &cursor->bounds;
    int outside = 0;
    if (bounds->low_len > 0) {
        int order = compare_prefix(entry->key, entry->key_len, bounds->low, bounds->low_len);
        if (order < 0 || (order == 0 && !bounds->low_inclusive))
            outside = -1;
    }
    if (bounds->high_len > 0) {
        int order = compare_prefix(entry->key, entry->key_len, bounds->high, bounds->high_len);
        if (order > 0 || (order == 0 && !bounds->high_inclusive))
            outside = 1;
    }
    return cursor->backward ? -outside : outside;
}

/* ---- moving ---- */

static bool run_entry(struct index_cursor *cursor, struct index_entry *out)
{
    struct run_item item;
    if (!index_run_next(cursor->run, cursor->mdb, &item))
        return false;
    buf_clear(&cursor->key);
    buf_append(&cursor->key, index_run_prefix(cursor->run), ENTRY_PREFIX);
    buf_append(&cursor->key, item.rest, item.rest_len);
    *out = (struct index_entry){
        .key = cursor->key.data, .key_len = (uint32_t)cursor->key.len, .record_id = item.record_id};
    return true;
}

/* The entry that LMDB stands on, or the first one of the run that begins (ends) there. */
static bool take(struct index_cursor *cursor, bool more, const MDB_val *key, const MDB_val *value,
                 struct index_entry *out)
{
    struct entry_view view;
    if (!more || !entry_decode(key, value, cursor->index_id, &view))
        return false;
    if (view.rest == NULL) {
        *out = (struct index_entry){view.key, view.key_len, view.record_id, view.types, view.types_len};
        return true;
    }
    cursor->run = index_run_new(cursor->index_id, &view, cursor->backward);
    return run_entry(cursor, out);
}

static bool advance(struct index_cursor *cursor, bool moving, struct index_entry *out)
{
    MDB_val key;
    MDB_val value;
    if (!moving)
        return take(cursor, seek_place(cursor, &key, &value), &key, &value, out);
    if (cursor->run == NULL)
        return take(cursor, env_cursor_get(cursor->mdb, &key, &value, cursor->backward ? MDB_PREV : MDB_NEXT), &key,
                    &value, out);
    if (run_entry(cursor, out))
        return true;
    bool more = index_run_leave(cursor->run, cursor->mdb, &key, &value);
    index_run_free(cursor->run);
    cursor->run = NULL;
    return take(cursor, more, &key, &value, out);
}

bool index_cursor_next(struct index_cursor *cursor, struct index_entry *out)
{
    if (cursor->done)
        return false;
    bool moving = cursor->place == INDEX_PLACE_MOVING;
    for (;;) {
        if (!advance(cursor, moving, out))
            break;
        moving = true;
        if (before_place(cursor, out))
            continue;
        int outside = against_bounds(cursor, out);
        if (outside > 0)
            break;
        if (outside == 0) {
            cursor->place = INDEX_PLACE_MOVING;
            return true;
        }
    }
    cursor->done = true;
    return false;
}

/* True when a wanted place lies before the bound at which the travel begins. */
static bool before_bounds(const struct index_cursor *cursor, const uint8_t *key, uint32_t len)
{
    const struct index_bounds *bounds = &cursor->bounds;
    if (!cursor->backward && cursor->place == INDEX_PLACE_BEYOND) /* a bound that begins with the key lies before it */
        return bounds->low_len > 0 && compare_prefix(bounds->low, bounds->low_len, key, len) > 0;
    if (!cursor->backward)
        return bounds->low_len > 0 && keyenc_compare(key, len, bounds->low, bounds->low_len) < 0;
    return bounds->high_len > 0 && compare_prefix(key, len, bounds->high, bounds->high_len) > 0;
}

static void want_place(struct index_cursor *cursor, enum index_place place, const uint8_t *key, uint32_t len,
                       uint64_t record_id)
{
    index_run_free(cursor->run);
    cursor->run = NULL;
    buf_clear(&cursor->target);
    buf_append(&cursor->target, key, len);
    cursor->target_id = record_id;
    cursor->place = place;
    if (before_bounds(cursor, key, len))
        cursor->place = INDEX_PLACE_START; /* not a long way through entries outside the bounds */
}

void index_cursor_seek(struct index_cursor *cursor, const uint8_t *key, uint32_t key_len, bool inclusive)
{
    CHECK(key_len > 0);
    want_place(cursor, inclusive ? INDEX_PLACE_AT : INDEX_PLACE_BEYOND, key, key_len, 0);
}

void index_position_append(const struct index_entry *entry, struct buf *out)
{
    buf_append_be64(out, entry->record_id);
    buf_append(out, entry->key, entry->key_len);
}

bool index_cursor_restore(struct index_cursor *cursor, const void *position, size_t len)
{
    if (len <= POSITION_ID || len > UINT32_MAX / 2)
        return false;
    const uint8_t *bytes = position;
    want_place(cursor, INDEX_PLACE_AFTER, bytes + POSITION_ID, (uint32_t)(len - POSITION_ID), load_be64(bytes));
    return true;
}
