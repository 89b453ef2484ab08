#include "plan/scan.h"

#include "base/check.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "storage/records.h"

#include <string.h>

/* ---- opening and closing ---- */

static bool open_walks(struct scan *scan, struct err *err)
{
    const struct plan *plan = scan->options.plan;
    scan->walk_count = plan->scan_count;
    if (plan->kind == PLAN_INDEX) {
        scan->walks = &scan->only;
    } else {
        scan->walks = mem_alloc_array(plan->scan_count, sizeof *scan->walks);
        scan->heap = mem_alloc_array(plan->scan_count, sizeof *scan->heap);
    }
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        if (!walk_open(&scan->walks[i], scan->options.txn, scan->options.coll, &plan->scans[i], err)) {
            scan->done = true;
            return false;
        }
        scan->walks[i].skip_fields = plan->distinct_fields;
    }
    return true;
}

bool scan_open(struct scan *scan, const struct scan_options *options, struct err *err)
{
    *scan = (struct scan){.options = *options};
    switch (options->plan->kind) {
    case PLAN_NOTHING:
        scan->done = true;
        break;
    case PLAN_ID:
        break;
    case PLAN_RECORDS:
        record_cursor_open(&scan->records, options->txn, options->coll, options->plan->backward);
        break;
    case PLAN_INDEX:
    case PLAN_UNION:
    case PLAN_MERGE:
        return open_walks(scan, err);
    }
    return true;
}

void scan_close(struct scan *scan)
{
    record_cursor_close(&scan->records);
    for (uint32_t i = 0; scan->walks != NULL && i < scan->walk_count; i++)
        walk_close(&scan->walks[i]);
    if (scan->walks != &scan->only)
        mem_free(scan->walks);
    mem_free(scan->heap);
    scan->walks = NULL;
    scan->heap = NULL;
    buf_deinit(&scan->scratch);
}

/* ---- positions ---- */

static bool restore_union(struct scan *scan, const uint8_t *position, size_t len)
{
    if (len < 4)
        return false;
    scan->at = load_be32(position);
    return scan->at < scan->walk_count && walk_restore(&scan->walks[scan->at], position + 4, len - 4);
}

/* For each walk: length and position. */
static bool restore_merge(struct scan *scan, const uint8_t *position, size_t len)
{
    for (uint32_t i = 0; i < scan->walk_count; i++) {
        if (len < 4 || load_be32(position) > len - 4)
            return false;
        uint32_t one = load_be32(position);
        buf_append(&scan->walks[i].position, position + 4, one);
        if (one > 0 && !walk_restore(&scan->walks[i], position + 4, one))
            return false;
        position += 4 + one;
        len -= 4 + one;
    }
    return len == 0;
}

bool scan_restore(struct scan *scan, const void *position, size_t len, struct err *err)
{
    bool ok = true;
    switch (scan->options.plan->kind) {
    case PLAN_NOTHING:
    case PLAN_ID:
        scan->done = true;
        break;
    case PLAN_RECORDS:
        ok = len == sizeof(uint64_t);
        if (ok)
            record_cursor_seek_after(&scan->records, load_le64(position));
        break;
    case PLAN_INDEX:
        ok = walk_restore(&scan->only, position, len);
        break;
    case PLAN_UNION:
        ok = restore_union(scan, position, len);
        break;
    case PLAN_MERGE:
        ok = restore_merge(scan, position, len);
        break;
    }
    return ok || err_set(err, ERR_InternalError, "the cursor's position is damaged");
}

void scan_position(const struct scan *scan, struct buf *out)
{
    switch (scan->options.plan->kind) {
    case PLAN_NOTHING:
    case PLAN_ID:
    case PLAN_RECORDS:
        buf_append_le64(out, scan->record_id);
        break;
    case PLAN_INDEX:
        index_position_append(&scan->only.entry, out);
        break;
    case PLAN_UNION:
        buf_append_be32(out, scan->at);
        index_position_append(&scan->walks[scan->at].entry, out);
        break;
    case PLAN_MERGE:
        for (uint32_t i = 0; i < scan->walk_count; i++) {
            const struct buf *position = &scan->walks[i].position;
            buf_append_be32(out, (uint32_t)position->len);
            buf_append(out, position->data, position->len);
        }
        break;
    }
}

/* ---- testing ---- */

static bool test_filter(const struct filter *filter, struct bdoc doc, bool *matched, struct err *err)
{
    if (filter_can_fail(filter))
        return filter_eval(filter, doc, NULL, matched, err);
    *matched = filter_matches(filter, doc);
    return true;
}

static bool is_visible(struct scan *scan, struct bdoc doc)
{
    const struct scan_options *options = &scan->options;
    if (options->view == NULL || options->visible(options->view, doc))
        return true;
    scan->not_owned++;
    return false;
}

static bool test_record(struct scan *scan, const struct filter *filter, bool *matched, struct err *err)
{
    *matched = true;
    if (filter != NULL && !test_filter(filter, scan->doc, matched, err))
        return false;
    *matched = *matched && is_visible(scan, scan->doc);
    return true;
}

/* ---- one walk ---- */

/* A document that an earlier walk of a union gives is left to that. */
static bool is_left_to_earlier(struct scan *scan, uint32_t at, bool *left, struct err *err)
{
    const struct plan *plan = scan->options.plan;
    *left = false;
    for (uint32_t i = 0; i < at && !*left; i++) {
        struct plan_walk *earlier = &scan->walks[i];
        const struct filter *part = plan->scans[i].part;
        if (part == plan->scans[at].part) /* a piece of the same scan */
            *left = earlier->index->multikey && walk_would_give(earlier, scan->walks[at].doc);
        else if (!test_filter(part, scan->walks[at].doc, left, err))
            return false;
    }
    if (at > 0)
        scan->walks[at].dups_tested++;
    scan->walks[at].dups_dropped += *left;
    return true;
}

/* A stored document has its _id in front, wherever the index has it; the other fields stay in the index's order. */
static void append_covered(struct bdoc values, struct buf *out)
{
    struct biter iter;
    struct belem elem;
    struct bval id;
    if (!bdoc_find(values, "_id", &id)) {
        buf_append(out, values.data, values.len);
        return;
    }
    bson_t ordered = BSON_INITIALIZER;
    bval_append(&ordered, "_id", 3, &id);
    biter_init(&iter, values);
    while (biter_next(&iter, &elem))
        if (strcmp(elem.key, "_id") != 0)
            bval_append(&ordered, elem.key, (int)elem.key_len, &elem.val);
    buf_append(out, bson_get_data(&ordered), ordered.len);
    bson_destroy(&ordered);
}

/* Nothing of the document is needed but what its entry says. */
static bool make_covered(const struct scan *scan, struct plan_walk *walk)
{
    if (!scan->options.plan->covered || scan->options.view != NULL || walk->index->multikey)
        return false;
    bson_t made = BSON_INITIALIZER;
    bool ok = index_entry_values(walk->index, &walk->entry, false, &made);
    if (ok) {
        buf_clear(&walk->made);
        append_covered((struct bdoc){.data = bson_get_data(&made), .len = made.len}, &walk->made);
        walk->doc = (struct bdoc){.data = walk->made.data, .len = (uint32_t)walk->made.len};
    }
    bson_destroy(&made);
    return ok;
}

/* The document of the entry at hand, as far as it has to be looked at. */
static bool look_at_document(struct scan *scan, uint32_t at, bool *matched, struct err *err)
{
    struct plan_walk *walk = &scan->walks[at];
    const struct plan *plan = scan->options.plan;
    const struct filter *filter = walk->test_all ? plan->filter : walk->plan->filter;
    *matched = record_get(scan->options.txn, scan->options.coll, walk->record_id, &walk->scratch, &walk->doc);
    if (!*matched)
        return true;
    walk->docs_examined++;
    scan->docs_examined++;
    if (!walk_is_first_key(walk, walk->doc)) {
        *matched = false;
        return true;
    }
    if (filter != NULL && !test_filter(filter, walk->doc, matched, err))
        return false;
    if (*matched && at > 0) {
        bool left;
        if (!is_left_to_earlier(scan, at, &left, err))
            return false;
        *matched = !left;
    }
    *matched = *matched && is_visible(scan, walk->doc);
    return true;
}

static bool step_walk(struct scan *scan, uint32_t at, enum scan_step *step, struct err *err)
{
    struct plan_walk *walk = &scan->walks[at];
    const struct scan_options *options = &scan->options;
    bool inside;
    bool matched = true;
    *step = SCAN_WORK;
    walk->doc = (struct bdoc){0};
    uint64_t keys_before = walk->keys_examined;
    if (!walk_step(walk, &inside))
        *step = SCAN_END;
    scan->keys_examined += walk->keys_examined - keys_before;
    if (!inside)
        return true;
    bool several = at > 0 || (walk->index->multikey && !walk->one_key);
    bool needed = options->view != NULL || walk->test_all || walk->plan->filter != NULL || several ||
                  options->plan->kind == PLAN_MERGE;
    if ((needed || (options->need_doc && !make_covered(scan, walk))) && !look_at_document(scan, at, &matched, err))
        return false;
    if (matched) {
        *step = SCAN_FOUND;
        walk->advanced++;
    }
    return true;
}

/* ---- a merge of walks ---- */

static bool is_less(const struct scan *scan, uint32_t a, uint32_t b)
{
    const struct buf *x = &scan->walks[a].sort_key;
    const struct buf *y = &scan->walks[b].sort_key;
    int order = bounds_compare_bytes(x->data, (uint32_t)x->len, y->data, (uint32_t)y->len);
    return order != 0 ? order < 0 : a < b;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct scan *scan)
{
    for (uint32_t at = scan->heap_count - 1; at > 0 && is_less(scan, scan->heap[at], scan->heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        swap(&scan->heap[at], &scan->heap[(at - 1) / 2]);
}

static void sift_down(struct scan *scan)
{
    uint32_t at = 0;
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= scan->heap_count)
            return;
        if (child + 1 < scan->heap_count && is_less(scan, scan->heap[child + 1], scan->heap[child]))
            child++;
        if (!is_less(scan, scan->heap[child], scan->heap[at]))
            return;
        swap(&scan->heap[at], &scan->heap[child]);
        at = child;
    }
}

static bool make_sort_key(struct scan *scan, struct plan_walk *walk, struct err *err)
{
    buf_clear(&walk->sort_key);
    return sort_key_append(scan->options.plan->merge_sort, walk->doc, &walk->sort_key, err);
}

/* A walk that needs a record takes a step. */
static bool fill_merge(struct scan *scan, enum scan_step *step, struct err *err)
{
    bool first = scan->filled < scan->walk_count;
    uint32_t at = first ? scan->filled : scan->heap[0];
    if (!step_walk(scan, at, step, err))
        return false;
    if (*step == SCAN_FOUND && !make_sort_key(scan, &scan->walks[at], err))
        return false;
    if (first) {
        scan->filled += *step != SCAN_WORK;
        if (*step == SCAN_FOUND) {
            scan->heap[scan->heap_count++] = at;
            sift_up(scan);
        }
    } else if (*step != SCAN_WORK) {
        scan->refill = false;
        if (*step == SCAN_END)
            scan->heap[0] = scan->heap[--scan->heap_count];
        sift_down(scan);
    }
    return true;
}

/* Once no walk needs a record the least one is given. */
static bool step_merge(struct scan *scan, enum scan_step *step, struct err *err)
{
    if ((scan->filled < scan->walk_count || scan->refill) && !fill_merge(scan, step, err))
        return false;
    *step = SCAN_WORK;
    if (scan->filled < scan->walk_count || scan->refill)
        return true;
    *step = SCAN_END;
    if (scan->heap_count == 0)
        return true;
    scan->at = scan->heap[0];
    struct plan_walk *walk = &scan->walks[scan->at];
    buf_clear(&walk->position);
    index_position_append(&walk->entry, &walk->position);
    scan->refill = true;
    *step = SCAN_FOUND;
    return true;
}

/* ---- stepping ---- */

static bool step_union(struct scan *scan, enum scan_step *step, struct err *err)
{
    if (!step_walk(scan, scan->at, step, err))
        return false;
    if (*step == SCAN_END && scan->at + 1 < scan->walk_count) {
        scan->at++;
        *step = SCAN_WORK;
    }
    return true;
}

static bool step_records(struct scan *scan, enum scan_step *step, struct err *err)
{
    bool matched;
    *step = SCAN_END;
    if (!record_cursor_next(&scan->records, &scan->record_id, &scan->doc))
        return true;
    scan->docs_examined++;
    if (!test_record(scan, scan->options.plan->test, &matched, err))
        return false;
    *step = matched ? SCAN_FOUND : SCAN_WORK;
    return true;
}

static bool step_id(struct scan *scan, enum scan_step *step, struct err *err)
{
    const struct scan_options *options = &scan->options;
    bool matched;
    *step = SCAN_END;
    if (scan->done || !record_get_by_id(options->txn, options->coll, &options->plan->id, &scan->scratch,
                                        &scan->record_id, &scan->doc))
        return true;
    scan->done = true;
    scan->keys_examined++;
    scan->docs_examined++;
    if (!test_record(scan, options->plan->test, &matched, err))
        return false;
    *step = matched ? SCAN_FOUND : SCAN_END;
    return true;
}

static bool step_kind(struct scan *scan, enum scan_step *step, struct err *err)
{
    switch (scan->options.plan->kind) {
    case PLAN_NOTHING:
        *step = SCAN_END;
        return true;
    case PLAN_ID:
        return step_id(scan, step, err);
    case PLAN_RECORDS:
        return step_records(scan, step, err);
    case PLAN_INDEX:
        return step_walk(scan, 0, step, err);
    case PLAN_UNION:
        return step_union(scan, step, err);
    case PLAN_MERGE:
        return step_merge(scan, step, err);
    }
    UNREACHABLE();
}

/* What follows from a document being given. */
static void give(struct scan *scan)
{
    scan->advanced++;
    if (scan->walks == NULL)
        return;
    struct plan_walk *walk = &scan->walks[scan->at];
    scan->record_id = walk->record_id;
    scan->doc = walk->doc;
    if (walk->skip_fields > 0)
        walk_skip(walk);
}

bool scan_one_step(struct scan *scan, enum scan_step *step, struct err *err)
{
    scan->works++;
    if (!interrupt_step(err) || !step_kind(scan, step, err))
        return false;
    if (*step == SCAN_FOUND)
        give(scan);
    scan->ended = *step == SCAN_END;
    return true;
}

bool scan_next(struct scan *scan, bool *found, struct err *err)
{
    const struct plan *plan = scan->options.plan;
    enum scan_step step = SCAN_WORK;
    scan->doc = (struct bdoc){0};
    *found = false;
    while (step == SCAN_WORK) {
        if (!scan_one_step(scan, &step, err))
            return false;
        if (plan->works_limit > 0 && scan->options.replan && scan->works > plan->works_limit &&
            scan->advanced < PLAN_FIRST_RESULTS)
            return err_set(err, PLAN_ERR_REPLAN, "the remembered plan takes too many steps");
    }
    *found = step == SCAN_FOUND;
    if (!*found)
        scan->doc = (struct bdoc){0};
    return true;
}
