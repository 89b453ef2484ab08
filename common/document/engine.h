/* Everything that the document commands of one node share: the store they read, the log they propose to, ownership,
 * cursors and claims. One per process, made at start by common/node and handed to every command through
 * document_engine_of(ctx). The engine itself starts no thread; commands run on the daemon's workers. */
#ifndef SHERD_DOCUMENT_ENGINE_H
#define SHERD_DOCUMENT_ENGINE_H

#include "document/log.h"
#include "document/ownership.h"

#include <stdbool.h>
#include <stdint.h>

struct store;
struct temp_space;
struct document_engine;
struct document_claims;
struct document_cursors;
struct document_ttl;
struct document_wakeups;
struct index_builder;
struct index_usage;
struct plan_cache;

enum {
    DOCUMENT_CURSORS_MAX = 10000, /* open at once; more answer ERR_ExceededMemoryLimit */
    DOCUMENT_CURSORS_MAX_BYTES =
        512 * 1024 * 1024,                       /* held in memory by all of them: sorted documents, groups, batches */
    DOCUMENT_CURSOR_IDLE_MS = 10 * 60 * 1000,    /* after that an unused cursor is closed */
    DOCUMENT_SORT_MAX_BYTES = 100 * 1024 * 1024, /* of documents held by one in-memory sort; 292 beyond */
    DOCUMENT_BATCH_MAX_BYTES = 16 * 1024 * 1024, /* of documents in one reply batch */
    DOCUMENT_FIRST_BATCH = 101,                  /* documents, when find names no batchSize */
    DOCUMENT_ENTRY_MAX_BYTES =
        4 * 1024 * 1024,            /* of documents in one insert log command, unless one document is larger */
    DOCUMENT_MEMBER_NAME_MAX = 128, /* bytes of the shard's or set's name, with its NUL */
    DOCUMENT_REDO_MAX = 1000,       /* times a write looks for candidates again before it answers ERR_WriteConflict */
};

struct document_engine_options {
    struct store *store;                        /* borrowed; outlives the engine */
    struct document_log log;                    /* copied */
    const struct document_ownership *ownership; /* borrowed; NULL: everything is owned */
    const char *member_name;                    /* copied: shard or set name, as $collStats shows it; "" is allowed */
    const char *host;                           /* copied: "host:port" of this member */
    struct temp_space *temp;                    /* borrowed; of large sorts and groups; NULL: they end with 292 */
};

/* A daemon that has the document commands in its table begins the struct behind ctx->daemon with this. */
struct document_host {
    struct document_engine *engine;
};

struct command_ctx;
struct document_engine *document_engine_of(const struct command_ctx *ctx);

struct document_engine *document_engine_new(const struct document_engine_options *options);
/* No command may be under way. */
void document_engine_free(struct document_engine *engine);

struct store *document_engine_store(const struct document_engine *engine);
const struct document_log *document_engine_log(const struct document_engine *engine);
const struct document_ownership *document_engine_ownership(const struct document_engine *engine);
struct document_cursors *document_engine_cursors(const struct document_engine *engine);
struct document_claims *document_engine_claims(const struct document_engine *engine);
struct index_builder *document_engine_builder(const struct document_engine *engine);
struct index_usage *document_engine_usage(const struct document_engine *engine);
/* What trials of plans found out. */
struct plan_cache *document_engine_plan_cache(const struct document_engine *engine);
struct document_wakeups *document_engine_wakeups(const struct document_engine *engine);
/* Made with the engine; the daemon starts and stops its thread. */
struct document_ttl *document_engine_ttl(const struct document_engine *engine);
/* NULL: nothing may go to the disk. */
struct temp_space *document_engine_temp(const struct document_engine *engine);
/* Copies the name. Any thread. */
void document_engine_member_name(struct document_engine *engine, char out[DOCUMENT_MEMBER_NAME_MAX]);
const char *document_engine_host(const struct document_engine *engine);
/* The shard learns its name after it was started (addShard). Any thread. */
void document_engine_set_member_name(struct document_engine *engine, const char *name);
/* For a daemon whose ownership is made after the engine; before any command runs. */
void document_engine_set_ownership(struct document_engine *engine, const struct document_ownership *ownership);
/* Closes idle cursors and continues index builds and drops that a predecessor left; the daemon calls it about once a
 * second, on a worker. */
void document_engine_tick(struct document_engine *engine);
/* Apply thread: a write transaction was committed, its changes can be read. */
void document_engine_committed(struct document_engine *engine);

#endif
