#include "document/index_builder.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "document/codec.h"
#include "document/engine.h"
#include "storage/catalog.h"
#include "storage/counters.h"
#include "storage/index_build.h"
#include "storage/store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    BUILD_STEP_RECORDS = 2000, /* of one log entry: about 10 ms of apply */
    ERASE_STEP_KEYS = 2000,
    BUILD_PAUSE_MS = 2, /* between two steps, for foreground writes */
    BUILD_BUSY_PAUSE_MS = 50,
    BUILD_FOLLOW_PAUSE_MS = 50,
    ERR_INDEX_BUILD_ABORTED = 276,
};

/* One build under way: the indexes of one createIndexes, in turn. */
struct build {
    struct build *next;
    struct index_builder *builder;
    struct command_ctx *ctx; /* NULL: taken up from a former leader, nobody waits */
    char ns[CATALOG_NS_MAX + 1];
    uint8_t uuid[UUID_BYTES];
    uint32_t ids[CATALOG_INDEXES_MAX];
    uint32_t count;
    uint32_t at;    /* the one that is being built; count: all are, the end of the whole is under way */
    bool killed;    /* its createIndexes was killed: the end takes all of it away */
    struct err end; /* what a killed one answers */
};

struct index_builder {
    struct document_engine *engine;
    pthread_mutex_t mutex; /* protects everything below */
    struct build *builds;
    bool erasing;
    /* Builds without a driver at the last look. One that is found so twice is taken up: a fresh one gets its own in
     * between. */
    uint32_t orphans[CATALOG_INDEXES_MAX];
    uint32_t orphan_count;
};

struct index_builder *index_builder_new(struct document_engine *engine)
{
    struct index_builder *builder = mem_alloc(sizeof *builder);
    builder->engine = engine;
    pthread_mutex_init(&builder->mutex, NULL);
    return builder;
}

void index_builder_free(struct index_builder *builder)
{
    if (builder == NULL)
        return;
    CHECK(builder->builds == NULL && !builder->erasing);
    pthread_mutex_destroy(&builder->mutex);
    mem_free(builder);
}

static void end_build(struct build *build, const struct err *err)
{
    struct index_builder *builder = build->builder;
    pthread_mutex_lock(&builder->mutex);
    struct build **place = &builder->builds;
    while (*place != build)
        place = &(*place)->next;
    *place = build->next;
    pthread_mutex_unlock(&builder->mutex);
    if (err == NULL)
        log_info("INDEX", 5101, "Index build finished", LOG_STR("ns", build->ns), LOG_I64("indexes", build->count));
    else
        log_info("INDEX", 5102, "Index build ended early", LOG_STR("ns", build->ns), LOG_STR("error", err->msg));
    if (build->ctx != NULL)
        command_finish(build->ctx, err);
    mem_free(build);
}

static void propose_build(void *arg);

static void go_to_end(struct build *build)
{
    pthread_mutex_lock(&build->builder->mutex);
    build->at = build->count;
    pthread_mutex_unlock(&build->builder->mutex);
}

static void build_proposed(void *arg, const struct document_result *result)
{
    struct build *build = arg;
    const struct document_log *log = document_engine_log(build->builder->engine);
    /* Not the end: "not executed" would make the router ask again, and find the index there, half built. */
    if (result->outcome == DOCUMENT_BUSY) {
        log->submit_after(log->arg, BUILD_BUSY_PAUSE_MS, propose_build, build);
        return;
    }
    /* One of the indexes is gone: the end of the whole takes the others along. */
    if (result->outcome == DOCUMENT_APPLIED && !result->ok && build->at < build->count) {
        go_to_end(build);
        log->submit_after(log->arg, BUILD_PAUSE_MS, propose_build, build);
        return;
    }
    if (result->outcome != DOCUMENT_APPLIED || !result->ok) {
        end_build(build, &result->err);
        return;
    }
    if (build->at == build->count) {
        end_build(build, build->killed ? &build->end : NULL);
        return;
    }
    bool more = result->len > 0 && result->data[0] != 0;
    if (!more) {
        pthread_mutex_lock(&build->builder->mutex);
        build->at++;
        pthread_mutex_unlock(&build->builder->mutex);
    }
    log->submit_after(log->arg, BUILD_PAUSE_MS, propose_build, build);
}

/* False when the one who waits was killed or has no more time. That he has gone away doesn't matter: a router that asks
 * again finds the build. */
static bool check_waiter(const struct command_ctx *ctx, struct err *err)
{
    int32_t killed = atomic_load(&ctx->op.interrupt.killed);
    if (killed != 0)
        return err_set(err, killed, "the index build was interrupted");
    return !deadline_passed(ctx->deadline_ms) ||
           err_set(err, ERR_MaxTimeMSExpired, "the index build exceeded the time limit");
}

static void encode_build(const struct build *build, struct buf *command)
{
    bool ending = build->at == build->count;
    buf_append_u8(command, ending ? DOCUMENT_KIND_BUILD_END : DOCUMENT_KIND_BUILD_STEP);
    buf_append(command, build->uuid, UUID_BYTES);
    if (!ending) {
        buf_append_le32(command, build->ids[build->at]);
        buf_append_le32(command, BUILD_STEP_RECORDS);
        return;
    }
    buf_append_u8(command, build->killed);
    buf_append_le32(command, build->count);
    for (uint32_t i = 0; i < build->count; i++)
        buf_append_le32(command, build->ids[i]);
}

static void propose_build(void *arg)
{
    struct build *build = arg;
    const struct document_log *log = document_engine_log(build->builder->engine);
    struct buf command = BUF_INIT;
    struct err err;
    if (build->ctx != NULL && build->at < build->count && !check_waiter(build->ctx, &build->end)) {
        build->killed = true;
        go_to_end(build);
    }
    /* The index stays as far as it is built, and is taken up again when there is space. */
    if (build->at < build->count && !store_check_space(document_engine_store(build->builder->engine), &err)) {
        end_build(build, &err);
        return;
    }
    encode_build(build, &command);
    size_t len;
    uint8_t *bytes = buf_take(&command, &len);
    log->propose(log->arg, bytes, len, build_proposed, build);
}

static bool is_built_locked(const struct index_builder *builder, uint32_t index_id)
{
    for (const struct build *build = builder->builds; build != NULL; build = build->next) {
        for (uint32_t i = 0; i < build->count; i++) {
            if (build->ids[i] == index_id)
                return true;
        }
    }
    return false;
}

/* False when one of the indexes is being built already. */
static bool add_build(struct index_builder *builder, struct build *build)
{
    pthread_mutex_lock(&builder->mutex);
    bool taken = false;
    for (uint32_t i = 0; i < build->count; i++)
        taken |= is_built_locked(builder, build->ids[i]);
    if (!taken) {
        build->next = builder->builds;
        builder->builds = build;
    }
    pthread_mutex_unlock(&builder->mutex);
    return !taken;
}

static bool find_uuid(struct document_engine *engine, const char *ns, uint8_t uuid[UUID_BYTES], struct err *err)
{
    struct store_txn *txn;
    if (!store_read_begin(document_engine_store(engine), &txn, err))
        return false;
    const struct collection *coll = catalog_find(txn, ns, strlen(ns));
    if (coll != NULL)
        memcpy(uuid, coll->uuid, UUID_BYTES);
    store_read_end(txn);
    return coll != NULL || err_set(err, ERR_NamespaceNotFound, "the collection was dropped while its index was built");
}

/* ---- a build that somebody else drives ---- */

static void end_follow(struct build *build, const struct err *err)
{
    if (build->ctx != NULL)
        command_finish(build->ctx, err);
    mem_free(build);
}

/* *ready: all of the build's indexes are. False: one of them is gone. */
static bool look_at_followed(const struct build *build, bool *ready, struct err *err)
{
    struct store_txn *txn;
    bool ok = true;
    *ready = true;
    if (!store_read_begin(document_engine_store(build->builder->engine), &txn, err))
        return false;
    const struct collection *coll = catalog_find_uuid(txn, build->uuid);
    for (uint32_t i = 0; ok && i < build->count; i++) {
        const struct index_def *index = coll == NULL ? NULL : collection_find_index_id(coll, build->ids[i]);
        ok = index != NULL || err_set(err, ERR_INDEX_BUILD_ABORTED, "the index was dropped or could not be built");
        *ready &= ok && index->state == INDEX_READY;
    }
    store_read_end(txn);
    return ok;
}

static void follow(void *arg)
{
    struct build *build = arg;
    const struct document_log *log = document_engine_log(build->builder->engine);
    struct err err;
    bool ready;
    if (!log->check_leader(log->arg, &err) || (build->ctx != NULL && !check_waiter(build->ctx, &err)) ||
        !look_at_followed(build, &ready, &err))
        end_follow(build, &err);
    else if (ready)
        end_follow(build, NULL);
    else
        log->submit_after(log->arg, BUILD_FOLLOW_PAUSE_MS, follow, build);
}

void index_builder_start(struct index_builder *builder, struct command_ctx *ctx, const char *ns, const uint32_t *ids,
                         uint32_t count)
{
    CHECK(count > 0 && count <= CATALOG_INDEXES_MAX);
    struct build *build = mem_alloc(sizeof *build);
    build->builder = builder;
    build->ctx = ctx;
    build->count = count;
    memcpy(build->ids, ids, count * sizeof *ids);
    memcpy(build->ns, ns, strnlen(ns, CATALOG_NS_MAX));
    struct err err;
    if (!find_uuid(builder->engine, ns, build->uuid, &err)) {
        end_follow(build, &err);
        return;
    }
    if (!add_build(builder, build)) {
        follow(build);
        return;
    }
    log_info("INDEX", 5103, "Index build started", LOG_STR("ns", build->ns), LOG_I64("indexes", count));
    propose_build(build);
}

/* ---- erasing ---- */

static void propose_erase(void *arg);

static void end_erase(struct index_builder *builder)
{
    pthread_mutex_lock(&builder->mutex);
    builder->erasing = false;
    pthread_mutex_unlock(&builder->mutex);
}

static void erase_proposed(void *arg, const struct document_result *result)
{
    struct index_builder *builder = arg;
    const struct document_log *log = document_engine_log(builder->engine);
    bool more = result->outcome == DOCUMENT_APPLIED && result->ok && result->len > 0 && result->data[0] != 0;
    if (more)
        log->submit_after(log->arg, BUILD_PAUSE_MS, propose_erase, builder);
    else
        end_erase(builder);
}

static void propose_erase(void *arg)
{
    struct index_builder *builder = arg;
    const struct document_log *log = document_engine_log(builder->engine);
    struct buf command = BUF_INIT;
    buf_append_u8(&command, DOCUMENT_KIND_ERASE_STEP);
    buf_append_le32(&command, ERASE_STEP_KEYS);
    size_t len;
    uint8_t *bytes = buf_take(&command, &len);
    log->propose(log->arg, bytes, len, erase_proposed, builder);
}

void index_builder_nudge(struct index_builder *builder)
{
    pthread_mutex_lock(&builder->mutex);
    bool start = !builder->erasing;
    builder->erasing = true;
    pthread_mutex_unlock(&builder->mutex);
    if (start)
        propose_erase(builder);
}

/* ---- progress ---- */

static void append_progress(const struct build *build, struct store_txn *txn, bson_t *out)
{
    const struct collection *coll = catalog_find_uuid(txn, build->uuid);
    struct counter counter = {0};
    uint64_t done = 0;
    char text[100];
    bson_t progress;
    if (coll != NULL)
        counter_collection(txn, coll, &counter);
    uint64_t total = (uint64_t)counter.docs * build->count;
    for (uint32_t i = 0; i < build->count; i++) {
        const struct index_def *index = coll == NULL ? NULL : collection_find_index_id(coll, build->ids[i]);
        if (index != NULL)
            done += index_build_done_records(txn, index);
    }
    if (done > total)
        done = total; /* documents were erased behind the build */
    snprintf(text, sizeof text, "Index Build: scanning collection: %llu/%llu %d%%", (unsigned long long)done,
             (unsigned long long)total, total == 0 ? 100 : (int)(done * 100 / total));
    BSON_APPEND_UTF8(out, "ns", build->ns);
    BSON_APPEND_UTF8(out, "msg", text);
    BSON_APPEND_DOCUMENT_BEGIN(out, "progress", &progress);
    BSON_APPEND_INT64(&progress, "done", (int64_t)done);
    BSON_APPEND_INT64(&progress, "total", (int64_t)total);
    bson_append_document_end(out, &progress);
}

void index_builder_each(struct index_builder *builder, void (*fn)(void *arg, struct bdoc build), void *arg)
{
    struct store_txn *txn;
    struct err ignored;
    if (!store_read_begin(document_engine_store(builder->engine), &txn, &ignored))
        return;
    pthread_mutex_lock(&builder->mutex);
    for (const struct build *build = builder->builds; build != NULL; build = build->next) {
        bson_t doc = BSON_INITIALIZER;
        append_progress(build, txn, &doc);
        fn(arg, bdoc_of(&doc));
        bson_destroy(&doc);
    }
    pthread_mutex_unlock(&builder->mutex);
    store_read_end(txn);
}

/* ---- what a former leader left ---- */

static bool was_orphan_locked(const struct index_builder *builder, uint32_t index_id)
{
    for (uint32_t i = 0; i < builder->orphan_count; i++) {
        if (builder->orphans[i] == index_id)
            return true;
    }
    return false;
}

/* With all indexes of its command that are not built yet. */
static void start_group(struct index_builder *builder, const struct collection *coll, const struct index_def *index)
{
    uint32_t ids[CATALOG_INDEXES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *other = coll->indexes[i];
        bool together = other == index || (index->build_group != 0 && other->build_group == index->build_group);
        if (together && other->state == INDEX_BUILDING)
            ids[count++] = other->id;
    }
    index_builder_start(builder, NULL, coll->ns, ids, count);
}

static void take_up_index(struct index_builder *builder, const struct collection *coll, const struct index_def *index,
                          uint32_t *seen, uint32_t *seen_count)
{
    pthread_mutex_lock(&builder->mutex);
    bool orphan = index->state == INDEX_BUILDING && !is_built_locked(builder, index->id);
    bool again = orphan && was_orphan_locked(builder, index->id);
    pthread_mutex_unlock(&builder->mutex);
    if (again)
        start_group(builder, coll, index);
    else if (orphan && *seen_count < CATALOG_INDEXES_MAX)
        seen[(*seen_count)++] = index->id;
}

static void take_up(struct index_builder *builder, struct store_txn *txn)
{
    const struct collection *coll;
    size_t position = 0;
    uint32_t seen[CATALOG_INDEXES_MAX];
    uint32_t seen_count = 0;
    while ((coll = catalog_next(txn, NULL, 0, &position)) != NULL) {
        for (uint32_t i = 0; i < coll->index_count; i++)
            take_up_index(builder, coll, coll->indexes[i], seen, &seen_count);
    }
    pthread_mutex_lock(&builder->mutex);
    memcpy(builder->orphans, seen, seen_count * sizeof *seen);
    builder->orphan_count = seen_count;
    pthread_mutex_unlock(&builder->mutex);
}

void index_builder_tick(struct index_builder *builder)
{
    const struct document_log *log = document_engine_log(builder->engine);
    struct store_txn *txn;
    struct err err;
    if (!log->check_leader(log->arg, &err) || !store_read_begin(document_engine_store(builder->engine), &txn, &err))
        return;
    if (store_check_space(document_engine_store(builder->engine), &err))
        take_up(builder, txn);
    bool erase = catalog_erase_pending(txn);
    store_read_end(txn);
    if (erase)
        index_builder_nudge(builder);
}
