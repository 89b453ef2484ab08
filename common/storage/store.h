/* The node's store: one LMDB environment with a fixed set of named databases, opened and recovered by one code path.
 *
 * Files in the data directory: `data-<n>.mdb` and its lock file, `checkpoint`, `sherd.lock` (one process at a time).
 * The Raft log is the redo log: a commit is not synced. A checkpoint makes one state durable; store_open always goes
 * back to the newest checkpoint, and its owner then replays the log from store_applied_index() + 1.
 *
 * Threads. Exactly one thread, the apply thread, uses store_write_*. Any thread may read: a read transaction belongs to
 * one thread at a time. store_checkpoint may be called from a worker while the apply thread goes on.
 *
 * Locks, in this order: checkpoint_lock (one checkpoint at a time) > gate > write_lock > leaf locks (pool, catalog).
 * The apply thread holds write_lock from store_write_begin to commit or abort. A checkpoint takes it only to open its
 * pinning reader and copy the two meta pages (microseconds), through `gate`, so that a busy apply thread can't starve
 * it; the sync and the rename run without any lock that the apply thread takes.
 *
 * A read that finds LMDB damaged, a failed write or a failed sync ends the process (one log line, then _exit):
 * nothing of the store is trusted afterwards, and the next start goes back to the checkpoint. */
#ifndef SHERD_STORAGE_STORE_H
#define SHERD_STORAGE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "bson/compare.h"

#include <stddef.h>
#include <stdint.h>

struct store;
struct store_txn;

enum {
    STORE_FORMAT_VERSION = 2, /* of the files; another one is refused */
    STORE_META_KEY_MAX = 128, /* bytes of a key of store_meta_* */
};

#define STORE_DEFAULT_MAP_BYTES        (UINT64_C(1) << 40)
#define STORE_DEFAULT_AHEAD_BYTES      (UINT64_C(256) << 20)
#define STORE_DEFAULT_CHECKPOINT_BYTES (UINT64_C(256) << 20)

/* The filter of a partial index belongs to a higher layer. All three are set, or none: then partial indexes are
 * refused. */
struct store_filter_hooks {
    /* A compiled filter, owned by the store until `free`; NULL and *err when it isn't one that may stand in an index.
     * Strings compare by `order`, which outlives it; NULL: by bytes. */
    void *(*compile)(struct bdoc filter, const struct bval_order *order, struct err *err);
    /* Deterministic; called in apply and by readers, side by side on several threads. */
    bool (*matches)(const void *compiled, struct bdoc doc);
    void (*free)(void *compiled);
};

/* What a higher layer wants to know of each collection, made once per version of the catalog. Both are set, or none. */
struct store_collection_hooks {
    /* Never fails; `options` is borrowed as long as what it returns, which the store owns until `free`. */
    void *(*make)(struct bdoc options);
    void (*free)(void *traits);
};

struct store_options {
    const char *dir;           /* must exist */
    uint64_t map_bytes;        /* 0: STORE_DEFAULT_MAP_BYTES; fixed while the store is open */
    uint64_t ahead_bytes;      /* blocks allocated beyond the last page; 0: STORE_DEFAULT_AHEAD_BYTES. Tests use less */
    uint64_t checkpoint_bytes; /* see store_checkpoint_due; 0: STORE_DEFAULT_CHECKPOINT_BYTES */
    unsigned max_readers;      /* read transactions open at a time; 0: 1024 */
    bool create;               /* true: without a checkpoint, data files are deleted and an empty store is made and
                                  checkpointed (only right if the log begins at index 1 or doesn't exist); false:
                                  ERR_NotYetInitialized, which a damaged checkpoint gives in either case */
    struct store_filter_hooks filter_hooks;
    struct store_collection_hooks collection_hooks;
};

/* Opens and recovers. On success *out is the caller's until store_close. Blocks on the disk. Errors:
 * ERR_NotYetInitialized, ERR_LockBusy (another process has the directory), ERR_UnsupportedFormat (newer format),
 * ERR_OperationFailed, ERR_OutOfDiskSpace. */
bool store_open(const struct store_options *options, struct store **out, struct err *err) ERR_WARN_UNUSED;
/* No transaction may be open. Takes no checkpoint. Accepts NULL. */
void store_close(struct store *store);
/* True when `dir` holds a file named `checkpoint`. */
bool store_exists(const char *dir);

/* ---- transactions ---- */

/* A snapshot of everything committed. Cheap: pooled and renewed. Fails only when max_readers are open (ERR_LockBusy).
 * End it within the request. */
bool store_read_begin(struct store *store, struct store_txn **out, struct err *err) ERR_WARN_UNUSED;
/* Accepts NULL. */
void store_read_end(struct store_txn *txn);

/* Apply thread only. Waits for nothing but a checkpoint's short critical section. */
bool store_write_begin(struct store *store, struct store_txn **out, struct err *err) ERR_WARN_UNUSED;
/* Commits and ends the transaction; readers that begin later see it. `applied_index` must not be below the stored one.
 * Never returns on a failed write. */
void store_write_commit(struct store_txn *txn, uint64_t applied_index);
/* Drops the changes. Accepts NULL. */
void store_write_abort(struct store_txn *txn);

struct store *store_of(const struct store_txn *txn);
bool store_txn_is_write(const struct store_txn *txn);
/* The index last committed (any thread), and the one that a transaction sees. */
uint64_t store_applied_index(const struct store *store);
uint64_t store_txn_applied_index(struct store_txn *txn);

/* ---- small internal values ("meta"), seen and changed within the transaction ---- */

/* False when absent. *value is valid until the transaction ends or its next change. `key_len` <= STORE_META_KEY_MAX. */
bool store_meta_get(struct store_txn *txn, const void *key, size_t key_len, const void **value, size_t *value_len);
void store_meta_put(struct store_txn *txn, const void *key, size_t key_len, const void *value, size_t value_len);
void store_meta_delete(struct store_txn *txn, const void *key, size_t key_len);

/* ---- durability ---- */

/* Makes the newest committed state durable and the one that the next start begins with. Blocks on the disk; any thread.
 * *applied_index (may be NULL) is the checkpoint's. A failed sync ends the process; an error is returned only when
 * writing the small `checkpoint` file failed and the older checkpoint still stands (ERR_OutOfDiskSpace,
 * ERR_OperationFailed). */
bool store_checkpoint(struct store *store, uint64_t *applied_index, struct err *err) ERR_WARN_UNUSED;
/* True when pages of checkpoint_bytes were allocated or freed since the last checkpoint. Any thread; cheap. */
bool store_checkpoint_due(const struct store *store);
uint64_t store_checkpoint_index(const struct store *store);

/* ---- space ---- */

struct store_space {
    uint64_t map_bytes;      /* the most that the file may become */
    uint64_t file_bytes;     /* up to the last page in use */
    uint64_t reusable_bytes; /* pages inside the file that the next transactions may take */
    uint64_t disk_bytes;     /* free on the file system, beyond blocks already allocated to the file */
    uint64_t left_bytes;     /* what writes can still take: min(map, disk) side, with reusable pages */
    uint64_t reserve_bytes;  /* kept for deletes and outgoing moves: user writes stop when left_bytes is below it */
};

/* Walks LMDB's free list: not for every request. */
bool store_space(struct store *store, struct store_space *out, struct err *err) ERR_WARN_UNUSED;
/* The leader's check before it proposes a user write that isn't a delete: ERR_OutOfDiskSpace below the reserve. One
 * atomic load. */
bool store_check_space(const struct store *store, struct err *err) ERR_WARN_UNUSED;

/* ---- comparing replicas ---- */

/* A hash of every key and value of every named database: equal on replicas at an equal applied index. Reads all. */
uint64_t store_logical_hash(struct store_txn *txn);

#endif
