/* Measures a running cluster through its router, and in the same run what the machine can do without a database.
 *
 *   bench_cluster --port P --dir SCRATCH [--seconds S] [--documents N]
 *
 * Prints a table: operation, clients, operations a second, the floor it is held against, the ratio.
 *
 *   bench_cluster --port P --only load|insert|read|update|scan --clients N [--seconds S] [--documents N]
 *
 * runs one kind alone, for a profiler, and prints its rate and its count of operations. */
#include "tests/bench/cluster/client.h"
#include "tests/bench/cluster/floor.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DOCUMENT_BYTES = 1024, BULK = 1000, SCAN = 20 };

static int port;
static char *scratch;
static double seconds = 3;
static int64_t documents = 100000;
static atomic_llong next_id;

enum kind { INSERT, READ, UPDATE, SCAN_RANGE };

struct worker {
    enum kind kind;
    int64_t until_ns;
    int64_t count;
    struct prng prng;
};

/* A document of DOCUMENT_BYTES with the given _id. */
static void append_document(struct buf *out, int64_t id)
{
    static char payload[DOCUMENT_BYTES];
    bson_t doc = BSON_INITIALIZER;
    bson_append_int64(&doc, "_id", 3, id);
    bson_append_int64(&doc, "n", 1, id % 1000);
    if (payload[0] == 0)
        memset(payload, 'x', sizeof payload);
    int rest = DOCUMENT_BYTES - (int)doc.len - 1 - 8 - 4 - 1;
    bson_append_utf8(&doc, "payload", 7, payload, rest);
    buf_append(out, bson_get_data(&doc), doc.len);
    bson_destroy(&doc);
}

static void begin(bson_t *command, const char *name)
{
    bson_init(command);
    bson_append_utf8(command, name, -1, "documents", -1);
    bson_append_utf8(command, "$db", 3, "bench", -1);
}

static void insert_documents(struct bench_client *client, struct buf *scratch_buf, int64_t first, int64_t count)
{
    bson_t command;
    begin(&command, "insert");
    bson_append_bool(&command, "ordered", 7, false);
    buf_clear(scratch_buf);
    for (int64_t id = first; id < first + count; id++)
        append_document(scratch_buf, id);
    struct bdoc reply = bench_client_run(client, &command, "documents", scratch_buf);
    struct bval n;
    int64_t inserted = 0;
    CHECK(bdoc_find(reply, "n", &n) && bval_to_i64(&n, &inserted) && inserted == count);
    bson_destroy(&command);
}

/* Documents in the first batch of a find's reply. */
static uint32_t batch_count(struct bdoc reply)
{
    struct bval cursor;
    struct bval batch;
    CHECK(bdoc_find(reply, "cursor", &cursor) && bdoc_find(bval_doc(&cursor), "firstBatch", &batch));
    return bdoc_count(bval_doc(&batch));
}

static void read_one(struct bench_client *client, int64_t id)
{
    bson_t command;
    bson_t filter;
    begin(&command, "find");
    bson_append_document_begin(&command, "filter", 6, &filter);
    bson_append_int64(&filter, "_id", 3, id);
    bson_append_document_end(&command, &filter);
    bson_append_int32(&command, "limit", 5, 1);
    bson_append_bool(&command, "singleBatch", 11, true);
    CHECK(batch_count(bench_client_run(client, &command, NULL, NULL)) == 1);
    bson_destroy(&command);
}

static void scan_range(struct bench_client *client, int64_t id)
{
    bson_t command;
    bson_t filter;
    bson_t bounds;
    begin(&command, "find");
    bson_append_document_begin(&command, "filter", 6, &filter);
    bson_append_document_begin(&filter, "_id", 3, &bounds);
    bson_append_int64(&bounds, "$gte", 4, id);
    bson_append_document_end(&filter, &bounds);
    bson_append_document_end(&command, &filter);
    bson_append_document_begin(&command, "sort", 4, &filter);
    bson_append_int32(&filter, "_id", 3, 1);
    bson_append_document_end(&command, &filter);
    bson_append_int32(&command, "limit", 5, SCAN);
    bson_append_bool(&command, "singleBatch", 11, true);
    CHECK(batch_count(bench_client_run(client, &command, NULL, NULL)) >= 1);
    bson_destroy(&command);
}

static void update_one(struct bench_client *client, struct buf *scratch_buf, int64_t id)
{
    bson_t command;
    begin(&command, "update");
    bson_t *update =
        BCON_NEW("q", "{", "_id", BCON_INT64(id), "}", "u", "{", "$inc", "{", "n", BCON_INT32(1), "}", "}");
    buf_clear(scratch_buf);
    buf_append(scratch_buf, bson_get_data(update), update->len);
    bench_client_run(client, &command, "updates", scratch_buf);
    bson_destroy(update);
    bson_destroy(&command);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct bench_client client;
    struct buf buf = BUF_INIT;
    bench_client_open(&client, port);
    while (clock_now_ns() < worker->until_ns) {
        int64_t id = (int64_t)prng_below(&worker->prng, (uint64_t)documents);
        switch (worker->kind) {
        case INSERT:
            insert_documents(&client, &buf, atomic_fetch_add(&next_id, 1), 1);
            break;
        case READ:
            read_one(&client, id);
            break;
        case UPDATE:
            update_one(&client, &buf, id);
            break;
        case SCAN_RANGE:
            scan_range(&client, id);
            break;
        }
        worker->count++;
    }
    bench_client_close(&client);
    buf_deinit(&buf);
    return NULL;
}

/* Operations a second of `clients` threads. */
static double run(enum kind kind, int clients)
{
    struct worker *workers = mem_alloc_array((size_t)clients, sizeof *workers);
    pthread_t *threads = mem_alloc_array((size_t)clients, sizeof *threads);
    int64_t start = clock_now_ns();
    for (int i = 0; i < clients; i++) {
        workers[i] = (struct worker){
            .kind = kind, .until_ns = start + (int64_t)(seconds * 1e9), .prng = {.state = (uint64_t)(i + 1) * 7919}};
        thread_start(&threads[i], "client", work, &workers[i]);
    }
    int64_t count = 0;
    for (int i = 0; i < clients; i++) {
        thread_join(threads[i]);
        count += workers[i].count;
    }
    double rate = (double)count / ((double)(clock_now_ns() - start) / 1e9);
    mem_free(workers);
    mem_free(threads);
    return rate;
}

static void row(const char *what, int clients, double rate, const char *floor_name, double floor)
{
    printf("%-40s %7d %12.0f   %-38s %12.0f %7.2f\n", what, clients, rate, floor_name, floor, rate / floor);
    fflush(stdout);
}

static double load_in_bulk(void)
{
    struct bench_client client;
    struct buf buf = BUF_INIT;
    bench_client_open(&client, port);
    int64_t start = clock_now_ns();
    for (int64_t done = 0; done < documents; done += BULK)
        insert_documents(&client, &buf, done, documents - done < BULK ? documents - done : BULK);
    double rate = (double)documents / ((double)(clock_now_ns() - start) / 1e9);
    atomic_store(&next_id, documents);
    bench_client_close(&client);
    buf_deinit(&buf);
    return rate;
}

static void measure(void)
{
    static const int client_counts[] = {1, 8, 32, 64};
    printf("%-40s %7s %12s   %-38s %12s %7s\n", "operation", "clients", "per second", "floor", "per second", "ratio");
    double lmdb = floor_lmdb_puts(scratch, (size_t)documents, DOCUMENT_BYTES, BULK);
    row("bulk insert of 1000 x 1 KiB, unordered", 1, load_in_bulk(), "LMDB puts, NOSYNC, one process", lmdb);
    for (size_t i = 0; i < 4; i++) {
        int clients = client_counts[i];
        double rate = run(INSERT, clients);
        double appends = floor_synced_appends(scratch, DOCUMENT_BYTES, (size_t)clients, seconds / 2);
        row("insert of 1 KiB, durable", clients, rate, "write+fdatasync of a batch per round", appends);
    }
    for (size_t i = 0; i < 4; i++) {
        int clients = client_counts[i];
        row("read by _id", clients, run(READ, clients), "TCP echo over two hops",
            floor_echo(2, clients, 150, DOCUMENT_BYTES + 150, seconds / 2));
    }
    for (size_t i = 0; i < 4; i++) {
        int clients = client_counts[i];
        row("update by _id ($inc), durable", clients, run(UPDATE, clients), "write+fdatasync of a batch per round",
            floor_synced_appends(scratch, 256, (size_t)clients, seconds / 2));
    }
    for (size_t i = 0; i < 4; i++) {
        int clients = client_counts[i];
        row("range scan of 20 by _id", clients, run(SCAN_RANGE, clients), "TCP echo over two hops",
            floor_echo(2, clients, 150, SCAN * DOCUMENT_BYTES, seconds / 2));
    }
    printf("%-40s %7d %12s   %-38s %12.0f\n", "(storage floor)", 1, "", "LMDB gets, one thread",
           floor_lmdb_gets(scratch, (size_t)documents, 1));
}

static int run_only(const char *kind, int clients)
{
    static const char *const kinds[] = {"insert", "read", "update", "scan"};
    if (strcmp(kind, "load") == 0) {
        printf("load: %.0f a second, operations %lld\n", load_in_bulk(), (long long)documents);
        return 0;
    }
    atomic_store(&next_id, clock_wall_ms() * 1000);
    for (int i = 0; i < 4; i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            double rate = run((enum kind)i, clients);
            printf("%s: %.0f a second, operations %.0f\n", kind, rate, rate * seconds);
            return 0;
        }
    }
    fprintf(stderr, "bench: no kind '%s'\n", kind);
    return 2;
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    int clients = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--dir") == 0)
            scratch = argv[i + 1];
        else if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--clients") == 0)
            clients = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--documents") == 0)
            documents = atoll(argv[i + 1]);
        else
            port = -1;
    }
    if (port <= 0 || (scratch == NULL && only == NULL) || seconds <= 0 || documents < BULK || clients < 1) {
        fprintf(stderr, "usage: bench_cluster --port P --dir SCRATCH [--seconds S] [--documents N]\n");
        return 2;
    }
    if (only != NULL)
        return run_only(only, clients);
    mkdir(scratch, 0700);
    measure();
    return 0;
}
