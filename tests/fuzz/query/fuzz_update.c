/* Updates: any input compiles or is refused with a code. Of what compiles: results are well-formed documents with the
 * same _id, an unmodified document has its bytes, the same input gives the same output, a path that the update is said
 * not to touch keeps its value, operators that set a state do nothing when applied again, and an upsert makes a
 * document with _id in front. */
#include "base/check.h"
#include "bson/compare.h"
#include "bson/path.h"
#include "tests/fuzz/query/fuzz.h"
#include "tests/fuzz/query/material.h"
#include "update/update.h"

#include <string.h>

/* Applying it once more to its own result changes nothing. */
static bool sets_a_state(const struct bval *spec)
{
    static const char *const names[] = {"$set",  "$min",     "$max",         "$addToSet",
                                        "$pull", "$pullAll", "$setOnInsert", "$currentDate"};
    struct biter iter;
    struct belem elem;
    if (spec->type != BT_DOCUMENT)
        return false;
    biter_init(&iter, bval_doc(spec));
    while (biter_next(&iter, &elem)) {
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            known |= strcmp(names[i], elem.key) == 0;
        if (!known)
            return false;
    }
    return true;
}

static void check_untouched(const struct update *update, struct bdoc before, struct bdoc after)
{
    static const char *const paths[] = {"_id", "a", "b", "c", "a.b", "b.c", "b.c.d"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct bval old = BVAL_MISSING;
        struct bval new = BVAL_MISSING;
        if (update_touches(update, paths[i]))
            continue;
        (void)path_get_str(before, paths[i], &old);
        (void)path_get_str(after, paths[i], &new);
        CHECK(old.type == new.type &&old.len == new.len);
        CHECK(old.len == 0 || memcmp(old.data, new.data, old.len) == 0);
    }
}

static void check_id(struct bdoc before, struct bdoc after)
{
    struct bval old;
    struct bval new;
    if (!bdoc_find(before, "_id", &old))
        return;
    CHECK(bdoc_find(after, "_id", &new) && bval_equal(&old, &new));
}

static bool apply(const struct update *update, struct bdoc doc, const struct filter_match *match, struct buf *out,
                  struct update_result *result)
{
    struct err err = {0};
    size_t before = out->len;
    bool ok = update_apply(update, doc, match, out, result, &err);
    if (!ok) {
        material_check_error(&err);
        CHECK(out->len == before);
    }
    return ok;
}

/* `again`: the update may be applied to its own result. Not one with array filters: what it has set may fall under
 * another filter than before, and then meet a second change of the same element (40). */
static void check_one(const struct update *update, bool again, struct bdoc doc, int64_t position)
{
    struct buf first = BUF_INIT;
    struct buf second = BUF_INIT;
    struct filter_match match = {.array_index = position};
    struct update_result result;
    if (apply(update, doc, &match, &first, &result)) {
        struct bdoc after = {first.data, (uint32_t)first.len};
        material_check_document(after);
        check_id(doc, after);
        check_untouched(update, doc, after);
        CHECK(result.modified || bdoc_same(doc, after));
        CHECK(apply(update, doc, &match, &second, &result));
        CHECK(second.len == first.len && memcmp(first.data, second.data, first.len) == 0);
        buf_clear(&second);
        if (again && !update_needs_match(update)) {
            CHECK(apply(update, after, &match, &second, &result));
            CHECK(second.len == first.len && memcmp(first.data, second.data, first.len) == 0);
        }
    }
    buf_deinit(&first);
    buf_deinit(&second);
}

static void check_upsert(struct arena *arena, const struct material *m, const struct update *update)
{
    struct filter *filter;
    struct err err = {0};
    struct buf out = BUF_INIT;
    bson_oid_t oid = {.bytes = {1}};
    if (!filter_compile(arena, m->filter, &m->env, &filter, &err))
        return;
    if (update_build_upsert(update, filter, &oid, &out, &err)) {
        struct bdoc made = {out.data, (uint32_t)out.len};
        material_check_document(made);
        CHECK(made.len > 9 && strcmp((const char *)made.data + 5, "_id") == 0);
    } else {
        material_check_error(&err);
    }
    filter_release(filter);
    buf_deinit(&out);
}

/* [{e: <an operand>}], for $[e]. */
static struct bdoc array_filters(struct arena *arena, const struct material *m)
{
    struct biter iter;
    struct belem first;
    bson_t list = BSON_INITIALIZER;
    bson_t one;
    biter_init(&iter, m->filter);
    bool has = biter_next(&iter, &first);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &one);
    bval_append(&one, "e", -1, has ? &first.val : &BVAL_NULL);
    bson_append_document_end(&list, &one);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&list), list.len), list.len};
    bson_destroy(&list);
    return copy;
}

static void try_update(struct arena *arena, const struct material *m, struct bdoc filters)
{
    struct update *update;
    struct err err = {0};
    struct update_options options = {.env = &m->env, .array_filters = filters};
    if (!update_compile(arena, &m->spec, &options, &update, &err)) {
        material_check_error(&err);
        return;
    }
    bool again = filters.data == NULL && sets_a_state(&m->spec);
    for (int i = 0; i < MATERIAL_DOCS; i++)
        check_one(update, again, m->docs[i], i - 1);
    check_upsert(arena, m, update);
    update_release(update);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum random_kind kinds[] = {RANDOM_UPDATE, RANDOM_UPDATE, RANDOM_DOCUMENT, RANDOM_STAGE};
    struct arena arena;
    struct material m;
    arena_init(&arena);
    material_make(&arena, data, size, kinds, sizeof kinds / sizeof *kinds, &m);
    try_update(&arena, &m, (struct bdoc){0});
    try_update(&arena, &m, array_filters(&arena, &m));
    arena_deinit(&arena);
    return 0;
}
