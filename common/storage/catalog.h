/* The catalog: collections and their indexes, as immutable snapshots.
 *
 * Every transaction has one snapshot that belongs to exactly its version of the data: the catalog's version is a value
 * in LMDB, read in the same transaction. What the find functions return is borrowed from the transaction's snapshot and
 * valid until the transaction ends (in a write transaction also across later changes of the catalog, but then as it was
 * before the change: look it up again after create, drop or an index change).
 *
 * Changes are made by the apply thread in its write transaction and are deterministic: uuids come from the command. */
#ifndef SHERD_STORAGE_CATALOG_H
#define SHERD_STORAGE_CATALOG_H

#include "storage/store.h"

enum {
    CATALOG_NS_MAX = 255,          /* bytes of "db.collection" */
    CATALOG_DB_MAX = 63,           /* bytes of a database name */
    CATALOG_INDEXES_MAX = 64,      /* of one collection */
    CATALOG_INDEX_FIELDS_MAX = 32, /* of one index */
    CATALOG_COLLECTIONS_MAX = 100000,
    UUID_BYTES = 16,
};

enum index_state {
    INDEX_READY,
    INDEX_BUILDING, /* maintained by writes, serves no plan, refuses no duplicate yet */
    INDEX_FAILED,   /* not maintained; waits to be dropped */
};

struct index_field {
    const char *path; /* dotted, as in the key pattern: "a.b", and for a wildcard "$**" or "a.b.$**" */
    uint32_t path_len;
    bool dotted;
    bool descending;
    bool hashed;
    bool wildcard;     /* takes two components of a key: path and value, see index_keys.h */
    uint64_t multikey; /* bit j: some document had an array at the end of the path's first j + 1 parts; of a wildcard
                          only bit 0: on some path */
};

struct index_def {
    uint32_t id;             /* unique in the store, also against collection ids */
    const char *name;        /* "_id_", "a_1_b_-1" */
    struct bdoc spec;        /* as listIndexes prints it: {v, key, name, unique?, sparse?, ...} */
    struct bdoc key_pattern; /* inside spec */
    struct index_field *fields;
    uint32_t field_count;
    enum index_state state;
    uint32_t build_group; /* id of the first of the indexes that are built together; 0: alone, or ready */
    bool is_id;           /* the index on _id: always first, always there */
    bool unique;
    bool sparse;
    bool hashed;                    /* one of the fields is */
    bool wildcard;                  /* one of the fields is: index_keys.h says what the keys are */
    bool hidden;                    /* serves no plan; keeps its uniqueness */
    bool prepare_unique;            /* refuses new duplicates, may have old ones: no plan may rely on uniqueness */
    bool ttl;                       /* documents expire */
    int64_t expire_after_seconds;   /* of a TTL index */
    uint32_t wildcard_field;        /* position of the wildcard among the fields */
    bool multikey;                  /* some document has several keys, or one from inside an array */
    struct bdoc partial;            /* partialFilterExpression, inside spec; data NULL: none */
    void *filter;                   /* the compiled partial filter; NULL: none */
    const struct bval_order *order; /* of the strings in its keys (the spec's collation); NULL: by bytes */
};

struct collection {
    uint32_t id; /* never used again after a drop */
    uint8_t uuid[UUID_BYTES];
    const char *ns; /* "db.coll" */
    uint32_t ns_len;
    uint32_t db_len;                  /* bytes of ns before the first dot */
    const char *name;                 /* inside ns, after the dot */
    struct bdoc options;              /* as listCollections prints them; empty when none */
    struct index_def *const *indexes; /* the _id index first, then by creation */
    uint32_t index_count;
    bool is_view;   /* options.viewOn: a definition, never a record */
    bool capped;    /* options.capped */
    bool many_ids;  /* options.timeseries: several documents may have one _id; its index isn't unique */
    bool clustered; /* options.clusteredIndex: the natural order is that of the _id index */
    void *traits;   /* what the store's collection hooks made of the options; NULL: without hooks */
};

/* ---- finding ---- */

/* NULL when there is none (or it is dropped). */
const struct collection *catalog_find(struct store_txn *txn, const char *ns, size_t ns_len);
const struct collection *catalog_find_uuid(struct store_txn *txn, const uint8_t uuid[UUID_BYTES]);
const struct collection *catalog_find_id(struct store_txn *txn, uint32_t collection_id);
const struct index_def *collection_find_index(const struct collection *coll, const char *name);
const struct index_def *collection_find_index_id(const struct collection *coll, uint32_t index_id);
/* The first index with exactly that key pattern (field order counts), or NULL. */
const struct index_def *collection_find_index_key(const struct collection *coll, struct bdoc key_pattern);
/* Several may have it, with different collations or partial filters: how many do. */
uint32_t collection_count_index_key(const struct collection *coll, struct bdoc key_pattern);
/* Walks in namespace order: *position starts at 0. db == NULL: all databases. NULL at the end. */
const struct collection *catalog_next(struct store_txn *txn, const char *db, size_t db_len, size_t *position);
/* Walks the names of databases that have a collection, in order: `previous` is NULL at first. Returns a collection of
 * the next database (its first db_len bytes are the name), or NULL. */
const struct collection *catalog_next_db(struct store_txn *txn, const struct collection *previous);
/* Changes with every change of the catalog. */
uint64_t catalog_version(struct store_txn *txn);

/* A snapshot that outlives the transaction. Collections found in it are valid until the unref. Any thread. */
struct catalog_snapshot;
struct catalog_snapshot *catalog_snapshot_ref(struct store_txn *txn);
void catalog_snapshot_unref(struct catalog_snapshot *snapshot);

/* ---- names and options (pure) ---- */

/* ERR_InvalidNamespace for an empty or overlong part, a NUL, '$', a leading or trailing dot, characters that a database
 * name may not hold. */
bool catalog_check_ns(const char *ns, size_t ns_len, struct err *err) ERR_WARN_UNUSED;
bool catalog_check_db(const char *db, size_t db_len, struct err *err) ERR_WARN_UNUSED;

/* ---- changing (apply thread) ---- */

/* Makes a collection and its _id index. `options` may be empty; unknown ones are the caller's to refuse.
 * ERR_NamespaceExists, ERR_InvalidNamespace, ERR_CollectionUUIDMismatch (the uuid is in use). */
bool catalog_create(struct store_txn *txn, const char *ns, size_t ns_len, const uint8_t uuid[UUID_BYTES],
                    struct bdoc options, struct err *err) ERR_WARN_UNUSED;
/* Takes the collection out of the catalog at once and leaves its records and entries to catalog_erase_step. */
void catalog_drop(struct store_txn *txn, const struct collection *coll);
/* Replaces the options document. */
void catalog_set_options(struct store_txn *txn, const struct collection *coll, struct bdoc options);
/* New name, same uuid and data. ERR_NamespaceExists, ERR_InvalidNamespace. */
bool catalog_rename(struct store_txn *txn, const struct collection *coll, const char *ns, size_t ns_len,
                    struct err *err) ERR_WARN_UNUSED;

/* Checks an index specification as createIndexes gets it ({key, name?, unique?, ...}) and writes the normal form to
 * `out` (initialised by the caller). `default_collation` (data NULL: none) is the collection's: an index without a
 * collation of its own inherits it. The normal form of a normal form is itself, unless it has no collation. Pure but
 * for the hooks' `compile`. ERR_CannotCreateIndex, ERR_InvalidIndexSpecificationOption, ERR_TypeMismatch, ERR_BadValue
 * ... */
bool index_spec_normalise(const struct store *store, struct bdoc spec, struct bdoc default_collation, bson_t *out,
                          struct err *err) ERR_WARN_UNUSED;
/* index_spec_normalise inside apply, with the collection's default collation. A specification of another ICU's
 * collation ends the process: the other members may have made the index. */
bool catalog_normalise_spec(struct store_txn *txn, const struct collection *coll, struct bdoc spec, bson_t *out,
                            struct err *err) ERR_WARN_UNUSED;
/* Appends the fields of a specification that it may have. */
void index_spec_copy_known(struct bdoc spec, bson_t *out);
/* options.collation; data NULL: none. */
struct bdoc collection_default_collation(const struct collection *coll);

enum index_compare {
    INDEX_IS_NEW,
    INDEX_EXISTS,   /* the same index is there: nothing to do */
    INDEX_CONFLICT, /* *err says which: ERR_IndexOptionsConflict, ERR_IndexKeySpecsConflict */
};
/* Compares a normal-form specification with the collection's indexes. *existing (may be NULL) for INDEX_EXISTS. */
enum index_compare collection_compare_index(const struct collection *coll, struct bdoc normal_spec,
                                            const struct index_def **existing, struct err *err);
/* Adds an index in state INDEX_BUILDING; *index_id is its id. See index_build.h for what comes next. The specification
 * is normalised first. For an index that exists already: true, its id, and *exists (may be NULL) set. */
bool catalog_create_index(struct store_txn *txn, const struct collection *coll, struct bdoc spec, uint32_t *index_id,
                          bool *exists, struct err *err) ERR_WARN_UNUSED;
/* Lets indexes under construction be built together, or not at all, whoever drives the build. */
void catalog_group_builds(struct store_txn *txn, const struct collection *coll, const uint32_t *ids, uint32_t count);
/* Replaces the specification of an index by another normal form that has the same key and collation (collMod: hidden,
 * expireAfterSeconds, unique, prepareUnique). */
void catalog_set_index_spec(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                            struct bdoc normal_spec);
/* Takes the index out at once and leaves its entries to catalog_erase_step. ERR_InvalidOptions for the _id index. */
bool catalog_drop_index(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                        struct err *err) ERR_WARN_UNUSED;

/* ---- erasing what was dropped, in small steps driven by log entries ---- */

/* True when something dropped waits to be erased. */
bool catalog_erase_pending(struct store_txn *txn);
/* Erases up to `max_entries` keys of dropped collections and indexes; true when more is left. Deterministic. */
bool catalog_erase_step(struct store_txn *txn, uint32_t max_entries);

#endif
