/* The head of a DOCUMENT_KIND_INSERT log command, for its writer (insert.c) and its applier (apply_insert.c). */
#ifndef SHERD_DOCUMENT_INSERT_H
#define SHERD_DOCUMENT_INSERT_H

#include "document/codec.h"

struct insert_header {
    const char *ns;
    const uint8_t *create_uuid; /* 16 bytes: of the collection, should it have to be made; zeros: never */
    struct bdoc version;        /* $sherdVersion; data NULL: none */
    bool ordered;               /* stop at the first error */
    uint64_t tested;            /* version of the validator that the leader tested the documents with: validator.h */
    uint32_t first_index;       /* of the first document in the client's batch */
    uint32_t count;             /* documents that follow, end to end */
};

void insert_header_encode(struct buf *out, const struct insert_header *header);
void insert_header_decode(struct codec_reader *reader, struct insert_header *out);

/* What apply gathers. */
struct insert_outcome {
    uint32_t inserted;
    uint32_t error_count;
    struct buf errors; /* batch index and error, one after the other */
};

#endif
