/* The leader's choice of the documents that a write will change, in a read transaction. Apply looks at each again. */
#include "base/map.h"
#include "base/mem.h"
#include "document/read_plan.h"
#include "document/views.h"
#include "document/write_op.h"
#include "query/sorter.h"
#include "storage/records.h"

#include <string.h>

/* A search under way. */
struct search {
    struct write_op *op;
    struct read_txn read;
    struct plan *plan;
    struct scan scan;
};

static bool search_open(struct search *search, struct write_op *op, struct err *err)
{
    struct write_current *current = &op->current;
    *search = (struct search){.op = op};
    if (!read_txn_open_any(&search->read, op->engine, op->ns.full, op->version, err))
        return false;
    if (search->read.coll == NULL)
        return true;
    if (search->read.coll->is_view)
        return views_refuse_write(search->read.coll, err);
    bool multi = (current->statement.flags & STATEMENT_MULTI) != 0;
    struct plan_request request = {.filter = current->filter,
                                   .sort = current->sort,
                                   .hint = current->fields.hint,
                                   .natural = current->natural,
                                   .limited = !multi,
                                   .wanted = multi ? 0 : 1};
    bool walks_records = current->resume_after != 0;
    if (walks_records)
        search->plan = plan_records(&current->chunk, current->filter);
    else if (!read_plan_make(&current->chunk, &search->read, &request, &search->plan, err))
        return false;
    op_set_plan(op->ctx, plan_summary(search->plan, &current->chunk));
    struct scan_options options = read_plan_scan(&search->read, search->plan, read_txn_filter_view(&search->read));
    if (!scan_open(&search->scan, &options, err))
        return false;
    uint8_t position[sizeof(uint64_t)];
    store_le64(position, current->resume_after);
    return !walks_records || scan_restore(&search->scan, position, sizeof position, err);
}

static void search_close(struct search *search)
{
    read_plan_done(&search->read, search->plan, &search->scan);
    scan_close(&search->scan);
    read_txn_close(&search->read);
}

static struct document_claim_key record_claim(const struct search *search, uint64_t record_id)
{
    return (struct document_claim_key){.space = search->read.coll->id, .id = record_id};
}

static bool image_is_valid(const struct write_op *op, struct bdoc before, const struct buf *image, struct err *err)
{
    struct bdoc after = {.data = image->data, .len = (uint32_t)image->len};
    return bdoc_same(before, after) || validation_check(&op->validation, before, after, err);
}

/* Adds the document to the statement, evaluated when that is the leader's task. */
static bool add_candidate(struct write_op *op, uint64_t record_id, struct bdoc doc, struct err *err)
{
    struct write_current *current = &op->current;
    struct statement *statement = &current->statement;
    struct statement_candidate *candidate = &statement->candidates[statement->candidate_count];
    *candidate = (struct statement_candidate){.record_id = record_id};
    if (current->sort != NULL) {
        struct buf key = BUF_INIT;
        bool ok = sort_key_append(current->sort, doc, &key, err);
        candidate->sort_key = arena_copy(&current->chunk, key.data, key.len);
        candidate->sort_key_len = (uint32_t)key.len;
        buf_deinit(&key);
        if (!ok)
            return false;
    }
    if (current->image) {
        candidate->hash = hash_bytes(doc.data, doc.len);
        if (current->update != NULL) {
            struct filter_match match = {.array_index = -1};
            struct update_result updated;
            struct buf after = BUF_INIT;
            bool matched;
            bool ok = filter_eval(current->filter, doc, &match, &matched, err) &&
                      update_apply(current->update, doc, &match, &after, &updated, err) &&
                      image_is_valid(op, doc, &after, err);
            candidate->after =
                (struct bdoc){.data = arena_copy(&current->chunk, after.data, after.len), .len = (uint32_t)after.len};
            buf_deinit(&after);
            if (!ok)
                return false;
        }
    }
    statement->candidate_count++;
    return true;
}

/* The first match that nobody else has claimed; when all are claimed, the first of them: apply decides who gets it. */
static enum write_choice choose_any(struct search *search, struct err *err)
{
    struct write_op *op = search->op;
    uint64_t claimed_id = 0;
    bool found = true;
    for (uint32_t skipped = 0; skipped <= WRITE_CLAIMED_SKIP_MAX; skipped++) {
        if (!scan_next(&search->scan, &found, err))
            return WRITE_FAILED;
        if (!found)
            break;
        if (document_claims_try(document_engine_claims(op->engine), record_claim(search, search->scan.record_id),
                                &op->claims))
            return add_candidate(op, search->scan.record_id, search->scan.doc, err) ? WRITE_CHOSEN : WRITE_FAILED;
        if (claimed_id == 0)
            claimed_id = search->scan.record_id;
    }
    if (claimed_id == 0)
        return WRITE_NOTHING;
    struct buf scratch = BUF_INIT;
    struct bdoc doc;
    bool ok = record_get(search->read.txn, search->read.coll, claimed_id, &scratch, &doc) &&
              add_candidate(op, claimed_id, doc, err);
    buf_deinit(&scratch);
    return ok ? WRITE_CHOSEN : WRITE_FAILED;
}

static bool best_of(struct search *search, uint64_t *record_id, bool *found, struct err *err)
{
    if (search->plan->sorted) {
        bool ok = scan_next(&search->scan, found, err);
        *record_id = search->scan.record_id;
        return ok;
    }
    struct sorter *sorter =
        sorter_new(&(struct sorter_options){.limit = 1, .memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    struct buf key = BUF_INIT;
    bool ok = true;
    bool more = true;
    while (ok && more) {
        ok = scan_next(&search->scan, &more, err);
        if (!ok || !more)
            break;
        buf_clear(&key);
        ok = sort_key_append(search->op->current.sort, search->scan.doc, &key, err) &&
             sorter_add(sorter, key.data, key.len, (struct bdoc){0}, search->scan.record_id, err);
    }
    struct sort_item item = {0};
    *found = false;
    ok = ok && sorter_finish(sorter, err) && sorter_next(sorter, &item, found, err);
    *record_id = item.tag;
    sorter_free(sorter);
    buf_deinit(&key);
    return ok;
}

/* The best match; when another write has claimed it, this one waits for the outcome. */
static enum write_choice choose_best(struct search *search, struct err *err)
{
    struct write_op *op = search->op;
    struct document_claims *claims = document_engine_claims(op->engine);
    uint64_t record_id = 0;
    bool found = false;
    if (!best_of(search, &record_id, &found, err))
        return WRITE_FAILED;
    if (!found)
        return WRITE_NOTHING;
    struct document_claim_key key = record_claim(search, record_id);
    while (!document_claims_try(claims, key, &op->claims)) {
        if (document_claims_wait(claims, key, &op->waiter))
            return WRITE_WAITING;
    }
    struct buf scratch = BUF_INIT;
    struct bdoc doc;
    bool ok = record_get(search->read.txn, search->read.coll, record_id, &scratch, &doc) &&
              add_candidate(op, record_id, doc, err);
    buf_deinit(&scratch);
    return ok ? WRITE_CHOSEN : WRITE_FAILED;
}

void write_current_keep_record(struct write_current *current, uint64_t record_id)
{
    if (current->record_count == current->record_cap) {
        current->record_cap = current->record_cap == 0 ? 64 : current->record_cap * 2;
        current->records = mem_realloc(current->records, current->record_cap * sizeof *current->records);
    }
    current->records[current->record_count++] = record_id;
}

/* All matches, so that the walk never meets the results of its own writes. Too many: those that come first by record
 * id, and later on from there. */
static bool collect(struct search *search, struct err *err)
{
    struct write_current *current = &search->op->current;
    bool by_record = search->plan->kind == PLAN_RECORDS;
    bool found = true;
    current->record_count = 0;
    current->record_at = 0;
    current->resume_after = 0;
    while (scan_next(&search->scan, &found, err)) {
        if (!found) {
            current->collected = true;
            return true;
        }
        write_current_keep_record(current, search->scan.record_id);
        if (current->record_count < WRITE_MULTI_COLLECT_MAX)
            continue;
        if (!by_record)
            return err_set(err, ERR_ExceededMemoryLimit,
                           "the write matches more than %d documents through an index; use a hint {$natural: 1}",
                           WRITE_MULTI_COLLECT_MAX);
        current->resume_after = search->scan.record_id;
        current->collected = true;
        return true;
    }
    return false;
}

/* How many documents one entry may change: each may grow by as much as the update holds. */
static uint32_t chunk_documents(const struct statement *statement)
{
    uint32_t by_bytes = WRITE_MULTI_CHUNK_BYTES / (statement->update.len + 1);
    return by_bytes == 0 ? 1 : by_bytes < WRITE_MULTI_CHUNK ? by_bytes : WRITE_MULTI_CHUNK;
}

/* The next chunk of a multi-write's records. */
static enum write_choice choose_chunk(struct search *search, struct err *err)
{
    struct write_op *op = search->op;
    struct write_current *current = &op->current;
    struct buf scratch = BUF_INIT;
    size_t image_bytes = 0;
    uint32_t most = chunk_documents(&current->statement);
    bool ok = true;
    while (ok && current->record_at < current->record_count && current->statement.candidate_count < most &&
           image_bytes < WRITE_GROUP_MAX_BYTES) {
        uint64_t record_id = current->records[current->record_at++];
        struct bdoc doc = {0};
        bool matched = true;
        if (current->image) {
            /* Evaluated on the document as it is now. */
            if (!record_get(search->read.txn, search->read.coll, record_id, &scratch, &doc) ||
                !filter_eval(current->filter, doc, NULL, &matched, err) || !matched)
                continue;
            image_bytes += doc.len;
        }
        ok = add_candidate(op, record_id, doc, err);
    }
    buf_deinit(&scratch);
    if (!ok)
        return WRITE_FAILED;
    return current->statement.candidate_count > 0 ? WRITE_CHOSEN : WRITE_NOTHING;
}

static enum write_choice choose_multi(struct search *search, struct err *err)
{
    struct write_current *current = &search->op->current;
    bool used_up = current->record_at == current->record_count;
    if ((!current->collected || (used_up && current->resume_after != 0)) && !collect(search, err))
        return WRITE_FAILED;
    return choose_chunk(search, err);
}

enum write_choice write_choose(struct write_op *op, struct err *err)
{
    struct search search;
    struct write_current *current = &op->current;
    enum write_choice choice = WRITE_FAILED;
    bool multi = (current->statement.flags & STATEMENT_MULTI) != 0;
    current->statement.candidate_count = 0;
    arena_reset(&current->chunk);
    if (current->statement.candidates == NULL)
        current->statement.candidates =
            arena_alloc(&current->arena, (multi ? WRITE_MULTI_CHUNK : 1) * sizeof *current->statement.candidates);
    if (search_open(&search, op, err)) {
        if (search.read.coll == NULL)
            choice = WRITE_NOTHING;
        else if (multi)
            choice = choose_multi(&search, err);
        else
            choice = current->sort == NULL ? choose_any(&search, err) : choose_best(&search, err);
    }
    search_close(&search);
    return choice;
}

bool write_by_id_exists(struct write_op *op, const struct statement *statement, bool *exists, struct err *err)
{
    struct read_txn read = {0};
    struct bval id;
    uint64_t record_id;
    if (!read_txn_open_any(&read, op->engine, op->ns.full, op->version, err))
        return false;
    *exists = read.coll != NULL && write_plain_id(statement->filter, &id) &&
              record_find_id(read.txn, read.coll, &id, &record_id);
    read_txn_close(&read);
    return true;
}
