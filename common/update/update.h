/* Updates: operators ({$set: ...}), replacements and pipelines, compiled once per command and applied to one document
 * at a time: document in, new document out. Called by the leader and inside apply: deterministic, time and ids come
 * from outside. Any thread; a compiled update is read-only. Semantics:
 * https://www.mongodb.com/docs/manual/reference/operator/update/ */
#ifndef SHERD_UPDATE_UPDATE_H
#define SHERD_UPDATE_UPDATE_H

#include "query/filter.h"

enum {
    UPDATE_MAX_DEPTH = 100,
    UPDATE_MAX_OPS = 100000, /* paths in one update */
    UPDATE_MAX_ARRAY_FILTERS = 1000,
    UPDATE_MAX_BACKFILL = 1500000, /* array elements one update may fill with nulls to reach an index */
};

enum update_kind {
    UPDATE_REPLACEMENT,
    UPDATE_OPERATORS,
    UPDATE_PIPELINE,
};

struct update_options {
    const struct expr_env *env; /* $currentDate, $$NOW, variables, collation; NULL: none, time 0 */
    struct bdoc array_filters;  /* the BSON array of filters; data NULL: none */
    bool multi;                 /* a replacement is refused (9) */
    bool upsert;                /* an upsert may follow: affects nothing but checks */
};

struct update;

/* What one application did. */
struct update_result {
    bool modified;   /* false: the document is as it was, `out` holds the same bytes */
    bool id_changed; /* never with success; for tests */
};

/* `source` is the `u` of an update statement: a document or an array (pipeline); borrowed, as are the options' members.
 * Errors: 9 FailedToParse (unknown modifier, mixed, bad arrayFilters), 14, 2, 40 ConflictingUpdateOperators, 56 empty
 * name, 52 dollar name, 66 ... */
bool update_compile(struct arena *arena, const struct bval *source, const struct update_options *options,
                    struct update **out, struct err *err) ERR_WARN_UNUSED;
/* Frees what array filters hold outside the arena. Accepts NULL. */
void update_release(struct update *update);
enum update_kind update_kind(const struct update *update);
/* Our own arithmetic and comparisons only: may stand in a log command. False for pipelines, regular expressions in
 * $pull or array filters, and with a collation. */
bool update_is_deterministic(const struct update *update);
/* It may change `path`, something above it or something below it. Always true for replacements and pipelines. */
bool update_touches(const struct update *update, const char *path);
/* Positional `$` is used: `match` must be given to update_apply. */
bool update_needs_match(const struct update *update);

/* Appends the new document to `out` (it begins at the old out->len). `match` is what filter_eval left, NULL when not
 * needed. Errors: 66 ImmutableField for _id, 2, 14, 28 PathNotViable, 16836 (positional without a match: code 2), 10334
 * / 17419 beyond 16 MiB ... */
bool update_apply(const struct update *update, struct bdoc doc, const struct filter_match *match, struct buf *out,
                  struct update_result *result, struct err *err) ERR_WARN_UNUSED;
/* The document that an upsert inserts: equalities of the filter, then the update with $setOnInsert. `id` becomes `_id`
 * when neither gives one; it stands first. Appended to `out`. Errors as above, 54 NotSingleValueField. */
bool update_build_upsert(const struct update *update, const struct filter *filter, const bson_oid_t *id,
                         struct buf *out, struct err *err) ERR_WARN_UNUSED;

/* Prepares a document for insertion: appends it to `out` with `_id` first, `id` when it has none, and timestamps (0, 0)
 * left as they are. Errors: 2 for an `_id` that is an array, regex or undefined, 52 for an _id with $ names, 10334 too
 * large. */
bool update_prepare_insert(struct bdoc doc, const bson_oid_t *id, struct buf *out, struct err *err) ERR_WARN_UNUSED;

#endif
