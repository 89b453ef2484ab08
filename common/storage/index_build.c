#include "storage/index_build.h"

#include "base/check.h"
#include "storage/catalog_write.h"
#include "storage/counters_write.h"
#include "storage/cursor.h"
#include "storage/duplicates.h"
#include "storage/entries.h"
#include "storage/record_write.h"
#include "storage/records.h"

/* How far a build has come. */
struct build_position {
    uint64_t after_id; /* the record handled last */
    uint64_t end_id;   /* records from here on were written after the build began: writes maintain them */
    uint64_t done;     /* records handled */
};

static size_t build_key(uint8_t out[BUILD_KEY_MAX], uint32_t index_id, uint8_t kind)
{
    store_be32(out, index_id);
    out[4] = kind;
    return 5;
}

static bool read_position(struct store_txn *txn, uint32_t index_id, struct build_position *out)
{
    uint8_t key[BUILD_KEY_MAX];
    MDB_val value;
    *out = (struct build_position){0};
    if (!env_get(txn, STORE_DB_BUILDS, key, build_key(key, index_id, BUILD_POSITION), &value) || value.mv_size != 24)
        return false;
    const uint8_t *data = value.mv_data;
    out->after_id = load_be64(data);
    out->end_id = load_be64(data + 8);
    out->done = load_be64(data + 16);
    return true;
}

static void write_position(struct store_txn *txn, uint32_t index_id, const struct build_position *position)
{
    uint8_t key[BUILD_KEY_MAX];
    uint8_t value[24];
    store_be64(value, position->after_id);
    store_be64(value + 8, position->end_id);
    store_be64(value + 16, position->done);
    env_put(txn, STORE_DB_BUILDS, key, build_key(key, index_id, BUILD_POSITION), value, sizeof value);
}

uint64_t index_build_done_records(struct store_txn *txn, const struct index_def *index)
{
    struct build_position position;
    read_position(txn, index->id, &position);
    return position.done;
}

static void note_refused(struct store_txn *txn, uint32_t index_id, uint64_t record_id)
{
    uint8_t key[BUILD_KEY_MAX];
    size_t len = build_key(key, index_id, BUILD_REFUSED);
    store_be64(key + len, record_id);
    env_put(txn, STORE_DB_BUILDS, key, len + 8, NULL, 0);
}

static void add_record(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                       uint64_t record_id, struct index_keys *keys)
{
    struct bdoc doc;
    struct err ignored;
    if (!record_get(txn, coll, record_id, &txn->scratch_doc, &doc))
        return;
    if (!index_keys_generate(index, doc, keys, &ignored)) {
        note_refused(txn, index->id, record_id);
        return;
    }
    if (index->unique)
        duplicates_note(txn, index, keys, record_id);
    record_put_keys(txn, coll, index, keys, record_id);
}

/* Record ids after `after`, below `end`; returns how many. */
static uint32_t next_records(struct store_txn *txn, const struct collection *coll, const struct build_position *from,
                             uint64_t *ids, uint32_t max)
{
    struct record_cursor cursor;
    uint32_t count = 0;
    record_cursor_open(&cursor, txn, coll, false);
    record_cursor_seek_after(&cursor, from->after_id);
    while (count < max && record_cursor_next(&cursor, &ids[count], NULL) && ids[count] < from->end_id)
        count++;
    record_cursor_close(&cursor);
    return count;
}

bool index_build_step(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                      uint32_t max_records)
{
    CHECK(txn->write != NULL && index->state == INDEX_BUILDING);
    struct build_position position;
    if (!read_position(txn, index->id, &position))
        position.end_id = counters_slot(txn, coll->id)->next_record_id;
    struct index_keys keys = {0};
    bool more = true;
    while (max_records > 0 && more) {
        uint64_t ids[64];
        uint32_t want = max_records < 64 ? max_records : 64;
        uint32_t got = next_records(txn, coll, &position, ids, want);
        for (uint32_t i = 0; i < got; i++)
            add_record(txn, coll, index, ids[i], &keys);
        if (got > 0)
            position.after_id = ids[got - 1];
        position.done += got;
        max_records -= got;
        more = got == want;
    }
    index_keys_deinit(&keys);
    write_position(txn, index->id, &position);
    return more;
}

/* ---- the end of a build ---- */

static bool duplicate_stands(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                             const MDB_val *key, struct err *err)
{
    uint64_t first = 0;
    uint64_t second;
    MDB_cursor *cursor = env_probe_cursor(txn, index->id);
    uint32_t len = (uint32_t)key->mv_size;
    if (!entry_next_with_key(cursor, index->id, key->mv_data, len, 0, &first) ||
        !entry_next_with_key(cursor, index->id, key->mv_data, len, first, &second))
        return false;
    struct bdoc doc;
    if (record_get(txn, coll, second, &txn->scratch_doc, &doc))
        duplicates_refuse(coll, index, doc, key->mv_data, len, err);
    return true;
}

static bool refusal_stands(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                           uint64_t record_id, struct err *err)
{
    struct bdoc doc;
    if (!record_get(txn, coll, record_id, &txn->scratch_doc, &doc))
        return false;
    struct index_keys keys = {0};
    bool stands = !index_keys_generate(index, doc, &keys, err);
    index_keys_deinit(&keys);
    return stands;
}

/* Looks at the notes again: a document may have been changed or erased since. */
static bool notes_allow(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                        struct err *err)
{
    uint8_t from[BUILD_KEY_MAX];
    MDB_val key = {build_key(from, index->id, BUILD_DUPLICATE), from};
    MDB_val value;
    MDB_cursor *cursor = env_cursor_take(txn, STORE_DB_BUILDS);
    bool ok = true;
    bool more = env_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (ok && more && load_be32(key.mv_data) == index->id) {
        const uint8_t *data = key.mv_data;
        if (data[4] == BUILD_DUPLICATE)
            ok = !duplicate_stands(txn, coll, index, &value, err);
        else if (data[4] == BUILD_REFUSED)
            ok = !refusal_stands(txn, coll, index, load_be64(data + 5), err);
        more = env_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    env_cursor_give(txn, STORE_DB_BUILDS, cursor);
    return ok;
}

static void forget_notes(struct store_txn *txn, uint32_t index_id)
{
    for (;;) {
        uint8_t from[4];
        store_be32(from, index_id);
        MDB_val key = {sizeof from, from};
        MDB_val value;
        MDB_cursor *cursor = env_write_cursor(txn, STORE_DB_BUILDS, index_id);
        if (!env_cursor_get(cursor, &key, &value, MDB_SET_RANGE) || load_be32(key.mv_data) != index_id)
            return;
        int rc = mdb_cursor_del(cursor, 0);
        if (rc != 0)
            store_fatal(rc, "forget notes of an index build");
    }
}

bool index_build_check(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                       struct err *err)
{
    CHECK(txn->write != NULL && index->state == INDEX_BUILDING);
    return notes_allow(txn, coll, index, err);
}

bool index_build_finish(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                        struct err *err)
{
    CHECK(txn->write != NULL && index->state == INDEX_BUILDING);
    bool ok = notes_allow(txn, coll, index, err);
    forget_notes(txn, index->id);
    catalog_set_index_state(txn, coll->id, index->id, ok ? INDEX_READY : INDEX_FAILED);
    return ok;
}

bool index_build_now(struct store_txn *txn, const struct collection *coll, struct bdoc spec, bool *exists,
                     struct err *err)
{
    uint32_t id;
    bool there;
    if (!catalog_create_index(txn, coll, spec, &id, &there, err))
        return false;
    if (exists != NULL)
        *exists = there;
    if (there)
        return true;
    const struct collection *now = catalog_find_id(txn, coll->id);
    while (index_build_step(txn, now, collection_find_index_id(now, id), UINT32_MAX))
        continue;
    if (index_build_finish(txn, now, collection_find_index_id(now, id), err))
        return true;
    now = catalog_find_id(txn, coll->id);
    struct err ignored;
    bool dropped = catalog_drop_index(txn, now, collection_find_index_id(now, id), &ignored);
    CHECK(dropped);
    return false;
}
