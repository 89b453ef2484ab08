#include "document/cursor.h"

#include "base/check.h"
#include "base/mem.h"
#include "storage/index_keys.h"
#include "storage/records.h"

#include <stdio.h>
#include <string.h>

struct document_cursor *document_cursor_new(const struct command_ctx *ctx, const char *ns)
{
    struct document_cursor *cursor = mem_alloc(sizeof *cursor);
    arena_init(&cursor->arena);
    cursor->frame = wire_frame_ref(ctx->frame);
    snprintf(cursor->ns, sizeof cursor->ns, "%s", ns);
    cursor->limit_left = -1;
    cursor->batch_number = -1;
    return cursor;
}

void document_cursor_free(struct document_cursor *cursor)
{
    if (cursor == NULL)
        return;
    CHECK(!cursor->scanning);
    pipeline_run_free(cursor->run);
    pipeline_release(cursor->pipeline);
    filter_release(cursor->filter);
    sorter_free(cursor->sorter);
    if (cursor->view != NULL)
        cursor->ownership->close(cursor->ownership->arg, cursor->view);
    buf_deinit(&cursor->list);
    buf_deinit(&cursor->position);
    buf_deinit(&cursor->pending);
    buf_deinit(&cursor->key_doc);
    buf_deinit(&cursor->sort_key);
    wire_frame_unref(cursor->last_batch);
    wire_frame_unref(cursor->frame);
    arena_deinit(&cursor->arena);
    mem_free(cursor);
}

size_t document_cursor_memory(const struct document_cursor *cursor)
{
    size_t bytes =
        sizeof *cursor + cursor->arena.used_bytes + cursor->frame->len + cursor->list.cap + cursor->pending.cap;
    bytes += cursor->sorter == NULL ? 0 : sorter_memory_bytes(cursor->sorter);
    bytes += cursor->run == NULL ? 0 : pipeline_run_memory_bytes(cursor->run);
    return bytes + (cursor->last_batch == NULL ? 0 : cursor->last_batch->len);
}

void document_cursor_list_add(struct document_cursor *cursor, struct bdoc doc)
{
    buf_append(&cursor->list, doc.data, doc.len);
}

void document_cursor_bind(struct document_cursor *cursor, const struct read_txn *read)
{
    memcpy(cursor->uuid, read->coll->uuid, UUID_BYTES);
    cursor->collection_id = read->coll->id;
    cursor->has_collection = true;
    cursor->ownership = document_engine_ownership(read->engine);
    if (read->view != NULL)
        cursor->view = cursor->ownership->ref(read->view);
}

static bool make_plan(struct document_cursor *cursor, const struct read_txn *read, struct err *err)
{
    if (!read_plan_make(&cursor->arena, read, &cursor->wanted, &cursor->plan, err))
        return false;
    cursor->sort = cursor->plan_sort;
    if (cursor->plan->sorted && cursor->wanted.natural == 0)
        cursor->sort = NULL;
    return true;
}

bool document_cursor_plan(struct document_cursor *cursor, const struct read_txn *read,
                          const struct plan_request *wanted, struct err *err)
{
    cursor->wanted = *wanted;
    cursor->plan_sort = cursor->sort;
    cursor->first_skip = cursor->skip_left;
    cursor->first_limit = cursor->limit_left;
    return make_plan(cursor, read, err);
}

bool document_cursor_replan(struct document_cursor *cursor, const struct read_txn *read, struct err *err)
{
    CHECK(!cursor->scanning);
    pipeline_run_free(cursor->run);
    cursor->run = NULL;
    sorter_free(cursor->sorter);
    cursor->sorter = NULL;
    buf_clear(&cursor->pending);
    cursor->skip_left = cursor->first_skip;
    cursor->limit_left = cursor->first_limit;
    cursor->given = 0;
    cursor->started = false;
    cursor->source_done = false;
    cursor->exhausted = false;
    cursor->may_replan = false;
    cursor->wanted.replan = true;
    return make_plan(cursor, read, err);
}

/* The scan is needed unless everything left is in memory already. */
static bool needs_scan(const struct document_cursor *cursor)
{
    return cursor->plan != NULL && cursor->sorter == NULL && !cursor->source_done && cursor->limit_left != 0;
}

/* The last record that a tailable cursor looked at must still be there: else others may have gone with it unseen. */
static bool check_position(struct document_cursor *cursor, const struct read_txn *read, struct err *err)
{
    struct buf scratch = BUF_INIT;
    struct bdoc doc;
    if (!cursor->started)
        return true;
    CHECK(cursor->position.len == sizeof(uint64_t));
    uint64_t record_id = load_le64(cursor->position.data);
    bool there = record_get(read->txn, read->coll, record_id, &scratch, &doc);
    buf_deinit(&scratch);
    return there || err_set(err, ERR_CappedPositionLost,
                            "CollectionScan died due to position in capped collection being deleted. Last seen record "
                            "id: RecordId(%llu)",
                            (unsigned long long)record_id);
}

/* A tailable cursor goes on after the record that was looked at last, whether it matched or not. */
static void keep_tail(struct document_cursor *cursor)
{
    if (cursor->scan.record_id == 0)
        return;
    buf_clear(&cursor->position);
    buf_append_le64(&cursor->position, cursor->scan.record_id);
    cursor->started = true;
}

bool document_cursor_attach(struct document_cursor *cursor, const struct read_txn *read, int64_t deadline_ms,
                            struct err *err)
{
    cursor->deadline_ms = deadline_ms;
    if (!needs_scan(cursor))
        return true;
    if (read->coll == NULL || memcmp(read->coll->uuid, cursor->uuid, UUID_BYTES) != 0)
        return err_set(err, ERR_QueryPlanKilled, "collection dropped. UUID of '%s' has changed", cursor->ns);
    if (cursor->tailable && !check_position(cursor, read, err))
        return false;
    const struct document_view *view = read->view == cursor->view && !read->check_visible ? NULL : cursor->view;
    struct scan_options options = read_plan_scan(read, cursor->plan, view);
    options.replan = cursor->may_replan;
    cursor->scanning = true;
    cursor->returned_any = false;
    if (!scan_open(&cursor->scan, &options, err) ||
        (cursor->started && !scan_restore(&cursor->scan, cursor->position.data, cursor->position.len, err))) {
        document_cursor_detach(cursor);
        return false;
    }
    return true;
}

void document_cursor_detach(struct document_cursor *cursor)
{
    if (!cursor->scanning)
        return;
    if (cursor->tailable) {
        keep_tail(cursor);
    } else if (cursor->returned_any && !cursor->source_done) {
        buf_clear(&cursor->position);
        scan_position(&cursor->scan, &cursor->position);
        cursor->started = true;
    }
    cursor->keys_examined += cursor->scan.keys_examined;
    cursor->docs_examined += cursor->scan.docs_examined;
    scan_close(&cursor->scan);
    cursor->scanning = false;
}

static bool list_next(struct document_cursor *cursor, struct bdoc *out)
{
    if (cursor->list_at == cursor->list.len)
        return false;
    out->data = cursor->list.data + cursor->list_at;
    out->len = load_le32(out->data);
    cursor->list_at += out->len;
    return true;
}

/* One document of the plan or the list, before any sort. */
static bool source_next(struct document_cursor *cursor, struct bdoc *out, bool *found, struct err *err)
{
    if (cursor->plan == NULL) {
        *found = list_next(cursor, out);
        return true;
    }
    if (cursor->source_done) {
        *found = false;
        return true;
    }
    CHECK(cursor->scanning);
    if (!scan_next(&cursor->scan, found, err))
        return false;
    cursor->returned_any |= *found;
    cursor->source_done = !*found && !cursor->tailable;
    cursor->record_id = cursor->scan.record_id;
    *out = cursor->scan.doc;
    return true;
}

/* The key of the entry by which the scan found its document, under the fields' names; nothing without an index. */
static void cursor_key_append(const struct scan *scan, bson_t *out)
{
    if (scan->walks == NULL)
        return;
    const struct plan_walk *walk = &scan->walks[scan->at];
    index_key_value(walk->index, scan->doc, walk->entry.key, walk->entry.key_len, out);
}

static struct bdoc kept_key(const struct document_cursor *cursor)
{
    return (struct bdoc){.data = cursor->key_doc.data, .len = (uint32_t)cursor->key_doc.len};
}

static void keep_key(struct document_cursor *cursor)
{
    bson_t key = BSON_INITIALIZER;
    cursor_key_append(&cursor->scan, &key);
    buf_clear(&cursor->key_doc);
    buf_append(&cursor->key_doc, bson_get_data(&key), key.len);
    bson_destroy(&key);
}

/* What becomes of a stored document before any sort: with returnKey the key of the index entry that it was found by. */
static struct bdoc result_of(struct document_cursor *cursor, struct bdoc doc)
{
    if (!cursor->return_key)
        return doc;
    keep_key(cursor);
    return kept_key(cursor);
}

static bool sort_all(struct document_cursor *cursor, struct err *err)
{
    uint64_t limit = 0;
    if (cursor->limit_left > 0 && cursor->skip_left <= INT64_MAX - cursor->limit_left)
        limit = (uint64_t)(cursor->limit_left + cursor->skip_left);
    struct sorter *sorter = sorter_new(&(struct sorter_options){
        .limit = limit, .memory_limit_bytes = DOCUMENT_SORT_MAX_BYTES, .space = cursor->space});
    struct buf key = BUF_INIT;
    bool found = true;
    bool ok = true;
    while (ok && found) {
        struct bdoc doc = {0};
        ok = source_next(cursor, &doc, &found, err);
        if (!ok || !found)
            break;
        buf_clear(&key);
        ok = sort_key_append(cursor->sort, doc, &key, err) &&
             sorter_add(sorter, key.data, key.len, result_of(cursor, doc), cursor->record_id, err);
    }
    buf_deinit(&key);
    if (!ok || !sorter_finish(sorter, err)) {
        sorter_free(sorter);
        return false;
    }
    cursor->sorter = sorter;
    return true;
}

static bool sorted_next(struct document_cursor *cursor, struct bdoc *out, bool *found, struct err *err)
{
    struct sort_item item;
    if ((cursor->sorter == NULL && !sort_all(cursor, err)) || !sorter_next(cursor->sorter, &item, found, err))
        return false;
    if (!*found)
        return true;
    *out = item.doc;
    cursor->record_id = item.tag;
    if (cursor->key_spec != NULL) {
        buf_clear(&cursor->sort_key);
        buf_append(&cursor->sort_key, item.key, item.key_len);
    }
    return true;
}

/* In the wanted order, before skip and limit. */
static bool ordered_next(struct document_cursor *cursor, struct bdoc *out, bool *found, struct err *err)
{
    if (cursor->sort != NULL)
        return sorted_next(cursor, out, found, err);
    if (!source_next(cursor, out, found, err))
        return false;
    if (!*found)
        return true;
    if (cursor->key_spec != NULL) {
        buf_clear(&cursor->sort_key);
        if (!sort_key_append(cursor->key_spec, *out, &cursor->sort_key, err))
            return false;
    }
    *out = result_of(cursor, *out);
    return true;
}

static bool limited_next(struct document_cursor *cursor, struct bdoc *out, struct err *err)
{
    bool found = true;
    *out = (struct bdoc){0};
    while (found && cursor->limit_left != 0) {
        if (!ordered_next(cursor, out, &found, err))
            return false;
        if (!found || cursor->skip_left == 0)
            break;
        cursor->skip_left--;
    }
    if (!found || cursor->limit_left == 0)
        *out = (struct bdoc){0};
    else if (cursor->limit_left > 0)
        cursor->limit_left--;
    cursor->given += out->data != NULL;
    return true;
}

static bool pipeline_source_next(void *arg, struct bdoc *out, struct err *err)
{
    return limited_next(arg, out, err);
}

bool document_cursor_next(struct document_cursor *cursor, struct bdoc *out, struct err *err)
{
    if (cursor->pipeline == NULL)
        return limited_next(cursor, out, err);
    if (cursor->run == NULL) {
        struct doc_source source = {.next = pipeline_source_next, .arg = cursor};
        cursor->run = pipeline_run_new(cursor->pipeline, cursor->first_stage, source, PIPELINE_MEMORY_LIMIT_BYTES);
        pipeline_run_set_space(cursor->run, cursor->space);
    }
    return pipeline_run_next(cursor->run, out, err);
}

/* What {$meta: ...} of the projection may ask about the result at hand. */
struct result_meta {
    struct expr_meta meta;
    uint8_t record_id[8]; /* behind meta.record_id */
    bson_t sort_key;
};

static bool find_meta(struct document_cursor *cursor, struct bdoc doc, struct result_meta *out, struct err *err)
{
    unsigned wanted = projection_wanted_meta(cursor->projection);
    store_le64(out->record_id, cursor->record_id);
    out->meta = (struct expr_meta){
        .record_id = {.type = BT_INT64, .len = sizeof out->record_id, .data = out->record_id},
    };
    if ((wanted & EXPR_META_SORT_KEY) != 0 && cursor->plan_sort != NULL) {
        if (!sort_key_values(cursor->plan_sort, doc, &out->sort_key, err))
            return false;
        struct bdoc values = bdoc_of(&out->sort_key);
        out->meta.sort_key = (struct bval){.type = BT_ARRAY, .data = values.data, .len = values.len};
    }
    /* A sort in memory has gone past the entry; a document that waited for this batch keeps the key that it had. */
    if ((wanted & EXPR_META_INDEX_KEY) != 0 && cursor->sort == NULL) {
        if (cursor->pending.len == 0 && cursor->scanning && cursor->scan.walks != NULL)
            keep_key(cursor);
        if (cursor->key_doc.len > 0)
            out->meta.index_key = bval_from_doc(kept_key(cursor));
    }
    return true;
}

static bool append_with_meta(struct document_cursor *cursor, struct bdoc doc, struct filter_match *match,
                             struct buf *out, struct err *err)
{
    struct result_meta result;
    bson_init(&result.sort_key);
    bool ok = find_meta(cursor, doc, &result, err);
    match->meta = &result.meta;
    ok = ok && projection_apply(cursor->projection, doc, match, out, err);
    bson_destroy(&result.sort_key);
    return ok;
}

static bool append_result(struct document_cursor *cursor, struct bdoc doc, struct buf *out, struct err *err)
{
    struct filter_match match = {.array_index = -1};
    bool matched;
    if (cursor->projection == NULL) {
        buf_append(out, doc.data, doc.len);
        return true;
    }
    if (projection_needs_match(cursor->projection) && !filter_eval(cursor->filter, doc, &match, &matched, err))
        return false;
    if (projection_wanted_meta(cursor->projection) != 0)
        return append_with_meta(cursor, doc, &match, out, err);
    return projection_apply(cursor->projection, doc, &match, out, err);
}

/* {..., $recordId: n}: the document that begins at `start` gets one more field. */
static void append_record_id(uint64_t record_id, size_t start, struct buf *out)
{
    out->len--;
    buf_append_u8(out, BT_INT64);
    buf_append(out, "$recordId", sizeof "$recordId");
    buf_append_le64(out, record_id);
    buf_append_u8(out, 0);
    store_le32(out->data + start, (uint32_t)(out->len - start));
}

/* *added false: it doesn't fit. */
static bool add(struct document_cursor *cursor, struct batch_reply *reply, struct bdoc doc, bool *added,
                struct err *err)
{
    if (cursor->projection == NULL && !cursor->show_record_id) {
        *added = batch_reply_add(reply, doc);
        return true;
    }
    size_t opened_at = batch_reply_open(reply);
    size_t start = reply->bytes.len;
    if (!append_result(cursor, doc, &reply->bytes, err))
        return false;
    if (cursor->show_record_id)
        append_record_id(cursor->record_id, start, &reply->bytes);
    *added = batch_reply_close(reply, opened_at);
    return true;
}

static bool next_or_pending(struct document_cursor *cursor, struct bdoc *out, struct err *err)
{
    if (cursor->pending.len == 0)
        return document_cursor_next(cursor, out, err);
    *out = (struct bdoc){.data = cursor->pending.data, .len = (uint32_t)cursor->pending.len};
    return true;
}

/* More may come. One over an empty collection has no place to go on from: it is over. */
static bool is_tailing(const struct document_cursor *cursor)
{
    return cursor->tailable && cursor->limit_left != 0 &&
           (cursor->started || (cursor->scanning && cursor->scan.record_id != 0));
}

bool document_cursor_fill(struct document_cursor *cursor, struct batch_reply *reply, int64_t batch_size,
                          struct err *err)
{
    while (batch_size < 0 || reply->count < batch_size) {
        struct bdoc doc;
        bool added;
        if (!next_or_pending(cursor, &doc, err))
            return false;
        if (doc.data == NULL) {
            cursor->exhausted = !is_tailing(cursor);
            return true;
        }
        if (!add(cursor, reply, doc, &added, err))
            return false;
        if (!added) {
            if (cursor->pending.len == 0)
                buf_append(&cursor->pending, doc.data, doc.len);
            return true;
        }
        if (cursor->key_spec != NULL)
            batch_reply_add_sort_key(reply, cursor->sort_key.data, cursor->sort_key.len);
        buf_clear(&cursor->pending);
    }
    /* No document can follow a limit that was reached: the client is spared an empty getMore. */
    if (cursor->pipeline == NULL && cursor->limit_left == 0)
        cursor->exhausted = true;
    return true;
}
