/* The leader's half of schema validation, and what else a write has to know of its collection: looked up anew for each
 * log command, because it may change between two. On workers. */
#ifndef SHERD_DOCUMENT_VALIDATION_H
#define SHERD_DOCUMENT_VALIDATION_H

#include "document/engine.h"
#include "document/validator.h"

struct validation {
    bool bypass;     /* set by the caller: nothing is tested */
    uint64_t tested; /* what a log command carries: validator.h */
    bool many_ids;   /* an _id may stand for several documents: nothing goes by _id */
    /* Of a time series; NULL: it is none. Updates may change only the second, which may be NULL, too. */
    const char *time_field;
    const char *meta_field;
    struct validator validator; /* a copy of the one in force, when the leader tests */
    struct expr_env env;
    const struct filter *filter; /* NULL: apply tests, or there is nothing to test */
};

/* Everything found lies in `arena`; a validator that is still the one of the last look isn't compiled again. `now_ms`
 * is $$NOW. */
bool validation_look(struct validation *validation, struct document_engine *engine, const char *ns, int64_t now_ms,
                     struct arena *arena, struct err *err) ERR_WARN_UNUSED;
/* True also when there is nothing for the leader to test. `before` data NULL: an insert. */
bool validation_check(const struct validation *validation, struct bdoc before, struct bdoc after,
                      struct err *err) ERR_WARN_UNUSED;
/* An update of a time series: many documents, found by the meta field, which alone is changed. */
bool validation_check_update(const struct validation *validation, struct bdoc filter, const struct bval *update,
                             bool multi, bool upsert, struct err *err) ERR_WARN_UNUSED;

#endif
