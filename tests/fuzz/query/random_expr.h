/* Random expressions with every operator, and random schemas: most have the arguments that their operator takes, with
 * values of any type. Equal choices, equal documents. */
#ifndef SHERD_TESTS_FUZZ_QUERY_RANDOM_EXPR_H
#define SHERD_TESTS_FUZZ_QUERY_RANDOM_EXPR_H

#include "bson/value.h"
#include "tests/fuzz/query/chooser.h"

/* As the field `key` of `to`. */
void random_expr_append(struct chooser *choose, bson_t *to, const char *key, int depth);
void random_schema_append(struct chooser *choose, bson_t *to, const char *key, int depth);

#endif
