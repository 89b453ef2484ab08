/* Query filters: `{a: 1, "b.c": {$gt: 5}}` compiled once per command into a tree, then tested on each document without
 * a heap allocation. Called by the planner, by apply (which tests a candidate again), by $match and by array filters,
 * on any thread; a compiled filter is read-only and may be shared. Semantics:
 * https://www.mongodb.com/docs/manual/reference/operator/query/ */
#ifndef SHERD_QUERY_FILTER_H
#define SHERD_QUERY_FILTER_H

#include "expr/expr.h"

enum {
    FILTER_MAX_DEPTH = 100,         /* levels of $and, $or, $nor, $not, $elemMatch */
    FILTER_MAX_NODES = 100000,      /* predicates in one filter */
    FILTER_MAX_IN_VALUES = 1000000, /* members of one $in, $nin or $all */
    FILTER_MAX_PATH_PARTS = 200,    /* components of one dotted path */
};

struct filter;

/* What the test of one document leaves behind. */
struct filter_match {
    int64_t array_index; /* element that satisfied the last array-crossing predicate: the positional `$`; -1: none */
    const struct expr_meta
        *meta; /* what else is known about the document; set by the caller after filter_eval; NULL: nothing */
};

/* Compiles `query` (borrowed, as is `env`, which may be NULL, for as long as the filter is used) into `arena`.
 * Errors: 2 BadValue for unknown operators and malformed operands, 14 for operands of a wrong type, 9 FailedToParse,
 * 51091 bad regular expression, and what expr_compile says for $expr. The filter holds compiled regular expressions
 * outside the arena goes with the arena. */
bool filter_compile(struct arena *arena, struct bdoc query, const struct expr_env *env, struct filter **out,
                    struct err *err) ERR_WARN_UNUSED;
/* Frees that earlier. Accepts NULL; not needed. */
void filter_release(struct filter *filter);

/* Test of one document. An evaluation that fails ($expr, a regular expression beyond its limits) counts as no match;
 * use filter_eval where filter_can_fail. */
bool filter_matches(const struct filter *filter, struct bdoc doc);
/* The same with the error told, and `match` (may be NULL) filled when *matched. */
bool filter_eval(const struct filter *filter, struct bdoc doc, struct filter_match *match, bool *matched,
                 struct err *err) ERR_WARN_UNUSED;
/* filter_eval of a value that stands under a name of its own: an array filter ({"elem.x": 1}: name "elem", value the
 * array's element). */
bool filter_eval_value(const struct filter *filter, const char *name, const struct bval *value, bool *matched,
                       struct err *err) ERR_WARN_UNUSED;

/* {$gt: 5}: a document whose first name is an operator (a DBRef is none). Such a value is a condition, any other a
 * constant. */
bool filter_is_condition(const struct bval *value);

/* No predicate: every document matches. */
bool filter_is_empty(const struct filter *filter);
/* No document can match ($alwaysFalse, $in: []). */
bool filter_is_never(const struct filter *filter);
/* True when evaluation may report an error. */
bool filter_can_fail(const struct filter *filter);
bool filter_has_regex(const struct filter *filter);
/* Made of our own comparisons only, so every replica gives the same answer: it may stand in a log command. False for
 * regular expressions, $expr and strings in a collation: the leader evaluates these. */
bool filter_is_deterministic(const struct filter *filter);
/* The value that an equality ({path: v}, {path: {$eq: v}}, {path: {$in: [v]}}, also inside $and) fixes for `path`;
 * false when there is none. Regular expressions fix nothing, nor do strings in a collation. */
bool filter_equality(const struct filter *filter, const char *path, struct bval *out);
/* Gets each (path, value) that an equality fixes; false, with `err` set, ends the walk. */
struct filter_equality_visitor {
    bool (*add)(void *arg, const char *path, const struct bval *value, struct err *err);
    void *arg;
};

/* In filter order, with $eq, $in of one value and $all included as an upsert takes them. False when the visitor
 * returned false. */
bool filter_each_equality(const struct filter *filter, const struct filter_equality_visitor *visitor,
                          struct err *err) ERR_WARN_UNUSED;
/* Some predicate is on the top-level field that `path` begins with. */
bool filter_mentions(const struct filter *filter, const char *path);
/* The query it was compiled from. */
struct bdoc filter_source(const struct filter *filter);

#endif
