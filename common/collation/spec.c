#include "collation/spec.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum {
    ERR_CODE_FIELD_TWICE = 40413,
    ERR_CODE_FIELD_MISSING = 40414,
    ERR_CODE_FIELD_UNKNOWN = 40415,
    ERR_CODE_OUT_OF_RANGE = 51024,
    STRENGTH_MIN = 1,
    STRENGTH_MAX = 5,
};

struct word {
    const char *text;
    int value;
};

static const struct word case_first_words[] = {
    {"off", UCOL_OFF}, {"upper", UCOL_UPPER_FIRST}, {"lower", UCOL_LOWER_FIRST}, {NULL, 0}};
static const struct word alternate_words[] = {
    {"non-ignorable", UCOL_NON_IGNORABLE}, {"shifted", UCOL_SHIFTED}, {NULL, 0}};
static const struct word max_variable_words[] = {
    {"punct", UCOL_REORDER_CODE_PUNCTUATION}, {"space", UCOL_REORDER_CODE_SPACE}, {NULL, 0}};

/* In the order in which they are printed. `words` NULL: a flag, but for strength. */
static const struct option {
    const char *name;
    UColAttribute attribute; /* none for maxVariable */
    const struct word *words;
} options[OPTION_COUNT] = {
    [OPTION_CASE_LEVEL] = {"caseLevel", UCOL_CASE_LEVEL, NULL},
    [OPTION_CASE_FIRST] = {"caseFirst", UCOL_CASE_FIRST, case_first_words},
    [OPTION_STRENGTH] = {"strength", UCOL_STRENGTH, NULL},
    [OPTION_NUMERIC_ORDERING] = {"numericOrdering", UCOL_NUMERIC_COLLATION, NULL},
    [OPTION_ALTERNATE] = {"alternate", UCOL_ALTERNATE_HANDLING, alternate_words},
    [OPTION_MAX_VARIABLE] = {"maxVariable", UCOL_ATTRIBUTE_COUNT, max_variable_words},
    [OPTION_NORMALIZATION] = {"normalization", UCOL_NORMALIZATION_MODE, NULL},
    [OPTION_BACKWARDS] = {"backwards", UCOL_FRENCH_COLLATION, NULL},
};

static const UColAttributeValue strengths[STRENGTH_MAX + 1] = {UCOL_DEFAULT,  UCOL_PRIMARY,    UCOL_SECONDARY,
                                                               UCOL_TERTIARY, UCOL_QUATERNARY, UCOL_IDENTICAL};

/* --- reading ---------------------------------------------------------------------------------------------------- */

static bool wrong_type(const struct belem *field, const char *wanted, struct err *err)
{
    return err_set(err, ERR_TypeMismatch, "BSON field 'collation.%s' is the wrong type '%s', expected type '%s'",
                   field->key, bval_type_name(field->val.type), wanted);
}

/* A string of at most `max_len` bytes without NULs. */
static bool read_text(const struct belem *field, char *out, uint32_t max_len, struct err *err)
{
    if (field->val.type != BT_STRING)
        return wrong_type(field, "string", err);
    uint32_t len;
    const char *text = bval_str(&field->val, &len);
    if (memchr(text, 0, len) != NULL)
        return err_set(err, ERR_BadValue, "Field '%s' of a collation cannot contain a null byte", field->key);
    if (len > max_len)
        return err_set(err, ERR_BadValue, "Field '%s' of a collation is longer than %u bytes", field->key, max_len);
    memcpy(out, text, len);
    out[len] = 0;
    return true;
}

static bool read_word(const struct belem *field, const struct word *words, int *out, struct err *err)
{
    if (field->val.type != BT_STRING)
        return wrong_type(field, "string", err);
    for (; words->text != NULL; words++) {
        if (bval_is_str(&field->val, words->text)) {
            *out = words->value;
            return true;
        }
    }
    uint32_t len;
    const char *text = bval_str(&field->val, &len);
    return err_set(err, ERR_BadValue, "Enumeration value '%.*s' for field 'collation.%s' is not a valid value.",
                   len > 100 ? 100 : (int)len, text, field->key);
}

static bool read_strength(const struct belem *field, int *out, struct err *err)
{
    int64_t strength;
    if (!bval_is_number(&field->val))
        return wrong_type(field, "int", err);
    if (!bval_to_i64(&field->val, &strength))
        return err_set(err, ERR_BadValue, "BSON field 'strength' must be a whole number");
    if (strength < STRENGTH_MIN)
        return err_set(err, ERR_CODE_OUT_OF_RANGE, "BSON field 'strength' value must be >= 1, actual value '%lld'",
                       (long long)strength);
    if (strength > STRENGTH_MAX)
        return err_set(err, ERR_CODE_OUT_OF_RANGE, "BSON field 'strength' value must be <= 5, actual value '%lld'",
                       (long long)strength);
    *out = strengths[strength];
    return true;
}

static bool read_option(const struct belem *field, struct collation_spec *out, struct err *err)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        if (strcmp(option->name, field->key) != 0)
            continue;
        if (field->val.type == BT_NULL)
            return true;
        if (i == OPTION_STRENGTH)
            return read_strength(field, &out->values[i], err);
        if (option->words != NULL)
            return read_word(field, option->words, &out->values[i], err);
        if (field->val.type != BT_BOOL)
            return wrong_type(field, "bool", err);
        out->values[i] = bval_bool(&field->val) ? UCOL_ON : UCOL_OFF;
        return true;
    }
    if (strcmp(field->key, "version") == 0)
        return read_text(field, out->version, COLLATION_VERSION_MAX, err);
    return err_set(err, ERR_CODE_FIELD_UNKNOWN, "BSON field 'collation.%.100s' is an unknown field.", field->key);
}

static bool appears_before(struct bdoc doc, const struct belem *field)
{
    struct bval first;
    return bdoc_find_n(doc, field->key, field->key_len, &first) && first.data != field->val.data;
}

bool collation_spec_read(struct bdoc doc, struct collation_spec *out, struct err *err)
{
    struct biter iter;
    struct belem field;
    bool has_locale = false;
    *out = (struct collation_spec){.field_count = 0};
    for (int i = 0; i < OPTION_COUNT; i++)
        out->values[i] = UCOL_DEFAULT;
    biter_init(&iter, doc);
    while (biter_next(&iter, &field)) {
        if (appears_before(doc, &field))
            return err_set(err, ERR_CODE_FIELD_TWICE, "BSON field 'collation.%.100s' is a duplicate field", field.key);
        if (strcmp(field.key, "locale") != 0) {
            out->field_count++;
            if (!read_option(&field, out, err))
                return false;
            continue;
        }
        if (!read_text(&field, out->locale, COLLATION_LOCALE_MAX_BYTES, err))
            return false;
        has_locale = true;
    }
    if (!has_locale)
        return err_set(err, ERR_CODE_FIELD_MISSING, "BSON field 'collation.locale' is missing but a required field");
    if (out->locale[0] == 0)
        return err_set(err, ERR_BadValue, "Field 'locale' of a collation cannot be the empty string");
    if (collation_spec_is_simple(out) && out->field_count > 0)
        return err_set(err, ERR_FailedToParse,
                       "If locale is \"simple\", a collation must have no other fields, but it has %u",
                       out->field_count);
    return true;
}

bool collation_spec_is_simple(const struct collation_spec *spec)
{
    return strcmp(spec->locale, "simple") == 0;
}

/* --- what ICU makes of it ----------------------------------------------------------------------------------------- */

static bool refused(const char *what, UErrorCode status, struct err *err)
{
    return err_set(err, ERR_OperationFailed, "ICU can't %s of a collation: %s", what, u_errorName(status));
}

static bool set_options(UCollator *collator, const struct collation_spec *spec, struct err *err)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        UErrorCode status = U_ZERO_ERROR;
        if (spec->values[i] == UCOL_DEFAULT)
            continue;
        if (i == OPTION_MAX_VARIABLE)
            ucol_setMaxVariable(collator, (UColReorderCode)spec->values[i], &status);
        else
            ucol_setAttribute(collator, options[i].attribute, (UColAttributeValue)spec->values[i], &status);
        if (U_FAILURE(status))
            return refused("set an option", status, err);
    }
    return true;
}

static bool get_options(const UCollator *collator, struct collation_spec *spec, struct err *err)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        UErrorCode status = U_ZERO_ERROR;
        if (spec->values[i] != UCOL_DEFAULT)
            continue;
        spec->values[i] = i == OPTION_MAX_VARIABLE ? (int)ucol_getMaxVariable(collator)
                                                   : (int)ucol_getAttribute(collator, options[i].attribute, &status);
        if (U_FAILURE(status))
            return refused("read an option", status, err);
    }
    return true;
}

/* ICU falls back silently from what it doesn't know to something nearer the root, and brings names into a form of its
 * own: only a name that comes back unchanged is taken. */
static bool check_locale(const UCollator *collator, const struct collation_spec *spec, struct err *err)
{
    UErrorCode status = U_ZERO_ERROR;
    const char *found = ucol_getLocaleByType(collator, ULOC_VALID_LOCALE, &status);
    if (U_FAILURE(status) || found == NULL)
        return refused("tell the locale", status, err);
    if (strcmp(found, spec->locale) == 0)
        return true;
    if (found[0] == 0 || strcmp(found, "root") == 0)
        return err_set(err, ERR_BadValue, "Field 'locale' is invalid in: { locale: \"%s\" }", spec->locale);
    return err_set(err, ERR_BadValue, "Field 'locale' is invalid in: { locale: \"%s\" }. Did you mean '%s'?",
                   spec->locale, found);
}

static bool check_together(const struct collation_spec *spec, struct err *err)
{
    int strength = spec->values[OPTION_STRENGTH];
    if (spec->values[OPTION_BACKWARDS] == UCOL_ON && strength == UCOL_PRIMARY)
        return err_set(err, ERR_BadValue, "'backwards' is invalid with 'strength' of 1 in a collation");
    if (spec->values[OPTION_CASE_FIRST] != UCOL_OFF && spec->values[OPTION_CASE_LEVEL] == UCOL_OFF &&
        (strength == UCOL_PRIMARY || strength == UCOL_SECONDARY))
        return err_set(
            err, ERR_BadValue,
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in a collation");
    return true;
}

bool collation_spec_open(struct collation_spec *spec, UCollator **out, struct err *err)
{
    UErrorCode status = U_ZERO_ERROR;
    UCollator *collator = ucol_open(spec->locale, &status);
    if (U_FAILURE(status) || collator == NULL)
        return err_set(err, ERR_BadValue, "Field 'locale' is invalid in: { locale: \"%s\" }: %s", spec->locale,
                       u_errorName(status));
    if (check_locale(collator, spec, err) && set_options(collator, spec, err) && get_options(collator, spec, err) &&
        check_together(spec, err)) {
        *out = collator;
        return true;
    }
    ucol_close(collator);
    return false;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static int strength_number(int value)
{
    for (int i = STRENGTH_MIN; i <= STRENGTH_MAX; i++)
        if ((int)strengths[i] == value)
            return i;
    UNREACHABLE();
}

/* Place of the value among the option's words. */
static int word_number(const struct word *words, int value)
{
    for (int i = 0; words[i].text != NULL; i++)
        if (words[i].value == value)
            return i;
    return 0; /* a locale that shifts more than punctuation by itself: none does, and it has no word */
}

void collation_spec_name(const struct collation_spec *spec, char name[COLLATION_NAME_MAX])
{
    int digits[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (i == OPTION_STRENGTH)
            digits[i] = strength_number(spec->values[i]);
        else if (options[i].words != NULL)
            digits[i] = word_number(options[i].words, spec->values[i]);
        else
            digits[i] = spec->values[i] == UCOL_ON;
    }
    snprintf(name, COLLATION_NAME_MAX, "%s;c%df%ds%dn%da%dm%dz%db%d", spec->locale, digits[OPTION_CASE_LEVEL],
             digits[OPTION_CASE_FIRST], digits[OPTION_STRENGTH], digits[OPTION_NUMERIC_ORDERING],
             digits[OPTION_ALTERNATE], digits[OPTION_MAX_VARIABLE], digits[OPTION_NORMALIZATION],
             digits[OPTION_BACKWARDS]);
}

void collation_spec_append(const struct collation_spec *spec, bson_t *out)
{
    BSON_APPEND_UTF8(out, "locale", spec->locale);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        if (i == OPTION_STRENGTH)
            BSON_APPEND_INT32(out, option->name, strength_number(spec->values[i]));
        else if (option->words != NULL)
            BSON_APPEND_UTF8(out, option->name, option->words[word_number(option->words, spec->values[i])].text);
        else
            BSON_APPEND_BOOL(out, option->name, spec->values[i] == UCOL_ON);
    }
    BSON_APPEND_UTF8(out, "version", collation_version());
}
