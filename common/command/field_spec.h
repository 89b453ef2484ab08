/* Reading a whole document of named fields in one pass by a table of what may stand in it, with MongoDB's error codes:
 * 14 TypeMismatch, 40413 for one given twice, 40414 for a missing one, 40415 for one that is unknown, 9 FailedToParse
 * for hints and updates of a wrong type. Null counts as missing. Called for commands and their statements, on any
 * thread; results are views into the document.
 *
 *   struct statement { struct bdoc q; bool multi; };
 *   static const struct field_spec specs[] = {
 *       {"q", FIELD_DOC, offsetof(struct statement, q), true}, {"multi", FIELD_BOOL, offsetof(struct statement, multi),
 * false},
 *   };
 *   if (!fields_read(doc, "update.updates", &(struct field_specs){specs, 2, false}, &statement, err)) ... */
#ifndef SHERD_COMMAND_FIELD_SPEC_H
#define SHERD_COMMAND_FIELD_SPEC_H

#include "base/err.h"
#include "bson/value.h"

enum { FIELD_SPECS_MAX = 64 }; /* in one table */

/* What a field may hold, and the type of the member that it fills. */
enum field_kind {
    FIELD_ANY,       /* struct bval; also null */
    FIELD_DOC,       /* struct bdoc */
    FIELD_ARRAY,     /* struct bdoc */
    FIELD_DOC_ARRAY, /* struct bdoc: an array of documents only */
    FIELD_STR,       /* const char *: a string without NUL (2 BadValue) */
    FIELD_BOOL,      /* bool */
    FIELD_FLAG,      /* bool: also any number, not 0 is true */
    FIELD_INT,       /* int64_t: any number, cut to a whole one */
    FIELD_INDEX,     /* int64_t: the same, 2 BadValue below 0 */
    FIELD_UUID,      /* const uint8_t *: 16 bytes */
    FIELD_HINT,      /* struct bval: a string or a document; an empty one counts as missing */
    FIELD_UPDATE,    /* struct bval: a document or an array */
    FIELD_LIMIT,     /* bool `multi`: 0 is true, 1 is false, all else 9 FailedToParse */
    FIELD_IGNORED,   /* nothing: any value */
};

struct field_spec {
    const char *name;
    enum field_kind kind;
    size_t offset; /* of the member in the struct that is filled */
    bool required;
};

struct field_specs {
    const struct field_spec *list;
    unsigned count;
    bool command; /* the first field is the command's name, generic arguments are allowed */
};

/* `prefix` stands before the names in messages. Members of missing fields keep what they hold. */
bool fields_read(struct bdoc doc, const char *prefix, const struct field_specs *specs, void *out,
                 struct err *err) ERR_WARN_UNUSED;

#endif
