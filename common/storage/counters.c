/* Values in the counters database, little-endian: le64 docs, le64 bytes; for a collection also le64 next record id. */
#include "storage/counters.h"

#include "base/check.h"
#include "base/mem.h"
#include "storage/counters_write.h"
#include "storage/env.h"

enum {
    KIND_TOTAL = 0,
    KIND_RANGE = 1,
    RANGE_KEY_MAX = 400, /* a longer name is kept as its first bytes and a hash */
    COUNTER_KEY_MAX = 4 + 1 + RANGE_KEY_MAX + 8,
};

static void total_key(uint8_t out[5], uint32_t id)
{
    store_be32(out, id);
    out[4] = KIND_TOTAL;
}

static void read_total(struct store_txn *txn, uint32_t id, struct counter_slot *out)
{
    uint8_t key[5];
    MDB_val value;
    total_key(key, id);
    *out = (struct counter_slot){.id = id};
    if (!env_get(txn, STORE_DB_COUNTERS, key, sizeof key, &value) || value.mv_size != 24)
        return;
    const uint8_t *data = value.mv_data;
    out->docs = (int64_t)load_le64(data);
    out->bytes = (int64_t)load_le64(data + 8);
    out->next_record_id = load_le64(data + 16);
}

static void write_total(struct store_txn *txn, const struct counter_slot *slot)
{
    uint8_t key[5];
    uint8_t value[24];
    total_key(key, slot->id);
    store_le64(value, (uint64_t)slot->docs);
    store_le64(value + 8, (uint64_t)slot->bytes);
    store_le64(value + 16, slot->next_record_id);
    env_put(txn, STORE_DB_COUNTERS, key, sizeof key, value, sizeof value);
}

/* ---- the write transaction's table ---- */

static struct counter_slot *probe(struct counter_slot *table, uint32_t cap, uint32_t id)
{
    uint32_t at = (id * 2654435761u) & (cap - 1);
    while (table[at].id != 0 && table[at].id != id)
        at = (at + 1) & (cap - 1);
    return &table[at];
}

static void grow(struct write_state *write)
{
    uint32_t cap = write->counter_cap == 0 ? ENV_WRITE_COUNTERS : write->counter_cap * 2;
    struct counter_slot *table = mem_alloc_array(cap, sizeof *table);
    for (uint32_t i = 0; i < write->counter_cap; i++)
        if (write->counters[i].id != 0)
            *probe(table, cap, write->counters[i].id) = write->counters[i];
    mem_free(write->counters);
    write->counters = table;
    write->counter_cap = cap;
}

struct counter_slot *counters_slot(struct store_txn *txn, uint32_t id)
{
    struct write_state *write = txn->write;
    if ((write->counter_count + 1) * 2 > write->counter_cap)
        grow(write);
    struct counter_slot *slot = probe(write->counters, write->counter_cap, id);
    if (slot->id == 0) {
        read_total(txn, id, slot);
        write->counter_count++;
    }
    return slot;
}

static size_t range_key(uint8_t out[COUNTER_KEY_MAX], const struct collection *coll, const void *key, size_t key_len)
{
    store_be32(out, coll->id);
    out[4] = KIND_RANGE;
    if (key_len <= RANGE_KEY_MAX) {
        memcpy(out + 5, key, key_len);
        return 5 + key_len;
    }
    memcpy(out + 5, key, RANGE_KEY_MAX);
    store_be64(out + 5 + RANGE_KEY_MAX, hash_bytes(key, key_len));
    return COUNTER_KEY_MAX;
}

static void read_range(struct store_txn *txn, const uint8_t *key, size_t key_len, struct range_slot *out)
{
    MDB_val value;
    *out = (struct range_slot){0};
    if (!env_get(txn, STORE_DB_COUNTERS, key, key_len, &value) || value.mv_size != 16)
        return;
    out->present = true;
    out->docs = (int64_t)load_le64(value.mv_data);
    out->bytes = (int64_t)load_le64((const uint8_t *)value.mv_data + 8);
}

static struct range_slot *range_slot(struct store_txn *txn, const struct collection *coll, const void *key,
                                     size_t key_len)
{
    CHECK(txn->write != NULL);
    uint8_t full[COUNTER_KEY_MAX];
    size_t len = range_key(full, coll, key, key_len);
    struct range_slot *slot = map_get(&txn->write->ranges, full, len);
    if (slot == NULL) {
        slot = mem_alloc(sizeof *slot);
        read_range(txn, full, len, slot);
        map_put(&txn->write->ranges, full, len, slot);
    }
    return slot;
}

void counters_flush(struct store_txn *txn)
{
    struct write_state *write = txn->write;
    for (uint32_t i = 0; i < write->counter_cap; i++) {
        if (write->counters[i].id != 0 && write->counters[i].dirty)
            write_total(txn, &write->counters[i]);
    }
    for (struct map_entry *entry = map_next(&write->ranges, NULL); entry != NULL;
         entry = map_next(&write->ranges, entry)) {
        const struct range_slot *slot = entry->value;
        if (!slot->dirty)
            continue;
        uint8_t value[16];
        store_le64(value, (uint64_t)slot->docs);
        store_le64(value + 8, (uint64_t)slot->bytes);
        if (slot->present)
            env_put(txn, STORE_DB_COUNTERS, entry->key, entry->key_len, value, sizeof value);
        else
            env_delete(txn, STORE_DB_COUNTERS, entry->key, entry->key_len);
    }
}

void counters_forget(struct store_txn *txn)
{
    struct write_state *write = txn->write;
    if (write->counter_count > 0)
        memset(write->counters, 0, write->counter_cap * sizeof *write->counters);
    write->counter_count = 0;
    for (struct map_entry *entry = map_next(&write->ranges, NULL); entry != NULL;
         entry = map_next(&write->ranges, entry))
        mem_free(entry->value);
    map_deinit(&write->ranges);
}

/* ---- public ---- */

static void total(struct store_txn *txn, uint32_t id, struct counter *out)
{
    struct counter_slot slot;
    if (txn->write != NULL)
        slot = *counters_slot(txn, id);
    else
        read_total(txn, id, &slot);
    *out = (struct counter){.docs = slot.docs, .bytes = slot.bytes};
}

void counter_collection(struct store_txn *txn, const struct collection *coll, struct counter *out)
{
    total(txn, coll->id, out);
}

void counter_index(struct store_txn *txn, const struct index_def *index, struct counter *out)
{
    total(txn, index->id, out);
}

bool counter_range(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len,
                   struct counter *out)
{
    struct range_slot slot;
    if (txn->write != NULL) {
        slot = *range_slot(txn, coll, key, key_len);
    } else {
        uint8_t full[COUNTER_KEY_MAX];
        read_range(txn, full, range_key(full, coll, key, key_len), &slot);
    }
    *out = (struct counter){.docs = slot.docs, .bytes = slot.bytes};
    return slot.present;
}

void counter_range_set(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len,
                       const struct counter *value)
{
    *range_slot(txn, coll, key, key_len) =
        (struct range_slot){.dirty = true, .present = true, .docs = value->docs, .bytes = value->bytes};
}

void counter_range_add(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len,
                       const struct counter *delta)
{
    struct range_slot *slot = range_slot(txn, coll, key, key_len);
    slot->docs += delta->docs;
    slot->bytes += delta->bytes;
    slot->dirty = true;
    slot->present = true;
}

void counter_range_delete(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len)
{
    *range_slot(txn, coll, key, key_len) = (struct range_slot){.dirty = true};
}
