/* The writes of one commit, parsed and checked before the first of them is carried out. Apply thread; everything
 * borrows from the command or lives in the arena. */
#ifndef SHERD_CONFIGD_WRITES_H
#define SHERD_CONFIGD_WRITES_H

#include "configd/view.h"

enum write_kind {
    WRITE_PUT,
    WRITE_ERASE,
    WRITE_ERASE_CHUNKS,
};

struct metadata_write {
    enum write_kind kind;
    const char *ns;                   /* PUT, ERASE */
    struct bval id;                   /* PUT (the document's _id), ERASE */
    struct bdoc doc;                  /* PUT */
    uint8_t uuid[CLUSTER_UUID_BYTES]; /* ERASE_CHUNKS */
};

struct metadata_writes {
    struct metadata_write *items;
    size_t count;
};

/* Parses the array of a commit; documents of shards, databases and collections must parse, every document must have an
 * _id. */
bool writes_parse(struct bdoc array, struct arena *arena, struct metadata_writes *out, struct err *err) ERR_WARN_UNUSED;

/* Invariant 6 and what goes with it, against the state before the writes: chunks and collection entries come and go
 * together, first chunks cover all keys, later changes exchange ranges for the same ranges, every chunk has a higher
 * version than any before, its shard exists. */
bool writes_check_chunks(const struct metadata_writes *writes, const struct metadata_view *view,
                         struct err *err) ERR_WARN_UNUSED;

#endif
