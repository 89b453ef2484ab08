/* Inside storage only: immutable versions of the catalog. A snapshot is three sorted arrays of references to collection
 * objects; a change copies the arrays and replaces one object, so a version shares all others with the one before. */
#ifndef SHERD_STORAGE_SNAPSHOT_H
#define SHERD_STORAGE_SNAPSHOT_H

#include "base/arena.h"
#include "bson/keygen.h"
#include "storage/catalog.h"
#include "storage/env.h"
#include "storage/index_wildcard.h"

/* An index with what only storage needs. `def` is first: a struct index_def * from outside is one of these. */
struct index_object {
    struct index_def def;
    struct keygen gen; /* of the fields' paths; valid when gen_ready */
    bool gen_ready;
    bool simple;                 /* no dotted, hashed or wildcard field: a document without arrays needs no recursion */
    struct wildcard wildcard;    /* when def.wildcard */
    struct collation *collation; /* a reference; NULL: simple */
    const struct store *store;   /* for the filter's hooks */
};

struct collection_object {
    struct collection def; /* first, as above */
    _Atomic uint32_t refs;
    const struct store *store; /* for the hooks */
    struct arena arena;        /* everything that def points at */
};

struct catalog_snapshot {
    _Atomic uint32_t refs;
    uint64_t version;
    uint32_t count;
    struct collection_object **by_ns; /* count references; the other two arrays borrow them */
    struct collection_object **by_id;
    struct collection_object **by_uuid;
};

static inline const struct index_object *index_object_of(const struct index_def *index)
{
    return (const struct index_object *)index;
}

/* Parses a collection as the catalog database has it. *out has one reference. ERR_InvalidBSON. */
bool collection_object_parse(const struct store *store, struct bdoc stored, struct collection_object **out,
                             struct err *err) ERR_WARN_UNUSED;
void collection_object_unref(struct collection_object *object);

/* At start: whether every collection can be read by this program. What it says is for the administrator. */
bool snapshot_check(struct store_txn *txn, struct err *err) ERR_WARN_UNUSED;
/* The transaction's version; borrowed from it. */
struct catalog_snapshot *snapshot_of(struct store_txn *txn);
/* Writes `stored` to the catalog under its id and makes the transaction's next version with it in place of `replaces`
 * (0: a new one). */
void snapshot_put(struct store_txn *txn, uint32_t replaces_id, struct bdoc stored);
/* The same without the collection. */
void snapshot_remove(struct store_txn *txn, uint32_t collection_id);

/* Before a commit: readers of the new version find it. After commit or abort: the transaction's leftovers. */
void snapshot_publish(struct store_txn *txn);
void snapshot_after_write(struct store_txn *txn, bool committed);
void snapshot_forget_recent(struct store *store);

/* Keys of the catalog database. */
enum {
    CATALOG_KEY_COLLECTION = 1,
    CATALOG_KEY_ERASE = 2,
    CATALOG_KEY_BYTES = 5,
    /* what CATALOG_KEY_ERASE leads to: one byte */
    CATALOG_ERASE_COLLECTION = 1,
    CATALOG_ERASE_INDEX = 2,
};
static inline void catalog_key(uint8_t out[CATALOG_KEY_BYTES], int kind, uint32_t id)
{
    out[0] = (uint8_t)kind;
    store_be32(out + 1, id);
}

#endif
