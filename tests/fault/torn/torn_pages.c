/* torn_pages: a store survives power losses that leave the data file's pages old, torn or new by chance.
 *
 * One seed: a process fills a store, takes checkpoints, goes on writing and dies inside a write transaction. Of the
 * pages that changed since the last checkpoint, each is then left as it was at the checkpoint, or filled with random
 * bytes, or left new; the two meta pages are always junk. A second process opens the store, must see exactly the
 * checkpoint's state, replays half of the log and dies; the pages that the replay changed are torn in the same way. A
 * third one must see the checkpoint's state again, and after the whole log the state before the first crash.
 *
 * Negative controls, which must fail (else this program tests nothing): the reader that pins the checkpoint is closed
 *   service: after the last checkpoint in service        replay: before the first transaction of the replay
 *
 * Every step runs in a child: a damaged tree may crash inside LMDB.
 * usage: torn_pages [SEEDS [DIR]] */
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "storage/catalog.h"
#include "storage/env.h"
#include "storage/index_build.h"
#include "storage/records.h"
#include "storage/validate.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDS = 1500, FILL_TXNS = 60, FILL_OPERATIONS = 40, LOG_TXNS = 240, OPERATIONS_MAX = 32, PAGE = 4096 };
enum { STEP_SAME = 0, STEP_DIFFERENT = 1, STEP_ERROR = 2, STEP_CRASHED = 3 };

enum mode { MODE_PINNED, MODE_NO_PIN_IN_SERVICE, MODE_NO_PIN_IN_REPLAY, MODES };
static const char *const mode_names[MODES] = {"pinned", "no pin in service", "no pin in replay"};

/* Shared between the processes of a seed. */
struct shared {
    uint64_t checkpoint_hash;
    uint64_t checkpoint_index;
    uint64_t full_hash;
    uint64_t full_index;
};

struct run {
    const char *dir; /* of the store */
    char *data;      /* the data file */
    char *before;    /* a copy of it: what the disk surely has */
    char *cached;    /* a copy of it: what the system would have written in the end */
    uint64_t seed;
    enum mode mode;
    struct shared *shared;
    uint64_t torn; /* pages that were not new after the crashes */
};

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "torn_pages: cannot %s\n", what);
    _exit(STEP_ERROR);
}

/* ---- the log: transaction n does the same whenever it is replayed ---- */

static bson_t *random_doc(int32_t id, struct prng *prng)
{
    size_t len = 100 + prng_below(prng, 1500);
    if (prng_below(prng, 40) == 0)
        len = 14000;
    if (prng_below(prng, 400) == 0)
        len = 150000;
    char *text = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + (char)prng_below(prng, 26));
    bson_t *doc = bson_new();
    BSON_APPEND_INT32(doc, "_id", id);
    BSON_APPEND_INT64(doc, "a", (int64_t)prng_below(prng, 1000));
    bson_append_utf8(doc, "text", -1, text, (int)len);
    mem_free(text);
    return doc;
}

static void operate(struct store_txn *txn, const struct collection *coll, struct prng *prng)
{
    int32_t id = (int32_t)prng_below(prng, IDS);
    uint8_t bytes[4];
    store_le32(bytes, (uint32_t)id);
    struct bval wanted = {BT_INT32, sizeof bytes, bytes};
    uint64_t record = 0;
    struct err err;
    bool there = record_find_id(txn, coll, &wanted, &record);
    if (there && prng_below(prng, 4) == 0) {
        record_erase(txn, coll, record, NULL);
        return;
    }
    bson_t *doc = random_doc(id, prng);
    bool ok = there ? record_replace(txn, coll, record, bdoc_of(doc), NULL, &err)
                    : record_insert(txn, coll, bdoc_of(doc), NULL, NULL, &err);
    need(ok, "write a document");
    bson_destroy(doc);
}

static void operate_many(struct run *run, struct store_txn *txn, uint64_t number, uint64_t count)
{
    struct prng prng = {run->seed * UINT64_C(0x9e3779b97f4a7c15) + number};
    const struct collection *coll = catalog_find(txn, "db.c", 4);
    need(coll != NULL, "find the collection");
    if (count == 0)
        count = 1 + prng_below(&prng, OPERATIONS_MAX);
    while (count-- > 0)
        operate(txn, coll, &prng);
}

/* Transaction `number` of the log has applied index `number`. */
static void apply(struct run *run, struct store *store, uint64_t number, uint64_t count)
{
    struct store_txn *txn;
    need(store_write_begin(store, &txn, NULL), "begin");
    operate_many(run, txn, number, count);
    store_write_commit(txn, number);
}

static void make_collection(struct store *store)
{
    static const uint8_t uuid[UUID_BYTES] = "torn pages";
    struct store_txn *txn;
    struct err err;
    need(store_write_begin(store, &txn, &err), "begin");
    need(catalog_create(txn, "db.c", 4, uuid, bdoc_empty(), &err), "make the collection");
    bson_t spec = BSON_INITIALIZER;
    bson_t key;
    BSON_APPEND_DOCUMENT_BEGIN(&spec, "key", &key);
    BSON_APPEND_INT32(&key, "a", 1);
    bson_append_document_end(&spec, &key);
    need(index_build_now(txn, catalog_find(txn, "db.c", 4), bdoc_of(&spec), NULL, &err), "make the index");
    bson_destroy(&spec);
    store_write_commit(txn, 1);
}

static uint64_t hash_of(struct store *store)
{
    struct store_txn *txn;
    need(store_read_begin(store, &txn, NULL), "read");
    uint64_t hash = store_logical_hash(txn);
    bson_t report = BSON_INITIALIZER;
    const struct collection *coll = catalog_find(txn, "db.c", 4);
    if (coll == NULL || !collection_validate(txn, coll, &report))
        hash = ~hash;
    bson_destroy(&report);
    store_read_end(txn);
    return hash;
}

static struct store *open_store(struct run *run, bool create)
{
    struct store_options options = {
        .dir = run->dir,
        .map_bytes = UINT64_C(1) << 30,
        .ahead_bytes = UINT64_C(1) << 20,
        .create = create,
    };
    struct store *store;
    struct err err;
    if (!store_open(&options, &store, &err)) {
        fprintf(stderr, "torn_pages: %s\n", err.msg);
        _exit(STEP_ERROR);
    }
    return store;
}

static void drop_pin(struct store *store)
{
    mdb_txn_abort(store->pin);
    store->pin = NULL;
}

/* ---- files ---- */

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(in >= 0 && out >= 0, "copy the data file");
    for (ssize_t got; (got = read(in, bytes, sizeof bytes)) > 0;)
        need(write(out, bytes, (size_t)got) == got, "copy the data file");
    close(in);
    close(out);
}

static void random_page(uint8_t *page, struct prng *prng)
{
    for (size_t i = 0; i < PAGE; i += 8)
        store_le64(page + i, prng_next(prng));
}

static void read_page(int fd, uint8_t *page, off_t at)
{
    memset(page, 0, PAGE);
    need(pread(fd, page, PAGE, at) >= 0, "read a page");
}

/* Makes the data file of `before`, `cached` and chance. */
static void tear(struct run *run, uint64_t stream)
{
    struct prng prng = {run->seed * 7919 + stream};
    uint8_t old[PAGE];
    uint8_t page[PAGE];
    int before = open(run->before, O_RDONLY | O_CLOEXEC);
    int cached = open(run->cached, O_RDONLY | O_CLOEXEC);
    int data = open(run->data, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct stat size;
    need(before >= 0 && cached >= 0 && data >= 0 && fstat(cached, &size) == 0, "open the data files");
    for (off_t at = 0; at < size.st_size; at += PAGE) {
        read_page(before, old, at);
        read_page(cached, page, at);
        bool changed = memcmp(old, page, PAGE) != 0;
        uint64_t fate = changed ? prng_below(&prng, 3) : 2;
        if (at < 2 * PAGE || fate == 1)
            random_page(page, &prng);
        else if (fate == 0)
            memcpy(page, old, PAGE);
        run->torn += changed && fate != 2;
        need(pwrite(data, page, PAGE, at) == PAGE, "write a page");
    }
    close(before);
    close(cached);
    close(data);
}

/* ---- the steps, each in a process of its own ---- */

static void die_in_a_transaction(struct run *run, struct store *store)
{
    struct store_txn *txn;
    need(store_write_begin(store, &txn, NULL), "begin");
    operate_many(run, txn, UINT64_C(1) << 40, 40);
    copy_file(run->data, run->cached);
    _exit(STEP_SAME);
}

static void serve(struct run *run)
{
    struct store *store = open_store(run, true);
    struct err err;
    make_collection(store);
    uint64_t number = 2;
    while (number < 2 + FILL_TXNS) { /* many checkpoints: a short list of free pages, so that a missing pin shows */
        apply(run, store, number++, FILL_OPERATIONS);
        need(number % 4 != 0 || store_checkpoint(store, NULL, &err), "take a checkpoint");
    }
    need(store_checkpoint(store, &run->shared->checkpoint_index, &err), "take a checkpoint");
    copy_file(run->data, run->before);
    run->shared->checkpoint_hash = hash_of(store);
    if (run->mode == MODE_NO_PIN_IN_SERVICE)
        drop_pin(store);
    for (int i = 0; i < LOG_TXNS; i++)
        apply(run, store, number++, 0);
    run->shared->full_hash = hash_of(store);
    run->shared->full_index = number - 1;
    die_in_a_transaction(run, store);
}

static void see_checkpoint(struct run *run)
{
    struct store *store = open_store(run, false);
    _exit(store_applied_index(store) == run->shared->checkpoint_index && hash_of(store) == run->shared->checkpoint_hash
              ? STEP_SAME
              : STEP_DIFFERENT);
}

static void replay_half(struct run *run)
{
    struct store *store = open_store(run, false);
    if (run->mode == MODE_NO_PIN_IN_REPLAY)
        drop_pin(store);
    uint64_t number = store_applied_index(store) + 1;
    for (int i = 0; i < LOG_TXNS / 2; i++)
        apply(run, store, number++, 0);
    die_in_a_transaction(run, store);
}

static void replay_all(struct run *run)
{
    struct store *store = open_store(run, false);
    uint64_t number = store_applied_index(store) + 1;
    while (number <= run->shared->full_index)
        apply(run, store, number++, 0);
    _exit(hash_of(store) == run->shared->full_hash ? STEP_SAME : STEP_DIFFERENT);
}

static int in_child(struct run *run, void (*step)(struct run *run))
{
    fflush(stdout);
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        if (run->mode != MODE_PINNED) { /* what a damaged tree makes LMDB and the sanitizers say is expected */
            int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
            dup2(quiet, STDERR_FILENO);
        }
        step(run);
        _exit(STEP_ERROR);
    }
    int status;
    need(waitpid(child, &status, 0) == child, "wait");
    return WIFEXITED(status) && WEXITSTATUS(status) <= STEP_ERROR ? WEXITSTATUS(status) : STEP_CRASHED;
}

static void empty_dir(const char *path)
{
    DIR *dir = opendir(path);
    need(dir != NULL, "read the directory");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

/* True when the seed's store was right after every crash. */
static bool run_seed(struct run *run)
{
    empty_dir(run->dir);
    int served = in_child(run, serve);
    if (served != STEP_SAME)
        return false;
    tear(run, 1);
    copy_file(run->data, run->before); /* what the second crash starts from */
    int first = in_child(run, see_checkpoint);
    int half = in_child(run, replay_half);
    int second = STEP_ERROR;
    int all = STEP_ERROR;
    if (half == STEP_SAME) {
        tear(run, 2);
        second = in_child(run, see_checkpoint);
        all = in_child(run, replay_all);
    }
    bool ok = first == STEP_SAME && half == STEP_SAME && second == STEP_SAME && all == STEP_SAME;
    if (!ok && run->mode == MODE_PINNED)
        printf("seed %llu: after crash 1: %d, replay: %d, after crash 2: %d, whole log: %d\n",
               (unsigned long long)run->seed, first, half, second, all);
    return ok;
}

static uint64_t failures(struct run *run, enum mode mode, uint64_t seeds)
{
    uint64_t failed = 0;
    run->mode = mode;
    run->torn = 0;
    for (run->seed = 1; run->seed <= seeds; run->seed++)
        failed += !run_seed(run);
    printf("%s: %llu of %llu seeds failed, %llu pages torn or lost%s\n", mode_names[mode], (unsigned long long)failed,
           (unsigned long long)seeds, (unsigned long long)run->torn,
           mode == MODE_PINNED ? " (must be 0)" : " (a control: most must fail)");
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
    const char *base = argc > 2 ? argv[2] : getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    char *dir = mem_printf("%s/sherd-torn-XXXXXX", base);
    log_set_level(LOG_LEVEL_WARN);
    need(mkdtemp(dir) != NULL, "make a directory");
    struct run run = {
        .dir = dir,
        .data = mem_printf("%s/data-1.mdb", dir),
        .before = mem_printf("%s/before", dir),
        .cached = mem_printf("%s/cached", dir),
        .shared = mmap(NULL, sizeof *run.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
    };
    need(run.shared != MAP_FAILED, "map memory");
    uint64_t controls = seeds < 5 ? seeds : 5;
    bool ok = failures(&run, MODE_PINNED, seeds) == 0;
    ok = failures(&run, MODE_NO_PIN_IN_SERVICE, controls) * 2 > controls && ok;
    ok = failures(&run, MODE_NO_PIN_IN_REPLAY, controls) * 2 > controls && ok;
    empty_dir(dir);
    rmdir(dir);
    mem_free(run.data);
    mem_free(run.before);
    mem_free(run.cached);
    mem_free(dir);
    printf("%s\n", ok ? "passed" : "FAILED");
    return ok ? 0 : 1;
}
