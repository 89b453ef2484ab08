/* Memory that a router takes for a connection that does nothing: opens many, each greets once, then looks at the
 * router's resident memory.   bench_idle --port P --pid ROUTER [--connections N] */
#include "tests/bench/cluster/client.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static long resident_kib(int pid)
{
    char path[64];
    char line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    }
    fclose(file);
    return kib;
}

int main(int argc, char **argv)
{
    int port = 0;
    int pid = 0;
    int connections = 10000;
    for (int i = 1; i + 1 < argc; i += 2) {
        int value = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--port") == 0)
            port = value;
        else if (strcmp(argv[i], "--pid") == 0)
            pid = value;
        else if (strcmp(argv[i], "--connections") == 0)
            connections = value;
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if ((rlim_t)connections + 100 > limit.rlim_cur)
        connections = (int)limit.rlim_cur - 100;
    long before = resident_kib(pid);
    if (port <= 0 || before < 0 || connections <= 0) {
        fprintf(stderr, "usage: bench_idle --port P --pid ROUTER [--connections N]\n");
        return 2;
    }
    struct bench_client *clients = mem_alloc_array((size_t)connections, sizeof *clients);
    bson_t *hello = BCON_NEW("hello", BCON_INT32(1), "$db", "admin");
    for (int i = 0; i < connections; i++) {
        bench_client_open(&clients[i], port);
        bench_client_run(&clients[i], hello, NULL, NULL);
    }
    printf("%d idle connections: %.1f KiB of router memory each\n", connections,
           (double)(resident_kib(pid) - before) / connections);
    for (int i = 0; i < connections; i++)
        bench_client_close(&clients[i]);
    bson_destroy(hello);
    mem_free(clients);
    return 0;
}
