/* DOCUMENT_KIND_UPDATE: a statement_batch and its statements. Result: u32 number of results, then the results; with an
 * ordered batch they end at the first statement that isn't done. */
#include "base/map.h"
#include "document/apply_internal.h"
#include "document/statement.h"
#include "query/sort.h"
#include "update/update.h"

#include <string.h>

/* One statement under way. */
struct run {
    struct apply_target *target;
    struct document_apply *apply;
    const struct statement_batch *batch;
    const struct statement *statement;
    struct expr_env env;
    struct filter *filter;
    struct update *update; /* NULL for a delete or an image */
    struct sort_spec *sort;
    struct statement_result *result;
    struct buf scratch; /* the stored document, when it is in pieces */
    struct buf after;   /* the new document */
    struct buf missed;  /* see statement_result */
};

static bool compile(struct run *run, struct err *err)
{
    const struct statement *statement = run->statement;
    struct arena *arena = run->apply->arena;
    if (statement->flags & STATEMENT_IMAGE)
        return true;
    if (!filter_compile(arena, statement->filter, &run->env, &run->filter, err))
        return false;
    if (statement->sort.data != NULL && !sort_spec_compile(arena, statement->sort, run->env.order, &run->sort, err))
        return false;
    struct update_options options = {
        .env = &run->env,
        .array_filters = statement->array_filters,
        .multi = (statement->flags & STATEMENT_MULTI) != 0,
        .upsert = (statement->flags & STATEMENT_UPSERT) != 0,
    };
    return (statement->flags & STATEMENT_DELETE) ||
           update_compile(arena, &statement->update, &options, &run->update, err);
}

static struct bdoc keep(struct run *run, struct bdoc doc)
{
    return (struct bdoc){.data = arena_copy(run->apply->arena, doc.data, doc.len), .len = doc.len};
}

static bool sort_key_same(struct run *run, const struct statement_candidate *candidate, struct bdoc doc)
{
    if (run->sort == NULL || candidate->sort_key_len == 0)
        return true;
    struct buf key = BUF_INIT;
    bool same = sort_key_append(run->sort, doc, &key, NULL) && key.len == candidate->sort_key_len &&
                memcmp(key.data, candidate->sort_key, key.len) == 0;
    buf_deinit(&key);
    return same;
}

/* True when the document is still what the leader chose. */
static bool still_matches(struct run *run, const struct statement_candidate *candidate, struct bdoc doc,
                          struct filter_match *match, bool *matched, struct err *err)
{
    *matched = false;
    if (!apply_target_visible(run->target, doc))
        return true;
    if (run->statement->flags & STATEMENT_IMAGE) {
        *matched = hash_bytes(doc.data, doc.len) == candidate->hash;
        return true;
    }
    if (!filter_eval(run->filter, doc, match, matched, err))
        return false;
    *matched = *matched && (candidate == NULL || sort_key_same(run, candidate, doc));
    return true;
}

static bool erase(struct run *run, uint64_t record_id, struct bdoc doc, struct err *err)
{
    struct bdoc before = {0};
    if (run->statement->flags & STATEMENT_WANT_BEFORE)
        before = keep(run, doc);
    if (!apply_target_erase(run->target, record_id, doc, err))
        return false;
    run->result->n++;
    run->result->value = before;
    return true;
}

/* False: *err says why it must not be stored, or, with status REDO, the leader has to test it. */
static bool is_valid(struct run *run, struct bdoc before, struct bdoc after, struct err *err)
{
    const struct validator *validator = &run->target->traits->validator;
    switch (validator_apply(validator, run->batch->tested, before, after, err)) {
    case VALIDATOR_PASS:
        return true;
    case VALIDATOR_REDO:
        run->result->status = STATEMENT_REDO;
        return false;
    case VALIDATOR_REFUSE:
        break;
    }
    return false;
}

static bool change(struct run *run, const struct statement_candidate *candidate, uint64_t record_id, struct bdoc doc,
                   const struct filter_match *match, struct err *err)
{
    struct update_result updated = {.modified = true};
    struct bdoc before = {0};
    buf_clear(&run->after);
    if (run->statement->flags & STATEMENT_IMAGE) {
        buf_append(&run->after, candidate->after.data, candidate->after.len);
        updated.modified = !bdoc_same(doc, candidate->after);
    } else if (!update_apply(run->update, doc, match, &run->after, &updated, err)) {
        return false;
    }
    if (run->statement->flags & STATEMENT_WANT_BEFORE)
        before = keep(run, doc);
    struct bdoc after = {.data = run->after.data, .len = (uint32_t)run->after.len};
    if (updated.modified && !is_valid(run, doc, after, err))
        return run->result->status == STATEMENT_REDO;
    if (updated.modified && !apply_target_replace(run->target, record_id, doc, after, err))
        return false;
    run->result->n++;
    run->result->n_modified += updated.modified;
    if (run->statement->flags & STATEMENT_WANT_BEFORE)
        run->result->value = before;
    else if (run->statement->flags & STATEMENT_WANT_AFTER)
        run->result->value = keep(run, after);
    return true;
}

/* *matched false: nothing was done. `candidate` is NULL for a record that was found by its _id. */
static bool apply_to(struct run *run, const struct statement_candidate *candidate, uint64_t record_id, bool *matched,
                     struct err *err)
{
    struct bdoc doc;
    struct filter_match match = {.array_index = -1};
    *matched = false;
    if (!record_get(run->apply->txn, run->target->coll, record_id, &run->scratch, &doc))
        return true;
    if (!still_matches(run, candidate, doc, &match, matched, err))
        return false;
    if (!*matched)
        return true;
    if (run->statement->flags & STATEMENT_DELETE)
        return erase(run, record_id, doc, err);
    return change(run, candidate, record_id, doc, &match, err);
}

static bool upsert(struct run *run, struct err *err)
{
    const struct statement *statement = run->statement;
    buf_clear(&run->after);
    if (statement->flags & STATEMENT_IMAGE)
        buf_append(&run->after, statement->upsert_image.data, statement->upsert_image.len);
    else if (!update_build_upsert(run->update, run->filter, &statement->upsert_id, &run->after, err))
        return false;
    struct bdoc doc = {.data = run->after.data, .len = (uint32_t)run->after.len};
    if (!is_valid(run, (struct bdoc){0}, doc, err))
        return run->result->status == STATEMENT_REDO;
    if (!apply_target_insert(run->target, doc, err))
        return false;
    run->result->n = 1;
    struct bval id;
    bdoc_find(doc, "_id", &id);
    bson_t upserted = BSON_INITIALIZER;
    bval_append(&upserted, "_id", 3, &id);
    run->result->upserted = keep(run, bdoc_of(&upserted));
    bson_destroy(&upserted);
    if (statement->flags & STATEMENT_WANT_AFTER)
        run->result->value = keep(run, doc);
    return true;
}

static bool apply_by_id(struct run *run, struct err *err)
{
    struct bval id;
    uint64_t record_id;
    bool matched = false;
    if (run->target->coll == NULL)
        return true;
    if (filter_equality(run->filter, "_id", &id) &&
        record_find_id(run->apply->txn, run->target->coll, &id, &record_id) &&
        !apply_to(run, NULL, record_id, &matched, err))
        return false;
    return matched || !(run->statement->flags & STATEMENT_UPSERT) || upsert(run, err);
}

static bool apply_candidates(struct run *run, struct err *err)
{
    const struct statement *statement = run->statement;
    if (statement->candidate_count == 0 && (statement->flags & STATEMENT_UPSERT))
        return upsert(run, err);
    for (uint32_t i = 0; i < statement->candidate_count; i++) {
        bool matched;
        const struct statement_candidate *candidate = &statement->candidates[i];
        if (run->target->coll == NULL) {
            matched = false;
        } else if (!apply_to(run, candidate, candidate->record_id, &matched, err)) {
            return false;
        }
        if (matched)
            continue;
        /* The filter was looked at here: the document is not one of a multi-write's any more. A hash can't tell. */
        if (!(statement->flags & STATEMENT_MULTI))
            run->result->status = STATEMENT_REDO;
        else if (statement->flags & STATEMENT_IMAGE)
            buf_append_le64(&run->missed, candidate->record_id);
    }
    return true;
}

static void keep_missed(struct run *run)
{
    run->result->missed_count = (uint32_t)(run->missed.len / sizeof(uint64_t));
    run->result->missed = arena_copy(run->apply->arena, run->missed.data, run->missed.len);
    buf_deinit(&run->missed);
}

static void apply_statement(struct apply_target *target, const struct statement_batch *batch,
                            const struct statement *statement, struct statement_result *result)
{
    struct run run = {
        .target = target,
        .apply = target->apply,
        .batch = batch,
        .statement = statement,
        .env = {.now_ms = batch->now_ms, .let = batch->let},
        .result = result,
    };
    *result = (struct statement_result){.status = STATEMENT_DONE, .index = statement->index};
    bool ok = compile(&run, &result->err);
    if (ok)
        ok =
            statement->flags & STATEMENT_BY_ID ? apply_by_id(&run, &result->err) : apply_candidates(&run, &result->err);
    if (!ok)
        result->status = STATEMENT_ERROR;
    keep_missed(&run);
    filter_release(run.filter);
    update_release(run.update);
    buf_deinit(&run.scratch);
    buf_deinit(&run.after);
}

static bool decode_all(struct document_apply *apply, struct codec_reader *reader, struct statement_batch *batch,
                       struct statement **statements)
{
    statement_batch_decode(reader, batch);
    if (reader->failed || batch->count > (size_t)(reader->end - reader->pos))
        return false;
    *statements = arena_alloc(apply->arena, batch->count * sizeof **statements);
    for (uint32_t i = 0; i < batch->count; i++)
        statement_decode(reader, apply->arena, &(*statements)[i]);
    return !reader->failed;
}

static bool any_upsert(const struct statement *statements, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (statements[i].flags & STATEMENT_UPSERT)
            return true;
    }
    return false;
}

static bool all_deletes(const struct statement *statements, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!(statements[i].flags & STATEMENT_DELETE))
            return false;
    }
    return true;
}

bool apply_update(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct statement_batch batch;
    struct statement *statements;
    struct apply_target target;
    if (!decode_all(apply, reader, &batch, &statements))
        return apply_damaged(err);
    const uint8_t *create_uuid = any_upsert(statements, batch.count) ? batch.create_uuid : NULL;
    if (!apply_target_open(&target, apply, batch.ns, batch.version, create_uuid, err))
        return false;
    if (!apply_target_check_writable(&target, err) ||
        !apply_target_check_tested(&target, batch.tested, all_deletes(statements, batch.count), err)) {
        apply_target_close(&target);
        return false;
    }
    size_t count_at = result->len;
    uint32_t done = 0;
    buf_append_le32(result, 0);
    while (done < batch.count) {
        struct statement_result one;
        apply_statement(&target, &batch, &statements[done++], &one);
        statement_result_encode(result, &one);
        if (batch.ordered && one.status != STATEMENT_DONE)
            break;
    }
    store_le32(result->data + count_at, done);
    apply_target_close(&target);
    return true;
}
