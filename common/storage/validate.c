#include "storage/validate.h"

#include "base/mem.h"
#include "storage/counters.h"
#include "storage/cursor.h"
#include "storage/entries.h"
#include "storage/index_keys.h"
#include "storage/pieces.h"
#include "storage/records.h"

#include <stdarg.h>
#include <stdio.h>

struct validation {
    struct store_txn *txn;
    const struct collection *coll;
    int64_t docs;
    int64_t bytes;
    int64_t invalid;
    int64_t values;    /* that the documents should have in the records database */
    int64_t *expected; /* entries that the documents should have, for each index */
    int64_t *found;    /* entries that are there */
    bool *multikey;    /* some document needs the flag */
    uint32_t error_count;
    bson_t errors; /* array of strings */
};

static void complain(struct validation *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void complain(struct validation *v, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (v->error_count < VALIDATE_ERRORS_MAX) {
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string(v->error_count, &key, number, sizeof number);
        bson_append_utf8(&v->errors, key, (int)len, text, -1);
    }
    v->error_count++;
}

static void check_keys(struct validation *v, uint32_t i, struct bdoc doc, uint64_t record_id, struct index_keys *keys)
{
    const struct index_def *index = v->coll->indexes[i];
    struct err err;
    if (index->state == INDEX_FAILED)
        return;
    if (!index_keys_generate(index, doc, keys, &err)) {
        if (index->state == INDEX_READY)
            complain(v, "record %llu: index %s: %.150s", (unsigned long long)record_id, index->name, err.msg);
        return;
    }
    v->expected[i] += (int64_t)keys->count;
    v->multikey[i] |= keys->multikey;
    for (uint32_t f = 0; keys->multikey && f < index->field_count; f++) {
        if ((keys->paths[f] & ~index->fields[f].multikey) != 0 && index->state == INDEX_READY)
            complain(v, "record %llu: index %s doesn't know of the array on path %.100s", (unsigned long long)record_id,
                     index->name, index->fields[f].path);
    }
    for (size_t k = 0; k < keys->count && index->state == INDEX_READY; k++) {
        const struct index_key *key = &keys->keys[k];
        const uint8_t *bytes = keys->bytes.data + key->offset;
        struct entry_key entry = {bytes, key->len, bytes + key->len, key->types_len};
        if (!entry_exists(v->txn, index->id, bytes, key->len, record_id))
            complain(v, "record %llu has no entry in index %s", (unsigned long long)record_id, index->name);
        else if (!entry_is(v->txn, index->id, &entry, record_id))
            complain(v, "the entry of record %llu in index %s has other types than the document",
                     (unsigned long long)record_id, index->name);
    }
}

static void walk_records(struct validation *v)
{
    struct record_cursor cursor;
    struct index_keys keys = {0};
    uint64_t record_id;
    struct bdoc doc;
    record_cursor_open(&cursor, v->txn, v->coll, false);
    while (record_cursor_next(&cursor, &record_id, &doc)) {
        struct err err;
        v->docs++;
        v->bytes += doc.len;
        v->values += pieces_count(doc.len);
        if (!bdoc_validate(doc.data, doc.len, BDOC_MAX_WIRE_DEPTH, &err)) {
            v->invalid++;
            complain(v, "record %llu: %.200s", (unsigned long long)record_id, err.msg);
            continue;
        }
        for (uint32_t i = 0; i < v->coll->index_count; i++)
            check_keys(v, i, doc, record_id, &keys);
    }
    record_cursor_close(&cursor);
    index_keys_deinit(&keys);
}

/* Pieces of which no document is made. */
static void count_values(struct validation *v)
{
    uint8_t first[RECORD_KEY_BYTES];
    record_key(first, v->coll->id, 0);
    MDB_val key = {sizeof first, first};
    MDB_val value;
    MDB_cursor *cursor = env_cursor_take(v->txn, STORE_DB_RECORDS);
    int64_t found = 0;
    bool more = env_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (more && load_be32(key.mv_data) == v->coll->id) {
        found++;
        more = env_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    env_cursor_give(v->txn, STORE_DB_RECORDS, cursor);
    if (found != v->values)
        complain(v, "the documents need %lld stored pieces, found were %lld", (long long)v->values, (long long)found);
}

/* True when the document that the entry leads to has that key. */
static bool entry_belongs(struct validation *v, const struct index_def *index, const struct index_entry *entry,
                          struct index_keys *keys, struct buf *scratch)
{
    struct bdoc doc;
    struct err ignored;
    if (!record_get(v->txn, v->coll, entry->record_id, scratch, &doc) ||
        !bdoc_validate(doc.data, doc.len, BDOC_MAX_WIRE_DEPTH, &ignored) ||
        !index_keys_generate(index, doc, keys, &ignored))
        return false;
    for (size_t k = 0; k < keys->count; k++)
        if (keys->keys[k].len == entry->key_len &&
            memcmp(keys->bytes.data + keys->keys[k].offset, entry->key, entry->key_len) == 0)
            return true;
    return false;
}

static void walk_index(struct validation *v, uint32_t i)
{
    const struct index_def *index = v->coll->indexes[i];
    if (index->state == INDEX_FAILED)
        return;
    struct index_bounds all = {0};
    struct index_cursor cursor;
    struct index_entry entry;
    struct index_keys keys = {0};
    struct buf scratch = BUF_INIT;
    struct counter counted;
    int64_t bytes = 0;
    index_cursor_open(&cursor, v->txn, index, &all, false);
    while (index_cursor_next(&cursor, &entry)) {
        v->found[i]++;
        bytes += entry.key_len;
        if (!entry_belongs(v, index, &entry, &keys, &scratch))
            complain(v, "index %s has an entry that record %llu doesn't have", index->name,
                     (unsigned long long)entry.record_id);
    }
    index_cursor_close(&cursor);
    buf_deinit(&scratch);
    index_keys_deinit(&keys);
    counter_index(v->txn, index, &counted);
    if (index->state == INDEX_READY && v->found[i] != v->expected[i])
        complain(v, "index %s has %lld entries, its documents need %lld", index->name, (long long)v->found[i],
                 (long long)v->expected[i]);
    if (counted.docs != v->found[i] || counted.bytes != bytes)
        complain(v, "index %s counts %lld entries of %lld bytes, found were %lld of %lld", index->name,
                 (long long)counted.docs, (long long)counted.bytes, (long long)v->found[i], (long long)bytes);
    if (index->state == INDEX_READY && v->multikey[i] && !index->multikey)
        complain(v, "index %s is not marked multikey", index->name);
}

static void report(struct validation *v, bson_t *out)
{
    bson_t keys;
    bson_t warnings;
    BSON_APPEND_UTF8(out, "ns", v->coll->ns);
    BSON_APPEND_BINARY(out, "uuid", BSON_SUBTYPE_UUID, v->coll->uuid, UUID_BYTES);
    BSON_APPEND_INT64(out, "nInvalidDocuments", v->invalid);
    BSON_APPEND_INT64(out, "nrecords", v->docs);
    BSON_APPEND_INT32(out, "nIndexes", (int32_t)v->coll->index_count);
    BSON_APPEND_DOCUMENT_BEGIN(out, "keysPerIndex", &keys);
    for (uint32_t i = 0; i < v->coll->index_count; i++)
        BSON_APPEND_INT64(&keys, v->coll->indexes[i]->name, v->found[i]);
    bson_append_document_end(out, &keys);
    BSON_APPEND_BOOL(out, "valid", v->error_count == 0);
    BSON_APPEND_ARRAY_BEGIN(out, "warnings", &warnings);
    bson_append_array_end(out, &warnings);
    BSON_APPEND_ARRAY(out, "errors", &v->errors);
}

bool collection_validate(struct store_txn *txn, const struct collection *coll, bson_t *out)
{
    struct validation v = {.txn = txn, .coll = coll};
    struct counter counted;
    bson_init(&v.errors);
    v.expected = mem_alloc_array(coll->index_count, sizeof *v.expected);
    v.found = mem_alloc_array(coll->index_count, sizeof *v.found);
    v.multikey = mem_alloc_array(coll->index_count, sizeof *v.multikey);
    walk_records(&v);
    count_values(&v);
    for (uint32_t i = 0; i < coll->index_count; i++)
        walk_index(&v, i);
    counter_collection(txn, coll, &counted);
    if (counted.docs != v.docs || counted.bytes != v.bytes)
        complain(&v, "the collection counts %lld documents of %lld bytes, found were %lld of %lld",
                 (long long)counted.docs, (long long)counted.bytes, (long long)v.docs, (long long)v.bytes);
    report(&v, out);
    mem_free(v.expected);
    mem_free(v.found);
    mem_free(v.multikey);
    bson_destroy(&v.errors);
    return v.error_count == 0;
}
