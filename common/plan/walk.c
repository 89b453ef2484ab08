#include "plan/walk.h"

#include "bson/keysplit.h"

#include <string.h>

/* ---- the ends of the whole walk ---- */

static void add_low(struct plan_walk *walk)
{
    const struct key_bounds *bounds = &walk->plan->bounds;
    for (uint32_t i = 0; i < bounds->field_count && !bounds->fields[i].full; i++) {
        const struct value_interval *first = &bounds->fields[i].items[0];
        buf_append(&walk->low, first->bytes.low, first->bytes.low_len);
        if (!first->point)
            break;
    }
}

static void add_high(struct plan_walk *walk)
{
    const struct key_bounds *bounds = &walk->plan->bounds;
    for (uint32_t i = 0; i < bounds->field_count; i++) {
        const struct value_list *list = &bounds->fields[i];
        const struct value_interval *last = list->full ? NULL : &list->items[list->count - 1];
        if (last == NULL || last->bytes.high_len == 0) {
            /* Everything that begins with what is there. No component begins with 0xff. */
            if (i > 0)
                buf_append_u8(&walk->high, 0xff);
            return;
        }
        bool whole = !last->point || i + 1 == bounds->field_count;
        const struct bounds_interval *bytes = &last->bytes;
        buf_append(&walk->high, whole ? bytes->high : bytes->low, whole ? bytes->high_len : bytes->low_len);
        if (whole)
            return;
    }
}

static void narrow_ends(struct plan_walk *walk)
{
    const struct plan_scan *plan = walk->plan;
    if (plan->min_len > 0 &&
        bounds_compare_bytes(plan->min, plan->min_len, walk->low.data, (uint32_t)walk->low.len) > 0) {
        buf_clear(&walk->low);
        buf_append(&walk->low, plan->min, plan->min_len);
    }
    if (plan->max_len > 0 && (walk->high.len == 0 || bounds_compare_bytes(plan->max, plan->max_len, walk->high.data,
                                                                          (uint32_t)walk->high.len) < 0)) {
        buf_clear(&walk->high);
        buf_append(&walk->high, plan->max, plan->max_len);
    }
}

/* Points up to one interval, and nothing behind it. */
static bool is_one_interval(const struct key_bounds *bounds)
{
    uint32_t i = 0;
    while (i < bounds->field_count && !bounds->fields[i].full && bounds->fields[i].count == 1 &&
           bounds->fields[i].items[0].point)
        i++;
    if (i < bounds->field_count && !bounds->fields[i].full && bounds->fields[i].count == 1)
        i++;
    while (i < bounds->field_count && bounds->fields[i].full)
        i++;
    return i == bounds->field_count;
}

static void study_bounds(struct plan_walk *walk)
{
    const struct key_bounds *bounds = &walk->plan->bounds;
    walk->one_interval = is_one_interval(bounds);
    walk->one_key = bounds->points;
    for (uint32_t i = 0; i < bounds->field_count; i++) {
        if (!bounds->fields[i].full)
            walk->last_bound = i;
        walk->one_key = walk->one_key && bounds->fields[i].count == 1;
    }
}

bool walk_open(struct plan_walk *walk, struct store_txn *txn, const struct collection *coll,
               const struct plan_scan *plan, struct err *err)
{
    *walk = (struct plan_walk){.txn = txn, .plan = plan};
    walk->index = collection_find_index_id(coll, plan->index_id);
    if (walk->index == NULL || walk->index->state != INDEX_READY)
        return err_set(err, ERR_QueryPlanKilled, "query plan killed :: index '%s' dropped", plan->index_name);
    walk->opened = true;
    walk->test_all = walk->index->multikey && !plan->multikey;
    walk->done = plan->bounds.never;
    if (walk->done)
        return true;
    study_bounds(walk);
    add_low(walk);
    add_high(walk);
    narrow_ends(walk);
    struct index_bounds range = {
        .low = walk->low.data,
        .low_len = (uint32_t)walk->low.len,
        .low_inclusive = true,
        .high = walk->high.data,
        .high_len = (uint32_t)walk->high.len,
    };
    index_cursor_open(&walk->entries, txn, walk->index, &range, plan->backward);
    walk->seeks++;
    return true;
}

void walk_close(struct plan_walk *walk)
{
    index_cursor_close(&walk->entries);
    index_keys_deinit(&walk->keys);
    buf_deinit(&walk->target);
    buf_deinit(&walk->low);
    buf_deinit(&walk->high);
    buf_deinit(&walk->scratch);
    buf_deinit(&walk->made);
    buf_deinit(&walk->position);
    buf_deinit(&walk->sort_key);
    walk->opened = false;
}

bool walk_restore(struct plan_walk *walk, const void *position, size_t len)
{
    return walk->done || index_cursor_restore(&walk->entries, position, len);
}

/* ---- keys against bounds ---- */

/* The first interval, in the order of bytes, that ends beyond the component. */
static uint32_t interval_beyond(const struct value_list *list, const uint8_t *bytes, uint32_t len)
{
    uint32_t low = 0;
    uint32_t high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct bounds_interval *at = &list->items[middle].bytes;
        if (at->high_len != 0 && bounds_compare_bytes(bytes, len, at->high, at->high_len) >= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where a key leaves the bounds. */
struct exit {
    uint32_t field;
    uint32_t at;       /* the component's place in the key */
    uint32_t interval; /* the first one that ends beyond it */
};

/* True when the key lies inside. A key that can't be read lies outside. */
static bool check_key(const struct plan_walk *walk, const uint8_t *key, uint32_t key_len, struct exit *exit)
{
    const struct key_bounds *bounds = &walk->plan->bounds;
    uint32_t at = 0;
    for (uint32_t i = 0; i <= walk->last_bound; i++) {
        const struct value_list *list = &bounds->fields[i];
        uint32_t len = keysplit_component(key + at, key_len - at, (bounds->descending >> i & 1) != 0);
        *exit = (struct exit){.field = i, .at = at};
        if (len == 0) {
            exit->field = UINT32_MAX;
            return false;
        }
        if (!list->full) {
            exit->interval = interval_beyond(list, key + at, len);
            if (exit->interval == list->count)
                return false;
            const struct bounds_interval *bytes = &list->items[exit->interval].bytes;
            if (bounds_compare_bytes(key + at, len, bytes->low, bytes->low_len) < 0)
                return false;
        }
        at += len;
    }
    return true;
}

static void seek(struct plan_walk *walk, bool inclusive)
{
    index_cursor_seek(&walk->entries, walk->target.data, (uint32_t)walk->target.len, inclusive);
    walk->seeks++;
}

/* The fields behind one that is set begin anew. */
static void append_following_lows(struct plan_walk *walk, uint32_t field)
{
    const struct key_bounds *bounds = &walk->plan->bounds;
    for (; field < bounds->field_count && !bounds->fields[field].full; field++) {
        const struct value_interval *first = &bounds->fields[field].items[0];
        buf_append(&walk->target, first->bytes.low, first->bytes.low_len);
        if (!first->point)
            return;
    }
}

/* Goes where the bounds begin again. */
static void jump(struct plan_walk *walk, const struct exit *exit)
{
    const struct value_list *list = &walk->plan->bounds.fields[exit->field];
    bool backward = walk->plan->backward;
    bool again = backward ? exit->interval > 0 : exit->interval < list->count;
    if (!again && exit->at == 0) {
        walk->done = true;
        return;
    }
    buf_clear(&walk->target);
    buf_append(&walk->target, walk->entry.key, exit->at);
    if (!again) {
        seek(walk, false); /* beyond all keys with these fields before */
    } else if (backward) {
        const struct bounds_interval *bytes = &list->items[exit->interval - 1].bytes;
        buf_append(&walk->target, bytes->high, bytes->high_len);
        seek(walk, false);
    } else {
        const struct value_interval *next = &list->items[exit->interval];
        buf_append(&walk->target, next->bytes.low, next->bytes.low_len);
        if (next->point)
            append_following_lows(walk, exit->field + 1);
        seek(walk, true);
    }
}

bool walk_step(struct plan_walk *walk, bool *inside)
{
    struct exit exit;
    *inside = false;
    if (walk->done)
        return false;
    if (!index_cursor_next(&walk->entries, &walk->entry)) {
        walk->done = true;
        return false;
    }
    walk->keys_examined++;
    if (walk->one_interval || check_key(walk, walk->entry.key, walk->entry.key_len, &exit)) {
        walk->record_id = walk->entry.record_id;
        *inside = true;
        return true;
    }
    if (exit.field != UINT32_MAX)
        jump(walk, &exit);
    return !walk->done;
}

void walk_skip(struct plan_walk *walk)
{
    static const uint8_t null_keys[] = {0x18, 0xe7}; /* ascending, descending: bson/keyenc.h */
    const struct key_bounds *bounds = &walk->plan->bounds;
    uint32_t at = 0;
    uint32_t len = 0;
    bool descending = false;
    for (uint32_t i = 0; i < walk->skip_fields; i++) {
        at += len;
        descending = (bounds->descending >> i & 1) != 0;
        len = keysplit_component(walk->entry.key + at, walk->entry.key_len - at, descending);
        if (len == 0)
            return;
    }
    /* Null stands for a missing field too: the next entry may be the other one. */
    if (walk->skip_fields == 0 || walk->entry.key[at] == null_keys[descending])
        return;
    buf_clear(&walk->target);
    buf_append(&walk->target, walk->entry.key, at + len);
    seek(walk, false);
}

/* ---- records with several keys ---- */

static bool holds_key(const struct plan_walk *walk, const uint8_t *key, uint32_t len)
{
    const struct plan_scan *plan = walk->plan;
    struct exit exit;
    if (plan->min_len > 0 && bounds_compare_bytes(key, len, plan->min, plan->min_len) < 0)
        return false;
    if (plan->max_len > 0 && bounds_compare_bytes(key, len, plan->max, plan->max_len) >= 0)
        return false;
    return check_key(walk, key, len, &exit);
}

/* The first of the document's keys that lies inside, in the direction of travel; NULL when there is none. */
static const struct index_key *first_key(struct plan_walk *walk, struct bdoc doc)
{
    if (!index_keys_generate(walk->index, doc, &walk->keys, NULL))
        return NULL;
    for (size_t i = 0; i < walk->keys.count; i++) {
        const struct index_key *key = &walk->keys.keys[walk->plan->backward ? walk->keys.count - 1 - i : i];
        if (holds_key(walk, walk->keys.bytes.data + key->offset, key->len))
            return key;
    }
    return NULL;
}

bool walk_is_first_key(struct plan_walk *walk, struct bdoc doc)
{
    if (!walk->index->multikey || walk->one_key)
        return true;
    walk->dups_tested++;
    const struct index_key *key = first_key(walk, doc);
    bool first = key == NULL || (key->len == walk->entry.key_len &&
                                 memcmp(walk->keys.bytes.data + key->offset, walk->entry.key, key->len) == 0);
    walk->dups_dropped += !first;
    return first;
}

bool walk_would_give(struct plan_walk *walk, struct bdoc doc)
{
    return !walk->plan->bounds.never && first_key(walk, doc) != NULL;
}
