/* What a fuzzer of the document language works on, made from its bytes: some documents, and a specification that is
 * either generated (mostly sensible) or arbitrary BSON. Everything lies in the arena. */
#ifndef SHERD_TESTS_FUZZ_QUERY_MATERIAL_H
#define SHERD_TESTS_FUZZ_QUERY_MATERIAL_H

#include "base/arena.h"
#include "expr/expr.h"
#include "tests/fuzz/query/random_query.h"

enum { MATERIAL_DOCS = 4 };

struct material {
    struct bdoc docs[MATERIAL_DOCS];
    struct bdoc filter;
    struct bval spec;    /* an update, a projection ...; BT_EOO: only the filter was asked for */
    struct expr_env env; /* with a collation now and then */
};

/* Equal inputs, equal material. Documents are well-formed in any case. `kinds` (at most 4) are what `spec` may be; a
 * list of stages for RANDOM_STAGE. */
void material_make(struct arena *arena, const uint8_t *data, size_t len, const enum random_kind *kinds,
                   unsigned kind_count, struct material *out);

/* A well-formed document of the language; aborts with its text otherwise. */
void material_check_document(struct bdoc doc);
/* A refusal has a code and a text. */
void material_check_error(const struct err *err);

#endif
