/* Expressions and schemas: any input compiles or is refused with a code. Of what compiles: values are well-formed and
 * the same again, an expression that is said to be constant doesn't depend on the document, what it implies holds where
 * it is true; a document that a schema refuses has an explanation, and one that matches doesn't match the schema's
 * opposite. */
#include "base/check.h"
#include "expr/writer.h"
#include "query/explain_failure.h"
#include "query/filter.h"
#include "tests/fuzz/query/fuzz.h"
#include "tests/fuzz/query/material.h"
#include "tests/fuzz/query/random_expr.h"

enum {
    DEPTH = 4,
    EXPLANATION_MAX = 2000,
};

static struct bval keep(struct arena *arena, const bson_t *holder, const char *key)
{
    struct bval val = BVAL_MISSING;
    (void)bdoc_find(bdoc_of(holder), key, &val);
    val.data = arena_copy(arena, val.data, val.len);
    return val;
}

static bool same_value(const struct bval *a, const struct bval *b)
{
    return a->type == b->type && a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static bool eval(const struct expr *expr, struct bdoc doc, struct arena *scratch, struct bval *out)
{
    struct err err = {0};
    if (expr_eval(expr, doc, scratch, out, &err))
        return true;
    material_check_error(&err);
    return false;
}

static void check_value(const struct bval *val)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_value(&buf, "v", 1, val);
    write_end(&buf, start);
    material_check_document(write_view(&buf, start));
    buf_deinit(&buf);
}

static void try_expression(const struct bval *source, const struct material *m)
{
    struct arena arena;
    struct arena scratch;
    struct expr *expr;
    struct err err = {0};
    struct bval first = BVAL_MISSING;
    bool had_first = false;
    arena_init(&arena);
    arena_init(&scratch);
    if (!expr_compile(&arena, source, &m->env, &expr, &err)) {
        material_check_error(&err);
        arena_deinit(&arena);
        return;
    }
    for (int i = 0; i < MATERIAL_DOCS; i++) {
        struct bval val;
        struct bval again;
        bool ok = eval(expr, m->docs[i], &scratch, &val);
        CHECK(eval(expr, m->docs[i], &scratch, &again) == ok);
        if (!ok)
            continue;
        check_value(&val);
        CHECK(same_value(&val, &again));
        CHECK(!expr_is_constant(expr) || !had_first || same_value(&val, &first));
        first = val;
        had_first = true;
    }
    arena_deinit(&scratch);
    arena_deinit(&arena);
}

/* {$expr: e} with what it implies beside it answers as the expression alone. */
static void try_filter(const struct bval *source, const struct material *m)
{
    struct arena arena;
    struct filter *filter;
    struct expr *expr;
    struct err err = {0};
    arena_init(&arena);
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_value(&buf, "$expr", 5, source);
    write_end(&buf, start);
    if (filter_compile(&arena, write_view(&buf, start), &m->env, &filter, &err)) {
        CHECK(expr_compile(&arena, source, &m->env, &expr, &err));
        for (int i = 0; i < MATERIAL_DOCS; i++) {
            struct bval val;
            bool matched = filter_matches(filter, m->docs[i]);
            if (eval(expr, m->docs[i], &arena, &val))
                CHECK(matched == expr_value_is_true(&val));
        }
    } else {
        material_check_error(&err);
    }
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void explain(const struct filter *filter, struct bdoc doc, size_t max)
{
    struct buf out = BUF_INIT;
    filter_explain_failure(filter, doc, max, &out);
    material_check_document((struct bdoc){out.data, (uint32_t)out.len});
    buf_deinit(&out);
}

static void try_schema(const struct bval *source, const struct material *m)
{
    struct arena arena;
    struct filter *filter;
    struct err err = {0};
    arena_init(&arena);
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_value(&buf, "$jsonSchema", 11, source);
    write_end(&buf, start);
    if (!filter_compile(&arena, write_view(&buf, start), &m->env, &filter, &err)) {
        material_check_error(&err);
    } else {
        for (int i = 0; i < MATERIAL_DOCS; i++) {
            bool matched = filter_matches(filter, m->docs[i]);
            CHECK(matched == filter_matches(filter, m->docs[i]));
            if (matched)
                continue;
            explain(filter, m->docs[i], EXPLANATION_MAX);
            explain(filter, m->docs[i], 64);
        }
    }
    buf_deinit(&buf);
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum random_kind kinds[] = {RANDOM_FILTER};
    struct arena arena;
    struct material m;
    struct err err = {0};
    size_t half = size / 2;
    struct chooser choose = {.data = data + half, .len = size - half};
    bson_t holder = BSON_INITIALIZER;
    arena_init(&arena);
    material_make(&arena, data, half, kinds, 1, &m);
    random_expr_append(&choose, &holder, "e", DEPTH);
    random_schema_append(&choose, &holder, "s", DEPTH);
    struct bval expression = keep(&arena, &holder, "e");
    struct bval schema = keep(&arena, &holder, "s");
    try_expression(&expression, &m);
    try_filter(&expression, &m);
    try_schema(&schema, &m);
    struct filter *filter;
    if (filter_compile(&arena, m.filter, &m.env, &filter, &err))
        for (int i = 0; i < MATERIAL_DOCS; i++)
            if (!filter_matches(filter, m.docs[i]))
                explain(filter, m.docs[i], EXPLANATION_MAX);
    bson_destroy(&holder);
    arena_deinit(&arena);
    return 0;
}
