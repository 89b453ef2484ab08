/* Cursors within one transaction: over the records of a collection, and over a key range of an index. A cursor stores
 * its position as bytes and goes on in another transaction, also when what it stood on was erased meanwhile.
 *
 * One thread at a time. The structs are the caller's storage; their fields belong to the implementation. In a write
 * transaction a cursor must be closed (or its position saved) before the next change. */
#ifndef SHERD_STORAGE_CURSOR_H
#define SHERD_STORAGE_CURSOR_H

#include "storage/catalog.h"

struct MDB_cursor;
struct index_run;

/* ---- records, in the order of their ids ---- */

struct record_cursor {
    struct store_txn *txn;
    struct MDB_cursor *mdb;
    uint32_t collection_id;
    bool backward;
    bool started;       /* `mdb` stands on the last returned record */
    uint64_t after_id;  /* resume strictly beyond this id; 0: from the first */
    struct buf scratch; /* a document in pieces, put together */
};

void record_cursor_open(struct record_cursor *cursor, struct store_txn *txn, const struct collection *coll,
                        bool backward);
/* Accepts a zeroed struct. */
void record_cursor_close(struct record_cursor *cursor);
/* False at the end. *doc is valid until the next call or the transaction's end; either pointer may be NULL. */
bool record_cursor_next(struct record_cursor *cursor, uint64_t *record_id, struct bdoc *doc);
/* The next call returns the first record strictly beyond `record_id` in the cursor's direction. That is also how a
 * position is restored: it is the id returned last. */
void record_cursor_seek_after(struct record_cursor *cursor, uint64_t record_id);

/* ---- index entries, in key order ---- */

/* Bounds are encoded keys (bson/keyenc.h, with the directions of the index's fields) of all or of the first fields: a
 * bound that is a prefix of a key counts as equal to it, so {low = high = encode(5), both inclusive} means every key
 * whose first field is 5. An empty bound doesn't limit. low is the smaller one in bytes, whatever the direction of
 * travel. */
struct index_bounds {
    const uint8_t *low;
    uint32_t low_len;
    const uint8_t *high;
    uint32_t high_len;
    bool low_inclusive;
    bool high_inclusive;
};

struct index_entry {
    const uint8_t *key; /* the whole encoded key; valid until the next call */
    uint32_t key_len;
    uint64_t record_id;
    const uint8_t
        *types; /* what the key doesn't tell of its values (bson/keytypes.h); NULL: not known. As long as key */
    uint32_t types_len;
};

/* Where a cursor begins, relative to the travel's direction. */
enum index_place {
    INDEX_PLACE_START,  /* at the bound */
    INDEX_PLACE_AT,     /* at the first entry whose key begins with `target`, or beyond */
    INDEX_PLACE_BEYOND, /* beyond every key that begins with `target` */
    INDEX_PLACE_AFTER,  /* beyond the entry (target, target_id) */
    INDEX_PLACE_MOVING, /* `mdb` stands on the entry returned last, or `run` is being read */
};

struct index_cursor {
    struct store_txn *txn;
    struct MDB_cursor *mdb;
    uint32_t index_id;
    bool backward;
    bool done;
    struct index_bounds bounds; /* borrowed bytes */
    enum index_place place;
    struct buf target;  /* for AT, BEYOND and AFTER */
    uint64_t target_id; /* for AFTER */
    struct index_run
        *run;       /* entries that share a truncated prefix, in the order of their full keys; NULL: not in one */
    struct buf key; /* a long key put together */
};

/* The bounds' bytes must stay as they are until the cursor is closed. */
void index_cursor_open(struct index_cursor *cursor, struct store_txn *txn, const struct index_def *index,
                       const struct index_bounds *bounds, bool backward);
/* Accepts a zeroed struct. */
void index_cursor_close(struct index_cursor *cursor);
/* False at the end of the bounds. A multikey index may return one record several times, under different keys. */
bool index_cursor_next(struct index_cursor *cursor, struct index_entry *out);
/* Moves on, in the direction of travel and within the bounds: the next call returns the first entry at `key` or beyond
 * it (inclusive), or beyond every key that begins with it. `key` may be a prefix, as a bound. Used to skip for $in and
 * compound bounds. */
void index_cursor_seek(struct index_cursor *cursor, const uint8_t *key, uint32_t key_len, bool inclusive);
/* The position after the entry returned last, to be restored in a cursor opened with the same bounds and direction: its
 * next entry is the first one beyond (key, record id). The bytes are appended to `out`. */
void index_position_append(const struct index_entry *entry, struct buf *out);
/* False when the bytes aren't a position (they came back from outside). */
bool index_cursor_restore(struct index_cursor *cursor, const void *position, size_t len);

#endif
