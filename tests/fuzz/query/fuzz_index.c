/* Index options: any specification is brought into its normal form or refused with a code; the normal form is that of
 * itself. What is accepted is built on a collection, documents are inserted, replaced and erased under it, and the
 * collection must be consistent at the end: every key in place and none too many. A partial index has keys for the
 * documents that its filter matches and for no other, one that isn't multikey at most one for each, and the values that
 * an entry is said to tell are the document's. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "bson/path.h"
#include "query/filter.h"
#include "storage/catalog.h"
#include "storage/index_build.h"
#include "storage/index_keys.h"
#include "storage/records.h"
#include "storage/store.h"
#include "storage/validate.h"
#include "tests/fuzz/query/fuzz.h"
#include "tests/fuzz/query/material.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ns[] = "db.c";

/* ---- the store, and the filters of partial indexes ---- */

struct index_filter {
    struct arena arena;
    struct bdoc source;
    struct expr_env env;
    struct filter *filter;
};

static void free_filter(void *compiled)
{
    struct index_filter *partial = compiled;
    if (partial == NULL)
        return;
    arena_deinit(&partial->arena);
    mem_free(partial);
}

static void *compile_filter(struct bdoc source, const struct bval_order *order, struct err *err)
{
    struct index_filter *partial = mem_alloc(sizeof *partial);
    arena_init(&partial->arena);
    partial->env.order = order;
    partial->source = (struct bdoc){arena_copy(&partial->arena, source.data, source.len), source.len};
    if (filter_compile(&partial->arena, partial->source, &partial->env, &partial->filter, err))
        return partial;
    free_filter(partial);
    return NULL;
}

static bool filter_takes(const void *compiled, struct bdoc doc)
{
    const struct index_filter *partial = compiled;
    return filter_matches(partial->filter, doc);
}

static struct store *store; /* made at the first input; every input's changes are dropped */
static char store_dir[] = "/tmp/fuzz_index_XXXXXX";

static void remove_store(void)
{
    static const char *const names[] = {"data-1.mdb", "data-1.mdb-lock", "checkpoint", "sherd.lock"};
    char path[sizeof store_dir + 32];
    store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", store_dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(store_dir);
}

static void make_store(void)
{
    struct err err;
    log_set_level(LOG_LEVEL_WARN);
    CHECK(mkdtemp(store_dir) != NULL);
    struct store_options options = {
        .dir = store_dir,
        .map_bytes = UINT64_C(64) << 20,
        .ahead_bytes = UINT64_C(1) << 20,
        .create = true,
        .filter_hooks = {.compile = compile_filter, .matches = filter_takes, .free = free_filter},
    };
    CHECK(store_open(&options, &store, &err));
    CHECK(atexit(remove_store) == 0);
}

/* ---- laws ---- */

/* The normal form, or false. */
static bool check_normal_form(struct bdoc spec)
{
    struct err err = {0};
    bson_t normal = BSON_INITIALIZER;
    bson_t again = BSON_INITIALIZER;
    bool ok = index_spec_normalise(store, spec, (struct bdoc){0}, &normal, &err);
    if (ok) {
        material_check_document(bdoc_of(&normal));
        CHECK(index_spec_normalise(store, bdoc_of(&normal), (struct bdoc){0}, &again, &err));
        CHECK(bdoc_same(bdoc_of(&normal), bdoc_of(&again)));
    } else {
        material_check_error(&err);
    }
    bson_destroy(&normal);
    bson_destroy(&again);
    return ok;
}

static void check_values(const struct index_def *index, const struct index_keys *keys, struct bdoc doc)
{
    const struct index_key *key = &keys->keys[0];
    struct index_entry entry = {.key = keys->bytes.data + key->offset,
                                .key_len = key->len,
                                .types = keys->bytes.data + key->offset + key->len,
                                .types_len = key->types_len};
    struct biter iter;
    struct belem elem;
    bson_t values = BSON_INITIALIZER;
    if (index_entry_values(index, &entry, false, &values)) {
        for (biter_init(&iter, bdoc_of(&values)); biter_next(&iter, &elem);) {
            struct bval real = BVAL_MISSING;
            (void)path_get_str(doc, elem.key, &real);
            CHECK(real.type == elem.val.type && real.len == elem.val.len);
            CHECK(real.len == 0 || memcmp(real.data, elem.val.data, real.len) == 0);
        }
    }
    bson_destroy(&values);
}

static void check_keys(const struct index_def *index, struct bdoc doc)
{
    struct index_keys keys = {0};
    struct err err = {0};
    if (!index_keys_generate(index, doc, &keys, &err)) {
        material_check_error(&err);
        index_keys_deinit(&keys);
        return;
    }
    for (size_t i = 1; i < keys.count; i++) {
        const struct index_key *a = &keys.keys[i - 1];
        const struct index_key *b = &keys.keys[i];
        size_t common = a->len < b->len ? a->len : b->len;
        int order = memcmp(keys.bytes.data + a->offset, keys.bytes.data + b->offset, common);
        CHECK(order < 0 || (order == 0 && a->len < b->len));
    }
    bool taken = index->filter == NULL || filter_takes(index->filter, doc);
    CHECK(taken || keys.count == 0);
    if (!index->wildcard) {
        CHECK(!taken || index->sparse || keys.count > 0);
        CHECK(keys.multikey || keys.count <= 1);
        if (keys.count == 1 && !keys.multikey)
            check_values(index, &keys, doc);
    }
    index_keys_deinit(&keys);
}

static const struct collection *find(struct store_txn *txn)
{
    const struct collection *coll = catalog_find(txn, ns, strlen(ns));
    CHECK(coll != NULL);
    return coll;
}

/* With an _id of its own. */
static struct bdoc numbered(struct arena *arena, struct bdoc doc, int32_t id)
{
    struct biter iter;
    struct belem elem;
    bson_t out = BSON_INITIALIZER;
    BSON_APPEND_INT32(&out, "_id", id);
    for (biter_init(&iter, doc); biter_next(&iter, &elem);)
        if (strcmp(elem.key, "_id") != 0)
            bval_append(&out, elem.key, (int)elem.key_len, &elem.val);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return copy;
}

static bool note(bool ok, const struct err *err)
{
    if (!ok)
        material_check_error(err);
    return ok;
}

static void check_consistent(struct store_txn *txn)
{
    bson_t report = BSON_INITIALIZER;
    if (!collection_validate(txn, find(txn), &report)) {
        char *text = bson_as_relaxed_extended_json(&report, NULL);
        fprintf(stderr, "%s\n", text);
        abort();
    }
    bson_destroy(&report);
}

static void work(struct arena *arena, const struct material *m, struct store_txn *txn, bool acceptable)
{
    struct err err = {0};
    uint64_t ids[MATERIAL_DOCS];
    bool stored[MATERIAL_DOCS];
    for (int i = 0; i < 2; i++)
        stored[i] = note(record_insert(txn, find(txn), numbered(arena, m->docs[i], i), NULL, &ids[i], &err), &err);
    bool exists = false;
    bool built = note(index_build_now(txn, find(txn), bval_doc(&m->spec), &exists, &err), &err);
    CHECK(!built || acceptable);
    for (int i = 2; i < MATERIAL_DOCS; i++)
        stored[i] = note(record_insert(txn, find(txn), numbered(arena, m->docs[i], i), NULL, &ids[i], &err), &err);
    const struct collection *coll = find(txn);
    for (uint32_t at = 0; at < coll->index_count; at++)
        for (int i = 0; i < MATERIAL_DOCS; i++)
            check_keys(coll->indexes[at], numbered(arena, m->docs[i], i));
    check_consistent(txn);
    if (stored[0])
        (void)note(record_replace(txn, find(txn), ids[0], numbered(arena, m->docs[3], 0), NULL, &err), &err);
    if (stored[2])
        CHECK(record_erase(txn, find(txn), ids[2], NULL));
    check_consistent(txn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum random_kind kinds[] = {RANDOM_INDEX};
    static const uint8_t uuid[UUID_BYTES] = "collection uuid";
    struct arena arena;
    struct material m;
    struct store_txn *txn;
    struct err err = {0};
    if (store == NULL)
        make_store();
    arena_init(&arena);
    material_make(&arena, data, size, kinds, 1, &m);
    bool acceptable = check_normal_form(bval_doc(&m.spec));
    CHECK(store_write_begin(store, &txn, &err));
    CHECK(catalog_create(txn, ns, strlen(ns), uuid, bdoc_empty(), &err));
    work(&arena, &m, txn, acceptable);
    store_write_abort(txn);
    arena_deinit(&arena);
    return 0;
}
