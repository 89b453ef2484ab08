/* Requests per second, latency and CPU of the message layers over loopback, beside a plain TCP echo of the same bytes.
 * Usage: bench-rpc [seconds per line] [idle connections] [part of the lines' names] [outstanding]. Two cores are shared
 * by both sides: read the ratios. */
#include "tests/bench/rpc/bench_rpc.h"

#include "base/log.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct child child_start(void (*serve)(int pipe_fd, uint16_t other_port), uint16_t other_port)
{
    int ends[2];
    struct child child = {0};
    if (pipe(ends) != 0)
        exit(1);
    child.pid = fork();
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        serve(ends[1], other_port);
        _exit(1);
    }
    close(ends[1]);
    if (child.pid < 0 || read(ends[0], &child.port, sizeof child.port) != sizeof child.port)
        exit(1);
    close(ends[0]);
    return child;
}

void report_port(int pipe_fd, uint16_t port)
{
    if (write(pipe_fd, &port, sizeof port) != sizeof port)
        _exit(1);
}

/* Microseconds of CPU that a process has used so far. */
static double cpu_us(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    unsigned long user = 0;
    unsigned long system = 0;
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        user = 0;
    fclose(file);
    return (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static double rss_kib(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *file = fopen(path, "r");
    unsigned long total = 0;
    unsigned long resident = 0;
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * 4;
}

struct line {
    const char *name;
    void (*serve)(int pipe_fd, uint16_t other_port);
    void (*load)(uint16_t port, unsigned outstanding, double seconds, struct result *out);
    int floor;     /* index of the line to compare with; -1: none */
    bool two_hops; /* the server forwards to an rpc server */
    double ops[4]; /* per second, by outstanding */
};

static const unsigned outstanding[4] = {1, 8, 32, 64};

static struct line lines[] = {
    {"TCP echo, 1 connection", serve_tcp_echo, load_tcp_one, -1, false, {0}},
    {"rpc, inline handler, callbacks", serve_rpc_inline, load_rpc_callback, 0, false, {0}},
    {"rpc, pool handler, waiting threads", serve_rpc_pool, load_rpc_threads, 0, false, {0}},
    {"TCP echo, n connections", serve_tcp_echo, load_tcp_many, -1, false, {0}},
    {"client server, n connections", serve_clients, load_tcp_many, 3, false, {0}},
    {"router: client server + rpc to a pool", serve_router, load_tcp_many, 3, true, {0}},
};

/* Runs the load in a child too: it makes threads, and we fork again. */
static void run_load(const struct line *line, uint16_t port, unsigned count, double seconds, struct result *out)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    int load = fork();
    if (load == 0) {
        struct rusage usage;
        line->load(port, count, seconds, out);
        getrusage(RUSAGE_SELF, &usage);
        out->client_cpu_us = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                             (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        _exit(write(ends[1], out, sizeof *out) == sizeof *out ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], out, sizeof *out) != sizeof *out)
        exit(1);
    close(ends[0]);
    waitpid(load, NULL, 0);
}

static void child_end(struct child child)
{
    if (child.pid == 0)
        return;
    kill(child.pid, SIGKILL);
    waitpid(child.pid, NULL, 0);
}

static void run_once(struct line *line, int at, double seconds)
{
    struct child shard = {0};
    if (line->two_hops)
        shard = child_start(serve_rpc_pool, 0);
    struct child server = child_start(line->serve, shard.port);
    struct result result = {0};
    double before = cpu_us(server.pid) + (line->two_hops ? cpu_us(shard.pid) : 0);
    run_load(line, server.port, outstanding[at], seconds, &result);
    double after = cpu_us(server.pid) + (line->two_hops ? cpu_us(shard.pid) : 0);
    child_end(server);
    child_end(shard);
    char ratio[16] = "";
    line->ops[at] = (double)result.done / result.seconds;
    if (line->floor >= 0)
        snprintf(ratio, sizeof ratio, "%.2fx", line->ops[at] / lines[line->floor].ops[at]);
    printf("%-38s %3u %9.0f/s %6s  p50 %6.1f p99 %6.1f us  cpu/op load %5.2f server %5.2f us\n", line->name,
           outstanding[at], line->ops[at], ratio, result.p50_us, result.p99_us,
           result.client_cpu_us / (double)result.done, (after - before) / (double)result.done);
    fflush(stdout);
}

static void measure_idle(unsigned conns)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct child server = child_start(serve_clients, 0);
    idle_open(server.port, 1);
    double before = rss_kib(server.pid);
    idle_open(server.port, conns);
    double after = rss_kib(server.pid);
    printf("%u idle connections: server %.0f KiB resident, %.0f before: %.2f KiB each\n", conns, after, before,
           (after - before) / conns);
    child_end(server);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    unsigned idle = argc > 2 ? (unsigned)atoi(argv[2]) : 5000;
    const char *only = argc > 3 ? argv[3] : "";
    unsigned count = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
    log_set_level(LOG_LEVEL_ERROR);
    printf("messages of about %d bytes, %.1f s per line\n", MESSAGE_BYTES, seconds);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int at = 0; at < 4 && strstr(lines[i].name, only) != NULL; at++)
            if (count == 0 || outstanding[at] == count)
                run_once(&lines[i], at, seconds);
    if (idle > 0)
        measure_idle(idle);
    return 0;
}
