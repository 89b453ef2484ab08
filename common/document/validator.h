/* Schema validation: the filter that new versions of documents must match.
 *
 * No document that a validator refuses is stored under it at any log position. A deterministic filter is tested by
 * apply on every member. Another one ($expr, regular expressions, a collation) is tested by the leader before it
 * proposes; the log command carries the version of the validator it was tested with, and apply sends the writer back
 * (REDO) when that isn't the one in force any more. */
#ifndef SHERD_DOCUMENT_VALIDATOR_H
#define SHERD_DOCUMENT_VALIDATOR_H

#include "query/filter.h"

enum validator_level {
    VALIDATOR_STRICT,   /* inserts and updates */
    VALIDATOR_MODERATE, /* but not updates of documents that are invalid already */
    VALIDATOR_OFF,
};

enum validator_action {
    VALIDATOR_ERROR,
    VALIDATOR_WARN, /* stored, and logged */
    VALIDATOR_ERROR_AND_LOG,
};

enum {
    VALIDATOR_UNCHECKED = 0, /* version in a log command: the leader has tested nothing */
    VALIDATOR_BYPASSED = 1,  /* bypassDocumentValidation: nothing is to be tested */
};

struct validator {
    struct bdoc source; /* data NULL: none */
    enum validator_level level;
    enum validator_action action;
    uint64_t version;            /* of all this; 2 or more, the same on all members, other for another validator */
    bool deterministic;          /* apply tests */
    const struct filter *filter; /* compiled, when deterministic; NULL when it can't be compiled any more */
};

/* False for none and for level "off". */
bool validator_is_on(const struct validator *validator);
/* The validator must be tested by the leader, and the log command must carry its version. */
bool validator_needs_leader(const struct validator *validator);

/* Compiles for the leader: `env` as for the command's own filters, but without let. */
bool validator_compile(struct arena *arena, const struct validator *validator, const struct expr_env *env,
                       const struct filter **out, struct err *err) ERR_WARN_UNUSED;
/* Tests `after`, which replaces `before` (data NULL: an insert). False: it must not be stored:
 * ERR_DocumentValidationFailure with details {errInfo: {failingDocumentId, details}}. A document that is stored all the
 * same is logged. `filter` is validator->filter in apply, the compiled one on the leader. */
bool validator_check(const struct validator *validator, const struct filter *filter, struct bdoc before,
                     struct bdoc after, struct err *err) ERR_WARN_UNUSED;

enum validator_verdict {
    VALIDATOR_PASS,
    VALIDATOR_REFUSE, /* *err says why */
    VALIDATOR_REDO,   /* the leader must test again */
};
/* Apply's half: `tested` is the version that the log command carries. */
enum validator_verdict validator_apply(const struct validator *validator, uint64_t tested, struct bdoc before,
                                       struct bdoc after, struct err *err);

/* "strict", "error" ...; false for another word. */
bool validator_level_parse(const char *text, enum validator_level *out);
bool validator_action_parse(const char *text, enum validator_action *out);

#endif
