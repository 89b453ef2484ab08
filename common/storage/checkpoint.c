/* The checkpoint: which state of the data file the next start begins with.
 *
 * The file `checkpoint`, little-endian:
 *   8 bytes "SHERDCKP", u32 format version, u32 page bytes, u64 applied index, 64 bytes name of the data file
 * (NUL-padded), the data file's first two pages, u32 CRC-32C of all before.
 *
 * Why it holds: LMDB never writes to a page that a reader reaches. The pin is a reader on the checkpoint's state, open
 * from before the pages were copied until after the next checkpoint stands, and at a start from before the first write.
 * So every page of that state is as it was synced, whatever part of later writes reached the disk, except the two meta
 * pages: those are put back from the file. */
#include "storage/env.h"

#include "base/crc32c.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <unistd.h>

enum {
    CHECKPOINT_NAME_BYTES = 64,
    CHECKPOINT_HEAD_BYTES = 8 + 4 + 4 + 8 + CHECKPOINT_NAME_BYTES,
    CHECKPOINT_PAGE_MIN = 512,
    CHECKPOINT_PAGE_MAX = 65536,
    CHECKPOINT_MAX_BYTES = CHECKPOINT_HEAD_BYTES + 2 * CHECKPOINT_PAGE_MAX + 4,
};

static const char magic[8] = {'S', 'H', 'E', 'R', 'D', 'C', 'K', 'P'};

void checkpoint_deinit(struct checkpoint *checkpoint)
{
    mem_free(checkpoint->pages);
    checkpoint->pages = NULL;
}

static void encode(const struct checkpoint *from, struct buf *out)
{
    buf_append(out, magic, sizeof magic);
    buf_append_le32(out, STORE_FORMAT_VERSION);
    buf_append_le32(out, from->page_bytes);
    buf_append_le64(out, from->applied_index);
    buf_append(out, from->data_file, sizeof from->data_file);
    buf_append(out, from->pages, (size_t)from->page_bytes * 2);
    buf_append_le32(out, crc32c(0, out->data, out->len));
}

static bool decode(const struct buf *from, struct checkpoint *out, struct err *err)
{
    const uint8_t *data = from->data;
    if (from->len < CHECKPOINT_HEAD_BYTES + 4 || memcmp(data, magic, sizeof magic) != 0 ||
        crc32c(0, data, from->len - 4) != load_le32(data + from->len - 4))
        return err_set(err, ERR_InvalidBSON, "the file 'checkpoint' is damaged");
    uint32_t format = load_le32(data + 8);
    if (format != STORE_FORMAT_VERSION)
        return err_set(err, ERR_UnsupportedFormat,
                       "the data files have format version %u, this program reads version %d only: use %s program, or "
                       "copy the data through an export",
                       format, STORE_FORMAT_VERSION, format > STORE_FORMAT_VERSION ? "a newer" : "the older");
    uint32_t page_bytes = load_le32(data + 12);
    if (page_bytes < CHECKPOINT_PAGE_MIN || page_bytes > CHECKPOINT_PAGE_MAX ||
        from->len != CHECKPOINT_HEAD_BYTES + (size_t)page_bytes * 2 + 4)
        return err_set(err, ERR_InvalidBSON, "the file 'checkpoint' is damaged: its sizes don't fit");
    out->page_bytes = page_bytes;
    out->applied_index = load_le64(data + 16);
    memcpy(out->data_file, data + 24, CHECKPOINT_NAME_BYTES);
    if (memchr(out->data_file, 0, CHECKPOINT_NAME_BYTES) == NULL || strchr(out->data_file, '/') != NULL)
        return err_set(err, ERR_InvalidBSON, "the file 'checkpoint' is damaged: it names no data file");
    out->pages = mem_copy(data + CHECKPOINT_HEAD_BYTES, (size_t)page_bytes * 2);
    return true;
}

bool checkpoint_read(const char *dir, struct checkpoint *out, struct err *err)
{
    *out = (struct checkpoint){0};
    char *path = mem_printf("%s/checkpoint", dir);
    struct buf bytes = BUF_INIT;
    bool ok = file_read(path, CHECKPOINT_MAX_BYTES, &bytes, err) && decode(&bytes, out, err);
    buf_deinit(&bytes);
    mem_free(path);
    return ok;
}

static MDB_txn *open_reader(struct store *store)
{
    MDB_txn *reader;
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &reader);
    if (rc != 0)
        store_fatal(rc, "pin the checkpoint");
    return reader;
}

void checkpoint_pin(struct store *store)
{
    store->pin = open_reader(store);
    atomic_store(&store->pin_txn_id, (uint64_t)mdb_txn_id(store->pin));
}

static void read_meta_pages(struct store *store, uint8_t *pages, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(store->data_fd, pages + done, len - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            store_fatal(errno, "read the meta pages");
        done += (size_t)got;
    }
}

/* Between two transactions: the pinning reader and the pages belong to the same state. */
static MDB_txn *capture(struct store *store, struct checkpoint *out)
{
    *out = (struct checkpoint){.page_bytes = store->page_bytes};
    memcpy(out->data_file, store->data_file, strlen(store->data_file) + 1);
    out->pages = mem_alloc((size_t)store->page_bytes * 2);
    pthread_mutex_lock(&store->gate);
    pthread_mutex_lock(&store->write_lock);
    pthread_mutex_unlock(&store->gate);
    MDB_txn *reader = open_reader(store);
    read_meta_pages(store, out->pages, (size_t)store->page_bytes * 2);
    out->applied_index = atomic_load(&store->applied_index);
    out->changed_bytes = atomic_exchange(&store->changed_bytes, 0);
    pthread_mutex_unlock(&store->write_lock);
    return reader;
}

static bool write_file(struct store *store, const struct checkpoint *checkpoint, struct err *err)
{
    struct buf bytes = BUF_INIT;
    encode(checkpoint, &bytes);
    char *path = mem_printf("%s/checkpoint", store->dir);
    bool ok = file_replace(path, bytes.data, bytes.len, err);
    mem_free(path);
    buf_deinit(&bytes);
    return ok;
}

bool store_checkpoint(struct store *store, uint64_t *applied_index, struct err *err)
{
    pthread_mutex_lock(&store->checkpoint_lock);
    struct checkpoint checkpoint;
    MDB_txn *reader = capture(store, &checkpoint);
    fault_hit(FAULT_checkpoint_before_sync);
    int rc = mdb_env_sync(store->env, 1);
    if (rc != 0)
        store_fatal(rc, "sync the data file");
    bool ok = !fault_hit(FAULT_checkpoint_before_rename) ||
              err_set(err, ERR_OperationFailed, "checkpoint refused by a fault point");
    ok = ok && write_file(store, &checkpoint, err);
    if (ok) {
        fault_hit(FAULT_checkpoint_after_rename);
        MDB_txn *old = store->pin;
        store->pin = reader;
        atomic_store(&store->pin_txn_id, (uint64_t)mdb_txn_id(reader));
        atomic_store(&store->checkpoint_index, checkpoint.applied_index);
        if (old != NULL)
            mdb_txn_abort(old);
        if (applied_index != NULL)
            *applied_index = checkpoint.applied_index;
    } else {
        mdb_txn_abort(reader);
        atomic_fetch_add(&store->changed_bytes, checkpoint.changed_bytes); /* still due */
    }
    checkpoint_deinit(&checkpoint);
    pthread_mutex_unlock(&store->checkpoint_lock);
    return ok;
}

bool store_checkpoint_due(const struct store *store)
{
    uint64_t changed = atomic_load_explicit(&store->changed_bytes, memory_order_relaxed);
    if (atomic_load_explicit(&store->low_space, memory_order_relaxed))
        return changed >= store->reserve_bytes / 4; /* freed pages can be used again only after the pin moves on */
    return changed >= store->checkpoint_bytes;
}

uint64_t store_checkpoint_index(const struct store *store)
{
    return atomic_load_explicit(&store->checkpoint_index, memory_order_relaxed);
}
