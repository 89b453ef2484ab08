/* What the kinds of workers of the load program share. */
#ifndef SHERD_TESTS_FAULT_CRASH_LOAD_H
#define SHERD_TESTS_FAULT_CRASH_LOAD_H

#include "base/random.h"
#include "journal.h"

#include <mongoc/mongoc.h>

#include <stdatomic.h>

#define LOAD_DATABASE "crash"

struct load_options {
    char *uri;
    char *journal;
    int64_t run;
    int64_t threads;
    int64_t ddl_threads;
    int64_t kinds_threads;
    int64_t seconds;
    int64_t counters;
    bool setup;
};

/* Set by a signal or at the end of the time; every worker ends after the operation it is in. */
extern atomic_bool load_stop;

/* What every worker is. */
struct load_worker {
    const struct load_options *options;
    int number; /* among all of them */
    int file;   /* its journal */
    struct prng prng;
    mongoc_client_t *client;
    int64_t acked; /* operations */
    int64_t unknown;
    int64_t unsent;
};

/* Ends the process on a string that is none. */
mongoc_client_t *load_connect(const char *uri);
/* Only what certainly never left this process counts as not sent; every other error leaves the outcome open. */
enum op_outcome load_outcome_of(const bson_error_t *error);
/* Writes the end of an operation into the journal, counts it, and pauses after a failure. Returns the outcome. */
enum op_outcome load_finish(struct load_worker *worker, enum op_outcome outcome);

/* A thread's main: makes sharded collections of its own, fills, splits and drops them until load_stop. */
void *load_ddl_work(void *worker);
/* A thread's main: changes collections of all kinds, and their indexes and options, until load_stop. */
void *load_kinds_work(void *worker);
/* Makes them. */
bool load_kinds_set_up(mongoc_client_t *client);

#endif
