/* Inside storage only: the keys of the entries database.
 *
 *   short  be32 index id, encoded key (at most ENTRY_SHORT_MAX bytes), be64 record id      -> bson/keytypes.h, often
 * nothing long   be32 index id, first ENTRY_PREFIX bytes, 8 bytes hash of the whole key, be64 id -> the rest of the key
 *
 * A long entry is the only kind with exactly ENV_KEY_MAX bytes. No encoded key of an index is a prefix of another, so a
 * short key never equals the prefix of a long one, and short and long entries together are ordered by key, except that
 * long ones that share a prefix are ordered by hash: a reader sorts such a run. */
#ifndef SHERD_STORAGE_ENTRIES_H
#define SHERD_STORAGE_ENTRIES_H

#include "storage/env.h"

enum {
    ENTRY_HEAD = 4,
    ENTRY_ID = 8,
    ENTRY_HASH = 8,
    ENTRY_PREFIX = ENV_KEY_MAX - ENTRY_HEAD - ENTRY_HASH - ENTRY_ID,
    ENTRY_SHORT_MAX = ENTRY_PREFIX,
};

/* An entry as it stands in LMDB: views of the page. */
struct entry_view {
    const uint8_t *key; /* the key, or its prefix */
    uint32_t key_len;
    const uint8_t *rest; /* of a long key; NULL for a short one */
    uint32_t rest_len;
    uint64_t record_id;
    const uint8_t *types; /* what the key doesn't tell of its values; NULL for a long one */
    uint32_t types_len;
};

/* What is written: a key and what it doesn't tell. */
struct entry_key {
    const uint8_t *key;
    uint32_t key_len;
    const uint8_t *types; /* of a long key they are not stored */
    uint32_t types_len;
};

/* Writes the database key of an entry; returns its length. */
size_t entry_encode(uint8_t out[ENV_KEY_MAX], uint32_t index_id, const uint8_t *key, uint32_t key_len,
                    uint64_t record_id);
/* False when the bytes aren't an entry of that index. */
bool entry_decode(const MDB_val *key, const MDB_val *value, uint32_t index_id, struct entry_view *out);

/* An entry that is there gets the new types. */
void entry_put(struct store_txn *txn, uint32_t index_id, const struct entry_key *entry, uint64_t record_id);
/* False when it was not there. */
bool entry_delete(struct store_txn *txn, uint32_t index_id, const uint8_t *key, uint32_t key_len, uint64_t record_id);
bool entry_exists(struct store_txn *txn, uint32_t index_id, const uint8_t *key, uint32_t key_len, uint64_t record_id);
/* The same, and its types are those. */
bool entry_is(struct store_txn *txn, uint32_t index_id, const struct entry_key *entry, uint64_t record_id);

/* Record ids that have exactly this key: the first one above `after` (0: the first of all). False: none. `cursor` is
 * one of the entries database. */
bool entry_next_with_key(MDB_cursor *cursor, uint32_t index_id, const uint8_t *key, uint32_t key_len, uint64_t after,
                         uint64_t *record_id);

#endif
