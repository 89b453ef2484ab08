/* A query that is being answered: where its documents come from, what is done to them, and how far it is. A cursor has
 * no transaction of its own: each request attaches it to one, takes a batch, and detaches it. One thread at a time
 * (document/cursors.h hands cursors out).
 *
 *   scan of a plan, or a list --> sort in memory --> skip, limit --> pipeline --> projection --> batch */
#ifndef SHERD_DOCUMENT_CURSOR_H
#define SHERD_DOCUMENT_CURSOR_H

#include "aggregate/pipeline.h"
#include "document/batch_reply.h"
#include "document/read_plan.h"
#include "document/read_txn.h"
#include "query/projection.h"
#include "query/sort.h"
#include "query/sorter.h"

struct document_cursor {
    int64_t id;               /* 0 until it is in the table */
    struct arena arena;       /* of everything compiled */
    struct wire_frame *frame; /* the request's bytes, which the compiled parts borrow */
    char ns[COMMAND_NS_MAX + 1];
    uint8_t uuid[UUID_BYTES]; /* of the collection; it must be the same at each getMore */
    uint32_t collection_id;
    bool has_collection;
    struct expr_env env;

    struct filter *filter;      /* NULL with a list */
    struct plan *plan;          /* NULL with a list */
    struct plan_request wanted; /* what the plan was made for */
    int64_t first_skip;         /* skip_left and limit_left before anything was read */
    int64_t first_limit;
    bool may_replan; /* nothing was handed out yet: a remembered plan that turns out bad may be exchanged */
    struct buf list; /* documents end to end, instead of a scan */
    size_t list_at;

    struct sort_spec *sort;      /* to be done in memory; NULL: none */
    struct sort_spec *plan_sort; /* what was asked for, also when the plan gives the order */
    struct sort_spec *key_spec;  /* every result comes with its sort key by this; NULL: none */
    struct temp_space *space;    /* for a sort that doesn't fit into memory; NULL: 292 instead */
    struct sorter *sorter;       /* once all documents were read */
    int64_t skip_left;
    int64_t limit_left; /* -1: no limit */
    bool single_batch;
    bool return_key;     /* results are the keys of the plan's index instead of documents */
    bool show_record_id; /* results get the field $recordId */
    bool tailable;       /* stays open at the end of its collection, which is capped */
    bool await_data;     /* and a getMore waits there */
    uint64_t record_id;  /* of the result at hand */
    uint64_t given;      /* documents that went to the pipeline or, without one, into batches */

    struct pipeline *pipeline; /* NULL: none */
    uint32_t first_stage;
    struct pipeline_run *run;
    struct projection *projection; /* NULL: whole documents */

    int64_t batch_size; /* of a getMore that names none; 0: as much as fits */
    bool no_timeout;
    struct buf position;           /* of the scan, between requests */
    bool started;                  /* the position is valid */
    bool source_done;              /* the scan has given everything */
    bool exhausted;                /* and so has everything after it */
    struct buf key_doc;            /* of the index entry of the result at hand, when it is asked for */
    struct buf sort_key;           /* with key_spec: of the result at hand */
    struct buf pending;            /* a document that didn't fit into the batch before */
    int64_t batch_number;          /* of the last batch, when the router numbers them */
    struct wire_frame *last_batch; /* its reply, kept for a repeat; NULL: none */
    struct document_view *view;    /* the ownership it was opened under; its own reference */
    const struct document_ownership *ownership;
    bool check_visible; /* in the request at hand */

    struct scan scan; /* while attached */
    bool scanning;
    bool returned_any;   /* the scan of this request has moved */
    int64_t deadline_ms; /* of the request at hand */
    uint64_t keys_examined;
    uint64_t docs_examined;

    /* The table's own, under its lock. */
    struct document_cursor *next;
    int64_t last_used_ms;
    size_t held_bytes; /* as counted last */
    bool in_use;
    bool killed;
};

/* For `ns`; keeps a reference to the request's bytes. */
struct document_cursor *document_cursor_new(const struct command_ctx *ctx, const char *ns);
/* Accepts NULL. */
void document_cursor_free(struct document_cursor *cursor);
/* Appends a document to a list cursor. */
void document_cursor_list_add(struct document_cursor *cursor, struct bdoc doc);

/* Ties the cursor to the collection (there is one) and to the ownership of its first request. */
void document_cursor_bind(struct document_cursor *cursor, const struct read_txn *read);
/* Makes the plan for `wanted`, whose sort is the cursor's: done in memory unless the plan gives the order. */
bool document_cursor_plan(struct document_cursor *cursor, const struct read_txn *read,
                          const struct plan_request *wanted, struct err *err) ERR_WARN_UNUSED;
/* After PLAN_ERR_REPLAN in the first request: makes another plan and begins again. The cursor is detached. */
bool document_cursor_replan(struct document_cursor *cursor, const struct read_txn *read,
                            struct err *err) ERR_WARN_UNUSED;
/* Begins work in this request's transaction. ERR_QueryPlanKilled when the collection was dropped or made anew. */
bool document_cursor_attach(struct document_cursor *cursor, const struct read_txn *read, int64_t deadline_ms,
                            struct err *err) ERR_WARN_UNUSED;
/* Remembers the position; the transaction may end. */
void document_cursor_detach(struct document_cursor *cursor);
/* What the cursor keeps in memory between requests. */
size_t document_cursor_memory(const struct document_cursor *cursor);
/* The next result before the projection, borrowed until the next call; data NULL at the end. */
bool document_cursor_next(struct document_cursor *cursor, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
/* Adds up to `batch_size` results (-1: no limit by number) to the reply; sets cursor->exhausted when there are no more.
 */
bool document_cursor_fill(struct document_cursor *cursor, struct batch_reply *reply, int64_t batch_size,
                          struct err *err) ERR_WARN_UNUSED;

#endif
