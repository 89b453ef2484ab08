#include "tests/bench/cluster/floor.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"
#include "tests/bench/cluster/client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <lmdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEY_BYTES = 12, DOCUMENT_MAX = 65536 };

static double since(int64_t start_ns)
{
    return (double)(clock_now_ns() - start_ns) / 1e9;
}

/* The key of document i: scattered, the same again for the gets. */
static void key_of(size_t i, unsigned char key[KEY_BYTES])
{
    struct prng prng = {.state = i};
    uint64_t high = prng_next(&prng);
    uint64_t low = prng_next(&prng);
    memcpy(key, &high, 8);
    memcpy(key + 8, &low, 4);
}

static MDB_env *open_env(const char *dir)
{
    MDB_env *env;
    CHECK(mdb_env_create(&env) == 0);
    CHECK(mdb_env_set_mapsize(env, (size_t)64 << 30) == 0);
    CHECK(mdb_env_open(env, dir, MDB_NOSYNC | MDB_NOTLS, 0600) == 0);
    return env;
}

double floor_lmdb_puts(const char *dir, size_t documents, size_t document_bytes, size_t batch)
{
    CHECK(document_bytes <= DOCUMENT_MAX);
    static unsigned char document[DOCUMENT_MAX];
    random_bytes(document, document_bytes);
    MDB_env *env = open_env(dir);
    int64_t start = clock_now_ns();
    for (size_t done = 0; done < documents; done += batch) {
        MDB_txn *txn;
        MDB_dbi dbi;
        CHECK(mdb_txn_begin(env, NULL, 0, &txn) == 0);
        CHECK(mdb_dbi_open(txn, NULL, 0, &dbi) == 0);
        for (size_t i = done; i < done + batch && i < documents; i++) {
            unsigned char bytes[KEY_BYTES];
            key_of(i, bytes);
            MDB_val key = {.mv_size = KEY_BYTES, .mv_data = bytes};
            MDB_val value = {.mv_size = document_bytes, .mv_data = document};
            CHECK(mdb_put(txn, dbi, &key, &value, 0) == 0);
        }
        CHECK(mdb_txn_commit(txn) == 0);
    }
    double seconds = since(start);
    mdb_env_close(env);
    return (double)documents / seconds;
}

double floor_lmdb_gets(const char *dir, size_t documents, double seconds)
{
    MDB_env *env = open_env(dir);
    MDB_txn *txn;
    MDB_dbi dbi;
    CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    CHECK(mdb_dbi_open(txn, NULL, 0, &dbi) == 0);
    struct prng prng = {.state = 1};
    size_t count = 0;
    int64_t start = clock_now_ns();
    while (since(start) < seconds) {
        for (int i = 0; i < 1000; i++, count++) {
            unsigned char bytes[KEY_BYTES];
            key_of(prng_below(&prng, documents), bytes);
            MDB_val key = {.mv_size = KEY_BYTES, .mv_data = bytes};
            MDB_val value;
            CHECK(mdb_get(txn, dbi, &key, &value) == 0);
            mdb_txn_reset(txn);
            CHECK(mdb_txn_renew(txn) == 0);
        }
    }
    double rate = (double)count / since(start);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return rate;
}

double floor_synced_appends(const char *dir, size_t bytes, size_t batch, double seconds)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/appends", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    /* As a log's segment is: its blocks are there before. */
    CHECK(posix_fallocate(fd, 0, 64 << 20) == 0 && fsync(fd) == 0);
    char *record = mem_alloc(bytes * batch);
    size_t count = 0;
    off_t at = 0;
    int64_t start = clock_now_ns();
    while (since(start) < seconds) {
        CHECK(pwrite(fd, record, bytes * batch, at) == (ssize_t)(bytes * batch));
        CHECK(fdatasync(fd) == 0);
        at = (at + (off_t)(bytes * batch)) % (48 << 20);
        count += batch;
    }
    double rate = (double)count / since(start);
    mem_free(record);
    close(fd);
    unlink(path);
    return rate;
}

/* ---- echo ----------------------------------------------------------------------------------------------------------
 */

struct echo_server {
    int listen_fd;
    int next_port; /* 0: answers itself */
    size_t request_bytes, reply_bytes;
};

struct echo_peer {
    const struct echo_server *server;
    int fd;
};

static void *serve_peer(void *arg)
{
    struct echo_peer *peer = arg;
    const struct echo_server *server = peer->server;
    char *request = mem_alloc(server->request_bytes);
    char *reply = mem_alloc(server->reply_bytes);
    int next = server->next_port != 0 ? bench_connect(server->next_port) : -1;
    for (;;) {
        if (recv(peer->fd, request, server->request_bytes, MSG_WAITALL) != (ssize_t)server->request_bytes)
            break;
        if (next >= 0) {
            bench_send(next, request, server->request_bytes);
            bench_receive(next, reply, server->reply_bytes);
        }
        bench_send(peer->fd, reply, server->reply_bytes);
    }
    if (next >= 0)
        close(next);
    close(peer->fd);
    mem_free(request);
    mem_free(reply);
    mem_free(peer);
    return NULL;
}

_Noreturn static void serve(struct echo_server server)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct echo_peer *peer = mem_alloc(sizeof *peer);
        peer->server = &server;
        peer->fd = accept4(server.listen_fd, NULL, NULL, SOCK_CLOEXEC);
        CHECK(peer->fd >= 0);
        int on = 1;
        setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_t thread;
        thread_start(&thread, "echo", serve_peer, peer);
        pthread_detach(thread);
    }
}

static pid_t start_server(int next_port, size_t request_bytes, size_t reply_bytes, int *port)
{
    struct echo_server server = {.next_port = next_port, .request_bytes = request_bytes, .reply_bytes = reply_bytes};
    server.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof address;
    CHECK(bind(server.listen_fd, (struct sockaddr *)&address, len) == 0 && listen(server.listen_fd, 512) == 0);
    CHECK(getsockname(server.listen_fd, (struct sockaddr *)&address, &len) == 0);
    *port = ntohs(address.sin_port);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        serve(server);
    close(server.listen_fd);
    return pid;
}

struct echo_client {
    int port;
    size_t request_bytes, reply_bytes;
    int64_t until_ns;
    size_t count;
};

static void *ask(void *arg)
{
    struct echo_client *client = arg;
    char *request = mem_alloc(client->request_bytes);
    char *reply = mem_alloc(client->reply_bytes);
    int fd = bench_connect(client->port);
    while (clock_now_ns() < client->until_ns) {
        bench_send(fd, request, client->request_bytes);
        bench_receive(fd, reply, client->reply_bytes);
        client->count++;
    }
    close(fd);
    mem_free(request);
    mem_free(reply);
    return NULL;
}

double floor_echo(int hops, int clients, size_t request_bytes, size_t reply_bytes, double seconds)
{
    int port;
    int relay_port = 0;
    pid_t server = start_server(0, request_bytes, reply_bytes, &port);
    pid_t relay = hops == 2 ? start_server(port, request_bytes, reply_bytes, &relay_port) : 0;
    struct echo_client *all = mem_alloc_array((size_t)clients, sizeof *all);
    pthread_t *threads = mem_alloc_array((size_t)clients, sizeof *threads);
    int64_t start = clock_now_ns();
    for (int i = 0; i < clients; i++) {
        all[i] = (struct echo_client){.port = hops == 2 ? relay_port : port,
                                      .request_bytes = request_bytes,
                                      .reply_bytes = reply_bytes,
                                      .until_ns = start + (int64_t)(seconds * 1e9)};
        thread_start(&threads[i], "asker", ask, &all[i]);
    }
    size_t count = 0;
    for (int i = 0; i < clients; i++) {
        thread_join(threads[i]);
        count += all[i].count;
    }
    double rate = (double)count / since(start);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    if (relay > 0) {
        kill(relay, SIGKILL);
        waitpid(relay, NULL, 0);
    }
    mem_free(all);
    mem_free(threads);
    return rate;
}
