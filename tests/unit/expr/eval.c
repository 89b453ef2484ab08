#include "tests/unit/expr/eval.h"

#include "expr/expr.h"
#include "expr/writer.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

static const struct expr_env env = {.now_ms = 1700000000000, .random = 7};

void eval_check(const struct eval_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct expr *expr;
        struct err err = {0};
        struct bval got;
        arena_init(&arena);
        struct bval source = json_val(&arena, cases[i].expr);
        if (!expr_compile(&arena, &source, &env, &expr, &err) ||
            !expr_eval(expr, json_doc(&arena, cases[i].doc), &arena, &got, &err))
            fail_msg("%s: %d %s", cases[i].expr, err.code, err.msg);
        struct buf out = BUF_INIT;
        size_t start = write_begin(&out);
        write_value(&out, "v", 1, &got);
        write_end(&out, start);
        json_assert_same(&arena, write_view(&out, 0), cases[i].want, cases[i].expr);
        buf_deinit(&out);
        arena_deinit(&arena);
    }
}

void eval_check_failures(const struct eval_failure *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct expr *expr;
        struct err err = {0};
        struct bval got;
        arena_init(&arena);
        struct bval source = json_val(&arena, cases[i].expr);
        if (expr_compile(&arena, &source, &env, &expr, &err) &&
            expr_eval(expr, json_doc(&arena, "{'a': 1, 's': 'x'}"), &arena, &got, &err))
            fail_msg("%s doesn't fail", cases[i].expr);
        if (err.code != cases[i].code)
            fail_msg("%s: %d instead of %d (%s)", cases[i].expr, err.code, cases[i].code, err.msg);
        arena_deinit(&arena);
    }
}
