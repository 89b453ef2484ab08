/* A store against a naive model: a list of documents. Random inserts, replacements and erasures while indexes of all
 * kinds are built, finished and dropped; afterwards every index must hold exactly the keys of the documents, in order,
 * whatever way a cursor takes through them. The same operations again, also after a restart from a checkpoint, must
 * give the same logical hash. */
#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "base/random.h"
#include "bson/keyenc.h"
#include "storage/counters.h"
#include "storage/cursor.h"
#include "storage/index_build.h"
#include "storage/index_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 120, OPERATIONS = 600, CHECK_EVERY = 140, SEEDS = 12, LONG_TEXT = 560 };

static const char *const index_specs[] = {
    "{\"key\": {\"a\": 1}}",
    "{\"key\": {\"a\": -1, \"b\": 1}, \"unique\": true}",
    "{\"key\": {\"b\": 1, \"c.d\": 1}}",
    "{\"key\": {\"c.d\": -1}, \"sparse\": true}",
    "{\"key\": {\"a\": \"hashed\"}}",
    "{\"key\": {\"u\": 1}, \"unique\": true, \"sparse\": true}",
    "{\"key\": {\"t\": 1}}",
    "{\"key\": {\"t\": -1, \"a\": 1}, \"unique\": true}",
};
enum { SPECS = sizeof index_specs / sizeof index_specs[0] };

struct model {
    struct fixture *f;
    bson_t *docs[IDS];
    uint64_t records[IDS];
    uint64_t seed;
};

/* ---- documents ---- */

static void random_scalar(bson_t *doc, const char *key, struct prng *prng)
{
    switch (prng_below(prng, 7)) {
    case 0:
        BSON_APPEND_INT32(doc, key, (int32_t)prng_below(prng, 5));
        break;
    case 1:
        BSON_APPEND_DOUBLE(doc, key, (double)prng_below(prng, 10) / 2);
        break;
    case 2:
        BSON_APPEND_NULL(doc, key);
        break;
    case 3:
        BSON_APPEND_UTF8(doc, key, prng_below(prng, 2) == 0 ? "x" : "xy");
        break;
    case 4:
        BSON_APPEND_INT64(doc, key, (int64_t)prng_next(prng));
        break;
    case 5:
        BSON_APPEND_BOOL(doc, key, true);
        break;
    default:
        break; /* missing */
    }
}

static void random_value(bson_t *doc, const char *key, struct prng *prng)
{
    if (prng_below(prng, 4) != 0) {
        random_scalar(doc, key, prng);
        return;
    }
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(doc, key, &array);
    uint64_t count = prng_below(prng, 4);
    for (uint64_t i = 0; i < count; i++) {
        char position[8];
        snprintf(position, sizeof position, "%u", (unsigned)i);
        random_scalar(&array, position, prng);
    }
    bson_append_array_end(doc, &array);
}

/* Beyond LMDB's key length, with few different prefixes and few different ends. */
static void random_text(bson_t *doc, struct prng *prng)
{
    char text[LONG_TEXT + 40];
    size_t len = prng_below(prng, 3) == 0 ? 470 + prng_below(prng, 40) : LONG_TEXT + prng_below(prng, 30);
    memset(text, 'p', len);
    text[len - 1 - prng_below(prng, 70)] = (char)('a' + (char)prng_below(prng, 4));
    bson_append_utf8(doc, "t", 1, text, (int)len);
}

static bson_t *random_doc(int32_t id, struct prng *prng)
{
    bson_t *doc = bson_new();
    BSON_APPEND_INT32(doc, "_id", id);
    random_value(doc, "a", prng);
    random_value(doc, "b", prng);
    bson_t inner;
    if (prng_below(prng, 3) != 0) {
        BSON_APPEND_DOCUMENT_BEGIN(doc, "c", &inner);
        random_value(&inner, "d", prng);
        bson_append_document_end(doc, &inner);
    }
    if (prng_below(prng, 3) == 0)
        BSON_APPEND_INT32(doc, "u", (int32_t)prng_below(prng, 60));
    if (prng_below(prng, 3) != 0)
        random_text(doc, prng);
    return doc;
}

/* ---- what a write must answer ---- */

static bool shares_key(const struct index_keys *a, const struct index_keys *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (a->keys[i].len == b->keys[j].len &&
                memcmp(a->bytes.data + a->keys[i].offset, b->bytes.data + b->keys[j].offset, a->keys[i].len) == 0)
                return true;
    return false;
}

static bool is_taken(struct model *m, const struct index_def *index, const struct index_keys *keys, int32_t own_id)
{
    struct index_keys other = {0};
    struct err ignored;
    bool taken = false;
    for (int32_t id = 0; id < IDS && !taken; id++)
        taken = id != own_id && m->docs[id] != NULL &&
                index_keys_generate(index, bdoc_of(m->docs[id]), &other, &ignored) && shares_key(keys, &other);
    index_keys_deinit(&other);
    return taken;
}

static bool must_be_refused(struct model *m, const bson_t *doc, int32_t own_id)
{
    struct index_keys keys = {0};
    struct err ignored;
    bool refused = false;
    fixture_find(m->f);
    for (uint32_t i = 0; i < m->f->coll->index_count && !refused; i++) {
        const struct index_def *index = m->f->coll->indexes[i];
        if (index->state == INDEX_FAILED)
            continue;
        refused = !index_keys_generate(index, bdoc_of(doc), &keys, &ignored) ||
                  (index->unique && index->state == INDEX_READY && is_taken(m, index, &keys, own_id));
    }
    index_keys_deinit(&keys);
    return refused;
}

/* ---- operations ---- */

static struct record_write range_of(int32_t id)
{
    static const char names[2][2] = {"0", "1"};
    return (struct record_write){.range = {names[id % 2], 1}, .old_range = {names[id % 2], 1}};
}

static void write_doc(struct model *m, int32_t id, struct prng *prng)
{
    bson_t *doc = random_doc(id, prng);
    bool refuse = must_be_refused(m, doc, id);
    struct record_write write = range_of(id);
    uint64_t record = m->records[id];
    bool ok = m->docs[id] == NULL ? record_insert(m->f->txn, m->f->coll, bdoc_of(doc), &write, &record, &m->f->err)
                                  : record_replace(m->f->txn, m->f->coll, record, bdoc_of(doc), &write, &m->f->err);
    if (ok == refuse)
        fail_msg("seed %llu: expected %s: %s", (unsigned long long)m->seed, refuse ? "a refusal" : "success",
                 ok ? "" : m->f->err.msg);
    if (!ok) {
        bson_destroy(doc);
        return;
    }
    if (m->docs[id] != NULL)
        bson_destroy(m->docs[id]);
    m->docs[id] = doc;
    m->records[id] = record;
}

static void erase_doc(struct model *m, int32_t id)
{
    if (m->docs[id] == NULL)
        return;
    struct record_write write = range_of(id);
    fixture_find(m->f);
    assert_true(record_erase(m->f->txn, m->f->coll, m->records[id], &write));
    bson_destroy(m->docs[id]);
    m->docs[id] = NULL;
}

static bool is_unique_now(struct model *m, const struct index_def *index)
{
    struct index_keys keys = {0};
    struct err ignored;
    bool unique = true;
    for (int32_t id = 0; id < IDS && unique; id++) {
        if (m->docs[id] == NULL)
            continue;
        unique = index_keys_generate(index, bdoc_of(m->docs[id]), &keys, &ignored) &&
                 !(index->unique && is_taken(m, index, &keys, id));
    }
    index_keys_deinit(&keys);
    return unique;
}

static void change_index(struct model *m, struct prng *prng)
{
    struct fixture *f = m->f;
    bson_t *spec = json_doc(index_specs[prng_below(prng, SPECS)]);
    fixture_find(f);
    const struct index_def *index =
        f->coll->index_count > 1 ? f->coll->indexes[1 + prng_below(prng, f->coll->index_count - 1)] : NULL;
    uint32_t id;
    if (index == NULL || prng_below(prng, 3) == 0) {
        if (prng_below(prng, 2) == 0)
            assert_true(catalog_create_index(f->txn, f->coll, bdoc_of(spec), &id, NULL, &f->err));
        else if (!index_build_now(f->txn, f->coll, bdoc_of(spec), NULL, &f->err))
            assert_true(f->err.code == ERR_DuplicateKey || f->err.code == 171 || f->err.code == 16766);
    } else if (index->state == INDEX_BUILDING) {
        if (!index_build_step(f->txn, f->coll, index, 10)) {
            bool allowed = is_unique_now(m, index);
            assert_int_equal(index_build_finish(f->txn, f->coll, index, &f->err), allowed);
        }
    } else if (index->state == INDEX_FAILED || prng_below(prng, 6) == 0) {
        assert_true(catalog_drop_index(f->txn, f->coll, index, &f->err));
    }
    bson_destroy(spec);
}

static void operate(struct model *m, uint64_t number)
{
    struct prng prng = {m->seed * UINT64_C(0x9e3779b97f4a7c15) + number};
    prng_next(&prng);
    uint64_t kind = prng_below(&prng, 20);
    int32_t id = (int32_t)prng_below(&prng, IDS);
    if (kind < 13)
        write_doc(m, id, &prng);
    else if (kind < 16)
        erase_doc(m, id);
    else if (kind < 19)
        change_index(m, &prng);
    else
        catalog_erase_step(m->f->txn, 20);
}

/* ---- cursors against the sorted list of all entries ---- */

struct entry {
    uint8_t *key;
    uint32_t len;
    uint64_t record;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    int order = keyenc_compare(left->key, left->len, right->key, right->len);
    return order != 0 ? order : left->record < right->record ? -1 : left->record > right->record;
}

static struct entry *expected_entries(struct model *m, const struct index_def *index, size_t *count)
{
    struct entry *list = mem_alloc_array(IDS * 16, sizeof *list);
    struct index_keys keys = {0};
    *count = 0;
    for (int32_t id = 0; id < IDS; id++) {
        if (m->docs[id] == NULL)
            continue;
        assert_true(index_keys_generate(index, bdoc_of(m->docs[id]), &keys, &m->f->err));
        for (size_t i = 0; i < keys.count; i++)
            list[(*count)++] = (struct entry){mem_copy(keys.bytes.data + keys.keys[i].offset, keys.keys[i].len),
                                              keys.keys[i].len, m->records[id]};
    }
    index_keys_deinit(&keys);
    qsort(list, *count, sizeof *list, compare_entries);
    return list;
}

static int against(const struct entry *entry, const uint8_t *bound, uint32_t len)
{
    int order = memcmp(entry->key, bound, entry->len < len ? entry->len : len);
    return order != 0 ? order : entry->len < len ? -1 : 0;
}

static bool inside(const struct entry *entry, const struct index_bounds *bounds)
{
    int low = bounds->low_len == 0 ? 1 : against(entry, bounds->low, bounds->low_len);
    int high = bounds->high_len == 0 ? -1 : against(entry, bounds->high, bounds->high_len);
    return (low > 0 || (low == 0 && bounds->low_inclusive)) && (high < 0 || (high == 0 && bounds->high_inclusive));
}

/* What a travel must still return: an index into the list in the direction of travel, or -1. */
static int64_t first_wanted(const struct entry *list, size_t count, const struct index_bounds *bounds, bool backward,
                            int64_t from)
{
    for (int64_t i = from; i >= 0 && i < (int64_t)count; i += backward ? -1 : 1)
        if (inside(&list[i], bounds))
            return i;
    return -1;
}

static void random_bounds(const struct entry *list, size_t count, struct index_bounds *bounds, struct prng *prng)
{
    *bounds = (struct index_bounds){0};
    const struct entry *low = &list[prng_below(prng, count)];
    const struct entry *high = &list[prng_below(prng, count)];
    bounds->low_inclusive = prng_below(prng, 2) == 0;
    bounds->high_inclusive = prng_below(prng, 2) == 0;
    if (prng_below(prng, 4) != 0) {
        bounds->low = low->key;
        bounds->low_len = prng_below(prng, 3) == 0 ? 1 + (uint32_t)prng_below(prng, low->len) : low->len;
    }
    if (prng_below(prng, 4) != 0) {
        bounds->high = high->key;
        bounds->high_len = prng_below(prng, 3) == 0 ? 1 + (uint32_t)prng_below(prng, high->len) : high->len;
    }
}

static int64_t beyond_target(const struct entry *list, size_t count, const struct entry *target, bool inclusive,
                             bool backward, int64_t from)
{
    for (int64_t i = from; i >= 0 && i < (int64_t)count; i += backward ? -1 : 1) {
        int order = against(&list[i], target->key, target->len);
        if (backward)
            order = -order;
        if (order > 0 || (order == 0 && inclusive))
            return i;
    }
    return -1;
}

static void travel(struct model *m, const struct index_def *index, const struct entry *list, size_t count,
                   struct prng *prng)
{
    struct index_bounds bounds;
    struct index_cursor cursor;
    struct index_entry entry;
    bool backward = prng_below(prng, 2) == 0;
    random_bounds(list, count, &bounds, prng);
    int64_t step = backward ? -1 : 1;
    int64_t wanted = first_wanted(list, count, &bounds, backward, backward ? (int64_t)count - 1 : 0);
    index_cursor_open(&cursor, m->f->txn, index, &bounds, backward);
    while (index_cursor_next(&cursor, &entry)) {
        assert_true(wanted >= 0);
        assert_int_equal(entry.record_id, list[wanted].record);
        assert_int_equal(entry.key_len, list[wanted].len);
        assert_memory_equal(entry.key, list[wanted].key, entry.key_len);
        int64_t here = wanted;
        wanted = first_wanted(list, count, &bounds, backward, here + step);
        if (prng_below(prng, 8) == 0) { /* go on in another cursor */
            struct buf position = BUF_INIT;
            index_position_append(&entry, &position);
            index_cursor_close(&cursor);
            index_cursor_open(&cursor, m->f->txn, index, &bounds, backward);
            assert_true(index_cursor_restore(&cursor, position.data, position.len));
            buf_deinit(&position);
        } else if (prng_below(prng, 8) == 0) { /* skip to a later key */
            int64_t span = backward ? here + 1 : (int64_t)count - here;
            struct entry target = list[here + step * (int64_t)prng_below(prng, (uint64_t)span)];
            bool inclusive = prng_below(prng, 2) == 0;
            if (keyenc_compare(target.key, target.len, list[here].key, list[here].len) == 0)
                inclusive = false; /* a seek goes on, never back */
            index_cursor_seek(&cursor, target.key, target.len, inclusive);
            wanted = beyond_target(list, count, &target, inclusive, backward, here + step);
            if (wanted >= 0)
                wanted = first_wanted(list, count, &bounds, backward, wanted);
        }
    }
    assert_int_equal(wanted, -1);
    index_cursor_close(&cursor);
}

static void check_index(struct model *m, const struct index_def *index, struct prng *prng)
{
    size_t count;
    struct entry *list = expected_entries(m, index, &count);
    for (int i = 0; count > 0 && i < 20; i++)
        travel(m, index, list, count, prng);
    assert_int_equal(count_entries(m->f->txn, index), count);
    for (size_t i = 0; i < count; i++)
        mem_free(list[i].key);
    mem_free(list);
}

static void check_range(struct model *m, int32_t remainder)
{
    struct counter expected = {0};
    struct counter found;
    for (int32_t id = remainder; id < IDS; id += 2) {
        if (m->docs[id] == NULL)
            continue;
        expected.docs++;
        expected.bytes += m->docs[id]->len;
    }
    counter_range(m->f->txn, m->f->coll, remainder == 0 ? "0" : "1", 1, &found);
    assert_int_equal(found.docs, expected.docs);
    assert_int_equal(found.bytes, expected.bytes);
}

static void check_all(struct model *m, uint64_t number)
{
    struct prng prng = {m->seed + number};
    assert_valid(m->f);
    for (uint32_t i = 0; i < m->f->coll->index_count; i++)
        if (m->f->coll->indexes[i]->state == INDEX_READY)
            check_index(m, m->f->coll->indexes[i], &prng);
    check_range(m, 0);
    check_range(m, 1);
}

/* ---- runs ---- */

static void forget_docs(struct model *m)
{
    for (int32_t id = 0; id < IDS; id++) {
        if (m->docs[id] != NULL)
            bson_destroy(m->docs[id]);
        m->docs[id] = NULL;
    }
}

/* The model as the store has it, after a restart. */
static void load_docs(struct model *m)
{
    struct record_cursor cursor;
    struct bdoc doc;
    uint64_t record;
    forget_docs(m);
    fixture_find(m->f);
    record_cursor_open(&cursor, m->f->txn, m->f->coll, false);
    while (record_cursor_next(&cursor, &record, &doc)) {
        struct bval id;
        bdoc_find(doc, "_id", &id);
        m->docs[bval_i32(&id)] = bson_new_from_data(doc.data, doc.len);
        m->records[bval_i32(&id)] = record;
    }
    record_cursor_close(&cursor);
}

/* Operation n has index n + 2, whatever transaction it is part of. `group` operations are one transaction; a checkpoint
 * is taken after the one that ends with operation `checkpoint_at`. */
static void run(struct model *m, uint64_t from, uint64_t group, uint64_t checkpoint_at)
{
    for (uint64_t number = from; number < OPERATIONS; number++) {
        operate(m, number);
        if (number % CHECK_EVERY == CHECK_EVERY - 1)
            check_all(m, number);
        if (number % group != group - 1 && number != OPERATIONS - 1)
            continue;
        m->f->index = number + 1;
        fixture_commit(m->f);
        if (number == checkpoint_at)
            assert_true(store_checkpoint(m->f->store, NULL, &m->f->err));
        fixture_begin(m->f);
    }
}

static uint64_t logical_hash(struct fixture *f)
{
    store_write_abort(f->txn);
    f->txn = NULL;
    struct store_txn *txn;
    assert_true(store_read_begin(f->store, &txn, &f->err));
    uint64_t hash = store_logical_hash(txn);
    store_read_end(txn);
    return hash;
}

static uint64_t run_seed(uint64_t seed, uint64_t group, bool restart)
{
    void *state = NULL;
    fixture_setup(&state);
    struct model m = {.f = state, .seed = seed};
    uint64_t checkpoint_at = restart ? group * (1 + seed % (OPERATIONS / group - 1)) - 1 : UINT64_MAX;
    fixture_make_collection(m.f);
    fixture_commit(m.f); /* index 1 */
    fixture_begin(m.f);
    run(&m, 0, group, checkpoint_at);
    if (restart) {
        fixture_reopen(m.f);
        assert_int_equal(m.f->index, checkpoint_at + 2);
        load_docs(&m);
        run(&m, checkpoint_at + 1, group, UINT64_MAX);
    }
    uint64_t hash = logical_hash(m.f);
    forget_docs(&m);
    fixture_teardown(&state);
    return hash;
}

static void model_random_operations_agree_and_replay_gives_the_same_hash(void **state)
{
    (void)state;
    const char *count = getenv("SHERD_MODEL_SEEDS");
    uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : SEEDS;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t hash = run_seed(seed, 7, false);
        assert_int_equal(run_seed(seed, 7, true), hash);
        assert_int_equal(run_seed(seed, 1 + seed % 40, true), hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_random_operations_agree_and_replay_gives_the_same_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
