/* A router on loopback for tests: one thread, one connection at a time, replies from a function of the test. */
#ifndef SHERD_TESTS_UNIT_SHELL_FAKE_ROUTER_H
#define SHERD_TESTS_UNIT_SHELL_FAKE_ROUTER_H

#include "wire/message.h"

enum fake_action { FAKE_REPLY, FAKE_CLOSE, FAKE_SILENCE };

struct fake_router {
    int port;             /* where it listens */
    int listener;         /* its socket */
    unsigned long thread; /* pthread_t */
    void *arg;            /* of handle */
    /* Called on the router's thread for each message but `hello`, which it answers itself. Fills `reply` (initialised,
     * empty). */
    enum fake_action (*handle)(void *arg, const struct wire_msg *msg, bson_t *reply);
};

/* `handle` and `arg` are set by the caller. */
void fake_router_start(struct fake_router *router);
/* The client must have closed its connection. */
void fake_router_stop(struct fake_router *router);

#endif
