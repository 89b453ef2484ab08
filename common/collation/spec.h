/* The options of a collation: read from a specification, filled in from the locale, written in one form. Private to
 * this folder. Pure functions for any thread. */
#ifndef SHERD_COLLATION_SPEC_H
#define SHERD_COLLATION_SPEC_H

#include "collation/collation.h"

#include <unicode/ucol.h>

enum {
    COLLATION_NAME_MAX = COLLATION_LOCALE_MAX_BYTES + 32,
    COLLATION_VERSION_MAX = 31, /* bytes of a version text that is compared */
};

enum collation_option {
    OPTION_CASE_LEVEL,
    OPTION_CASE_FIRST,
    OPTION_STRENGTH,
    OPTION_NUMERIC_ORDERING,
    OPTION_ALTERNATE,
    OPTION_MAX_VARIABLE,
    OPTION_NORMALIZATION,
    OPTION_BACKWARDS,
    OPTION_COUNT,
};

struct collation_spec {
    char locale[COLLATION_LOCALE_MAX_BYTES + 1];
    char version[COLLATION_VERSION_MAX + 1]; /* empty: none was given */
    /* ICU's value of each option; UCOL_DEFAULT: as the locale has it. A flag is UCOL_ON or UCOL_OFF, maxVariable a
     * UCOL_REORDER_CODE_*. */
    int values[OPTION_COUNT];
    uint32_t field_count; /* besides locale */
};

/* Everything but what only ICU knows. */
bool collation_spec_read(struct bdoc doc, struct collation_spec *out, struct err *err) ERR_WARN_UNUSED;
/* {locale: "simple"} */
bool collation_spec_is_simple(const struct collation_spec *spec);
/* An open collator with the options applied; the others are read back into `spec`, which is complete then. Errors: 2
 * for a locale that ICU doesn't have under exactly that name, and for options that contradict each other. */
bool collation_spec_open(struct collation_spec *spec, UCollator **out, struct err *err) ERR_WARN_UNUSED;
/* Of a complete one: a short text that is equal for equal collations only. */
void collation_spec_name(const struct collation_spec *spec, char name[COLLATION_NAME_MAX]);
void collation_spec_append(const struct collation_spec *spec, bson_t *out);

#endif
