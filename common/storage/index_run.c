#include "storage/index_run.h"

#include "base/mem.h"
#include "bson/keyenc.h"

struct index_run {
    uint8_t head[ENTRY_HEAD + ENTRY_PREFIX]; /* index id and shared prefix */
    uint32_t index_id;
    bool backward;
    struct run_item *items; /* up to 2 * RUN_HELD_MAX while filling; sorted in the direction of travel */
    size_t count;
    size_t next;
    bool filled;
    bool more;            /* entries beyond the held ones were left out */
    struct buf last_rest; /* the item returned last: where the next filling begins */
    uint64_t last_id;
};

struct index_run *index_run_new(uint32_t index_id, const struct entry_view *entry, bool backward)
{
    struct index_run *run = mem_alloc(sizeof *run);
    store_be32(run->head, index_id);
    memcpy(run->head + ENTRY_HEAD, entry->key, ENTRY_PREFIX);
    run->index_id = index_id;
    run->backward = backward;
    return run;
}

void index_run_free(struct index_run *run)
{
    if (run == NULL)
        return;
    buf_deinit(&run->last_rest);
    mem_free(run->items);
    mem_free(run);
}

const uint8_t *index_run_prefix(const struct index_run *run)
{
    return run->head + ENTRY_HEAD;
}

static int compare_up(const struct run_item *a, const struct run_item *b)
{
    int order = keyenc_compare(a->rest, a->rest_len, b->rest, b->rest_len);
    return order != 0 ? order : a->record_id < b->record_id ? -1 : a->record_id > b->record_id;
}

static int compare_items(const void *a, const void *b, void *arg)
{
    const struct index_run *run = arg;
    int order = compare_up(a, b);
    return run->backward ? -order : order;
}

/* Keeps the first RUN_HELD_MAX in the direction of travel. */
static void trim(struct index_run *run)
{
    qsort_r(run->items, run->count, sizeof *run->items, compare_items, run);
    if (run->count > RUN_HELD_MAX) {
        run->count = RUN_HELD_MAX;
        run->more = true;
    }
}

static void fill(struct index_run *run, MDB_cursor *cursor)
{
    struct run_item last = {run->last_rest.data, (uint32_t)run->last_rest.len, run->last_id};
    if (run->items == NULL)
        run->items = mem_alloc_array((size_t)RUN_HELD_MAX * 2, sizeof *run->items);
    run->count = 0;
    run->next = 0;
    run->more = false;
    MDB_val key = {sizeof run->head, run->head};
    MDB_val value;
    struct entry_view entry;
    bool going = env_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (going && key.mv_size == ENV_KEY_MAX && memcmp(key.mv_data, run->head, sizeof run->head) == 0 &&
           entry_decode(&key, &value, run->index_id, &entry)) {
        struct run_item item = {entry.rest, entry.rest_len, entry.record_id};
        if (!run->filled || compare_items(&item, &last, run) > 0)
            run->items[run->count++] = item;
        if (run->count == (size_t)RUN_HELD_MAX * 2)
            trim(run);
        going = env_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    trim(run);
    run->filled = true;
}

bool index_run_next(struct index_run *run, MDB_cursor *cursor, struct run_item *out)
{
    if (run->next == run->count && (!run->filled || run->more))
        fill(run, cursor);
    if (run->next == run->count)
        return false;
    *out = run->items[run->next++];
    if (run->next == run->count && run->more) {
        buf_clear(&run->last_rest);
        buf_append(&run->last_rest, out->rest, out->rest_len);
        run->last_id = out->record_id;
    }
    return true;
}

bool index_run_leave(const struct index_run *run, MDB_cursor *cursor, MDB_val *key, MDB_val *value)
{
    uint8_t place[ENV_KEY_MAX];
    memcpy(place, run->head, sizeof run->head);
    memset(place + sizeof run->head, run->backward ? 0 : 0xff, sizeof place - sizeof run->head);
    *key = (MDB_val){sizeof place, place};
    bool found = env_cursor_get(cursor, key, value, MDB_SET_RANGE);
    if (!run->backward)
        return found;
    return env_cursor_get(cursor, key, value, found ? MDB_PREV : MDB_LAST);
}
