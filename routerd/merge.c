#include "routerd/merge.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "routerd/request.h"

#include <stdio.h>
#include <string.h>

enum { MERGE_KILL_MS = 2000 };

/* What comes from one shard. */
struct stream {
    struct remote_set *set;
    char member[RPC_ADDRESS_MAX]; /* where the cursor lives */
    int64_t id;                   /* the shard's cursor; 0: nothing left but the batch */
    struct wire_frame *frame;     /* holds the batch */
    struct biter docs;
    struct biter keys;
    struct bdoc doc; /* at hand; data NULL: the batch is used up */
    struct key_bytes key;
    struct buf made; /* holds `key` with MERGE_BY_FIELDS */
};

struct merge {
    struct router *router;
    char db[COMMAND_DB_MAX + 1];
    char coll[COMMAND_NS_MAX + 1];
    enum merge_order order;
    const struct sort_spec *sort;
    struct stream *streams;
    size_t count;
    size_t taken; /* stream whose document was handed out and must be moved past; SIZE_MAX: none */
};

struct merge *merge_new(struct router *router, const char *db, const char *coll, enum merge_order order,
                        const struct sort_spec *sort)
{
    struct merge *merge = mem_alloc(sizeof *merge);
    merge->router = router;
    snprintf(merge->db, sizeof merge->db, "%s", db);
    snprintf(merge->coll, sizeof merge->coll, "%s", coll);
    merge->order = order;
    merge->sort = sort;
    merge->taken = SIZE_MAX;
    return merge;
}

static bool stream_key(const struct merge *merge, struct stream *stream, struct bdoc doc, struct err *err)
{
    struct belem elem;
    uint8_t subtype;
    if (merge->order == MERGE_BY_KEYS) {
        if (!biter_next(&stream->keys, &elem) || elem.val.type != BT_BINARY)
            return err_set(err, ERR_FailedToParse, "a shard's batch lacks a sort key");
        stream->key.data = bval_binary(&elem.val, &subtype, &stream->key.len);
    } else if (merge->order == MERGE_BY_FIELDS) {
        buf_clear(&stream->made);
        if (!sort_key_append(merge->sort, doc, &stream->made, err))
            return false;
        stream->key = key_bytes_of(&stream->made);
    }
    return true;
}

/* Moves to the next document of the batch at hand. */
static bool stream_step(const struct merge *merge, struct stream *stream, struct err *err)
{
    struct belem elem;
    stream->doc = (struct bdoc){0};
    if (!biter_next(&stream->docs, &elem))
        return true;
    if (elem.val.type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "a shard's batch holds something that is no document");
    struct bdoc doc = bval_doc(&elem.val);
    if (!stream_key(merge, stream, doc, err))
        return false;
    stream->doc = doc;
    return true;
}

/* Takes over a reply's batch. */
static bool stream_load(const struct merge *merge, struct stream *stream, struct remote_request *request,
                        struct err *err)
{
    struct cursor_reply reply;
    if (!cursor_reply_parse(request->reply, &reply, err))
        return false;
    wire_frame_unref(stream->frame);
    stream->frame = request->frame;
    request->frame = NULL;
    stream->id = reply.id;
    biter_init(&stream->docs, reply.batch);
    biter_init(&stream->keys, reply.sort_keys.data ? reply.sort_keys : bdoc_empty());
    snprintf(stream->member, sizeof stream->member, "%s", request->member);
    return stream_step(merge, stream, err);
}

bool merge_add(struct merge *merge, struct remote_request *opened, struct err *err)
{
    merge->streams = mem_realloc(merge->streams, (merge->count + 1) * sizeof *merge->streams);
    struct stream *stream = &merge->streams[merge->count++];
    *stream = (struct stream){.set = remote_set_ref(opened->set)};
    return stream_load(merge, stream, opened, err);
}

static bool stream_is_dry(const struct stream *stream)
{
    return !stream->doc.data && stream->id != 0;
}

bool merge_is_local(const struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++)
        if (merge->streams[i].id != 0)
            return false;
    return true;
}

size_t merge_memory_bytes(const struct merge *merge)
{
    size_t bytes = sizeof *merge + merge->count * sizeof *merge->streams;
    for (size_t i = 0; i < merge->count; i++)
        bytes += merge->streams[i].made.cap + (merge->streams[i].frame ? merge->streams[i].frame->len : 0);
    return bytes;
}

static void fetch_prepare(const struct merge *merge, const struct stream *stream, const struct merge_fetch *fetch,
                          struct remote_request *request)
{
    remote_request_init(request, stream->set, false);
    BSON_APPEND_INT64(&request->body, "getMore", stream->id);
    BSON_APPEND_UTF8(&request->body, "collection", merge->coll);
    if (fetch->batch_size > 0)
        BSON_APPEND_INT64(&request->body, "batchSize", fetch->batch_size);
    BSON_APPEND_UTF8(&request->body, "$db", merge->db);
    snprintf(request->pinned, sizeof request->pinned, "%s", stream->member);
}

/* Asks all dry streams for their next batches. */
static bool fetch_all(struct merge *merge, const struct merge_fetch *fetch, struct err *err)
{
    struct remote_request *requests = remote_requests_new(merge->count);
    size_t *owners = mem_alloc_array(merge->count, sizeof *owners);
    size_t count = 0;
    for (size_t i = 0; i < merge->count; i++) {
        if (!stream_is_dry(&merge->streams[i]))
            continue;
        owners[count] = i;
        fetch_prepare(merge, &merge->streams[i], fetch, &requests[count++]);
    }
    remote_run(merge->router, requests, count, fetch->deadline_ms);
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        struct stream *stream = &merge->streams[owners[i]];
        struct err failed = requests[i].err;
        if (!requests[i].ok || !stream_load(merge, stream, &requests[i], &failed)) {
            if (requests[i].reply.data)
                stream->id = 0;
            if (ok)
                *err = failed;
            ok = false;
        }
        remote_request_deinit(&requests[i]);
    }
    mem_free(owners);
    mem_free(requests);
    return ok;
}

static size_t choose(const struct merge *merge)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < merge->count; i++) {
        const struct stream *stream = &merge->streams[i];
        if (!stream->doc.data)
            continue;
        if (merge->order == MERGE_ANY)
            return i;
        if (best == SIZE_MAX || key_bytes_compare(stream->key, merge->streams[best].key) < 0)
            best = i;
    }
    return best;
}

static bool any_dry(const struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++)
        if (stream_is_dry(&merge->streams[i]))
            return true;
    return false;
}

bool merge_next(struct merge *merge, const struct merge_fetch *fetch, struct bdoc *out, struct err *err)
{
    if (!interrupt_step(err))
        return false;
    if (merge->taken != SIZE_MAX && !stream_step(merge, &merge->streams[merge->taken], err))
        return false;
    merge->taken = SIZE_MAX;
    size_t best = choose(merge);
    /* A sorted stream needs a document of every shard before it may choose; an unsorted one only when it has none. */
    while (any_dry(merge) && (merge->order != MERGE_ANY || best == SIZE_MAX)) {
        if (!fetch_all(merge, fetch, err))
            return false;
        best = choose(merge);
    }
    merge->taken = best;
    *out = best == SIZE_MAX ? (struct bdoc){0} : merge->streams[best].doc;
    return true;
}

void merge_kill_cursor(struct router *router, struct remote_set *set, const char *member, const char *db,
                       const char *coll, int64_t id)
{
    struct remote_request request;
    bson_t ids;
    remote_request_init(&request, set, false);
    BSON_APPEND_UTF8(&request.body, "killCursors", coll);
    BSON_APPEND_ARRAY_BEGIN(&request.body, "cursors", &ids);
    BSON_APPEND_INT64(&ids, "0", id);
    bson_append_array_end(&request.body, &ids);
    BSON_APPEND_UTF8(&request.body, "$db", db);
    snprintf(request.pinned, sizeof request.pinned, "%s", member);
    /* Also when the command that leaves the cursor was killed itself. */
    struct interrupt *before = interrupt_enter(NULL);
    remote_run(router, &request, 1, deadline_after_ms(MERGE_KILL_MS));
    (void)interrupt_enter(before);
    remote_request_deinit(&request);
}

void merge_abandon(struct merge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->count; i++) {
        remote_set_unref(merge->streams[i].set);
        wire_frame_unref(merge->streams[i].frame);
        buf_deinit(&merge->streams[i].made);
    }
    mem_free(merge->streams);
    mem_free(merge);
}

void merge_close(struct merge *merge)
{
    for (size_t i = 0; merge && i < merge->count; i++) {
        struct stream *stream = &merge->streams[i];
        if (stream->id != 0)
            merge_kill_cursor(merge->router, stream->set, stream->member, merge->db, merge->coll, stream->id);
    }
    merge_abandon(merge);
}
