/* The least a client can be: one blocking socket that sends OP_MSG commands and reads whole replies. It costs the
 * machine little, so that what a benchmark sees is the server. One thread a connection. */
#ifndef SHERD_TESTS_BENCH_CLUSTER_CLIENT_H
#define SHERD_TESTS_BENCH_CLUSTER_CLIENT_H

#include "bson/value.h"

struct bench_client {
    int fd;
    int32_t request_id;
    struct buf request;
    struct buf reply;
};

/* Connects to 127.0.0.1:port; ends the program with a line on stderr when it can't. */
void bench_client_open(struct bench_client *client, int port);
void bench_client_close(struct bench_client *client);
/* Sends a command with documents (may be NULL) as a kind 1 section named `sequence`; returns the reply's body, valid
 * until the next call. Ends the program when the reply is not {ok: 1} or carries writeErrors. */
struct bdoc bench_client_run(struct bench_client *client, const bson_t *command, const char *sequence,
                             const struct buf *documents);
/* Whole-buffer socket transfers; end the program on an error. */
void bench_send(int fd, const void *data, size_t len);
void bench_receive(int fd, void *data, size_t len);
/* A connected TCP socket with Nagle off. */
int bench_connect(int port);

#endif
