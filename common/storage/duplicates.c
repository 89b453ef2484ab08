#include "storage/duplicates.h"

#include "bson/keyenc.h"
#include "storage/entries.h"
#include "storage/shell_text.h"

enum { DUPLICATE_TEXT_MAX = 300 };

static const uint8_t *key_bytes(const struct index_keys *keys, size_t i)
{
    return keys->bytes.data + keys->keys[i].offset;
}

bool duplicates_refuse(const struct collection *coll, const struct index_def *index, struct bdoc doc,
                       const uint8_t *key, uint32_t key_len, struct err *err)
{
    if (err == NULL)
        return false;
    bson_t value = BSON_INITIALIZER;
    bson_t details = BSON_INITIALIZER;
    bson_t pattern;
    index_key_value(index, doc, key, key_len, &value);
    bdoc_to_bson(index->key_pattern, &pattern);
    BSON_APPEND_DOCUMENT(&details, "keyPattern", &pattern);
    BSON_APPEND_DOCUMENT(&details, "keyValue", &value);
    struct buf text = BUF_INIT;
    shell_text_append(&text, bdoc_of(&value), DUPLICATE_TEXT_MAX);
    err_set(err, ERR_DuplicateKey, "E11000 duplicate key error collection: %s index: %.100s dup key: %.*s", coll->ns,
            index->name, (int)text.len, (const char *)text.data);
    err_set_details(err, bson_get_data(&details), details.len);
    buf_deinit(&text);
    bson_destroy(&value);
    bson_destroy(&details);
    return false;
}

/* Whether the owner counts that document. Without an owner, every one counts. */
static bool counts(const struct duplicate_check *check, uint64_t record_id)
{
    if (check->options->conflicts == NULL)
        return true;
    struct buf scratch = BUF_INIT;
    struct bdoc other;
    bool result = record_get(check->txn, check->coll, record_id, &scratch, &other) &&
                  check->options->conflicts(check->options->conflicts_arg, other);
    buf_deinit(&scratch);
    return result;
}

/* Both are sorted: *place moves on in `old`. */
static bool had_key(const struct index_keys *old, size_t *place, const struct index_keys *keys, size_t i)
{
    for (; *place < old->count; ++*place) {
        int order =
            keyenc_compare(key_bytes(old, *place), old->keys[*place].len, key_bytes(keys, i), keys->keys[i].len);
        if (order >= 0)
            return order == 0;
    }
    return false;
}

bool duplicates_check(const struct duplicate_check *check, const struct index_def *index, const struct index_keys *keys,
                      struct err *err)
{
    MDB_cursor *cursor = env_probe_cursor(check->txn, index->id);
    size_t place = 0;
    for (size_t i = 0; i < keys->count; i++) {
        uint64_t other = 0;
        if (check->old != NULL && had_key(check->old, &place, keys, i))
            continue;
        while (entry_next_with_key(cursor, index->id, key_bytes(keys, i), keys->keys[i].len, other, &other)) {
            if (other != check->record_id && counts(check, other))
                return duplicates_refuse(check->coll, index, check->doc, key_bytes(keys, i), keys->keys[i].len, err);
        }
    }
    return true;
}

void duplicates_note(struct store_txn *txn, const struct index_def *index, const struct index_keys *keys,
                     uint64_t record_id)
{
    MDB_cursor *cursor = env_probe_cursor(txn, index->id);
    for (size_t i = 0; i < keys->count; i++) {
        const uint8_t *key = key_bytes(keys, i);
        uint32_t key_len = keys->keys[i].len;
        uint64_t other = 0;
        while (entry_next_with_key(cursor, index->id, key, key_len, other, &other) && other == record_id)
            continue;
        if (other == 0 || other == record_id)
            continue;
        uint8_t note[BUILD_KEY_MAX];
        store_be32(note, index->id);
        note[4] = BUILD_DUPLICATE;
        store_be64(note + 5, hash_bytes(key, key_len));
        store_be64(note + 13, record_id);
        env_put(txn, STORE_DB_BUILDS, note, sizeof note, key, key_len);
    }
}
