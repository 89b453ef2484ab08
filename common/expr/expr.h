/* Aggregation expressions: compiled once per command into a tree, evaluated once per document. Pure: no clock, no I/O;
 * the time and the variables come from outside. Called by query ($expr), aggregate and update on any thread; a compiled
 * tree is read-only and may be shared by threads, each with an arena of its own.
 * Semantics: https://www.mongodb.com/docs/manual/reference/operator/aggregation/ */
#ifndef SHERD_EXPR_EXPR_H
#define SHERD_EXPR_EXPR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "bson/compare.h"
#include "bson/value.h"

enum {
    EXPR_MAX_SCRATCH_BYTES = 64 * 1024 * 1024,       /* of intermediate values for one document */
    EXPR_MAX_DEPTH = 200,                            /* levels of nested expressions */
    EXPR_MAX_VARIABLES = 64,                         /* user variables visible at one place */
    EXPR_MAX_RESULT_BYTES = BDOC_MAX_INTERNAL_BYTES, /* of any value that an expression builds */
};

/* What a command gives to the expressions in it. Borrowed as long as the compiled tree is used. */
struct expr_env {
    int64_t now_ms;                 /* $$NOW, milliseconds since 1970 */
    uint64_t cluster_time;          /* $$CLUSTER_TIME as timestamp bits; 0: not available */
    struct bdoc let;                /* the command's `let`: expressions that need no document; data NULL: none */
    uint64_t random;                /* seed of $rand and $sampleRate; 0: made from the time */
    const struct bval_order *order; /* the operation's collation; NULL: strings compare by bytes */
};

struct expr;

/* Compiles a value of a pipeline: a "$path", "$$variable", {$operator: ...}, document, array or constant. The tree
 * lives in `arena` and borrows `source` and `env` (NULL: no time, no variables). Errors: 168 unknown operator or wrong
 * number of arguments, 17276 undefined variable, 16872 empty path, 15983 several operators in one document ... */
bool expr_compile(struct arena *arena, const struct bval *source, const struct expr_env *env, struct expr **out,
                  struct err *err) ERR_WARN_UNUSED;
/* The value for `root`, in `scratch` or borrowed from `root` or the tree. BT_EOO: missing. */
bool expr_eval(const struct expr *expr, struct bdoc root, struct arena *scratch, struct bval *out,
               struct err *err) ERR_WARN_UNUSED;
/* True when the value doesn't depend on the document. */
bool expr_is_constant(const struct expr *expr);
/* For a plain field path ("$a.b"): the path without the dollar, else NULL. */
const char *expr_field_path(const struct expr *expr);
/* What is known about a document beside its fields, for {$meta: ...}; BT_EOO: not known. Borrowed. */
struct expr_meta {
    struct bval record_id; /* int64 */
    struct bval sort_key;  /* an array: one value for each part of the sort */
    struct bval index_key; /* a document: the keys of the entry that the document was found by */
};
enum expr_meta_kind {
    EXPR_META_RECORD_ID = 1 << 0,
    EXPR_META_SORT_KEY = 1 << 1,
    EXPR_META_INDEX_KEY = 1 << 2,
};
/* Which of them the expression reads: a set of enum expr_meta_kind. */
unsigned expr_wanted_meta(const struct expr *expr);
/* expr_eval with metadata, NULL: none. */
bool expr_eval_meta(const struct expr *expr, struct bdoc root, const struct expr_meta *meta, struct arena *scratch,
                    struct bval *out, struct err *err) ERR_WARN_UNUSED;
/* A comparison that holds wherever an expression is true: the field at `path` equals `value`, or one of the members of
 * the array `value` ($in). Paths and values belong to the tree; values are no arrays, no regular expressions, and not
 * undefined. */
struct expr_implied {
    const char *path;
    bool in;
    struct bval value;
};
enum {
    EXPR_MAX_IMPLIED = 8, /* of one expression; more are left out */
};
/* How many there are. */
uint32_t expr_implied(const struct expr *expr, struct expr_implied out[EXPR_MAX_IMPLIED]);
/* Adds the top-level names of `root` that the expression reads by calling `add`; false: it may read the whole document.
 */
bool expr_dependencies(const struct expr *expr, void (*add)(void *arg, const char *path), void *arg);
/* Truth as $cond, $and and $match's $expr see it: false, null, undefined, missing and numbers equal to 0 are false. */
bool expr_value_is_true(const struct bval *value);

/* The number of values that $firstN, $topN and the like ask for: whole and above 0; 5787902, 5787903, 5787908. */
bool expr_read_n(const struct bval *val, int64_t *out, struct err *err) ERR_WARN_UNUSED;

/* What expressions and stages have built must not nest deeper than what may come in (BDOC_MAX_WIRE_DEPTH), since
 * everything that reads documents recurses: ERR_Overflow. */
bool expr_check_depth(struct bdoc doc, struct err *err) ERR_WARN_UNUSED;

#endif
