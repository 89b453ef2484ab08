/* Documents out of JSON for table-driven tests: single quotes may stand for double ones. */
#ifndef SHERD_TESTS_UNIT_EXPR_JSON_H
#define SHERD_TESTS_UNIT_EXPR_JSON_H

#include "base/arena.h"
#include "bson/value.h"

/* A document in the arena; fails the test when the text is no JSON. */
struct bdoc json_doc(struct arena *arena, const char *text);
/* The value of "v" in {"v": text}. */
struct bval json_val(struct arena *arena, const char *text);
/* Relaxed JSON in the arena, for messages and comparisons. */
const char *json_text(struct arena *arena, struct bdoc doc);
/* Same bytes; prints both otherwise. */
void json_assert_same(struct arena *arena, struct bdoc got, const char *want, const char *what);

#endif
