#include "storage/entries.h"

/* Everything before the record id. */
static size_t encode_head(uint8_t out[ENV_KEY_MAX], uint32_t index_id, const uint8_t *key, uint32_t key_len)
{
    store_be32(out, index_id);
    if (key_len <= ENTRY_SHORT_MAX) {
        memcpy(out + ENTRY_HEAD, key, key_len);
        return ENTRY_HEAD + key_len;
    }
    memcpy(out + ENTRY_HEAD, key, ENTRY_PREFIX);
    store_be64(out + ENTRY_HEAD + ENTRY_PREFIX, hash_bytes(key, key_len));
    return ENTRY_HEAD + ENTRY_PREFIX + ENTRY_HASH;
}

size_t entry_encode(uint8_t out[ENV_KEY_MAX], uint32_t index_id, const uint8_t *key, uint32_t key_len,
                    uint64_t record_id)
{
    size_t len = encode_head(out, index_id, key, key_len);
    store_be64(out + len, record_id);
    return len + ENTRY_ID;
}

bool entry_decode(const MDB_val *key, const MDB_val *value, uint32_t index_id, struct entry_view *out)
{
    const uint8_t *data = key->mv_data;
    if (key->mv_size < ENTRY_HEAD + ENTRY_ID || load_be32(data) != index_id)
        return false;
    out->key = data + ENTRY_HEAD;
    out->record_id = load_be64(data + key->mv_size - ENTRY_ID);
    if (key->mv_size < ENV_KEY_MAX) {
        out->key_len = (uint32_t)key->mv_size - ENTRY_HEAD - ENTRY_ID;
        out->rest = NULL;
        out->rest_len = 0;
        out->types = value->mv_data;
        out->types_len = (uint32_t)value->mv_size;
    } else {
        out->key_len = ENTRY_PREFIX;
        out->rest = value->mv_data;
        out->rest_len = (uint32_t)value->mv_size;
        out->types = NULL;
        out->types_len = 0;
    }
    return true;
}

void entry_put(struct store_txn *txn, uint32_t index_id, const struct entry_key *entry, uint64_t record_id)
{
    uint8_t full[ENV_KEY_MAX];
    size_t len = entry_encode(full, index_id, entry->key, entry->key_len, record_id);
    bool is_long = entry->key_len > ENTRY_SHORT_MAX;
    const uint8_t *value = is_long ? entry->key + ENTRY_PREFIX : entry->types;
    size_t value_len = is_long ? entry->key_len - ENTRY_PREFIX : entry->types_len;
    env_cursor_put(env_write_cursor(txn, STORE_DB_ENTRIES, index_id), full, len, value, value_len);
}

bool entry_delete(struct store_txn *txn, uint32_t index_id, const uint8_t *key, uint32_t key_len, uint64_t record_id)
{
    uint8_t full[ENV_KEY_MAX];
    size_t len = entry_encode(full, index_id, key, key_len, record_id);
    return env_cursor_delete_key(env_write_cursor(txn, STORE_DB_ENTRIES, index_id), full, len);
}

/* False when it isn't there; *value is what it leads to. */
static bool find_entry(struct store_txn *txn, uint32_t index_id, const uint8_t *key, uint32_t key_len,
                       uint64_t record_id, MDB_val *value)
{
    uint8_t full[ENV_KEY_MAX];
    size_t len = entry_encode(full, index_id, key, key_len, record_id);
    if (!env_get(txn, STORE_DB_ENTRIES, full, len, value))
        return false;
    return key_len <= ENTRY_SHORT_MAX || (value->mv_size == key_len - ENTRY_PREFIX &&
                                          memcmp(value->mv_data, key + ENTRY_PREFIX, value->mv_size) == 0);
}

bool entry_exists(struct store_txn *txn, uint32_t index_id, const uint8_t *key, uint32_t key_len, uint64_t record_id)
{
    MDB_val value;
    return find_entry(txn, index_id, key, key_len, record_id, &value);
}

bool entry_is(struct store_txn *txn, uint32_t index_id, const struct entry_key *entry, uint64_t record_id)
{
    MDB_val value;
    if (!find_entry(txn, index_id, entry->key, entry->key_len, record_id, &value))
        return false;
    return entry->key_len > ENTRY_SHORT_MAX ||
           (value.mv_size == entry->types_len && memcmp(value.mv_data, entry->types, value.mv_size) == 0);
}

bool entry_next_with_key(MDB_cursor *cursor, uint32_t index_id, const uint8_t *key, uint32_t key_len, uint64_t after,
                         uint64_t *record_id)
{
    uint8_t full[ENV_KEY_MAX];
    size_t head_len = encode_head(full, index_id, key, key_len);
    store_be64(full + head_len, after + 1);
    MDB_val found = {head_len + ENTRY_ID, full};
    MDB_val value;
    bool more = env_cursor_get(cursor, &found, &value, MDB_SET_RANGE);
    while (more && found.mv_size == head_len + ENTRY_ID && memcmp(found.mv_data, full, head_len) == 0) {
        *record_id = load_be64((const uint8_t *)found.mv_data + head_len);
        if (key_len <= ENTRY_SHORT_MAX ||
            (value.mv_size == key_len - ENTRY_PREFIX && memcmp(value.mv_data, key + ENTRY_PREFIX, value.mv_size) == 0))
            return true;
        more = env_cursor_get(cursor, &found, &value, MDB_NEXT); /* another key with the same hash */
    }
    return false;
}
