/* Inside storage only: the structs behind store.h and the few operations on LMDB that every file here uses. */
#ifndef SHERD_STORAGE_ENV_H
#define SHERD_STORAGE_ENV_H

#include "storage/store.h"

#include "base/map.h"
#include "storage/index_keys.h"

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    ENV_KEY_MAX = 511,       /* LMDB's limit as Debian builds it */
    ENV_IDLE_CURSORS = 4,    /* kept with a pooled read transaction, for each database */
    ENV_WRITE_CURSORS = 8,   /* kept open within a write transaction, for each database; a power of two */
    ENV_WRITE_COUNTERS = 64, /* first size of a write transaction's table of counters; a power of two */
};

/* The named databases. Keys are made so that one database holds all collections. */
enum store_db {
    STORE_DB_META,     /* small internal values */
    STORE_DB_CATALOG,  /* 1, be32 collection id -> BSON; 2, be32 id -> what of a dropped thing waits to be erased */
    STORE_DB_RECORDS,  /* be32 collection id, be64 record id [, be16 piece] -> BSON */
    STORE_DB_ENTRIES,  /* be32 index id, encoded key, be64 record id -> nothing, or the rest of a long key */
    STORE_DB_COUNTERS, /* be32 id, 0 -> totals; be32 collection id, 1, range -> totals */
    STORE_DB_BUILDS,   /* be32 index id -> position; be32 index id, key hash -> a key that was taken */
    STORE_DB_COUNT
};

struct store {
    char *dir;
    int lock_fd;     /* holds sherd.lock while the store is open */
    char *data_file; /* name inside dir */
    MDB_env *env;
    int data_fd; /* LMDB's own descriptor of the data file */
    MDB_dbi dbi[STORE_DB_COUNT];
    uint32_t page_bytes;
    uint64_t map_bytes;
    uint64_t ahead_bytes;
    uint64_t reserve_bytes;
    uint64_t checkpoint_bytes;
    struct store_filter_hooks hooks;
    struct store_collection_hooks collection_hooks;

    pthread_mutex_t checkpoint_lock; /* one checkpoint at a time; guards pin */
    pthread_mutex_t gate;            /* see store.h: lets a checkpoint in between two transactions */
    pthread_mutex_t write_lock;      /* held from write begin to commit or abort */
    pthread_mutex_t pool_lock;       /* guards pool and open_txns */
    pthread_mutex_t catalog_lock;    /* guards recent */

    MDB_txn *pin;           /* the reader that keeps the checkpoint's pages from being reused */
    struct store_txn *pool; /* ended read transactions, reset */
    uint32_t open_txns;
    struct catalog_snapshot
        *recent[2]; /* the newest published versions of the catalog, each with a reference; or NULL */

    struct store_txn *write_txn;      /* the apply thread's only transaction, reused */
    _Atomic uint64_t allocated_bytes; /* blocks of the data file that surely exist; the apply thread changes it */
    int64_t retry_allocate_ms;        /* the disk was full: don't ask again before (clock_now_ms) */
    uint64_t last_page_bytes;         /* file in use after the last commit; apply thread */

    _Atomic uint64_t applied_index;
    _Atomic uint64_t checkpoint_index;
    _Atomic uint64_t pin_txn_id;    /* LMDB's number of the pinned snapshot */
    _Atomic uint64_t changed_bytes; /* pages allocated or freed since the last checkpoint */
    _Atomic bool low_space;         /* left_bytes is below the reserve */
};

/* Totals as the counters database keeps them. */
struct counter_slot {
    uint32_t id; /* collection or index; 0: the slot is free */
    bool dirty;
    int64_t docs;
    int64_t bytes;
    uint64_t next_record_id; /* collections only */
};

/* Totals of a range within a write transaction; the map's key is the database's key. */
struct range_slot {
    bool dirty;
    bool present; /* false: to be deleted, or absent */
    int64_t docs;
    int64_t bytes;
};

/* What only a write transaction has; its memory is reused from one to the next. */
struct write_state {
    MDB_cursor *cursors[STORE_DB_COUNT][ENV_WRITE_CURSORS]; /* slot = id modulo the count */
    MDB_cursor *probes[ENV_WRITE_CURSORS];                  /* likewise, on entries */
    struct counter_slot *counters;                          /* open addressing by id */
    uint32_t counter_cap;
    uint32_t counter_count;
    struct map ranges;           /* database key -> struct range_slot */
    struct index_keys *new_keys; /* for each index of the document at hand */
    struct index_keys *old_keys;
    uint32_t keys_cap; /* of both arrays */
    struct catalog_snapshot *
        *retired; /* catalog versions that this transaction replaced: borrowed pointers stay good */
    uint32_t retired_count;
    uint32_t retired_cap;
    bool catalog_changed;
};

struct store_txn {
    struct store *store;
    MDB_txn *mdb;
    struct store_txn *next;           /* in the pool */
    struct catalog_snapshot *catalog; /* with a reference; may be left over from an earlier use: see catalog_checked */
    bool catalog_checked;             /* `catalog` is of this transaction's version */
    struct buf scratch;               /* an encoded key, for the length of one call */
    struct buf scratch_doc;           /* a document in pieces, for the length of one call */
    MDB_cursor *idle[STORE_DB_COUNT][ENV_IDLE_CURSORS]; /* read transactions: cursors to be renewed */
    uint8_t idle_count[STORE_DB_COUNT];
    struct write_state *write; /* NULL in a read transaction */
};

/* The store can't be trusted any more: logs what LMDB (or errno, for codes above 0) says, and ends the process. */
_Noreturn void store_fatal(int code, const char *what);

/* False when absent. */
bool env_get(struct store_txn *txn, enum store_db db, const void *key, size_t key_len, MDB_val *value);
void env_put(struct store_txn *txn, enum store_db db, const void *key, size_t key_len, const void *value,
             size_t value_len);
/* False when absent. */
bool env_delete(struct store_txn *txn, enum store_db db, const void *key, size_t key_len);

/* A cursor for reading; give it back before the transaction ends. */
MDB_cursor *env_cursor_take(struct store_txn *txn, enum store_db db);
void env_cursor_give(struct store_txn *txn, enum store_db db, MDB_cursor *cursor);
/* False at the end. */
bool env_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op);
/* A cursor that stays where the last put of `id` was; belongs to the write transaction. */
MDB_cursor *env_write_cursor(struct store_txn *txn, enum store_db db, uint32_t id);
/* The same for looking keys of an index up in a write transaction. */
MDB_cursor *env_probe_cursor(struct store_txn *txn, uint32_t index_id);
void env_cursor_put(MDB_cursor *cursor, const void *key, size_t key_len, const void *value, size_t value_len);
/* Deletes the key if it is there. */
bool env_cursor_delete_key(MDB_cursor *cursor, const void *key, size_t key_len);

/* The next number for a collection or an index; never given twice. */
uint32_t env_next_id(struct store_txn *txn);

/* space.c: blocks ahead of the last page, and the flag behind store_check_space. Apply thread, before a transaction and
 * after a commit. */
void space_at_open(struct store *store);
void space_allocate_ahead(struct store *store);
void space_after_commit(struct store *store);

/* counters.c: writes what the transaction holds. */
void counters_flush(struct store_txn *txn);
void counters_forget(struct store_txn *txn);

/* checkpoint.c */
struct checkpoint {
    uint64_t applied_index;
    uint64_t changed_bytes; /* while it is made: changed since the one before */
    char data_file[64];
    uint32_t page_bytes;
    uint8_t *pages; /* the file's first two; mem_free */
};
void checkpoint_deinit(struct checkpoint *checkpoint);
/* ERR_NonExistentPath: no such file. ERR_InvalidBSON: damaged. ERR_UnsupportedFormat: newer. */
bool checkpoint_read(const char *dir, struct checkpoint *out, struct err *err) ERR_WARN_UNUSED;
/* Opens the pin on the state just opened. */
void checkpoint_pin(struct store *store);

#endif
