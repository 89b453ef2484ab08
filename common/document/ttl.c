#include "document/ttl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"
#include "bson/keyenc.h"
#include "document/engine.h"
#include "document/read_txn.h"
#include "document/statement.h"
#include "document/traits.h"
#include "storage/cursor.h"
#include "storage/records.h"

#include <stdatomic.h>
#include <string.h>

enum {
    TTL_JOBS_MAX = 100000,            /* indexes looked at in one pass */
    TTL_SUB_PASS_DOCS = 50000,        /* of one index before the others have their turn */
    TTL_LOOK_MAX = 20000,             /* entries looked at for one batch */
    TTL_LOG_TIMEOUT_MS = 5 * 1000,    /* for one log command: a stop waits for it */
    TTL_EXPIRE_MAX_SECS = 2147483647, /* longer is as good as never */
};

struct document_ttl {
    struct document_engine *engine;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* protects stop */
    pthread_cond_t cond;
    bool stop;
    _Atomic bool enabled;
    _Atomic int64_t sleep_secs;
    _Atomic int64_t passes;
    _Atomic int64_t sub_passes;
    _Atomic int64_t deleted;
};

/* One index (or clustered collection) whose documents expire. */
struct ttl_job {
    uint8_t uuid[UUID_BYTES];
    uint32_t index_id;
    bool by_options;     /* after the time that the collection's options say, not the index */
    struct buf position; /* the next batch begins behind it */
    bool done;           /* nothing more in this pass */
};

struct ttl_jobs {
    struct ttl_job *items;
    size_t count;
};

/* Documents of one batch, all of one collection. */
struct ttl_batch {
    struct arena arena;
    const char *ns;
    struct statement_candidate *candidates; /* TTL_BATCH_DOCS */
    uint32_t count;
};

struct document_ttl *document_ttl_new(struct document_engine *engine)
{
    struct document_ttl *ttl = mem_alloc(sizeof *ttl);
    ttl->engine = engine;
    pthread_mutex_init(&ttl->mutex, NULL);
    thread_cond_init(&ttl->cond);
    atomic_init(&ttl->enabled, true);
    atomic_init(&ttl->sleep_secs, TTL_SLEEP_SECS);
    return ttl;
}

void document_ttl_free(struct document_ttl *ttl)
{
    if (ttl == NULL)
        return;
    pthread_cond_destroy(&ttl->cond);
    pthread_mutex_destroy(&ttl->mutex);
    mem_free(ttl);
}

static bool is_stopped(struct document_ttl *ttl)
{
    pthread_mutex_lock(&ttl->mutex);
    bool stop = ttl->stop;
    pthread_mutex_unlock(&ttl->mutex);
    return stop;
}

/* ---- what expires ---- */

static void add_job(struct ttl_jobs *jobs, const struct collection *coll, const struct index_def *index,
                    bool by_options)
{
    if (jobs->count == TTL_JOBS_MAX)
        return;
    jobs->items = mem_realloc(jobs->items, (jobs->count + 1) * sizeof *jobs->items);
    struct ttl_job *job = &jobs->items[jobs->count++];
    *job = (struct ttl_job){.index_id = index->id, .by_options = by_options, .position = BUF_INIT};
    memcpy(job->uuid, coll->uuid, UUID_BYTES);
}

/* False for what is no number of seconds: such an index expires nothing. */
static bool expire_secs_of(struct bdoc spec, int64_t *secs)
{
    struct bval val;
    double number;
    if (!bdoc_find(spec, "expireAfterSeconds", &val) || !bval_to_f64(&val, &number) ||
        !(number >= 0 && number <= TTL_EXPIRE_MAX_SECS))
        return false;
    *secs = (int64_t)number;
    return true;
}

static bool options_expire(const struct collection_traits *traits)
{
    return traits->expire_after >= 0 && traits->expire_after <= TTL_EXPIRE_MAX_SECS;
}

/* What holds now: a pass may take long, and collMod may give documents more time meanwhile. */
static bool expire_secs_now(const struct ttl_job *job, const struct collection *coll, const struct index_def *index,
                            int64_t *secs)
{
    const struct collection_traits *traits = collection_traits(coll);
    if (!job->by_options)
        return expire_secs_of(index->spec, secs);
    *secs = traits->expire_after;
    return options_expire(traits);
}

/* An index that has every document of a time series under its time. */
static const struct index_def *time_index(const struct collection *coll, const char *time_field)
{
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        if (index->state == INDEX_READY && index->partial.data == NULL && index->field_count > 0 && !index->hashed &&
            strcmp(index->fields[0].path, time_field) == 0)
            return index;
    }
    return NULL;
}

static void collect_of(struct ttl_jobs *jobs, const struct collection *coll)
{
    const struct collection_traits *traits = collection_traits(coll);
    if (coll->is_view)
        return;
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        int64_t secs;
        if (index->state == INDEX_READY && index->field_count == 1 && !index->is_id && !index->hashed &&
            expire_secs_of(index->spec, &secs))
            add_job(jobs, coll, index, false);
    }
    if (!options_expire(traits))
        return;
    const struct index_def *own = traits->clustered ? coll->indexes[0] : NULL;
    if (traits->kind == COLLECTION_TIMESERIES)
        own = time_index(coll, traits->time_field);
    if (own != NULL)
        add_job(jobs, coll, own, true);
}

static bool collect(struct document_ttl *ttl, struct ttl_jobs *jobs, struct err *err)
{
    struct store_txn *txn;
    const struct collection *coll;
    size_t position = 0;
    if (!store_read_begin(document_engine_store(ttl->engine), &txn, err))
        return false;
    while ((coll = catalog_next(txn, NULL, 0, &position)) != NULL)
        collect_of(jobs, coll);
    store_read_end(txn);
    return true;
}

static void jobs_deinit(struct ttl_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        buf_deinit(&jobs->items[i].position);
    mem_free(jobs->items);
}

/* ---- one batch ---- */

/* The keys of all dates up to `until_ms`, in the direction of the index's first field. */
static void date_bounds(const struct index_def *index, int64_t until_ms, struct buf *low, struct buf *high,
                        struct index_bounds *bounds)
{
    uint8_t bytes[8];
    bool descending = index->fields[0].descending;
    store_le64(bytes, (uint64_t)until_ms);
    struct bval until = {.type = BT_DATE, .data = bytes, .len = sizeof bytes};
    struct buf *oldest = descending ? high : low;
    struct buf *newest = descending ? low : high;
    keyenc_append_before_class(oldest, BT_DATE, descending);
    keyenc_append(newest, &until, descending);
    *bounds = (struct index_bounds){
        .low = low->data,
        .low_len = (uint32_t)low->len,
        .high = high->data,
        .high_len = (uint32_t)high->len,
        .low_inclusive = true,
        .high_inclusive = true,
    };
}

static bool is_in_batch(const struct ttl_batch *batch, uint64_t record_id)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->candidates[i].record_id == record_id)
            return true;
    }
    return false;
}

static void take_record(const struct read_txn *read, const struct index_def *index, uint64_t record_id,
                        struct ttl_batch *batch)
{
    const struct document_ownership *ownership = document_engine_ownership(read->engine);
    const struct document_view *view = read_txn_filter_view(read);
    struct buf scratch = BUF_INIT;
    struct bdoc doc;
    /* Under a multikey index a document stands once for each of its dates. */
    bool take = !(index->multikey && is_in_batch(batch, record_id)) &&
                record_get(read->txn, read->coll, record_id, &scratch, &doc) &&
                (view == NULL || ownership->visible(view, doc));
    if (take)
        batch->candidates[batch->count++] =
            (struct statement_candidate){.record_id = record_id, .hash = hash_bytes(doc.data, doc.len)};
    buf_deinit(&scratch);
}

static void walk(const struct read_txn *read, const struct index_def *index, int64_t secs, struct ttl_job *job,
                 struct ttl_batch *batch)
{
    struct buf low = BUF_INIT;
    struct buf high = BUF_INIT;
    struct index_bounds bounds;
    struct index_cursor cursor;
    struct index_entry entry;
    int looked = 0;
    date_bounds(index, clock_wall_ms() - secs * 1000, &low, &high, &bounds);
    index_cursor_open(&cursor, read->txn, index, &bounds, index->fields[0].descending);
    if (job->position.len > 0 && !index_cursor_restore(&cursor, job->position.data, job->position.len))
        job->done = true;
    while (!job->done && looked < TTL_LOOK_MAX && batch->count < TTL_BATCH_DOCS) {
        job->done = !index_cursor_next(&cursor, &entry);
        if (job->done)
            break;
        looked++;
        take_record(read, index, entry.record_id, batch);
        buf_clear(&job->position);
        index_position_append(&entry, &job->position);
    }
    index_cursor_close(&cursor);
    buf_deinit(&low);
    buf_deinit(&high);
}

/* The collection by its uuid: it may have been renamed. */
static bool open_collection(struct document_ttl *ttl, struct ttl_job *job, struct ttl_batch *batch,
                            struct read_txn *read, const struct index_def **index, struct err *err)
{
    struct store_txn *txn;
    if (!store_read_begin(document_engine_store(ttl->engine), &txn, err))
        return false;
    const struct collection *coll = catalog_find_uuid(txn, job->uuid);
    batch->ns = coll == NULL ? NULL : arena_copy_str(&batch->arena, coll->ns, coll->ns_len);
    store_read_end(txn);
    *index = NULL;
    if (batch->ns == NULL)
        return true;
    if (!read_txn_open(read, ttl->engine, batch->ns, (struct bdoc){0}, err))
        return false;
    if (read->coll != NULL && memcmp(read->coll->uuid, job->uuid, UUID_BYTES) == 0)
        *index = collection_find_index_id(read->coll, job->index_id);
    return true;
}

static bool find_batch(struct document_ttl *ttl, struct ttl_job *job, struct ttl_batch *batch, struct err *err)
{
    struct read_txn read = {0};
    const struct index_def *index;
    int64_t secs;
    bool ok = open_collection(ttl, job, batch, &read, &index, err);
    if (ok && index != NULL && expire_secs_now(job, read.coll, index, &secs))
        walk(&read, index, secs, job, batch);
    else
        job->done = true;
    read_txn_close(&read);
    return ok;
}

static bool delete_batch(struct document_ttl *ttl, const struct ttl_batch *batch, int64_t *deleted, struct err *err)
{
    static const uint8_t no_uuid[UUID_BYTES];
    const struct document_log *log = document_engine_log(ttl->engine);
    struct statement_batch head = {.ns = batch->ns, .create_uuid = no_uuid, .count = 1, .now_ms = clock_wall_ms()};
    struct statement statement = {
        .flags = STATEMENT_DELETE | STATEMENT_MULTI | STATEMENT_IMAGE,
        .filter = bdoc_empty(),
        .candidates = batch->candidates,
        .candidate_count = batch->count,
    };
    struct buf command = BUF_INIT;
    struct buf result = BUF_INIT;
    struct codec_reader reader;
    struct statement_result one;
    size_t len;
    buf_append_u8(&command, DOCUMENT_KIND_UPDATE);
    statement_batch_encode(&command, &head);
    statement_encode(&command, &statement);
    uint8_t *bytes = buf_take(&command, &len);
    bool ok = document_log_wait(log, bytes, len, deadline_after_ms(TTL_LOG_TIMEOUT_MS), &result, err);
    if (ok) {
        codec_reader_init(&reader, result.data, result.len);
        if (codec_read_u32(&reader) == 1) {
            statement_result_decode(&reader, &one);
            *deleted += reader.failed ? 0 : one.n;
        }
    }
    buf_deinit(&result);
    return ok;
}

static bool run_batch(struct document_ttl *ttl, struct ttl_job *job, int64_t *deleted, struct err *err)
{
    const struct document_log *log = document_engine_log(ttl->engine);
    struct ttl_batch batch = {0};
    if (!log->check_leader(log->arg, err))
        return false;
    arena_init(&batch.arena);
    batch.candidates = arena_alloc(&batch.arena, TTL_BATCH_DOCS * sizeof *batch.candidates);
    bool ok = find_batch(ttl, job, &batch, err) && (batch.count == 0 || delete_batch(ttl, &batch, deleted, err));
    arena_deinit(&batch.arena);
    return ok;
}

/* ---- a pass ---- */

/* Some batches of one index. */
static bool run_job(struct document_ttl *ttl, struct ttl_job *job, struct err *err)
{
    int64_t deleted = 0;
    bool ok = true;
    while (ok && !job->done && deleted < TTL_SUB_PASS_DOCS && document_ttl_enabled(ttl) && !is_stopped(ttl)) {
        int64_t before = deleted;
        ok = run_batch(ttl, job, &deleted, err);
        atomic_fetch_add(&ttl->deleted, deleted - before);
        if (ok && !job->done && ttl->started)
            clock_sleep_ms(TTL_BATCH_PAUSE_MS);
    }
    return ok;
}

bool document_ttl_pass(struct document_ttl *ttl, struct err *err)
{
    const struct document_log *log = document_engine_log(ttl->engine);
    struct ttl_jobs jobs = {0};
    if (!log->check_leader(log->arg, err))
        return false;
    bool ok = collect(ttl, &jobs, err);
    bool more = jobs.count > 0;
    while (ok && more && document_ttl_enabled(ttl) && !is_stopped(ttl)) {
        more = false;
        for (size_t i = 0; ok && i < jobs.count; i++) {
            ok = run_job(ttl, &jobs.items[i], err);
            more |= !jobs.items[i].done;
        }
        atomic_fetch_add(&ttl->sub_passes, 1);
    }
    atomic_fetch_add(&ttl->passes, 1);
    jobs_deinit(&jobs);
    return ok;
}

static void pass_logged(struct document_ttl *ttl)
{
    struct err err;
    int64_t before = atomic_load(&ttl->deleted);
    const struct document_log *log = document_engine_log(ttl->engine);
    if (!document_ttl_enabled(ttl) || !log->check_leader(log->arg, &err))
        return;
    if (!document_ttl_pass(ttl, &err))
        log_info("INDEX", 5330, "A TTL pass was given up; the next one goes on", LOG_STR("error", err.msg));
    int64_t deleted = atomic_load(&ttl->deleted) - before;
    if (deleted > 0)
        log_info("INDEX", 5331, "Expired documents were deleted", LOG_I64("count", deleted));
}

static void *run(void *arg)
{
    struct document_ttl *ttl = arg;
    int64_t slept_from = clock_now_ms();
    pthread_mutex_lock(&ttl->mutex);
    while (!ttl->stop) {
        /* The setting may change while the thread sleeps. */
        int64_t due_ms = slept_from + atomic_load(&ttl->sleep_secs) * 1000;
        if (!deadline_passed(due_ms)) {
            thread_cond_wait_until(&ttl->cond, &ttl->mutex, due_ms);
            continue;
        }
        pthread_mutex_unlock(&ttl->mutex);
        pass_logged(ttl);
        slept_from = clock_now_ms();
        pthread_mutex_lock(&ttl->mutex);
    }
    pthread_mutex_unlock(&ttl->mutex);
    return NULL;
}

void document_ttl_start(struct document_ttl *ttl)
{
    ttl->started = true;
    thread_start(&ttl->thread, "ttl", run, ttl);
}

void document_ttl_stop(struct document_ttl *ttl)
{
    if (!ttl->started)
        return;
    pthread_mutex_lock(&ttl->mutex);
    ttl->stop = true;
    pthread_cond_signal(&ttl->cond);
    pthread_mutex_unlock(&ttl->mutex);
    thread_join(ttl->thread);
    ttl->started = false;
}

bool document_ttl_enabled(const struct document_ttl *ttl)
{
    return atomic_load(&ttl->enabled);
}

void document_ttl_set_enabled(struct document_ttl *ttl, bool enabled)
{
    atomic_store(&ttl->enabled, enabled);
}

int64_t document_ttl_sleep_secs(const struct document_ttl *ttl)
{
    return atomic_load(&ttl->sleep_secs);
}

void document_ttl_set_sleep_secs(struct document_ttl *ttl, int64_t secs)
{
    atomic_store(&ttl->sleep_secs, secs);
    pthread_mutex_lock(&ttl->mutex);
    pthread_cond_signal(&ttl->cond);
    pthread_mutex_unlock(&ttl->mutex);
}

void document_ttl_counters(const struct document_ttl *ttl, struct document_ttl_counters *out)
{
    *out = (struct document_ttl_counters){
        .passes = atomic_load(&ttl->passes),
        .sub_passes = atomic_load(&ttl->sub_passes),
        .deleted_documents = atomic_load(&ttl->deleted),
    };
}
