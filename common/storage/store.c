/* Opening and closing. One path: lock the directory, put the checkpoint's meta pages back, open LMDB, pin the state
 * before anything is written. A new store is first made and checkpointed, then opened by that same path. */
#include "storage/store.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "storage/env.h"
#include "storage/snapshot.h"
#include "storage/txn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const db_names[STORE_DB_COUNT] = {"meta", "catalog", "records", "entries", "counters", "builds"};
static const char first_data_file[] = "data-1.mdb";
static const char format_key[] = "format";

static bool lock_dir(struct store *store, struct err *err)
{
    char *path = mem_printf("%s/sherd.lock", store->dir);
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok =
        store->lock_fd >= 0 || err_set_errno(err, ERR_OperationFailed, errno, "cannot open the lock file %s", path);
    if (ok && flock(store->lock_fd, LOCK_EX | LOCK_NB) != 0)
        ok = err_set(err, ERR_LockBusy, "the data directory %s is in use by another process", store->dir);
    mem_free(path);
    return ok;
}

/* "data-<n>.mdb", with or without "-lock". */
static bool is_data_file(const char *name)
{
    if (strncmp(name, "data-", 5) != 0)
        return false;
    const char *p = name + 5;
    size_t digits = strspn(p, "0123456789");
    return digits > 0 && (strcmp(p + digits, ".mdb") == 0 || strcmp(p + digits, ".mdb-lock") == 0);
}

/* Removes data files other than `keep` (NULL: all) with their lock files, and a checkpoint that was not finished. */
static bool remove_strays(const struct store *store, const char *keep, struct err *err)
{
    DIR *dir = opendir(store->dir);
    if (dir == NULL)
        return err_set_errno(err, ERR_OperationFailed, errno, "cannot read directory %s", store->dir);
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
        bool ours = keep != NULL && strncmp(entry->d_name, keep, strlen(keep)) == 0;
        if (ours || (!is_data_file(entry->d_name) && strcmp(entry->d_name, "checkpoint.tmp") != 0))
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0 && errno != ENOENT)
            ok = err_set_errno(err, ERR_OperationFailed, errno, "cannot remove %s/%s", store->dir, entry->d_name);
    }
    closedir(dir);
    return ok;
}

static bool env_error(struct err *err, int rc, const char *what)
{
    int32_t code = rc == ENOSPC ? ERR_OutOfDiskSpace : ERR_OperationFailed;
    return err_set(err, code, "cannot %s: %s", what, mdb_strerror(rc));
}

static bool open_databases(struct store *store, bool create, struct err *err)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(store->env, NULL, create ? 0 : MDB_RDONLY, &txn);
    for (int i = 0; rc == 0 && i < STORE_DB_COUNT; i++) {
        rc = mdb_dbi_open(txn, db_names[i], create ? MDB_CREATE : 0, &store->dbi[i]);
        if (rc != 0) {
            mdb_txn_abort(txn);
            return env_error(err, rc, "open a named database");
        }
    }
    if (rc == 0 && create) {
        uint8_t format[4];
        store_le32(format, STORE_FORMAT_VERSION);
        MDB_val key = {sizeof format_key - 1, (void *)(uintptr_t)format_key};
        MDB_val value = {sizeof format, format};
        rc = mdb_put(txn, store->dbi[STORE_DB_META], &key, &value, 0);
        if (rc != 0)
            mdb_txn_abort(txn);
    }
    if (rc == 0)
        rc = mdb_txn_commit(txn);
    return rc == 0 || env_error(err, rc, "open the named databases");
}

static bool open_env(struct store *store, const struct store_options *options, bool create, struct err *err)
{
    char *path = mem_printf("%s/%s", store->dir, store->data_file);
    int rc = mdb_env_create(&store->env);
    if (rc == 0)
        rc = mdb_env_set_mapsize(store->env, (size_t)store->map_bytes);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(store->env, STORE_DB_COUNT);
    if (rc == 0) /* two more: the pin and its successor while a checkpoint is taken; one for space reports */
        rc = mdb_env_set_maxreaders(store->env, (options->max_readers != 0 ? options->max_readers : 1024) + 3);
    if (rc == 0)
        rc = mdb_env_open(store->env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD, 0600);
    mem_free(path);
    MDB_stat stat;
    if (rc == 0)
        rc = mdb_env_stat(store->env, &stat);
    if (rc == 0)
        rc = mdb_env_get_fd(store->env, &store->data_fd);
    if (rc != 0)
        return env_error(err, rc, "open the data file");
    store->page_bytes = stat.ms_psize;
    int dead = 0;
    mdb_reader_check(store->env, &dead);
    return open_databases(store, create, err);
}

static bool read_state(struct store *store, struct err *err)
{
    struct store_txn *txn;
    if (!store_read_begin(store, &txn, err))
        return false;
    uint32_t format = 0;
    MDB_val value;
    if (env_get(txn, STORE_DB_META, format_key, sizeof format_key - 1, &value) && value.mv_size == 4)
        format = load_le32(value.mv_data);
    atomic_store(&store->applied_index, store_txn_applied_index(txn));
    bool known =
        format == STORE_FORMAT_VERSION ||
        err_set(err, ERR_UnsupportedFormat, "the data file has format version %u, this program reads version %d",
                format, STORE_FORMAT_VERSION);
    bool ok = known && snapshot_check(txn, err);
    store_read_end(txn);
    return ok;
}

static void close_env(struct store *store)
{
    if (store->env == NULL)
        return;
    txn_free(store->write_txn);
    store->write_txn = NULL;
    while (store->pool != NULL) {
        struct store_txn *next = store->pool->next;
        txn_free(store->pool);
        store->pool = next;
    }
    snapshot_forget_recent(store);
    if (store->pin != NULL)
        mdb_txn_abort(store->pin);
    store->pin = NULL;
    mdb_env_close(store->env);
    store->env = NULL;
}

/* An empty data file with its first checkpoint; closed again, so that the next step is the same as at any start. */
static bool make_new(struct store *store, const struct store_options *options, struct err *err)
{
    char *path = mem_printf("%s/checkpoint", store->dir);
    unlink(path);
    mem_free(path);
    if (!remove_strays(store, NULL, err))
        return false;
    store->data_file = mem_copy_str(first_data_file);
    bool ok =
        open_env(store, options, true, err) && file_sync_dir(store->dir, err) && store_checkpoint(store, NULL, err);
    close_env(store);
    mem_free(store->data_file);
    store->data_file = NULL;
    return ok;
}

static bool put_pages_back(const struct store *store, const struct checkpoint *checkpoint, struct err *err)
{
    char *path = mem_printf("%s/%s", store->dir, checkpoint->data_file);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 || err_set_errno(err, ERR_OperationFailed, errno, "cannot open the data file %s", path);
    size_t len = (size_t)checkpoint->page_bytes * 2;
    for (size_t done = 0; ok && done < len;) {
        ssize_t written = pwrite(fd, checkpoint->pages + done, len - done, (off_t)done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            ok = err_set_errno(err, ERR_OperationFailed, errno, "cannot write to the data file %s", path);
        else
            done += (size_t)written;
    }
    if (fd >= 0)
        close(fd);
    mem_free(path);
    return ok;
}

static bool recover(struct store *store, const struct store_options *options, const struct checkpoint *checkpoint,
                    struct err *err)
{
    store->data_file = mem_copy_str(checkpoint->data_file);
    if (!remove_strays(store, checkpoint->data_file, err) || !put_pages_back(store, checkpoint, err) ||
        !open_env(store, options, false, err))
        return false;
    if (store->page_bytes != checkpoint->page_bytes)
        return err_set(err, ERR_UnsupportedFormat, "the data file has pages of %u bytes, its checkpoint of %u",
                       store->page_bytes, checkpoint->page_bytes);
    checkpoint_pin(store); /* before the first write: a second crash must find the same checkpoint */
    if (!read_state(store, err))
        return false;
    if (store_applied_index(store) != checkpoint->applied_index)
        return err_set(err, ERR_InvalidBSON,
                       "the data file doesn't belong to its checkpoint: applied index %llu, not %llu",
                       (unsigned long long)store_applied_index(store), (unsigned long long)checkpoint->applied_index);
    atomic_store(&store->checkpoint_index, checkpoint->applied_index);
    return true;
}

static bool open_store(struct store *store, const struct store_options *options, struct err *err)
{
    struct checkpoint checkpoint;
    struct err why;
    bool found = checkpoint_read(store->dir, &checkpoint, &why);
    if (!found && why.code == ERR_UnsupportedFormat) {
        *err = why;
        return false;
    }
    /* A checkpoint is replaced in one step: one that is there but damaged means that data is there, too. */
    if (!found && (!options->create || store_exists(store->dir)))
        return err_set(err, ERR_NotYetInitialized, "no valid checkpoint in %s: %s", store->dir, why.msg);
    if (!found) {
        if (!make_new(store, options, err))
            return false;
        found = checkpoint_read(store->dir, &checkpoint, err);
    }
    bool ok = found && recover(store, options, &checkpoint, err);
    checkpoint_deinit(&checkpoint);
    if (ok)
        space_at_open(store);
    return ok;
}

static struct store *store_new(const struct store_options *options)
{
    struct store *store = mem_alloc(sizeof *store);
    store->dir = mem_copy_str(options->dir);
    store->lock_fd = -1;
    store->map_bytes = options->map_bytes != 0 ? options->map_bytes : STORE_DEFAULT_MAP_BYTES;
    store->ahead_bytes = options->ahead_bytes != 0 ? options->ahead_bytes : STORE_DEFAULT_AHEAD_BYTES;
    store->checkpoint_bytes =
        options->checkpoint_bytes != 0 ? options->checkpoint_bytes : STORE_DEFAULT_CHECKPOINT_BYTES;
    store->reserve_bytes = store->ahead_bytes / 2;
    if (store->reserve_bytes > store->map_bytes / 8)
        store->reserve_bytes = store->map_bytes / 8;
    store->hooks = options->filter_hooks;
    store->collection_hooks = options->collection_hooks;
    pthread_mutex_init(&store->checkpoint_lock, NULL);
    pthread_mutex_init(&store->gate, NULL);
    pthread_mutex_init(&store->write_lock, NULL);
    pthread_mutex_init(&store->pool_lock, NULL);
    pthread_mutex_init(&store->catalog_lock, NULL);
    return store;
}

/* The map reaches beyond what the file holds: it was cut off, or the disk can't be read. */
static void on_bus_error(int signum)
{
    (void)signum;
    store_fatal(EIO, "read a page of the data file");
}

bool store_open(const struct store_options *options, struct store **out, struct err *err)
{
    struct store *store = store_new(options);
    struct sigaction action = {.sa_handler = on_bus_error};
    sigaction(SIGBUS, &action, NULL);
    if (!lock_dir(store, err) || !open_store(store, options, err)) {
        store_close(store);
        return false;
    }
    log_info("STORAGE", 2001, "Store opened", LOG_STR("dir", store->dir), LOG_STR("file", store->data_file),
             LOG_I64("appliedIndex", store_applied_index(store)));
    *out = store;
    return true;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    close_env(store);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    pthread_mutex_destroy(&store->checkpoint_lock);
    pthread_mutex_destroy(&store->gate);
    pthread_mutex_destroy(&store->write_lock);
    pthread_mutex_destroy(&store->pool_lock);
    pthread_mutex_destroy(&store->catalog_lock);
    mem_free(store->data_file);
    mem_free(store->dir);
    mem_free(store);
}

bool store_exists(const char *dir)
{
    char *path = mem_printf("%s/checkpoint", dir);
    bool found = access(path, F_OK) == 0;
    mem_free(path);
    return found;
}
