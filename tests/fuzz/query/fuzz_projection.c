/* Projections: any input compiles or is refused with a code. Of what compiles: results are well-formed, the same input
 * gives the same output, one that says it changes nothing doesn't, and a plain inclusion or exclusion applied to its
 * own result changes nothing. */
#include "base/check.h"
#include "query/projection.h"
#include "tests/fuzz/query/fuzz.h"
#include "tests/fuzz/query/material.h"

#include <string.h>

/* Nothing but numbers and flags, at any depth: which fields are there, and nothing about their values. */
static bool is_plain(struct bdoc spec, int depth)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, spec);
    while (biter_next(&iter, &elem)) {
        bool nested = elem.val.type == BT_DOCUMENT && elem.key[0] != '$' && depth > 0 &&
                      !bdoc_is_empty(bval_doc(&elem.val)) && is_plain(bval_doc(&elem.val), depth - 1);
        if (elem.key[0] == '$' || strchr(elem.key, '$') != NULL)
            return false;
        if (!nested && !bval_is_number(&elem.val) && elem.val.type != BT_BOOL)
            return false;
    }
    return true;
}

static bool apply(const struct projection *projection, struct bdoc doc, const struct filter_match *match,
                  struct buf *out)
{
    struct err err = {0};
    size_t before = out->len;
    if (projection_apply(projection, doc, match, out, &err))
        return true;
    material_check_error(&err);
    CHECK(out->len == before);
    return false;
}

static void check_one(const struct projection *projection, const struct material *m, struct bdoc doc,
                      const struct filter_match *match)
{
    struct buf first = BUF_INIT;
    struct buf second = BUF_INIT;
    if (apply(projection, doc, match, &first)) {
        struct bdoc after = {first.data, (uint32_t)first.len};
        material_check_document(after);
        CHECK(!projection_is_identity(projection) || bdoc_same(doc, after));
        CHECK(apply(projection, doc, match, &second));
        CHECK(second.len == first.len && memcmp(first.data, second.data, first.len) == 0);
        buf_clear(&second);
        if (is_plain(bval_doc(&m->spec), BDOC_MAX_DEPTH)) {
            CHECK(apply(projection, after, match, &second));
            CHECK(second.len == first.len && memcmp(first.data, second.data, first.len) == 0);
        }
    }
    buf_deinit(&first);
    buf_deinit(&second);
}

static void try_projection(struct arena *arena, const struct material *m, enum projection_kind kind,
                           const struct filter *filter)
{
    struct projection *projection;
    struct err err = {0};
    struct projection_options options = {.kind = kind, .filter = filter, .env = &m->env};
    if (!projection_compile(arena, bval_doc(&m->spec), &options, &projection, &err)) {
        material_check_error(&err);
        return;
    }
    for (int i = 0; i < MATERIAL_DOCS; i++) {
        struct filter_match match = {.array_index = i - 1};
        /* $addFields turns numbers into values, not into choices. */
        if (kind != PROJECTION_ADD_FIELDS)
            check_one(projection, m, m->docs[i], &match);
        else
            check_one(projection, &(struct material){.spec = m->spec}, m->docs[i], &match);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum random_kind kinds[] = {RANDOM_PROJECTION};
    struct arena arena;
    struct material m;
    struct filter *filter;
    struct err err = {0};
    arena_init(&arena);
    material_make(&arena, data, size, kinds, 1, &m);
    if (!filter_compile(&arena, m.filter, &m.env, &filter, &err))
        filter = NULL;
    for (int kind = PROJECTION_FIND; kind <= PROJECTION_ADD_FIELDS; kind++)
        try_projection(&arena, &m, (enum projection_kind)kind, filter);
    filter_release(filter);
    arena_deinit(&arena);
    return 0;
}
