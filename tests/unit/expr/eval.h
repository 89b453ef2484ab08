/* Tables of expressions with what they give, for the tests of operators. */
#ifndef SHERD_TESTS_UNIT_EXPR_EVAL_H
#define SHERD_TESTS_UNIT_EXPR_EVAL_H

#include <stddef.h>

/* An expression, a document, and {"v": result} ({} for a missing one). Single quotes may stand for double ones. */
struct eval_case {
    const char *expr;
    const char *doc;
    const char *want;
};

/* An expression that fails on the document {"a": 1, "s": "x"} or before it sees one, with this code. */
struct eval_failure {
    const char *expr;
    int code;
};

void eval_check(const struct eval_case *cases, size_t count);
void eval_check_failures(const struct eval_failure *cases, size_t count);

#define EVAL_CHECK(cases)          eval_check(cases, sizeof(cases) / sizeof *(cases))
#define EVAL_CHECK_FAILURES(cases) eval_check_failures(cases, sizeof(cases) / sizeof *(cases))

#endif
