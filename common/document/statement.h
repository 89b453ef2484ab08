/* One statement of a write (an update, a delete, a findAndModify) as it stands in a DOCUMENT_KIND_UPDATE log command,
 * and what its application gave. Written by the leader, read by apply on every member; the results travel back to the
 * leader only. */
#ifndef SHERD_DOCUMENT_STATEMENT_H
#define SHERD_DOCUMENT_STATEMENT_H

#include "base/arena.h"
#include "document/codec.h"

enum statement_flag {
    STATEMENT_DELETE = 1 << 0, /* else an update */
    STATEMENT_MULTI = 1 << 1,
    STATEMENT_UPSERT = 1 << 2,
    STATEMENT_BY_ID = 1 << 3,       /* the filter fixes _id: apply finds the record itself, there are no candidates */
    STATEMENT_WANT_BEFORE = 1 << 4, /* the result carries the document as it was */
    STATEMENT_WANT_AFTER = 1 << 5,  /* or as it became */
    STATEMENT_IMAGE =
        1 << 6, /* the leader has evaluated it: candidates carry hash and new document, apply only compares the hash */
};

struct statement_candidate {
    uint64_t record_id;
    const uint8_t *sort_key; /* of the document when it was chosen; sort_key_len 0: any order */
    uint32_t sort_key_len;
    uint64_t hash;     /* IMAGE: hash_bytes of the document that was read */
    struct bdoc after; /* IMAGE: what it becomes; no data for a delete */
};

struct statement {
    unsigned flags;
    uint32_t index; /* in the client's batch */
    struct bdoc filter;
    struct bval update;        /* document or array; BT_EOO for a delete */
    struct bdoc array_filters; /* data NULL: none */
    struct bdoc sort;          /* data NULL: none; to check sort_key again */
    bson_oid_t upsert_id;      /* the _id of an upserted document that names none */
    struct bdoc upsert_image;  /* IMAGE with UPSERT and no candidate: the document to insert */
    struct statement_candidate *candidates;
    uint32_t candidate_count;
};

/* Common to all statements of one log command. */
struct statement_batch {
    const char *ns;
    const uint8_t *create_uuid; /* 16 bytes: of the collection, should an upsert have to make it */
    struct bdoc version;        /* $sherdVersion; data NULL: none */
    struct bdoc let;
    int64_t now_ms;
    bool ordered;    /* stop at the first statement that isn't done */
    uint64_t tested; /* version of the validator that the leader tested new documents with: document/validator.h */
    uint32_t count;
};

void statement_batch_encode(struct buf *out, const struct statement_batch *batch);
void statement_batch_decode(struct codec_reader *reader, struct statement_batch *out);
void statement_encode(struct buf *out, const struct statement *statement);
/* Arrays lie in the arena, documents are borrowed from the bytes. */
void statement_decode(struct codec_reader *reader, struct arena *arena, struct statement *out);

enum statement_status {
    STATEMENT_DONE,
    STATEMENT_ERROR,
    STATEMENT_REDO, /* the candidate is no longer what was chosen: look again */
};

struct statement_result {
    enum statement_status status;
    uint32_t index;
    uint32_t n; /* matched (an upsert counts), or deleted */
    uint32_t n_modified;
    struct bdoc upserted; /* {_id: ...}; data NULL: none */
    struct bdoc value;    /* for WANT_BEFORE and WANT_AFTER; data NULL: none */
    struct err err;       /* with STATEMENT_ERROR; n and n_modified count what was done before it */
    /* IMAGE with MULTI: record ids, le64 each, of candidates that have changed or gone since they were evaluated. The
     * leader evaluates them again: they may still match. */
    const uint8_t *missed;
    uint32_t missed_count;
};

void statement_result_encode(struct buf *out, const struct statement_result *result);
/* Documents are borrowed from the bytes. */
void statement_result_decode(struct codec_reader *reader, struct statement_result *out);
/* Errors inside results. */
void codec_write_err(struct buf *out, const struct err *err);
void codec_read_err(struct codec_reader *reader, struct err *out);

#endif
