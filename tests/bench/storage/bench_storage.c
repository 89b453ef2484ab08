/* bench_storage: the store against bare LMDB (MDB_NOSYNC, one database, key = ObjectId) on the same documents in the
 * same run.
 *
 *   insert   DOCS documents of about 1 KiB in transactions of 1000: the store keeps record, _id entry and counters
 *   indexed  the same with a secondary index
 *   single   one document a transaction
 *   get      by _id: one transaction a get, and many gets in one transaction
 *   scan     all documents
 *   update   by _id, one field changed, in transactions of 1000; bare LMDB looks _id up, gets the document and puts it
 *            again, which is what the store needs
 *
 * Each figure is the best of ROUNDS. usage: bench_storage [DOCS [DIR]] */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "storage/cursor.h"
#include "storage/index_build.h"
#include "storage/records.h"

#include <lmdb.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 1000, ROUNDS = 3, OID_OFFSET = 9, GETS = 300000, UPDATES = 100000, SINGLES = 20000 };

struct bench {
    const char *dir;
    uint32_t count;
    struct bdoc *docs;
    uint32_t *order; /* a random permutation, for gets */
};

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_storage: %s failed\n", what);
    exit(2);
}

static bson_t *make_doc(uint32_t number, struct prng *prng)
{
    char text[101];
    bson_t *doc = bson_new();
    bson_oid_t oid;
    uint8_t bytes[12] = {0x67, 0, 0, 0, 1, 2, 3, 4};
    store_be32(bytes + 8, number);
    bson_oid_init_from_data(&oid, bytes);
    BSON_APPEND_OID(doc, "_id", &oid);
    for (int field = 0; field < 9; field++) {
        char name[24];
        snprintf(name, sizeof name, "field%d", field);
        for (int i = 0; i < 100; i++)
            text[i] = (char)('a' + (char)prng_below(prng, 26));
        text[100] = 0;
        BSON_APPEND_UTF8(doc, name, text);
    }
    BSON_APPEND_INT32(doc, "n", (int32_t)prng_below(prng, 1000000));
    return doc;
}

static void make_docs(struct bench *bench)
{
    struct prng prng = {42};
    bench->docs = mem_alloc_array(bench->count, sizeof *bench->docs);
    bench->order = mem_alloc_array(bench->count, sizeof *bench->order);
    for (uint32_t i = 0; i < bench->count; i++) {
        bson_t *doc = make_doc(i, &prng);
        bench->docs[i] = (struct bdoc){mem_copy(bson_get_data(doc), doc->len), doc->len};
        bson_destroy(doc);
        uint32_t other = (uint32_t)prng_below(&prng, i + 1);
        bench->order[i] = bench->order[other];
        bench->order[other] = i;
    }
}

static void empty_dir(const char *path)
{
    DIR *dir = opendir(path);
    need(dir != NULL, "reading the directory");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

static double seconds_since(int64_t start_ns)
{
    return (double)(clock_now_ns() - start_ns) / 1e9;
}

static void keep_best(double *best, double rate)
{
    if (rate > *best)
        *best = rate;
}

/* ---- bare LMDB ---- */

struct raw {
    MDB_env *env;
    MDB_dbi dbi;
    MDB_dbi ids; /* for updates: _id to the big-endian number that is the document's key in `docs` */
    MDB_dbi docs;
};

static void raw_open(const struct bench *bench, struct raw *raw)
{
    empty_dir(bench->dir);
    char *path = mem_printf("%s/raw.mdb", bench->dir);
    MDB_txn *txn;
    need(mdb_env_create(&raw->env) == 0 && mdb_env_set_mapsize(raw->env, (size_t)1 << 36) == 0 &&
             mdb_env_set_maxdbs(raw->env, 3) == 0 &&
             mdb_env_open(raw->env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD, 0600) == 0 &&
             mdb_txn_begin(raw->env, NULL, 0, &txn) == 0 && mdb_dbi_open(txn, "docs", MDB_CREATE, &raw->dbi) == 0 &&
             mdb_dbi_open(txn, "ids", MDB_CREATE, &raw->ids) == 0 &&
             mdb_dbi_open(txn, "by_number", MDB_CREATE, &raw->docs) == 0 && mdb_txn_commit(txn) == 0,
         "opening LMDB");
    mem_free(path);
}

static void raw_insert(const struct bench *bench, struct raw *raw, uint32_t batch, double *best)
{
    int64_t start = clock_now_ns();
    for (uint32_t i = 0; i < bench->count;) {
        MDB_txn *txn;
        need(mdb_txn_begin(raw->env, NULL, 0, &txn) == 0, "begin");
        for (uint32_t j = 0; j < batch && i < bench->count; j++, i++) {
            struct bdoc doc = bench->docs[i];
            MDB_val key = {12, (void *)(uintptr_t)(doc.data + OID_OFFSET)};
            MDB_val value = {doc.len, (void *)(uintptr_t)doc.data};
            need(mdb_put(txn, raw->dbi, &key, &value, 0) == 0, "put");
        }
        need(mdb_txn_commit(txn) == 0, "commit");
    }
    keep_best(best, bench->count / seconds_since(start));
}

static void raw_get(const struct bench *bench, struct raw *raw, bool renew_each, double *best)
{
    MDB_txn *txn;
    need(mdb_txn_begin(raw->env, NULL, MDB_RDONLY, &txn) == 0, "begin");
    int64_t start = clock_now_ns();
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < GETS; i++) {
        if (renew_each) {
            mdb_txn_reset(txn);
            need(mdb_txn_renew(txn) == 0, "renew");
        }
        MDB_val key = {12, (void *)(uintptr_t)(bench->docs[bench->order[i % bench->count]].data + OID_OFFSET)};
        MDB_val value;
        need(mdb_get(txn, raw->dbi, &key, &value) == 0, "get");
        bytes += value.mv_size;
    }
    keep_best(best, GETS / seconds_since(start));
    need(bytes > 0, "reading");
    mdb_txn_abort(txn);
}

static void raw_scan(const struct bench *bench, struct raw *raw, double *best)
{
    MDB_txn *txn;
    MDB_cursor *cursor = NULL;
    MDB_val key;
    MDB_val value;
    uint32_t count = 0;
    need(mdb_txn_begin(raw->env, NULL, MDB_RDONLY, &txn) == 0 && mdb_cursor_open(txn, raw->dbi, &cursor) == 0, "begin");
    int64_t start = clock_now_ns();
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
        count++;
    keep_best(best, count / seconds_since(start));
    need(count == bench->count, "scanning");
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

/* The documents under numbers, as the store has them. */
static void raw_fill_numbers(const struct bench *bench, struct raw *raw)
{
    MDB_txn *txn;
    need(mdb_txn_begin(raw->env, NULL, 0, &txn) == 0, "begin");
    for (uint32_t i = 0; i < bench->count; i++) {
        uint8_t number[8];
        struct bdoc doc = bench->docs[i];
        store_be64(number, i);
        MDB_val id = {12, (void *)(uintptr_t)(doc.data + OID_OFFSET)};
        MDB_val key = {sizeof number, number};
        MDB_val value = {doc.len, (void *)(uintptr_t)doc.data};
        need(mdb_put(txn, raw->ids, &id, &key, 0) == 0 && mdb_put(txn, raw->docs, &key, &value, 0) == 0, "put");
    }
    need(mdb_txn_commit(txn) == 0, "commit");
}

/* The last field of a document is {n: int32}: gives it another value. */
static void change(uint8_t *doc, uint32_t len, uint32_t value)
{
    store_le32(doc + len - 5, value);
}

static void raw_update(const struct bench *bench, struct raw *raw, double *best)
{
    uint8_t *changed = mem_alloc(BDOC_MAX_BYTES);
    int64_t start = clock_now_ns();
    for (uint32_t i = 0; i < UPDATES;) {
        MDB_txn *txn;
        need(mdb_txn_begin(raw->env, NULL, 0, &txn) == 0, "begin");
        for (uint32_t j = 0; j < BATCH; j++, i++) {
            uint8_t number[8];
            MDB_val id = {12, (void *)(uintptr_t)(bench->docs[bench->order[i % bench->count]].data + OID_OFFSET)};
            MDB_val key;
            MDB_val value;
            need(mdb_get(txn, raw->ids, &id, &key) == 0, "get");
            memcpy(number, key.mv_data, sizeof number);
            key.mv_data = number;
            need(mdb_get(txn, raw->docs, &key, &value) == 0, "get");
            memcpy(changed, value.mv_data, value.mv_size);
            change(changed, (uint32_t)value.mv_size, i);
            value.mv_data = changed;
            need(mdb_put(txn, raw->docs, &key, &value, 0) == 0, "put");
        }
        need(mdb_txn_commit(txn) == 0, "commit");
    }
    keep_best(best, UPDATES / seconds_since(start));
    mem_free(changed);
}

/* ---- the store ---- */

static struct store *open_store(const struct bench *bench, const char *index_field)
{
    empty_dir(bench->dir);
    struct store_options options = {.dir = bench->dir, .create = true};
    static const uint8_t uuid[UUID_BYTES] = "bench";
    struct store *store;
    struct store_txn *txn = NULL;
    struct err err;
    need(store_open(&options, &store, &err) && store_write_begin(store, &txn, &err) &&
             catalog_create(txn, "db.c", 4, uuid, bdoc_empty(), &err),
         "opening the store");
    if (index_field != NULL) {
        bson_t spec = BSON_INITIALIZER;
        bson_t key;
        BSON_APPEND_DOCUMENT_BEGIN(&spec, "key", &key);
        BSON_APPEND_INT32(&key, index_field, 1);
        bson_append_document_end(&spec, &key);
        need(index_build_now(txn, catalog_find(txn, "db.c", 4), bdoc_of(&spec), NULL, &err), "making the index");
        bson_destroy(&spec);
    }
    store_write_commit(txn, 1);
    return store;
}

static void store_insert(const struct bench *bench, struct store *store, uint32_t batch, double *best)
{
    struct err err;
    uint64_t index = 1;
    int64_t start = clock_now_ns();
    for (uint32_t i = 0; i < bench->count;) {
        struct store_txn *txn;
        need(store_write_begin(store, &txn, &err), "begin");
        const struct collection *coll = catalog_find(txn, "db.c", 4);
        for (uint32_t j = 0; j < batch && i < bench->count; j++, i++)
            need(record_insert(txn, coll, bench->docs[i], NULL, NULL, &err), "insert");
        store_write_commit(txn, ++index);
    }
    keep_best(best, bench->count / seconds_since(start));
}

static void store_get(const struct bench *bench, struct store *store, bool begin_each, double *best)
{
    struct err err;
    struct store_txn *txn = NULL;
    struct buf scratch = BUF_INIT;
    uint64_t bytes = 0;
    need(store_read_begin(store, &txn, &err), "begin");
    int64_t start = clock_now_ns();
    for (uint32_t i = 0; i < GETS; i++) {
        if (begin_each) {
            store_read_end(txn);
            need(store_read_begin(store, &txn, &err), "begin");
        }
        const struct collection *coll = catalog_find(txn, "db.c", 4);
        struct bval id = {BT_OBJECT_ID, 12, bench->docs[bench->order[i % bench->count]].data + OID_OFFSET};
        struct bdoc doc;
        uint64_t record;
        need(record_get_by_id(txn, coll, &id, &scratch, &record, &doc), "get");
        bytes += doc.len;
    }
    keep_best(best, GETS / seconds_since(start));
    need(bytes > 0, "reading");
    store_read_end(txn);
}

static void store_scan(const struct bench *bench, struct store *store, double *best)
{
    struct err err;
    struct store_txn *txn;
    struct record_cursor cursor;
    struct bdoc doc;
    uint32_t count = 0;
    need(store_read_begin(store, &txn, &err), "begin");
    int64_t start = clock_now_ns();
    record_cursor_open(&cursor, txn, catalog_find(txn, "db.c", 4), false);
    while (record_cursor_next(&cursor, NULL, &doc))
        count++;
    record_cursor_close(&cursor);
    keep_best(best, count / seconds_since(start));
    need(count == bench->count, "scanning");
    store_read_end(txn);
}

static void store_update(const struct bench *bench, struct store *store, double *best)
{
    struct err err;
    struct buf scratch = BUF_INIT;
    uint8_t *changed = mem_alloc(BDOC_MAX_BYTES);
    uint64_t index = store_applied_index(store);
    int64_t start = clock_now_ns();
    for (uint32_t i = 0; i < UPDATES;) {
        struct store_txn *txn;
        need(store_write_begin(store, &txn, &err), "begin");
        const struct collection *coll = catalog_find(txn, "db.c", 4);
        for (uint32_t j = 0; j < BATCH; j++, i++) {
            struct bval id = {BT_OBJECT_ID, 12, bench->docs[bench->order[i % bench->count]].data + OID_OFFSET};
            struct bdoc doc;
            uint64_t record;
            need(record_get_by_id(txn, coll, &id, &scratch, &record, &doc), "get");
            memcpy(changed, doc.data, doc.len);
            change(changed, doc.len, i);
            doc.data = changed;
            need(record_replace(txn, coll, record, doc, NULL, &err), "replace");
        }
        store_write_commit(txn, ++index);
    }
    keep_best(best, UPDATES / seconds_since(start));
    mem_free(changed);
    buf_deinit(&scratch);
}

static double checkpoint_ms(struct store *store)
{
    struct err err;
    int64_t start = clock_now_ns();
    need(store_checkpoint(store, NULL, &err), "checkpoint");
    return seconds_since(start) * 1e3;
}

struct figures {
    double insert, indexed, single, get, get_one_txn, scan, update, update_indexed;
};

static void measure(const struct bench *bench, struct figures *raw_best, struct figures *store_best, double *checkpoint)
{
    struct raw raw;
    raw_open(bench, &raw);
    raw_insert(bench, &raw, BATCH, &raw_best->insert);
    raw_get(bench, &raw, true, &raw_best->get);
    raw_get(bench, &raw, false, &raw_best->get_one_txn);
    raw_scan(bench, &raw, &raw_best->scan);
    mdb_env_close(raw.env);
    raw_open(bench, &raw);
    raw_fill_numbers(bench, &raw);
    raw_update(bench, &raw, &raw_best->update);
    mdb_env_close(raw.env);
    struct store *store = open_store(bench, NULL);
    store_insert(bench, store, BATCH, &store_best->insert);
    store_get(bench, store, true, &store_best->get);
    store_get(bench, store, false, &store_best->get_one_txn);
    store_scan(bench, store, &store_best->scan);
    *checkpoint = checkpoint_ms(store);
    store_update(bench, store, &store_best->update);
    store_close(store);
    store = open_store(bench, "n");
    store_insert(bench, store, BATCH, &store_best->indexed);
    store_update(bench, store, &store_best->update_indexed);
    store_close(store);
    struct bench few = *bench;
    if (few.count > SINGLES)
        few.count = SINGLES;
    raw_open(bench, &raw);
    raw_insert(&few, &raw, 1, &raw_best->single);
    mdb_env_close(raw.env);
    store = open_store(bench, NULL);
    store_insert(&few, store, 1, &store_best->single);
    store_close(store);
}

static void print_line(const char *name, double raw, double store)
{
    printf("%-34s %12.0f %12.0f %8.2f\n", name, raw, store, store / raw);
}

int main(int argc, char **argv)
{
    struct bench bench = {.count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 200000};
    char *dir = mem_printf("%s/sherd-bench-XXXXXX", argc > 2 ? argv[2] : "/tmp");
    log_set_level(LOG_LEVEL_WARN);
    need(bench.count > 0 && mkdtemp(dir) != NULL, "making a directory");
    bench.dir = dir;
    make_docs(&bench);
    struct figures raw = {0};
    struct figures store = {0};
    double checkpoint = 0;
    for (int round = 0; round < ROUNDS; round++)
        measure(&bench, &raw, &store, &checkpoint);
    printf("%u documents of %u bytes, per second\n", bench.count, bench.docs[0].len);
    printf("%-34s %12s %12s %8s\n", "", "LMDB", "store", "ratio");
    print_line("insert, batches of 1000", raw.insert, store.insert);
    print_line("insert, one secondary index", raw.insert, store.indexed);
    print_line("insert, a transaction each", raw.single, store.single);
    print_line("get by _id, a transaction each", raw.get, store.get);
    print_line("get by _id, one transaction", raw.get_one_txn, store.get_one_txn);
    print_line("scan", raw.scan, store.scan);
    print_line("update by _id", raw.update, store.update);
    print_line("update by _id of an indexed field", raw.update, store.update_indexed);
    printf("checkpoint of everything: %.0f ms\n", checkpoint);
    empty_dir(dir);
    rmdir(dir);
    return 0;
}
