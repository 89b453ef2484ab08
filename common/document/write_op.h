/* An update, delete or findAndModify on its way through the leader: statement after statement is prepared on a worker,
 * proposed, and answered by the completion on the apply thread; a statement whose document changed meanwhile is
 * prepared again. The operation is data: no thread waits for it.
 *
 *            +------------- next statements, or REDO --------------+
 *            v                                                     |
 *   [step: worker] --propose--> [log, apply] --> [proposed: apply thread] --> finish
 *      |    ^ |  \--barrier (nothing matched)---^
 *      |    | +--- wait for another write's claim
 */
#ifndef SHERD_DOCUMENT_WRITE_OP_H
#define SHERD_DOCUMENT_WRITE_OP_H

#include "command/batch.h"
#include "command/namespace.h"
#include "command/reply.h"
#include "command/table.h"
#include "command/write_fields.h"
#include "document/claims.h"
#include "document/engine.h"
#include "document/read_txn.h"
#include "document/statement.h"
#include "document/validation.h"
#include "query/filter.h"
#include "query/projection.h"
#include "query/sort.h"
#include "update/update.h"

enum {
    WRITE_MULTI_CHUNK = 500,             /* documents of a multi-write in one log entry, ... */
    WRITE_MULTI_CHUNK_BYTES = 8 << 20,   /* ... and what the update's own bytes may add to all of them */
    WRITE_MULTI_COLLECT_MAX = 4 << 20,   /* record ids that a multi-write holds at a time (8 bytes each) */
    WRITE_CLAIMED_SKIP_MAX = 1000,       /* claimed documents that a chooser passes over */
    WRITE_GROUP_MAX_BYTES = 1024 * 1024, /* of statements by _id that share a log entry */
    WRITE_BUSY_PAUSE_MS = 20,            /* before a multi-write that has begun tries its next chunk again */
    WRITE_UPSERT_RACES_MAX = 5,          /* then the unique key is held by a document that the filter doesn't match */
};

/* A statement that needs candidates. Lives in write_op while it is the current one. */
struct write_current {
    struct arena arena; /* of everything compiled for it */
    struct arena chunk; /* of the candidates at hand: emptied for each chunk of a multi-write */
    struct statement statement;
    struct write_fields fields;
    struct expr_env env;        /* of filter and sort */
    struct expr_env update_env; /* of the update: with its constants */
    struct filter *filter;
    struct update *update; /* NULL for a delete */
    struct sort_spec *sort;
    int natural;       /* hint or sort {$natural: 1 or -1}; 0: none */
    bool image;        /* the leader evaluates */
    uint64_t *records; /* multi: chosen records, heap */
    uint32_t record_count;
    uint32_t record_cap;
    uint32_t record_at;    /* those before it are done */
    bool matched;          /* it has changed something */
    bool collected;        /* multi: `records` is complete */
    uint64_t resume_after; /* multi: more are left beyond this record; 0: no */
    uint32_t redo_count;
    uint32_t race_count; /* upserts that met a duplicate key */
};

struct write_op {
    struct command_ctx *ctx;
    struct document_engine *engine;
    struct ns ns;
    struct bdoc version;
    struct bdoc let;
    struct bdoc statements; /* as the body holds them; only read through `batch` */
    struct expr_env env;
    const struct bval_order *default_order; /* the collection's collation; NULL: strings by bytes */
    const uint8_t *expected_uuid;           /* collectionUUID; NULL: not given */
    bool bypass_validation;
    struct arena validation_arena; /* of `validation` */
    struct validation validation;  /* as it was at the last look, before each log command */
    uint8_t uuid[UUID_BYTES];      /* of the collection, should it have to be made */
    bool is_delete;
    bool is_modify;                       /* findAndModify: one statement, its error is the command's */
    struct bdoc modify_fields;            /* findAndModify: the projection */
    struct projection *modify_projection; /* compiled; NULL: whole documents */

    struct batch batch;
    struct batch_iter iter;
    struct bdoc held; /* statement `next`, when it was looked at already; data NULL: not */
    uint32_t next;    /* batch index of the statement that comes next */
    bool ordered;
    bool stopped;
    struct write_result result;
    struct statement_result modified; /* findAndModify: documents lie in the request's arena */

    bool has_current;
    struct write_current current;
    uint32_t entry_first; /* batch index of the first statement of the entry under way */
    /* Where a group of statements by _id begins, should it have to be made again: behind its first statement. */
    struct batch_iter entry_iter;
    struct bdoc entry_held;
    uint32_t redo_count; /* for that */
    struct document_claim_holder claims;
    struct document_claim_waiter waiter;
};

/* Ordered, everything else zero. */
struct write_op *write_op_new(struct command_ctx *ctx);
/* For one that was not started. */
void write_op_free(struct write_op *op);
/* Runs on from where the operation is; ends in command_finish sooner or later. */
void write_op_start(struct write_op *op);
/* findAndModify: the one statement, parsed by the caller. */
void write_op_start_one(struct write_op *op, const struct statement *statement, const struct write_fields *fields);

/* ---- write_parse.c ---- */

/* A statement {q, u, ...} or {q, limit, ...}; documents are borrowed. */
bool write_parse_update(struct bdoc doc, struct statement *out, struct write_fields *fields,
                        struct err *err) ERR_WARN_UNUSED;
bool write_parse_delete(struct bdoc doc, struct statement *out, struct write_fields *fields,
                        struct err *err) ERR_WARN_UNUSED;
/* What the log needs of the fields; the same documents, borrowed. */
void write_statement_from_fields(const struct write_fields *fields, struct statement *out);
/* The filter has only equalities of plain values, {a: 1} or {a: {$eq: 1}}, also inside $and; *id is that of _id. */
bool write_plain_id(struct bdoc filter, struct bval *id);
/* True when the filter plainly fixes _id and nothing in the statement needs the leader's judgement: it can be logged
 * without being compiled. */
bool write_is_plain_by_id(const struct write_op *op, const struct statement *statement,
                          const struct write_fields *fields);
/* Compiles op->current; decides about BY_ID and IMAGE. */
bool write_current_compile(struct write_op *op, struct err *err) ERR_WARN_UNUSED;
/* Again for what a new look at the collection has found: a validator that the leader tests makes images necessary. */
void write_current_decide(struct write_op *op);
void write_current_deinit(struct write_current *current);

/* ---- write_choose.c ---- */

enum write_choice {
    WRITE_CHOSEN,  /* the statement has its candidates */
    WRITE_NOTHING, /* no document matches */
    WRITE_WAITING, /* the operation is queued behind a claim and will be woken */
    WRITE_FAILED,
};

/* A multi-write: the record is to be looked at (again). */
void write_current_keep_record(struct write_current *current, uint64_t record_id);
/* Looks for the candidates of op->current. */
enum write_choice write_choose(struct write_op *op, struct err *err);
/* Whether a statement by _id would find a record: spares the log an entry. False also on ERR_StaleConfig and its like
 * (*err filled, code not 0). */
bool write_by_id_exists(struct write_op *op, const struct statement *statement, bool *exists, struct err *err);

#endif
