#include "document/cursor.h"

#include "base/check.h"
#include "base/mem.h"

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
    cursor->has_collection = true;
    cursor->ownership = document_engine_ownership(read->engine);
    if (read->view != NULL)
        cursor->view = cursor->ownership->ref(read->view);
}

/* The scan is needed unless everything left is in memory already. */
static bool needs_scan(const struct document_cursor *cursor)
{
    return cursor->plan != NULL && cursor->sorter == NULL && !cursor->source_done && cursor->limit_left != 0;
}

bool document_cursor_attach(struct document_cursor *cursor, const struct read_txn *read, int64_t deadline_ms,
                            struct err *err)
{
    cursor->deadline_ms = deadline_ms;
    if (!needs_scan(cursor))
        return true;
    if (read->coll == NULL || memcmp(read->coll->uuid, cursor->uuid, UUID_BYTES) != 0)
        return err_set(err, ERR_QueryPlanKilled, "collection dropped. UUID of '%s' has changed", cursor->ns);
    struct scan_options options = {
        .txn = read->txn,
        .coll = read->coll,
        .plan = cursor->plan,
        .filter = cursor->filter,
        .ownership = cursor->ownership,
        .view = read->view == cursor->view && !read->check_visible ? NULL : cursor->view,
        .need_doc = true,
        .deadline_ms = deadline_ms,
    };
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
    if (cursor->returned_any && !cursor->source_done) {
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
    cursor->source_done = !*found;
    *out = cursor->scan.doc;
    return true;
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
        ok = sort_key_append(cursor->sort, doc, &key, err) && sorter_add(sorter, key.data, key.len, doc, 0, err);
    }
    buf_deinit(&key);
    if (!ok || !sorter_finish(sorter, err)) {
        sorter_free(sorter);
        return false;
    }
    cursor->sorter = sorter;
    return true;
}

/* In the wanted order, before skip and limit. */
static bool ordered_next(struct document_cursor *cursor, struct bdoc *out, bool *found, struct err *err)
{
    if (cursor->sort == NULL)
        return source_next(cursor, out, found, err);
    if (cursor->sorter == NULL && !sort_all(cursor, err))
        return false;
    struct sort_item item;
    if (!sorter_next(cursor->sorter, &item, found, err))
        return false;
    if (*found)
        *out = item.doc;
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
    }
    return pipeline_run_next(cursor->run, out, err);
}

static bool add_sort_key(const struct document_cursor *cursor, struct batch_reply *reply, struct bdoc doc,
                         struct err *err)
{
    struct buf key = BUF_INIT;
    bool ok = sort_key_append(cursor->key_spec, doc, &key, err);
    if (ok)
        batch_reply_add_sort_key(reply, key.data, key.len);
    buf_deinit(&key);
    return ok;
}

/* *added false: it doesn't fit. */
static bool add(struct document_cursor *cursor, struct batch_reply *reply, struct bdoc doc, bool *added,
                struct err *err)
{
    if (cursor->projection == NULL) {
        *added = batch_reply_add(reply, doc);
        return true;
    }
    struct filter_match match = {.array_index = -1};
    bool matched;
    if (projection_needs_match(cursor->projection) && !filter_eval(cursor->filter, doc, &match, &matched, err))
        return false;
    size_t opened_at = batch_reply_open(reply);
    if (!projection_apply(cursor->projection, doc, &match, &reply->bytes, err))
        return false;
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

bool document_cursor_fill(struct document_cursor *cursor, struct batch_reply *reply, int64_t batch_size,
                          struct err *err)
{
    while (batch_size < 0 || reply->count < batch_size) {
        struct bdoc doc;
        bool added;
        if (!next_or_pending(cursor, &doc, err))
            return false;
        if (doc.data == NULL) {
            cursor->exhausted = true;
            return true;
        }
        if (!add(cursor, reply, doc, &added, err))
            return false;
        if (!added) {
            if (cursor->pending.len == 0)
                buf_append(&cursor->pending, doc.data, doc.len);
            return true;
        }
        if (cursor->key_spec != NULL && !add_sort_key(cursor, reply, doc, err))
            return false;
        buf_clear(&cursor->pending);
    }
    /* No document can follow a limit that was reached: the client is spared an empty getMore. */
    if (cursor->pipeline == NULL && cursor->limit_left == 0)
        cursor->exhausted = true;
    return true;
}
