/* Inside storage only: unique keys that are taken. For a ready index the write is refused; for one under construction
 * the key is noted, and looked at again when the build ends. */
#ifndef SHERD_STORAGE_DUPLICATES_H
#define SHERD_STORAGE_DUPLICATES_H

#include "storage/env.h"
#include "storage/records.h"

struct duplicate_check {
    struct store_txn *txn;
    const struct collection *coll;
    struct bdoc doc;                    /* that is to be written */
    uint64_t record_id;                 /* its own, whose entries are no conflict; 0: a new one */
    const struct index_keys *old;       /* of the record as it stands, in this index: they are its own; NULL: none */
    const struct record_write *options; /* for the owner's say */
};

/* True when no other document has one of the keys. ERR_DuplicateKey. */
bool duplicates_check(const struct duplicate_check *check, const struct index_def *index, const struct index_keys *keys,
                      struct err *err) ERR_WARN_UNUSED;
/* Fills *err with ERR_DuplicateKey for `key` of `doc`, message and details as MongoDB's; returns false. */
bool duplicates_refuse(const struct collection *coll, const struct index_def *index, struct bdoc doc,
                       const uint8_t *key, uint32_t key_len, struct err *err);

/* Notes those of the keys that another record has. */
void duplicates_note(struct store_txn *txn, const struct index_def *index, const struct index_keys *keys,
                     uint64_t record_id);

/* Keys of the builds database: be32 index id, kind, and what the kind says. */
enum {
    BUILD_POSITION = 0,  /* -> be64 next record id, be64 end, be64 records done */
    BUILD_DUPLICATE = 1, /* be64 hash of the key, be64 record id -> the key */
    BUILD_REFUSED = 2,   /* be64 record id whose keys could not be derived -> nothing */
    BUILD_KEY_MAX = 4 + 1 + 8 + 8,
};

#endif
