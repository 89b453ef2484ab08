#include "tests/sim/replication/store_state.h"

#include "base/check.h"
#include "base/map.h"
#include "storage/catalog.h"
#include "storage/index_build.h"
#include "storage/records.h"

#include <bson/bson.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DOCUMENTS = 100, /* different _ids */
};

static const char ns[] = "sim.docs";

static void must(bool ok, const struct err *err)
{
    if (ok)
        return;
    fprintf(stderr, "store: %s\n", err->msg);
    abort();
}

static void open_store(struct store_state *state)
{
    struct err err;
    struct store_options options = {
        .dir = state->dir,
        .map_bytes = UINT64_C(64) << 20,
        .ahead_bytes = UINT64_C(256) << 10,
        .max_readers = 8,
        .create = true,
    };
    must(store_open(&options, &state->store, &err), &err);
}

void store_state_init(struct store_state *state)
{
    memset(state, 0, sizeof *state);
    snprintf(state->dir, sizeof state->dir, "%s/sherd-sim-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(state->dir) != NULL);
    open_store(state);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void store_state_deinit(struct store_state *state)
{
    store_close(state->store);
    nftw(state->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void store_state_crash(struct store_state *state)
{
    store_write_abort(state->txn);
    state->txn = NULL;
    store_close(state->store);
    open_store(state);
}

void store_state_begin(struct store_state *state)
{
    struct err err;
    must(store_write_begin(state->store, &state->txn, &err), &err);
}

static const struct collection *find_or_create(struct store_state *state)
{
    static const uint8_t uuid[UUID_BYTES] = {1, 2, 3};
    const struct collection *coll = catalog_find(state->txn, ns, sizeof ns - 1);
    if (coll != NULL)
        return coll;
    struct err err;
    bson_t empty = BSON_INITIALIZER;
    bson_t *spec = BCON_NEW("key", "{", "v", BCON_INT32(1), "pad", BCON_INT32(-1), "}", "name", "v_1_pad_-1");
    must(catalog_create(state->txn, ns, sizeof ns - 1, uuid, bdoc_of(&empty), &err), &err);
    coll = catalog_find(state->txn, ns, sizeof ns - 1);
    must(index_build_now(state->txn, coll, bdoc_of(spec), NULL, &err), &err);
    bson_destroy(spec);
    bson_destroy(&empty);
    return catalog_find(state->txn, ns, sizeof ns - 1);
}

static void make_document(bson_t *doc, uint64_t digest, size_t len)
{
    char pad[256];
    size_t pad_len = len % sizeof pad;
    memset(pad, 'a' + (int)(digest % 26), sizeof pad);
    bson_init(doc);
    BSON_APPEND_INT64(doc, "_id", (int64_t)(digest % DOCUMENTS));
    BSON_APPEND_INT64(doc, "v", (int64_t)(digest >> 32 & 0xff));
    bson_append_utf8(doc, "pad", 3, pad, (int)pad_len);
}

void store_state_apply(struct store_state *state, const uint8_t *command, size_t len)
{
    const struct collection *coll = find_or_create(state);
    uint64_t digest = hash_bytes(command, len), record_id;
    struct bval id;
    struct err err;
    bson_t doc;
    make_document(&doc, digest, len);
    CHECK(bdoc_find(bdoc_of(&doc), "_id", &id));
    bool found = record_find_id(state->txn, coll, &id, &record_id);
    switch (digest >> 40 & 3) {
    case 0:
        if (found)
            (void)record_erase(state->txn, coll, record_id, NULL);
        break;
    case 1: /* refused when it is there: an error in apply changes nothing */
        CHECK(record_insert(state->txn, coll, bdoc_of(&doc), NULL, NULL, &err) == !found);
        break;
    default:
        if (found)
            must(record_replace(state->txn, coll, record_id, bdoc_of(&doc), NULL, &err), &err);
        else
            must(record_insert(state->txn, coll, bdoc_of(&doc), NULL, NULL, &err), &err);
    }
    bson_destroy(&doc);
}

void store_state_commit(struct store_state *state, uint64_t index)
{
    store_write_commit(state->txn, index);
    state->txn = NULL;
}

void store_state_checkpoint(struct store_state *state)
{
    struct err err;
    must(store_checkpoint(state->store, NULL, &err), &err);
}

uint64_t store_state_hash(struct store_state *state)
{
    struct store_txn *txn;
    struct err err;
    must(store_read_begin(state->store, &txn, &err), &err);
    uint64_t hash = store_logical_hash(txn);
    store_read_end(txn);
    return hash;
}
