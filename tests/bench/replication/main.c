/* Durable commands of 1 KiB through a group of one and of three on loopback, against a raw write and fdatasync of the
 * same batches on the same disk, measured in turns. Prints one line a measurement.
 * usage: bench_replication [--dir DIR] [--seconds S] */
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "replication/replica.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COMMAND_BYTES = 1024,
    LATENCIES_MAX = 1 << 20,
    FLOOR_FILE_BYTES = 8 << 20,
    BLOCK_BYTES = 4096, /* what the log pads its writes to */
    FIRST_PORT = 27460,
};

/* The cheapest state machine: it counts. */
struct counter {
    uint64_t applied;
    uint64_t count;
};

static void begin(void *arg)
{
    (void)arg;
}

static void apply(void *arg, uint64_t index, const uint8_t *command, size_t len, struct buf *result)
{
    struct counter *counter = arg;
    (void)index;
    (void)command;
    counter->count++;
    buf_append_le64(result, len);
}

static void commit(void *arg, uint64_t last_index)
{
    struct counter *counter = arg;
    counter->applied = last_index;
}

static uint64_t applied_index(void *arg)
{
    return ((struct counter *)arg)->applied;
}

static bool checkpoint(void *arg, struct err *err)
{
    (void)arg;
    (void)err;
    return true;
}

struct bench {
    const char *dir;
    double seconds;
    struct replica *members[3];
    struct counter counters[3];
    unsigned count;
    struct replica *leader;
    atomic_bool running;
    atomic_uint outstanding;
    _Atomic uint64_t done, failed;
    uint64_t *latencies_ns;
    size_t latency_count; /* apply thread only */
};

/* A client: one command in flight. */
struct client {
    struct bench *bench;
    int64_t start_ns;
};

static void propose(struct client *client);

static void on_done(void *arg, enum replica_outcome outcome, uint64_t index, const uint8_t *result, size_t len)
{
    struct client *client = arg;
    struct bench *bench = client->bench;
    (void)index;
    (void)result;
    (void)len;
    if (outcome == REPLICA_APPLIED) {
        atomic_fetch_add(&bench->done, 1);
        if (bench->latency_count < LATENCIES_MAX)
            bench->latencies_ns[bench->latency_count++] = (uint64_t)(clock_now_ns() - client->start_ns);
    } else {
        atomic_fetch_add(&bench->failed, 1);
    }
    if (atomic_load(&bench->running) && outcome == REPLICA_APPLIED)
        propose(client);
    else
        atomic_fetch_sub(&bench->outstanding, 1);
}

static void propose(struct client *client)
{
    uint8_t *command = mem_alloc(COMMAND_BYTES);
    memset(command, 'x', COMMAND_BYTES);
    client->start_ns = clock_now_ns();
    replica_propose(client->bench->leader, command, COMMAND_BYTES, on_done, client);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_ms(struct bench *bench, double part)
{
    if (bench->latency_count == 0)
        return 0;
    return (double)bench->latencies_ns[(size_t)((double)(bench->latency_count - 1) * part)] / 1e6;
}

/* Commands per second. */
static double run_load(struct bench *bench, unsigned clients)
{
    struct client *list = mem_alloc_array(clients, sizeof *list);
    bench->latency_count = 0;
    atomic_store(&bench->done, 0);
    atomic_store(&bench->running, true);
    atomic_store(&bench->outstanding, clients);
    int64_t start_ns = clock_now_ns();
    for (unsigned i = 0; i < clients; i++) {
        list[i].bench = bench;
        propose(&list[i]);
    }
    clock_sleep_ms((int64_t)(bench->seconds * 1000));
    double rate = (double)atomic_load(&bench->done) / ((double)(clock_now_ns() - start_ns) / 1e9);
    atomic_store(&bench->running, false);
    while (atomic_load(&bench->outstanding) > 0)
        clock_sleep_ms(1);
    mem_free(list);
    qsort(bench->latencies_ns, bench->latency_count, sizeof bench->latencies_ns[0], compare_u64);
    return rate;
}

/* Batches per second of a write and fdatasync of `bytes`, padded to whole blocks, into a file whose blocks exist. */
static double run_floor(struct bench *bench, size_t bytes)
{
    char path[512];
    size_t padded = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    uint8_t *data = mem_alloc(FLOOR_FILE_BYTES);
    snprintf(path, sizeof path, "%s/floor", bench->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && pwrite(fd, data, FLOOR_FILE_BYTES, 0) == FLOOR_FILE_BYTES && fsync(fd) == 0);
    int64_t start_ns = clock_now_ns(), end_ns = start_ns + (int64_t)(bench->seconds * 5e8);
    uint64_t batches = 0;
    size_t offset = 0;
    for (; clock_now_ns() < end_ns; batches++) {
        if (offset + padded > FLOOR_FILE_BYTES)
            offset = 0;
        CHECK(pwrite(fd, data, padded, (off_t)offset) == (ssize_t)padded && fdatasync(fd) == 0);
        offset += padded;
    }
    double rate = (double)batches / ((double)(clock_now_ns() - start_ns) / 1e9);
    close(fd);
    mem_free(data);
    return rate;
}

static void start_group(struct bench *bench, unsigned count)
{
    struct replica_member list[3];
    char addresses[3][64], dir[512];
    struct err err;
    bench->count = count;
    for (unsigned i = 0; i < count; i++) {
        snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%u:%u", FIRST_PORT + 10 + i, FIRST_PORT + i);
        list[i] = (struct replica_member){.id = i + 1, .address = addresses[i]};
    }
    for (unsigned i = 0; i < count; i++) {
        snprintf(dir, sizeof dir, "%s/%u-%u", bench->dir, count, i + 1);
        bench->counters[i] = (struct counter){0};
        struct replica_options options = {
            .dir = dir,
            .set_name = "bench",
            .id = i + 1,
            .address = addresses[i],
            .bind_host = "127.0.0.1",
            .fsm = {.arg = &bench->counters[i],
                    .begin = begin,
                    .apply = apply,
                    .commit = commit,
                    .applied_index = applied_index,
                    .checkpoint = checkpoint},
        };
        if (!replica_bootstrap(dir, i + 1, list, count, &err) || !replica_start(&bench->members[i], &options, &err)) {
            fprintf(stderr, "%s\n", err.msg);
            exit(1);
        }
    }
    for (bench->leader = NULL; bench->leader == NULL; clock_sleep_ms(5))
        for (unsigned i = 0; i < count; i++)
            if (replica_is_serving(bench->members[i]))
                bench->leader = bench->members[i];
}

static void stop_group(struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++) {
        replica_stop(bench->members[i], 0);
        replica_free(bench->members[i]);
    }
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void measure(struct bench *bench, unsigned members)
{
    static const unsigned clients[] = {1, 8, 32, 64};
    start_group(bench, members);
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        unsigned n = clients[i];
        double before = run_floor(bench, (size_t)n * COMMAND_BYTES);
        double rate = run_load(bench, n);
        double after = run_floor(bench, (size_t)n * COMMAND_BYTES);
        double floor = (before + after) / 2 * n;
        printf("members %u outstanding %2u: %8.0f commands/s, p50 %.2f ms, p99 %.2f ms; floor %8.0f/s, ratio %.2f; "
               "failed %llu\n",
               members, n, rate, percentile_ms(bench, 0.5), percentile_ms(bench, 0.99), floor, rate / floor,
               (unsigned long long)atomic_load(&bench->failed));
        fflush(stdout);
    }
    stop_group(bench);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.seconds = 3};
    char dir[256] = "/tmp/sherd-bench-XXXXXX";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            snprintf(dir, sizeof dir, "%s/sherd-bench-XXXXXX", argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            bench.seconds = strtod(argv[i + 1], NULL);
    }
    CHECK(mkdtemp(dir) != NULL);
    log_set_level(LOG_LEVEL_WARN);
    bench.dir = dir;
    bench.latencies_ns = mem_alloc_array(LATENCIES_MAX, sizeof *bench.latencies_ns);
    measure(&bench, 1);
    measure(&bench, 3);
    mem_free(bench.latencies_ns);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
