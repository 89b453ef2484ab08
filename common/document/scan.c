#include "document/scan.h"

#include "base/clock.h"

enum {
    DEADLINE_EVERY = 256, /* documents or keys between two looks at the clock */
};

static const struct bounds_interval *interval_at(const struct scan *scan, uint32_t step)
{
    const struct bounds *bounds = &scan->options.plan->bounds;
    return &bounds->intervals[scan->options.plan->backward ? bounds->interval_count - 1 - step : step];
}

/* One cursor over everything from the first interval's low end to the last one's high end; it jumps over the gaps. */
static void open_entries(struct scan *scan)
{
    const struct bounds *bounds = &scan->options.plan->bounds;
    const struct bounds_interval *first = &bounds->intervals[0];
    const struct bounds_interval *last = &bounds->intervals[bounds->interval_count - 1];
    struct index_bounds range = {
        .low = first->low,
        .low_len = first->low_len,
        .low_inclusive = true,
        .high = last->high,
        .high_len = last->high_len,
    };
    index_cursor_open(&scan->entries, scan->options.txn, scan->index, &range, scan->options.plan->backward);
}

bool scan_open(struct scan *scan, const struct scan_options *options, struct err *err)
{
    *scan = (struct scan){.options = *options, .test_filter = options->plan->test_filter};
    const struct plan *plan = options->plan;
    switch (plan->kind) {
    case PLAN_NOTHING:
        scan->done = true;
        break;
    case PLAN_ID:
        break;
    case PLAN_RECORDS:
        record_cursor_open(&scan->records, options->txn, options->coll, plan->backward);
        break;
    case PLAN_INDEX:
        scan->index = collection_find_index_id(options->coll, plan->index_id);
        if (scan->index == NULL || scan->index->state != INDEX_READY) {
            scan->done = true;
            return err_set(err, ERR_QueryPlanKilled, "index '%s' dropped", plan->index_name);
        }
        /* It may have become multikey since a cursor's plan was made. */
        scan->test_filter = plan->test_filter || scan->index->multikey;
        open_entries(scan);
        break;
    }
    return true;
}

bool scan_restore(struct scan *scan, const void *position, size_t len, struct err *err)
{
    switch (scan->options.plan->kind) {
    case PLAN_NOTHING:
    case PLAN_ID:
        scan->done = true;
        return true;
    case PLAN_RECORDS:
        if (len != sizeof(uint64_t))
            break;
        record_cursor_seek_after(&scan->records, load_le64(position));
        return true;
    case PLAN_INDEX:
        if (!index_cursor_restore(&scan->entries, position, len))
            break;
        return true;
    }
    return err_set(err, ERR_InternalError, "the cursor's position is damaged");
}

void scan_position(const struct scan *scan, struct buf *out)
{
    if (scan->options.plan->kind == PLAN_INDEX)
        index_position_append(&scan->entry, out);
    else
        buf_append_le64(out, scan->record_id);
}

void scan_close(struct scan *scan)
{
    record_cursor_close(&scan->records);
    index_cursor_close(&scan->entries);
    buf_deinit(&scan->scratch);
    index_keys_deinit(&scan->keys);
}

static bool past_end(const struct bounds_interval *interval, const struct index_entry *entry, bool backward)
{
    struct bounds_interval only_low = {.low = interval->low, .low_len = interval->low_len};
    struct bounds_interval only_high = {.high = interval->high, .high_len = interval->high_len};
    struct bounds one = {.intervals = backward ? &only_low : &only_high, .interval_count = 1};
    return !bounds_contains(&one, entry->key, entry->key_len);
}

/* The entry's interval, moving on to later ones; false when the entry lies before the interval that is next: the cursor
 * was sent there. */
static bool settle_interval(struct scan *scan)
{
    const struct plan *plan = scan->options.plan;
    while (scan->interval < plan->bounds.interval_count &&
           past_end(interval_at(scan, scan->interval), &scan->entry, plan->backward))
        scan->interval++;
    if (scan->interval == plan->bounds.interval_count) {
        scan->done = true;
        return false;
    }
    const struct bounds_interval *interval = interval_at(scan, scan->interval);
    if (!past_end(interval, &scan->entry, !plan->backward))
        return true;
    if (plan->backward)
        index_cursor_seek(&scan->entries, interval->high, interval->high_len, false);
    else
        index_cursor_seek(&scan->entries, interval->low, interval->low_len, true);
    return false;
}

static bool next_entry(struct scan *scan, bool *found)
{
    *found = false;
    while (!scan->done) {
        if (!index_cursor_next(&scan->entries, &scan->entry)) {
            scan->done = true;
            break;
        }
        scan->keys_examined++;
        if (settle_interval(scan)) {
            scan->record_id = scan->entry.record_id;
            *found = true;
            break;
        }
    }
    return *found;
}

/* A record with several keys inside the bounds is given at the first of them only, so nothing has to be remembered. */
static bool is_first_key(struct scan *scan)
{
    const struct plan *plan = scan->options.plan;
    if (!scan->index->multikey)
        return true;
    if (!index_keys_generate(scan->index, scan->doc, &scan->keys, NULL))
        return true;
    for (size_t i = 0; i < scan->keys.count; i++) {
        const struct index_key *key = &scan->keys.keys[plan->backward ? scan->keys.count - 1 - i : i];
        const uint8_t *bytes = scan->keys.bytes.data + key->offset;
        if (bounds_contains(&plan->bounds, bytes, key->len))
            return key->len == scan->entry.key_len && memcmp(bytes, scan->entry.key, key->len) == 0;
    }
    return true;
}

/* Moves to the next record; fills doc when it comes for free or is needed. */
static void advance(struct scan *scan, bool need_doc, bool *found)
{
    const struct scan_options *options = &scan->options;
    scan->doc = (struct bdoc){0};
    *found = false;
    if (scan->done)
        return;
    switch (options->plan->kind) {
    case PLAN_NOTHING:
        break;
    case PLAN_ID:
        scan->done = true;
        *found = record_get_by_id(options->txn, options->coll, &options->plan->id, &scan->scratch, &scan->record_id,
                                  &scan->doc);
        break;
    case PLAN_RECORDS:
        *found = record_cursor_next(&scan->records, &scan->record_id, &scan->doc);
        break;
    case PLAN_INDEX:
        while (next_entry(scan, found) && need_doc) {
            if (record_get(options->txn, options->coll, scan->record_id, &scan->scratch, &scan->doc) &&
                is_first_key(scan))
                break;
        }
        break;
    }
    if (scan->doc.data != NULL)
        scan->docs_examined++;
}

static bool test(struct scan *scan, bool *matched, struct err *err)
{
    const struct scan_options *options = &scan->options;
    *matched = true;
    if (scan->test_filter && filter_can_fail(options->filter)) {
        if (!filter_eval(options->filter, scan->doc, NULL, matched, err))
            return false;
    } else if (scan->test_filter) {
        *matched = filter_matches(options->filter, scan->doc);
    }
    if (*matched && options->view != NULL)
        *matched = options->ownership->visible(options->view, scan->doc);
    return true;
}

bool scan_next(struct scan *scan, bool *found, struct err *err)
{
    const struct scan_options *options = &scan->options;
    bool need_test = scan->test_filter || options->view != NULL;
    bool need_doc = options->need_doc || need_test;
    for (uint32_t steps = 1;; steps++) {
        bool matched = true;
        advance(scan, need_doc, found);
        if (!*found)
            return true;
        if (need_test && !test(scan, &matched, err))
            return false;
        if (matched)
            return true;
        if (steps % DEADLINE_EVERY == 0 && deadline_passed(options->deadline_ms))
            return err_set(err, ERR_MaxTimeMSExpired, "operation exceeded time limit");
    }
}
