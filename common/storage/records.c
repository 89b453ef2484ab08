/* Writing documents. Every write has two halves: first all keys are derived and everything that can be refused is
 * checked, then it puts. */
#include "storage/records.h"

#include "base/check.h"
#include "base/mem.h"
#include "bson/compare.h"
#include "bson/keyenc.h"
#include "storage/catalog_write.h"
#include "storage/counters_write.h"
#include "storage/duplicates.h"
#include "storage/entries.h"
#include "storage/pieces.h"
#include "storage/record_write.h"

/* ---- limits ---- */

static bool too_deep(struct bdoc doc, int levels)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT && elem.val.type != BT_ARRAY)
            continue;
        if (levels <= 1 || too_deep(bval_doc(&elem.val), levels - 1))
            return true;
    }
    return false;
}

bool record_check_document(struct bdoc doc, struct err *err)
{
    if (doc.len > BDOC_MAX_BYTES)
        return err_set(err, ERR_BSONObjectTooLarge, "object to insert too large. size in bytes: %u, max size: %d",
                       doc.len, BDOC_MAX_BYTES);
    struct bval id;
    if (!bdoc_find(doc, "_id", &id))
        return err_set(err, ERR_InvalidIdField, "Document must have an _id field");
    if (id.type == BT_ARRAY || id.type == BT_REGEX || id.type == BT_UNDEFINED)
        return err_set(err, ERR_InvalidIdField, "The '_id' value cannot be of type %s", bval_type_name(id.type));
    if (too_deep(doc, BDOC_MAX_DEPTH))
        return err_set(err, ERR_Overflow, "Document exceeds maximum nesting depth of %d", BDOC_MAX_DEPTH);
    return true;
}

/* ---- keys ---- */

static void reserve_keys(struct write_state *write, uint32_t count)
{
    if (count <= write->keys_cap)
        return;
    write->new_keys = mem_realloc(write->new_keys, count * sizeof *write->new_keys);
    write->old_keys = mem_realloc(write->old_keys, count * sizeof *write->old_keys);
    memset(write->new_keys + write->keys_cap, 0, (count - write->keys_cap) * sizeof *write->new_keys);
    memset(write->old_keys + write->keys_cap, 0, (count - write->keys_cap) * sizeof *write->old_keys);
    write->keys_cap = count;
}

/* A failed index has no keys. */
static bool generate(const struct collection *coll, struct bdoc doc, struct index_keys *keys, struct err *err)
{
    for (uint32_t i = 0; i < coll->index_count; i++) {
        keys[i].count = 0;
        keys[i].multikey = false;
        if (coll->indexes[i]->state != INDEX_FAILED && !index_keys_generate(coll->indexes[i], doc, &keys[i], err))
            return false;
    }
    return true;
}

/* What a stored document has; it was accepted before, so an index that can't be derived now has no entry (an index
 * under construction has notes about such documents). */
static void generate_stored(const struct collection *coll, struct bdoc doc, struct index_keys *keys)
{
    struct err ignored;
    for (uint32_t i = 0; i < coll->index_count; i++) {
        if (coll->indexes[i]->state == INDEX_FAILED ||
            !index_keys_generate(coll->indexes[i], doc, &keys[i], &ignored)) {
            keys[i].count = 0;
            keys[i].multikey = false;
        }
    }
}

static const uint8_t *key_bytes(const struct index_keys *keys, size_t i)
{
    return keys->bytes.data + keys->keys[i].offset;
}

static bool multikey_is_news(const struct index_def *index, const struct index_keys *keys)
{
    for (uint32_t i = 0; i < index->field_count; i++) {
        if ((keys->paths[i] & ~index->fields[i].multikey) != 0)
            return true;
    }
    return !index->multikey;
}

void record_put_keys(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                     const struct index_keys *keys, uint64_t record_id)
{
    struct counter_slot added = {0};
    for (size_t k = 0; k < keys->count; k++) {
        const struct index_key *key = &keys->keys[k];
        struct entry_key entry = {key_bytes(keys, k), key->len, key_bytes(keys, k) + key->len, key->types_len};
        bool stored = key->stored;
        /* While an index is built, the build and a write may both come to a record. */
        if (index->state == INDEX_BUILDING) {
            stored = entry_exists(txn, index->id, entry.key, entry.key_len, record_id);
            if (stored && !key->stored)
                continue;
        }
        entry_put(txn, index->id, &entry, record_id);
        added.docs += !stored;
        added.bytes += stored ? 0 : key->len;
    }
    if (keys->multikey && multikey_is_news(index, keys))
        catalog_set_multikey(txn, coll->id, index->id, keys->paths);
    if (added.docs == 0)
        return;
    struct counter_slot *slot = counters_slot(txn, index->id);
    slot->docs += added.docs;
    slot->bytes += added.bytes;
    slot->dirty = true;
}

static void put_keys(struct store_txn *txn, const struct collection *coll, uint64_t record_id)
{
    for (uint32_t i = 0; i < coll->index_count; i++)
        record_put_keys(txn, coll, coll->indexes[i], &txn->write->new_keys[i], record_id);
}

/* ---- counters ---- */

static void count(struct store_txn *txn, const struct collection *coll, const struct record_range *range, int64_t docs,
                  int64_t bytes)
{
    if (range->key != NULL)
        counter_range_add(txn, coll, range->key, range->key_len, &(struct counter){.docs = docs, .bytes = bytes});
}

static void count_collection(struct store_txn *txn, const struct collection *coll, int64_t docs, int64_t bytes)
{
    struct counter_slot *slot = counters_slot(txn, coll->id);
    slot->docs += docs;
    slot->bytes += bytes;
    slot->dirty = true;
}

/* ---- insert ---- */

static const struct record_write no_options;

/* Of a record that is there (record_id not 0) the keys that it had are its own; they stand in old_keys. */
static bool check_unique(struct store_txn *txn, const struct collection *coll, struct bdoc doc, uint64_t record_id,
                         const struct record_write *options, struct err *err)
{
    struct write_state *write = txn->write;
    struct duplicate_check check = {.txn = txn, .coll = coll, .doc = doc, .record_id = record_id, .options = options};
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        if (!(index->unique || index->prepare_unique) || index->state != INDEX_READY ||
            (index->is_id && record_id != 0))
            continue; /* a record keeps its _id */
        check.old = record_id != 0 ? &write->old_keys[i] : NULL;
        if (!duplicates_check(&check, index, &write->new_keys[i], err))
            return false;
    }
    return true;
}

/* A unique index under construction refuses nothing yet: what it would refuse is noted. Called after the last refusal.
 */
static void note_duplicates(struct store_txn *txn, const struct collection *coll, uint64_t record_id)
{
    for (uint32_t i = 0; i < coll->index_count; i++)
        if (coll->indexes[i]->unique && coll->indexes[i]->state == INDEX_BUILDING)
            duplicates_note(txn, coll->indexes[i], &txn->write->new_keys[i], record_id);
}

bool record_insert(struct store_txn *txn, const struct collection *coll, struct bdoc doc,
                   const struct record_write *write, uint64_t *record_id, struct err *err)
{
    CHECK(txn->write != NULL);
    const struct record_write *options = write != NULL ? write : &no_options;
    if (!record_check_document(doc, err))
        return false;
    reserve_keys(txn->write, coll->index_count);
    if (!generate(coll, doc, txn->write->new_keys, err) || !check_unique(txn, coll, doc, 0, options, err))
        return false;
    struct counter_slot *slot = counters_slot(txn, coll->id);
    if (slot->next_record_id == 0)
        slot->next_record_id = RECORD_ID_FIRST;
    uint64_t id = slot->next_record_id++;
    slot->docs++;
    slot->bytes += doc.len;
    slot->dirty = true;
    pieces_write(txn, coll->id, id, doc, 0);
    note_duplicates(txn, coll, id);
    put_keys(txn, coll, id);
    count(txn, coll, &options->range, 1, doc.len);
    if (record_id != NULL)
        *record_id = id;
    return true;
}

/* ---- replace ---- */

static bool same_id(struct bdoc before, struct bdoc after)
{
    struct bval a;
    struct bval b;
    bdoc_find(before, "_id", &a);
    bdoc_find(after, "_id", &b);
    return bval_compare(&a, &b) == 0;
}

/* True also for long keys, whose types aren't stored. */
static bool same_types(const struct index_keys *a, size_t i, const struct index_keys *b, size_t j)
{
    const struct index_key *left = &a->keys[i];
    const struct index_key *right = &b->keys[j];
    return left->len > ENTRY_SHORT_MAX ||
           (left->types_len == right->types_len &&
            memcmp(key_bytes(a, i) + left->len, key_bytes(b, j) + right->len, left->types_len) == 0);
}

/* Leaves in `fresh` the keys that `old` hasn't, and deletes the entries of those that only `old` has. Both are sorted.
 */
static void merge_keys(struct store_txn *txn, const struct index_def *index, struct index_keys *fresh,
                       const struct index_keys *old, uint64_t record_id)
{
    size_t kept = 0;
    size_t o = 0;
    size_t n = 0;
    struct counter_slot gone = {0};
    while (o < old->count || n < fresh->count) {
        int order = o == old->count ? 1
                    : n == fresh->count
                        ? -1
                        : keyenc_compare(key_bytes(old, o), old->keys[o].len, key_bytes(fresh, n), fresh->keys[n].len);
        if (order == 0) {
            if (!same_types(old, o, fresh, n)) {
                fresh->keys[n].stored = true;
                fresh->keys[kept++] = fresh->keys[n];
            }
            o++;
            n++;
        } else if (order < 0) {
            if (entry_delete(txn, index->id, key_bytes(old, o), old->keys[o].len, record_id)) {
                gone.docs++;
                gone.bytes += old->keys[o].len;
            }
            o++;
        } else {
            fresh->keys[kept++] = fresh->keys[n++];
        }
    }
    fresh->count = kept;
    if (gone.docs > 0) {
        struct counter_slot *slot = counters_slot(txn, index->id);
        slot->docs -= gone.docs;
        slot->bytes -= gone.bytes;
        slot->dirty = true;
    }
}

bool record_replace(struct store_txn *txn, const struct collection *coll, uint64_t record_id, struct bdoc doc,
                    const struct record_write *write, struct err *err)
{
    CHECK(txn->write != NULL);
    const struct record_write *options = write != NULL ? write : &no_options;
    struct bdoc old;
    if (!record_check_document(doc, err))
        return false;
    bool found = record_get(txn, coll, record_id, &txn->scratch_doc, &old);
    CHECK(found);
    if (!same_id(old, doc))
        return err_set(err, ERR_ImmutableField,
                       "Performing an update on the path '_id' would modify the immutable field '_id'");
    uint32_t old_len = old.len;
    struct write_state *state = txn->write;
    reserve_keys(state, coll->index_count);
    if (!generate(coll, doc, state->new_keys, err))
        return false;
    generate_stored(coll, old, state->old_keys);
    if (!check_unique(txn, coll, doc, record_id, options, err))
        return false;
    pieces_write(txn, coll->id, record_id, doc, old_len);
    for (uint32_t i = 0; i < coll->index_count; i++)
        merge_keys(txn, coll->indexes[i], &state->new_keys[i], &state->old_keys[i], record_id);
    note_duplicates(txn, coll, record_id);
    put_keys(txn, coll, record_id);
    count_collection(txn, coll, 0, (int64_t)doc.len - old_len);
    count(txn, coll, &options->old_range, -1, -(int64_t)old_len);
    count(txn, coll, &options->range, 1, doc.len);
    return true;
}

/* ---- erase ---- */

bool record_erase(struct store_txn *txn, const struct collection *coll, uint64_t record_id,
                  const struct record_write *write)
{
    CHECK(txn->write != NULL);
    const struct record_write *options = write != NULL ? write : &no_options;
    struct bdoc old;
    if (!record_get(txn, coll, record_id, &txn->scratch_doc, &old))
        return false;
    uint32_t old_len = old.len;
    struct write_state *state = txn->write;
    reserve_keys(state, coll->index_count);
    generate_stored(coll, old, state->old_keys);
    for (uint32_t i = 0; i < coll->index_count; i++) {
        state->new_keys[i].count = 0;
        merge_keys(txn, coll->indexes[i], &state->new_keys[i], &state->old_keys[i], record_id);
    }
    pieces_erase(txn, coll->id, record_id, old_len);
    count_collection(txn, coll, -1, -(int64_t)old_len);
    count(txn, coll, &options->range, -1, -(int64_t)old_len);
    return true;
}
