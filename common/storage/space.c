/* Space: blocks are allocated ahead of the last page so that a commit never meets a full disk, and user writes are
 * refused early enough that deletes still can run. */
#include "base/clock.h"
#include "base/log.h"
#include "storage/env.h"
#include "storage/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    ALLOCATE_RETRY_MS = 1000,
    BLOCKS_MARGIN = 1 << 20, /* what the file system may count as the file's for its own purposes */
};

static uint64_t last_page_bytes(const struct store *store)
{
    MDB_envinfo info;
    mdb_env_info(store->env, &info);
    return ((uint64_t)info.me_last_pgno + 1) * store->page_bytes;
}

/* The log is on the same disk as a rule, and deletes need both: the data file never takes the last `reserve`. *bytes
 * becomes what was allocated. */
static int allocate(struct store *store, uint64_t from, uint64_t *bytes)
{
    struct statvfs fs;
    if (fstatvfs(store->data_fd, &fs) == 0) {
        uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        uint64_t most = free_bytes > store->reserve_bytes ? free_bytes - store->reserve_bytes : 0;
        if (*bytes > most)
            *bytes = most - most % store->page_bytes;
    }
    if (*bytes == 0)
        return ENOSPC;
    while (fallocate(store->data_fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)*bytes) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            return 0; /* this file system takes blocks only when they are written */
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

void space_allocate_ahead(struct store *store)
{
    uint64_t want = store->last_page_bytes + store->ahead_bytes;
    if (want > store->map_bytes)
        want = store->map_bytes;
    uint64_t from = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed);
    if (from >= want)
        return;
    if (store->retry_allocate_ms != 0 && clock_now_ms() < store->retry_allocate_ms)
        return;
    uint64_t wanted = want - from;
    uint64_t bytes = wanted + store->ahead_bytes / 4; /* more than asked: not a system call for every few pages */
    int rc = allocate(store, from, &bytes);
    if (rc == 0)
        atomic_store_explicit(&store->allocated_bytes, from + bytes, memory_order_relaxed);
    else if (from < store->last_page_bytes)
        atomic_store_explicit(&store->allocated_bytes, store->last_page_bytes, memory_order_relaxed);
    if (rc == 0 && bytes >= wanted) {
        store->retry_allocate_ms = 0;
        return;
    }
    if (store->retry_allocate_ms == 0)
        log_warn("STORAGE", 2002, "Cannot allocate disk blocks ahead", LOG_I64("errno", rc != 0 ? rc : ENOSPC),
                 LOG_I64("wantedBytes", wanted), LOG_I64("usedBytes", store->last_page_bytes));
    store->retry_allocate_ms = clock_now_ms() + ALLOCATE_RETRY_MS;
}

void space_at_open(struct store *store)
{
    space_after_commit(store);
    uint64_t there = store->last_page_bytes; /* and what an earlier run allocated beyond it */
    struct stat stat;
    if (fstat(store->data_fd, &stat) == 0 && (uint64_t)stat.st_blocks * 512 > there + BLOCKS_MARGIN)
        there = (uint64_t)stat.st_blocks * 512 - BLOCKS_MARGIN;
    atomic_store(&store->allocated_bytes, there);
    space_allocate_ahead(store);
    atomic_store(&store->changed_bytes, 0);
}

/* One entry of LMDB's free list: how many pages a transaction freed, or left over. */
static uint64_t free_list_pages(const MDB_val *value)
{
    size_t count = 0;
    if (value->mv_size >= sizeof count)
        memcpy(&count, value->mv_data, sizeof count);
    return count;
}

/* Pages freed by transactions before `before_txn`. */
static uint64_t reusable_pages(MDB_txn *txn, uint64_t before_txn)
{
    MDB_cursor *cursor;
    if (mdb_cursor_open(txn, 0, &cursor) != 0) /* 0: LMDB's free list */
        return 0;
    uint64_t pages = 0;
    MDB_val key;
    MDB_val value;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        size_t id = 0;
        memcpy(&id, key.mv_data, sizeof id);
        if (id >= before_txn)
            break;
        pages += free_list_pages(&value);
    }
    mdb_cursor_close(cursor);
    return pages;
}

/* Pages that transaction `id` freed: about as many as it wrote. */
static uint64_t freed_by(MDB_txn *txn, size_t id)
{
    MDB_cursor *cursor;
    if (mdb_cursor_open(txn, 0, &cursor) != 0)
        return 0;
    MDB_val key = {sizeof id, &id};
    MDB_val value;
    uint64_t pages = mdb_cursor_get(cursor, &key, &value, MDB_SET) == 0 ? free_list_pages(&value) : 0;
    mdb_cursor_close(cursor);
    return pages;
}

static uint64_t left_bytes(const struct store *store, uint64_t used, uint64_t reusable, uint64_t disk_free)
{
    uint64_t map_left = store->map_bytes > used ? store->map_bytes - used : 0;
    uint64_t allocated = atomic_load_explicit(&store->allocated_bytes, memory_order_relaxed);
    uint64_t disk_left = (allocated > used ? allocated - used : 0) + disk_free;
    return (map_left < disk_left ? map_left : disk_left) + reusable;
}

void space_after_commit(struct store *store)
{
    uint64_t used = last_page_bytes(store);
    uint64_t growth = used > store->last_page_bytes ? used - store->last_page_bytes : 0;
    store->last_page_bytes = used;
    struct store_txn *txn;
    if (!store_read_begin(store, &txn, NULL))
        return; /* every reader slot is taken: the next commit looks again */
    uint64_t changed = growth + freed_by(txn->mdb, mdb_txn_id(txn->mdb)) * store->page_bytes;
    atomic_fetch_add_explicit(&store->changed_bytes, changed, memory_order_relaxed);
    /* As long as blocks could be allocated ahead, the disk isn't what limits. */
    uint64_t disk_free = store->retry_allocate_ms == 0 ? store->ahead_bytes : 0;
    bool low = false;
    if (left_bytes(store, used, 0, disk_free) < store->reserve_bytes * 2) {
        uint64_t reusable = reusable_pages(txn->mdb, atomic_load(&store->pin_txn_id)) * store->page_bytes;
        low = left_bytes(store, used, reusable, disk_free) < store->reserve_bytes;
    }
    store_read_end(txn);
    if (low != atomic_load_explicit(&store->low_space, memory_order_relaxed)) {
        atomic_store_explicit(&store->low_space, low, memory_order_relaxed);
        if (low)
            log_warn("STORAGE", 2003, "Space is running out: user writes are refused", LOG_I64("usedBytes", used));
        else
            log_info("STORAGE", 2004, "There is space again", LOG_I64("usedBytes", used));
    }
}

bool store_space(struct store *store, struct store_space *out, struct err *err)
{
    struct store_txn *txn;
    if (!store_read_begin(store, &txn, err))
        return false;
    struct statvfs fs;
    if (fstatvfs(store->data_fd, &fs) != 0) {
        store_read_end(txn);
        return err_set_errno(err, ERR_OperationFailed, errno, "cannot ask for the free space of the disk");
    }
    uint64_t used = last_page_bytes(store);
    out->map_bytes = store->map_bytes;
    out->file_bytes = used;
    out->reusable_bytes = reusable_pages(txn->mdb, atomic_load(&store->pin_txn_id)) * store->page_bytes;
    out->disk_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    out->left_bytes = left_bytes(store, used, out->reusable_bytes,
                                 out->disk_bytes > store->reserve_bytes ? out->disk_bytes - store->reserve_bytes : 0);
    out->reserve_bytes = store->reserve_bytes;
    store_read_end(txn);
    return true;
}

bool store_check_space(const struct store *store, struct err *err)
{
    if (!atomic_load_explicit(&store->low_space, memory_order_relaxed))
        return true;
    return err_set(err, ERR_OutOfDiskSpace,
                   "not enough space is left for this write; deletes are still possible (reserve of %llu bytes)",
                   (unsigned long long)store->reserve_bytes);
}
