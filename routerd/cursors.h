/* The cursors that clients hold on this router. One over a single shard only translates ids; one over several merges
 * their streams, runs what is left of a pipeline, and counts down skip and limit. Bounded in number and bytes, closed
 * after CURSORS_IDLE_MS without a getMore. A cursor is used by one command at a time: taken out, given back. */
#ifndef SHERD_ROUTERD_CURSORS_H
#define SHERD_ROUTERD_CURSORS_H

#include "aggregate/pipeline.h"
#include "base/arena.h"
#include "routerd/merge.h"

struct command_ctx;
struct cursor_table;

enum {
    CURSORS_MAX = 20000,
    CURSORS_MAX_BYTES = 1024 * 1024 * 1024, /* held by all of them: batches at hand, groups, sorted documents */
    CURSORS_IDLE_MS = 10 * 60 * 1000,
    CURSORS_BATCH_MAX_BYTES = 16 * 1024 * 1024 - 64 * 1024, /* of documents in one merged reply */
    CURSORS_FIRST_BATCH = 101,
};

struct router_cursor {
    int64_t id;                  /* as the client knows it */
    char ns[COMMAND_NS_MAX + 1]; /* as replies show it */
    /* Over one shard: */
    struct remote_set *set;       /* NULL: over several */
    char member[RPC_ADDRESS_MAX]; /* where it lives */
    int64_t shard_id;             /* its id there */
    /* Over several, or with something left to do here: */
    struct router *router;
    struct command_ctx *ctx; /* the command at work; NULL between commands */
    struct merge *merge;
    struct merge_fetch fetch;         /* of the command at work */
    struct pipeline *pipeline;        /* what the router still has to do; NULL: nothing */
    struct pipeline_run *run;         /* over `merge` */
    struct pipeline_foreign *foreign; /* what the pipeline reads of other collections; in the arena; NULL: nothing */
    struct buf made;                  /* documents end to end that the router made itself, before those of `merge` */
    size_t made_at;                   /* the next one */
    struct arena arena;               /* of the pipeline; lives as long as the cursor */
    struct expr_env env;              /* of the pipeline */
    int64_t skip;                     /* documents still to leave out */
    int64_t limit;                    /* documents still to hand out; -1: no limit */
    struct bdoc pending;              /* taken from the stream but too large for the last batch */
    bool ended;                       /* nothing left */
    bool abandoned;                   /* being freed without a word to the shards */

    bool busy;         /* guarded by the table: a command uses it */
    int64_t op_id;     /* guarded by the table: of the getMore that uses it; 0: none does */
    size_t held_bytes; /* guarded by the table: as counted last */
    bool killed;       /* guarded by the table: close when given back */
    uint8_t lsid[16];  /* of the session that opened it; see has_lsid */
    bool has_lsid;
    bool has_origin;      /* these and those below are set */
    bool await_data;      /* tailable: a getMore waits for documents */
    int64_t time_left_ms; /* of the opening command's maxTimeMS; -1: no limit */
    bool no_timeout;      /* noCursorTimeout */
    int64_t used_ms;      /* guarded by the table: last use */
};

struct cursor_table *cursor_table_new(struct router *router);
/* Closes all without telling the shards. No command may be under way. */
void cursor_table_free(struct cursor_table *table);

/* A cursor on its own, not in the table yet. */
struct router_cursor *router_cursor_new(struct router *router, const char *ns);
/* What the command that opens it leaves to its getMores: the session, awaitData, the rest of maxTimeMS. */
void router_cursor_set_origin(struct router_cursor *cursor, const struct command_ctx *ctx);
/* It works for the command `ctx` now, until another one's use: its deadline is that of the requests to come. */
void router_cursor_use(struct router_cursor *cursor, struct command_ctx *ctx);
/* Frees it, and what its pipeline reads, without a word to the shards. */
void router_cursor_abandon(struct router_cursor *cursor);
/* Closes it on the shards too. Accepts NULL. */
void router_cursor_close(struct router *router, struct router_cursor *cursor);

/* Puts a new cursor into the table, busy, and gives it an id. ERR_ExceededMemoryLimit when there are too many. */
bool cursor_table_add(struct cursor_table *table, struct router_cursor *cursor, struct err *err) ERR_WARN_UNUSED;
/* The cursor, busy until given back, for `ctx`, which names the namespace `ns`. ERR_CursorNotFound; 12051 when another
 * command uses it; ERR_Unauthorized when it belongs to another namespace. */
bool cursor_table_take(struct cursor_table *table, const struct command_ctx *ctx, int64_t id, const char *ns,
                       struct router_cursor **out, struct err *err) ERR_WARN_UNUSED;
/* For a busy one: counts what it holds by now. ERR_ExceededMemoryLimit when that may not be kept: it is to be closed.
 */
bool cursor_table_may_keep(struct cursor_table *table, struct router_cursor *cursor, struct err *err) ERR_WARN_UNUSED;
/* Gives it back; `done` or killed in the meantime: it is closed. */
void cursor_table_give(struct cursor_table *table, struct router_cursor *cursor, bool done);
/* True when there was one. A getMore that uses it ends with ERR_CursorKilled. */
bool cursor_table_kill(struct cursor_table *table, int64_t id, const char *ns);
/* Closes the cursors of one session (16 bytes of lsid.id), with NULL of all. */
void cursor_table_kill_session(struct cursor_table *table, const uint8_t *lsid);
/* Closes idle cursors; called about once a second. */
void cursor_table_sweep(struct cursor_table *table);
unsigned cursor_table_count(struct cursor_table *table);

#endif
