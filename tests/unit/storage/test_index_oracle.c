/* Keys of random documents against slow and simple derivations of them, and values that come back out of entries. */
#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "base/random.h"
#include "bson/keyenc.h"
#include "bson/path.h"
#include "storage/cursor.h"
#include "storage/index_keys.h"

#include <string.h>

enum { PATHS_MAX = 3, DOCS = 4000 };

/* ---- random documents: few names, few values, so that paths meet ---- */

static void random_field(struct prng *prng, bson_t *to, const char *key, int depth, bool arrays);

static void random_object(struct prng *prng, bson_t *to, int depth, bool arrays)
{
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        if (prng_below(prng, 3) != 0)
            random_field(prng, to, names[i], depth, arrays);
}

static void random_array(struct prng *prng, bson_t *to, int depth)
{
    static const char *const numbers[] = {"0", "1", "2"};
    uint64_t count = prng_below(prng, 4);
    for (uint64_t i = 0; i < count; i++)
        random_field(prng, to, numbers[i], depth, true);
}

static void random_field(struct prng *prng, bson_t *to, const char *key, int depth, bool arrays)
{
    bson_t child;
    switch (prng_below(prng, depth > 0 ? 8 : 5)) {
    case 0:
        BSON_APPEND_INT32(to, key, (int32_t)prng_below(prng, 3));
        break;
    case 1:
        BSON_APPEND_DOUBLE(to, key, (double)prng_below(prng, 3) - (prng_below(prng, 2) != 0 ? 0.5 : 0));
        break;
    case 2:
        BSON_APPEND_UTF8(to, key, prng_below(prng, 2) != 0 ? "x" : "");
        break;
    case 3:
        BSON_APPEND_NULL(to, key);
        break;
    case 4:
        BSON_APPEND_INT64(to, key, (int64_t)prng_below(prng, 3));
        break;
    case 5:
        if (arrays) {
            BSON_APPEND_ARRAY_BEGIN(to, key, &child);
            random_array(prng, &child, depth - 1);
            bson_append_array_end(to, &child);
            break;
        }
        /* fall through */
    default:
        BSON_APPEND_DOCUMENT_BEGIN(to, key, &child);
        random_object(prng, &child, depth - 1, arrays);
        bson_append_document_end(to, &child);
        break;
    }
}

static void random_document(struct prng *prng, bson_t *doc, int32_t id, bool arrays)
{
    BSON_APPEND_INT32(doc, "_id", id);
    random_object(prng, doc, 3, arrays);
}

/* ---- a list of keys, sorted, each once ---- */

struct key_list {
    struct buf keys[4096];
    size_t count;
};

static void list_add(struct key_list *list, const struct buf *key)
{
    size_t at = 0;
    int order = 1;
    while (at < list->count &&
           (order = keyenc_compare(key->data, key->len, list->keys[at].data, list->keys[at].len)) > 0)
        at++;
    if (at < list->count && order == 0)
        return;
    assert_true(list->count < sizeof list->keys / sizeof list->keys[0]);
    memmove(list->keys + at + 1, list->keys + at, (list->count - at) * sizeof *list->keys);
    list->keys[at] = BUF_INIT;
    buf_append(&list->keys[at], key->data, key->len);
    list->count++;
}

static void list_clear(struct key_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        buf_deinit(&list->keys[i]);
    list->count = 0;
}

static void assert_same_keys(const struct key_list *list, const struct index_keys *keys, const bson_t *doc,
                             const char *index)
{
    bool same = list->count == keys->count;
    for (size_t i = 0; same && i < keys->count; i++)
        same = list->keys[i].len == keys->keys[i].len &&
               memcmp(list->keys[i].data, keys->bytes.data + keys->keys[i].offset, keys->keys[i].len) == 0;
    if (!same)
        fail_msg("%s: %zu keys, the oracle has %zu: %s", index, keys->count, list->count,
                 bson_as_relaxed_extended_json(doc, NULL));
}

/* ---- the oracle for ordinary indexes ---- */

struct pattern {
    const char *rest[PATHS_MAX]; /* what is left of each path; NULL: the value is known */
    struct bval values[PATHS_MAX];
    uint32_t count;
};

/* Follows rest[i] to its end or to an array; returns that array. */
static struct bval follow(struct pattern *pattern, uint32_t i, struct bdoc doc)
{
    while (pattern->rest[i] != NULL) {
        const char *dot = strchr(pattern->rest[i], '.');
        size_t len = dot != NULL ? (size_t)(dot - pattern->rest[i]) : strlen(pattern->rest[i]);
        struct bval val;
        bool there = doc.data != NULL && bdoc_find_n(doc, pattern->rest[i], len, &val);
        if (there && val.type == BT_ARRAY) {
            pattern->rest[i] = dot != NULL ? dot + 1 : "";
            return val;
        }
        pattern->rest[i] = dot != NULL ? dot + 1 : NULL;
        pattern->values[i] = there && dot == NULL ? val : BVAL_MISSING;
        doc = there && val.type == BT_DOCUMENT ? bval_doc(&val) : (struct bdoc){0};
    }
    return BVAL_MISSING;
}

static void emit(const struct pattern *pattern, uint64_t descending, struct key_list *out)
{
    struct buf key = BUF_INIT;
    for (uint32_t i = 0; i < pattern->count; i++)
        keyenc_append(&key, &pattern->values[i], (descending >> i & 1) != 0);
    list_add(out, &key);
    buf_deinit(&key);
}

/* False: two different arrays. */
static bool oracle_keys(struct pattern pattern, struct bdoc doc, uint64_t descending, struct key_list *out)
{
    struct bval array = BVAL_MISSING;
    bool in_array[PATHS_MAX] = {false};
    for (uint32_t i = 0; i < pattern.count; i++) {
        struct bval found = follow(&pattern, i, doc);
        if (found.type == BT_EOO)
            continue;
        if (array.type != BT_EOO && array.data != found.data)
            return false;
        array = found;
        in_array[i] = true;
    }
    if (array.type == BT_EOO) {
        emit(&pattern, descending, out);
        return true;
    }
    const struct bval undefined = {.type = BT_UNDEFINED};
    struct biter iter;
    struct belem elem = {.val = undefined};
    bool empty = bdoc_is_empty(bval_doc(&array));
    biter_init(&iter, bval_doc(&array));
    while (empty || biter_next(&iter, &elem)) {
        struct pattern next = pattern;
        for (uint32_t i = 0; i < pattern.count; i++) {
            if (in_array[i] && pattern.rest[i][0] == 0) {
                next.rest[i] = NULL;
                next.values[i] = elem.val;
            }
        }
        struct bdoc below = elem.val.type == BT_DOCUMENT ? bval_doc(&elem.val) : (struct bdoc){0};
        if (!oracle_keys(next, below, descending, out))
            return false;
        if (empty)
            break;
    }
    return true;
}

static void check_ordinary(struct fixture *f, const char *name, const bson_t *doc, struct key_list *list,
                           struct index_keys *keys)
{
    const struct index_def *index = fixture_index(f, name);
    struct pattern pattern = {.count = index->field_count};
    for (uint32_t i = 0; i < index->field_count; i++)
        pattern.rest[i] = index->fields[i].path;
    list_clear(list);
    bool expected = oracle_keys(pattern, bdoc_of(doc), keyenc_descending(index->key_pattern), list);
    bool made = index_keys_generate(index, bdoc_of(doc), keys, &f->err);
    if (made != expected)
        fail_msg("%s: %d, the oracle says %d: %s", name, made, expected, bson_as_relaxed_extended_json(doc, NULL));
    if (made)
        assert_same_keys(list, keys, doc, name);
    else
        assert_int_equal(f->err.code, 171);
}

static void index_keys_of_random_documents_are_the_oracles(void **state)
{
    struct fixture *f = *state;
    struct prng prng = {20261130};
    struct key_list *list = mem_alloc(sizeof *list);
    struct index_keys keys = {0};
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"name\": \"one\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b\": -1}, \"name\": \"dotted\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b\": 1, \"a.c\": -1}, \"name\": \"pair\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b.c\": 1, \"b\": 1, \"a.b.a\": 1}, \"name\": \"triple\"}"));
    for (int i = 0; i < DOCS; i++) {
        bson_t doc = BSON_INITIALIZER;
        random_document(&prng, &doc, i, true);
        check_ordinary(f, "one", &doc, list, &keys);
        check_ordinary(f, "dotted", &doc, list, &keys);
        check_ordinary(f, "pair", &doc, list, &keys);
        check_ordinary(f, "triple", &doc, list, &keys);
        bson_destroy(&doc);
    }
    index_keys_deinit(&keys);
    list_clear(list);
    mem_free(list);
}

/* ---- the oracle for wildcard indexes: all paths and values first, then those that are wanted ---- */

static bool below(const char *root, const char *path)
{
    size_t len = strlen(root);
    return strncmp(root, path, len) == 0 && (path[len] == 0 || path[len] == '.');
}

static bool wanted(const char *mode, const char *root, const char *path)
{
    if (strcmp(mode, "all") == 0)
        return !below("_id", path);
    if (strcmp(mode, "below") == 0)
        return below(root, path);
    return !below("_id", path) && !below(root, path);
}

static void wildcard_oracle(const struct bval *val, const char *path, bool in_array, const char *mode, const char *root,
                            struct key_list *out)
{
    struct biter iter;
    struct belem elem;
    bool is_object = val->type == BT_DOCUMENT && (!bdoc_is_empty(bval_doc(val)) || path[0] == 0);
    bool is_array = val->type == BT_ARRAY && !in_array;
    if ((is_object || is_array) && !bdoc_is_empty(bval_doc(val))) {
        biter_init(&iter, bval_doc(val));
        while (biter_next(&iter, &elem)) {
            char longer[64];
            snprintf(longer, sizeof longer, "%s%s%s", path, path[0] != 0 ? "." : "", elem.key);
            wildcard_oracle(&elem.val, is_array ? path : longer, is_array, mode, root, out);
        }
        return;
    }
    if (path[0] == 0 || !wanted(mode, root, path))
        return;
    const struct bval undefined = {.type = BT_UNDEFINED};
    bson_t text = BSON_INITIALIZER;
    struct bval path_val;
    struct buf key = BUF_INIT;
    BSON_APPEND_UTF8(&text, "p", path);
    bdoc_find(bdoc_of(&text), "p", &path_val);
    keyenc_append(&key, &path_val, false);
    keyenc_append(&key, is_array ? &undefined : val, false);
    list_add(out, &key);
    buf_deinit(&key);
    bson_destroy(&text);
}

struct wildcard_case {
    const char *name;
    const char *mode;
    const char *root;
};

static void check_wildcard(struct fixture *f, const struct wildcard_case *which, const bson_t *doc,
                           struct key_list *list, struct index_keys *keys)
{
    struct bval whole = bval_from_doc(bdoc_of(doc));
    list_clear(list);
    wildcard_oracle(&whole, "", false, which->mode, which->root, list);
    assert_true(index_keys_generate(fixture_index(f, which->name), bdoc_of(doc), keys, &f->err));
    assert_same_keys(list, keys, doc, which->name);
}

static void wildcard_keys_of_random_documents_are_the_oracles(void **state)
{
    struct fixture *f = *state;
    static const struct wildcard_case cases[] = {
        {"all", "all", ""}, {"sub", "below", "a.b"}, {"in", "below", "a.c"}, {"out", "without", "a.b"}};
    struct prng prng = {7};
    struct key_list *list = mem_alloc(sizeof *list);
    struct index_keys keys = {0};
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"$**\": 1}, \"name\": \"all\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b.$**\": 1}, \"name\": \"sub\"}"));
    assert_true(
        fixture_add_index(f, "{\"key\": {\"$**\": 1}, \"name\": \"in\", \"wildcardProjection\": {\"a.c\": 1}}"));
    assert_true(
        fixture_add_index(f, "{\"key\": {\"$**\": 1}, \"name\": \"out\", \"wildcardProjection\": {\"a.b\": 0}}"));
    for (int i = 0; i < DOCS; i++) {
        bson_t doc = BSON_INITIALIZER;
        random_document(&prng, &doc, i, true);
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
            check_wildcard(f, &cases[c], &doc, list, &keys);
        bson_destroy(&doc);
    }
    index_keys_deinit(&keys);
    list_clear(list);
    mem_free(list);
}

/* ---- values out of entries ---- */

static void check_entry(struct fixture *f, const struct index_def *index, const struct index_entry *entry,
                        int *given_back)
{
    struct bdoc doc;
    struct buf scratch = BUF_INIT;
    bson_t values = BSON_INITIALIZER;
    bson_t expected = BSON_INITIALIZER;
    bool lacks_dotted = false;
    assert_true(record_get(f->txn, f->coll, entry->record_id, &scratch, &doc));
    for (uint32_t i = 0; i < index->field_count; i++) {
        struct bval val;
        if (path_get_str(doc, index->fields[i].path, &val))
            bval_append(&expected, index->fields[i].path, -1, &val);
        else
            lacks_dotted |= index->fields[i].dotted;
    }
    bool ok = index_entry_values(index, entry, false, &values);
    assert_int_equal(ok, !lacks_dotted);
    if (ok && !bdoc_same(bdoc_of(&values), bdoc_of(&expected)))
        fail_msg("%s gives %s for %s", index->name, bson_as_relaxed_extended_json(&values, NULL),
                 bson_as_relaxed_extended_json(&expected, NULL));
    *given_back += ok;
    buf_deinit(&scratch);
    bson_destroy(&values);
    bson_destroy(&expected);
}

static void check_index(struct fixture *f, const char *name)
{
    const struct index_def *index = fixture_index(f, name);
    const struct index_bounds all = {0};
    struct index_cursor cursor;
    struct index_entry entry;
    int given_back = 0;
    index_cursor_open(&cursor, f->txn, index, &all, false);
    while (index_cursor_next(&cursor, &entry))
        check_entry(f, index, &entry, &given_back);
    index_cursor_close(&cursor);
    assert_true(given_back > 100);
}

/* Replacements change only types now and then: 1 becomes 1.0 under the same key. */
static void entries_of_random_documents_give_their_values_back(void **state)
{
    struct fixture *f = *state;
    struct prng prng = {99};
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": -1}, \"name\": \"plain\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"c\": -1, \"a.b\": 1}, \"name\": \"dotted\"}"));
    for (int i = 0; i < 1000; i++) {
        bson_t doc = BSON_INITIALIZER;
        random_document(&prng, &doc, i, false);
        assert_true(fixture_insert_bson(f, &doc, NULL));
        bson_destroy(&doc);
    }
    for (int i = 0; i < 1000; i++) {
        bson_t doc = BSON_INITIALIZER;
        int32_t id = (int32_t)prng_below(&prng, 1000);
        random_document(&prng, &doc, id, false);
        assert_true(record_replace(f->txn, f->coll, fixture_record(f, id), bdoc_of(&doc), NULL, &f->err));
        bson_destroy(&doc);
    }
    check_index(f, "plain");
    check_index(f, "dotted");
    assert_valid(f);
}

static void entry_gets_new_types_when_only_they_change(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"name\": \"a\"}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": 5}"));
    fixture_replace(f, 1, "{\"_id\": 1, \"a\": 5.0}");
    const struct index_def *index = fixture_index(f, "a");
    const struct index_bounds all = {0};
    struct index_cursor cursor;
    struct index_entry entry;
    bson_t out = BSON_INITIALIZER;
    struct bval val;
    index_cursor_open(&cursor, f->txn, index, &all, false);
    assert_true(index_cursor_next(&cursor, &entry));
    assert_true(index_entry_values(index, &entry, false, &out));
    assert_true(bdoc_find(bdoc_of(&out), "a", &val));
    assert_int_equal(val.type, BT_DOUBLE);
    assert_false(index_cursor_next(&cursor, &entry));
    index_cursor_close(&cursor);
    bson_destroy(&out);
    assert_valid(f);
}

static void index_knows_where_arrays_are_on_its_paths(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b\": 1, \"c\": 1}, \"name\": \"i\"}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": {\"b\": [1, 2]}}"));
    assert_int_equal(fixture_index(f, "i")->fields[0].multikey, 2);
    assert_true(fixture_insert(f, "{\"_id\": 2, \"a\": [{\"b\": 1}]}"));
    assert_int_equal(fixture_index(f, "i")->fields[0].multikey, 3);
    assert_int_equal(fixture_index(f, "i")->fields[1].multikey, 0);
    fixture_commit(f);
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    fixture_reopen(f);
    assert_int_equal(fixture_index(f, "i")->fields[0].multikey, 3);
    assert_valid(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(index_keys_of_random_documents_are_the_oracles),
        CASE(wildcard_keys_of_random_documents_are_the_oracles),
        CASE(entries_of_random_documents_give_their_values_back),
        CASE(entry_gets_new_types_when_only_they_change),
        CASE(index_knows_where_arrays_are_on_its_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
