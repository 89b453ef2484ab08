/* A node without a network or a group: a store in a temporary directory, the document commands, and a log that applies
 * what is proposed at once, or when the test says so. Everything runs on the test's thread. */
#ifndef SHERD_TESTS_UNIT_DOCUMENT_FIXTURE_H
#define SHERD_TESTS_UNIT_DOCUMENT_FIXTURE_H

#include "command/table.h"
#include "document/apply.h"
#include "document/engine.h"
#include "storage/store.h"

struct queued_job;
struct queued_command;

struct fixture {
    struct document_host host; /* first: ctx->daemon */
    char dir[64];
    struct store *store;
    struct command_table *table;
    struct queued_job *jobs; /* submitted, in order */
    struct queued_job **jobs_end;
    struct queued_job *later;        /* submitted with a delay, in order */
    struct queued_command *proposed; /* held back, in order */
    struct queued_command **proposed_end;
    bool hold;          /* keep proposals in `proposed` until fixture_apply */
    bool not_leader;    /* refuse proposals and barriers */
    unsigned lead_left; /* not 0: after so many proposals become `not_leader` */
    unsigned busy;      /* answer so many proposals "busy", after `busy_after` others */
    unsigned busy_after;
    uint64_t index;                 /* of the last applied command */
    struct queued_command *history; /* everything applied, newest first */
    unsigned history_count;
    unsigned barriers;
    void (*on_check_leader)(struct fixture *fixture); /* called once, at the next look who leads; NULL: nothing is */
    const struct document_ownership *ownership;
    struct op_registry *ops; /* the test's own, shows its requests; NULL: none */
    /* Applies kinds that are not the document layer's; NULL: there are none. */
    bool (*apply_other)(void *arg, struct document_apply *apply, const uint8_t *command, size_t len, struct buf *result,
                        struct err *err);
    void *apply_other_arg;
};

/* A request under way. */
struct fixture_call {
    struct fixture *fixture;
    bool done;
    bson_t *reply; /* the caller's, by bson_destroy; NULL until done */
};

/* For fixtures opened from now on: partial indexes need them. */
void fixture_set_filter_hooks(struct store_filter_hooks hooks);
void fixture_open(struct fixture *fixture);
/* `ownership` may be NULL. */
void fixture_open_with(struct fixture *fixture, const struct document_ownership *ownership);
/* The data file may become that large. */
void fixture_open_small(struct fixture *fixture, uint64_t map_bytes);
void fixture_close(struct fixture *fixture);

/* Runs a command given as extended JSON ('...' quotes are turned into "..."; database "t" unless $db is given) until
 * its reply is there. */
bson_t *fixture_run(struct fixture *fixture, const char *json);
bson_t *fixture_run_bson(struct fixture *fixture, const bson_t *command);
/* Runs it and checks the reply: `expected` is JSON of fields that the reply must have, compared as canonical JSON text.
 */
void fixture_expect(struct fixture *fixture, const char *json, const char *expected);
/* The reply must be an error with that code. */
void fixture_expect_error(struct fixture *fixture, const char *json, int code);
/* The first (only) batch must be exactly these documents: a JSON array. */
void fixture_expect_batch(struct fixture *fixture, const char *json, const char *documents);
/* Starts without waiting: with `hold` set it stays in the log. */
void fixture_start(struct fixture *fixture, struct fixture_call *call, const char *json);
/* Runs submitted jobs until there are none. */
void fixture_drain(struct fixture *fixture);
/* Applies everything held back, in order, then drains; again until nothing is left. Returns the number of rounds. */
unsigned fixture_apply(struct fixture *fixture);
/* Applies a command (kind byte and payload) at once; false: refused with *err. Its result is dropped. */
bool fixture_apply_command(struct fixture *fixture, uint8_t kind, const void *payload, size_t len, struct err *err);
/* The logical hash of the store. */
uint64_t fixture_hash(struct fixture *fixture);
/* Applies the history of `from` to the empty fixture `to`. */
void fixture_replay(const struct fixture *from, struct fixture *to);
/* A number in a reply, by dotted path; fails the test when it isn't there. */
int64_t fixture_i64(const bson_t *reply, const char *path);

#endif
