/* Projections of find, findAndModify and $project: which fields of a document are handed out, and computed ones.
 * Called on any thread; a compiled projection is read-only and may be shared.
 * Semantics: https://www.mongodb.com/docs/manual/reference/method/db.collection.find/#projection */
#ifndef SHERD_QUERY_PROJECTION_H
#define SHERD_QUERY_PROJECTION_H

#include "query/filter.h"

enum {
    PROJECTION_MAX_DEPTH = 100,
    PROJECTION_MAX_FIELDS = 10000,
};

/* Who asks: find knows $slice, $elemMatch and positional $; $project has expressions and refuses these; $addFields only
 * adds. */
enum projection_kind {
    PROJECTION_FIND,
    PROJECTION_STAGE,
    PROJECTION_ADD_FIELDS,
};

struct projection;

struct projection_options {
    enum projection_kind kind;
    const struct filter *filter; /* the query, for the positional `a.$`; NULL: there is none */
    const struct expr_env *env;  /* NULL: no time, no variables */
};

/* Compiles `spec` into `arena`; it is borrowed, and so are the members of `options`. Errors: 31249 path collision,
 * 31253 inclusion in an exclusion, 31254 exclusion in an inclusion, 51050 and 31276 positional misuse, 168 unknown
 * operator ... */
bool projection_compile(struct arena *arena, struct bdoc spec, const struct projection_options *options,
                        struct projection **out, struct err *err) ERR_WARN_UNUSED;
/* No change to any document ({}). */
bool projection_is_identity(const struct projection *projection);
/* Appends the projected document to `out`; it begins at the old out->len. `match` is what filter_eval left for this
 * document; needed only when projection_needs_match or projection_wanted_meta, else NULL. */
bool projection_apply(const struct projection *projection, struct bdoc doc, const struct filter_match *match,
                      struct buf *out, struct err *err) ERR_WARN_UNUSED;
/* What {$meta: ...} in it reads, to be handed over as match->meta: a set of enum expr_meta_kind. */
unsigned projection_wanted_meta(const struct projection *projection);
/* It has a positional `$`. */
bool projection_needs_match(const struct projection *projection);
/* A plain inclusion with no computed field: calls `add` for each dotted path included (`_id` too unless excluded) and
 * returns true; for a covered query. False otherwise. */
bool projection_inclusions(const struct projection *projection, void (*add)(void *arg, const char *path), void *arg);

#endif
