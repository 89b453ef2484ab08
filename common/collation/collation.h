/* Collations: how strings compare in a language, by ICU. A specification as clients give it, {locale: "de", strength:
 * 2}, becomes a collation: checked, with every option filled in from the locale. Equal ones are one object (interned)
 * with a count of references; a few that nobody holds are kept for the next command. Called by commands and by the
 * catalogue, on any thread; a collation itself is read-only. Everything else only knows its struct bval_order
 * (bson/compare.h). NULL stands for {locale: "simple"}, comparison by bytes, wherever a collation is given or taken.
 * Semantics: https://www.mongodb.com/docs/manual/reference/collation/ */
#ifndef SHERD_COLLATION_COLLATION_H
#define SHERD_COLLATION_COLLATION_H

#include "base/arena.h"
#include "bson/compare.h"

enum {
    COLLATION_IDLE_MAX = 64,          /* collations kept although nobody holds them */
    COLLATION_LOCALE_MAX_BYTES = 100, /* longer names of locales are refused; ICU knows none */
};

struct collation;

/* On success *out is a reference of the caller's (NULL for simple). Errors: 40414 no locale, 14 wrong type, 40415
 * unknown field, 2 BadValue for a locale that ICU doesn't know as it is written, for values that don't exist and for
 * options that don't go together, 51024 strength out of 1 to 5, 9 "simple" with further options, 161
 * IncompatibleCollationVersion. */
bool collation_open(struct bdoc spec, struct collation **out, struct err *err) ERR_WARN_UNUSED;
/* The same for what this store has written down: the version is not compared (collation_version tells what it was). */
bool collation_open_stored(struct bdoc spec, struct collation **out, struct err *err) ERR_WARN_UNUSED;
struct collation *collation_ref(struct collation *collation);
void collation_unref(struct collation *collation);
/* A reference of its own for as long as the arena's memory lasts. */
void collation_keep(struct collation *collation, struct arena *arena);

/* Lives as long as the collation; NULL for NULL. */
const struct bval_order *collation_order(const struct collation *collation);
/* Appends all options as listCollections and listIndexes print them: locale, caseLevel, caseFirst, strength,
 * numericOrdering, alternate, maxVariable, normalization, backwards, version; for NULL only {locale: "simple"}. */
void collation_normal_spec(const struct collation *collation, bson_t *out);
/* ICU's version, as it stands in `version`: "72.1". */
const char *collation_version(void);

#endif
