/* Queries by a secondary index, from the compiled command on (filter, plan, walk, every document looked at), beside
 * the LMDB operations that they can't do without, in the same store and the same run:
 *
 *   point  {n: value}: one seek in the entries, one get of a record
 *   range  {n: {$gte: value, $lt: value + 100}}: one seek, 100 steps in the entries, 100 gets
 *
 * Nanoseconds of processor time for one query, the best of ROUNDS; the ratio is what counts.
 * usage: bench_plan [DOCS] */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "bson/keyenc.h"
#include "plan/scan.h"
#include "storage/env.h"
#include "storage/index_build.h"
#include "storage/pieces.h"
#include "storage/records.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_DOCS = 200000,
    BATCH = 1000,
    ROUNDS = 5,
    POINTS = 100000,
    RANGES = 3000,
    RANGE = 100,
};

struct bench {
    char dir[64];
    struct store *store;
    uint32_t docs;
    uint64_t found; /* by the run at hand, so that nothing is optimised away */
};

static void need(bool ok, const struct err *err)
{
    if (ok)
        return;
    fprintf(stderr, "bench_plan: %s\n", err->msg);
    exit(2);
}

static int64_t cpu_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* `n` runs through all numbers once, in random order: each is one document's. */
static void fill(struct bench *bench)
{
    struct err err = {0};
    struct store_txn *txn;
    static const uint8_t uuid[UUID_BYTES] = "plan benchmark";
    uint32_t *order = mem_alloc_array(bench->docs, sizeof *order);
    struct prng prng = {7};
    for (uint32_t i = 0; i < bench->docs; i++) {
        uint32_t other = (uint32_t)prng_below(&prng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    need(store_write_begin(bench->store, &txn, &err), &err);
    need(catalog_create(txn, "db.c", 4, uuid, bdoc_empty(), &err), &err);
    bson_t *spec = BCON_NEW("key", "{", "n", BCON_INT32(1), "}", "name", "n_1");
    need(index_build_now(txn, catalog_find(txn, "db.c", 4), bdoc_of(spec), NULL, &err), &err);
    bson_destroy(spec);
    for (uint32_t i = 0; i < bench->docs; i++) {
        bson_t *doc =
            BCON_NEW("_id", BCON_INT32((int32_t)i), "name", "a name of twenty bytes", "email",
                     "somebody@somewhere.example", "n", BCON_INT32((int32_t)order[i]), "text",
                     "about as much again as all the other fields together, so that a document has 250 bytes");
        need(record_insert(txn, catalog_find(txn, "db.c", 4), bdoc_of(doc), NULL, NULL, &err), &err);
        bson_destroy(doc);
        if (i % BATCH == BATCH - 1) {
            store_write_commit(txn, i / BATCH + 1);
            need(store_write_begin(bench->store, &txn, &err), &err);
        }
    }
    store_write_commit(txn, bench->docs);
    mem_free(order);
}

/* ---- the least that LMDB has to do ---- */

static void raw_query(struct bench *bench, uint32_t from, uint32_t count)
{
    struct err err = {0};
    struct store_txn *txn;
    struct buf key = BUF_INIT;
    uint8_t record[RECORD_KEY_BYTES];
    need(store_read_begin(bench->store, &txn, &err), &err);
    const struct collection *coll = catalog_find(txn, "db.c", 4);
    buf_append_be32(&key, coll->indexes[1]->id);
    keyenc_append_i64(&key, from, false);
    MDB_cursor *cursor = env_cursor_take(txn, STORE_DB_ENTRIES);
    MDB_val at = {key.len, key.data};
    MDB_val value;
    bool more = env_cursor_get(cursor, &at, &value, MDB_SET_RANGE);
    for (uint32_t i = 0; more && i < count; i++) {
        record_key(record, coll->id, load_be64((const uint8_t *)at.mv_data + at.mv_size - 8));
        if (env_get(txn, STORE_DB_RECORDS, record, sizeof record, &value))
            bench->found += load_le32(value.mv_data) > 0;
        more = count > 1 && env_cursor_get(cursor, &at, &value, MDB_NEXT);
    }
    env_cursor_give(txn, STORE_DB_ENTRIES, cursor);
    buf_deinit(&key);
    store_read_end(txn);
}

/* ---- through the planner ---- */

static void planned_query(struct bench *bench, struct arena *arena, uint32_t from, uint32_t count)
{
    struct err err = {0};
    struct store_txn *txn;
    struct filter *filter;
    struct plan *plan;
    struct scan scan;
    bool found = true;
    bson_t query = BSON_INITIALIZER;
    if (count == 1)
        BSON_APPEND_INT32(&query, "n", (int32_t)from);
    else
        BCON_APPEND(&query, "n", "{", "$gte", BCON_INT32((int32_t)from), "$lt", BCON_INT32((int32_t)(from + count)),
                    "}");
    need(store_read_begin(bench->store, &txn, &err), &err);
    need(filter_compile(arena, bdoc_of(&query), NULL, &filter, &err), &err);
    struct plan_request request = {.filter = filter, .txn = txn};
    struct scan_options options = {.txn = txn, .coll = catalog_find(txn, "db.c", 4), .need_doc = true};
    need(plan_make(arena, options.coll, &request, &plan, &err), &err);
    options.plan = plan;
    need(scan_open(&scan, &options, &err), &err);
    while (found) {
        need(scan_next(&scan, &found, &err), &err);
        bench->found += found && scan.doc.len > 0;
    }
    scan_close(&scan);
    store_read_end(txn);
    bson_destroy(&query);
    arena_reset(arena);
}

/* Nanoseconds of one query. */
static double measure(struct bench *bench, bool planned, uint32_t queries, uint32_t count)
{
    struct arena arena;
    double best = 1e18;
    arena_init(&arena);
    for (int round = 0; round < ROUNDS; round++) {
        struct prng prng = {99};
        bench->found = 0;
        int64_t start = cpu_now_ns();
        for (uint32_t i = 0; i < queries; i++) {
            uint32_t from = (uint32_t)prng_below(&prng, bench->docs - count);
            if (planned)
                planned_query(bench, &arena, from, count);
            else
                raw_query(bench, from, count);
        }
        double ns = (double)(cpu_now_ns() - start) / queries;
        best = ns < best ? ns : best;
        if (bench->found != (uint64_t)queries * count) {
            fprintf(stderr, "bench_plan: %llu documents found\n", (unsigned long long)bench->found);
            exit(1);
        }
    }
    arena_deinit(&arena);
    return best;
}

static void compare(struct bench *bench, const char *what, uint32_t queries, uint32_t count)
{
    double raw = measure(bench, false, queries, count);
    double planned = measure(bench, true, queries, count);
    printf("%-34s %9.0f ns   LMDB alone %9.0f ns   ratio %.2f\n", what, planned, raw, planned / raw);
}

static void remove_store(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

int main(int argc, char **argv)
{
    struct bench bench = {.dir = "/tmp/sherd-bench-plan-XXXXXX", .docs = DEFAULT_DOCS};
    struct err err = {0};
    if (argc > 1)
        bench.docs = (uint32_t)strtoul(argv[1], NULL, 10);
    if (bench.docs < 2 * RANGE || mkdtemp(bench.dir) == NULL) {
        fprintf(stderr, "usage: bench_plan [DOCS], at least %d\n", 2 * RANGE);
        return 2;
    }
    log_set_level(LOG_LEVEL_WARN);
    struct store_options options = {.dir = bench.dir, .map_bytes = UINT64_C(4) << 30, .create = true};
    need(store_open(&options, &bench.store, &err), &err);
    fill(&bench);
    uint32_t scale = bench.docs < DEFAULT_DOCS ? 100 : 1;
    compare(&bench, "point query by a secondary index", POINTS / scale, 1);
    compare(&bench, "range of 100 by a secondary index", RANGES / scale, RANGE);
    store_close(bench.store);
    remove_store(bench.dir);
    return 0;
}
