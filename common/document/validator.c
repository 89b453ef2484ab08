#include "document/validator.h"

#include "base/interrupt.h"
#include "base/log.h"
#include "query/explain_failure.h"

#include <string.h>

enum {
    /* Of errInfo.details: an error's details hold the failing _id and the message's surroundings, too. */
    VALIDATOR_EXPLAIN_MAX_BYTES = 3 * 1024,
    VALIDATOR_ID_MAX_BYTES = 512, /* a longer failing _id is left out */
};

bool validator_is_on(const struct validator *validator)
{
    return validator->source.data != NULL && validator->level != VALIDATOR_OFF;
}

bool validator_needs_leader(const struct validator *validator)
{
    return validator_is_on(validator) && !validator->deterministic;
}

bool validator_compile(struct arena *arena, const struct validator *validator, const struct expr_env *env,
                       const struct filter **out, struct err *err)
{
    struct filter *filter;
    if (!filter_compile(arena, validator->source, env, &filter, err))
        return err_prefix(err, "the collection's validator can't be read");
    *out = filter;
    return true;
}

/* False, and *err, when the operation has to end: then nobody knows. An expression that fails doesn't let the document
 * pass. */
static bool test(const struct filter *filter, struct bdoc doc, bool *matched, struct err *err)
{
    struct err failed;
    if (filter_eval(filter, doc, NULL, matched, &failed))
        return true;
    *matched = false;
    return interrupt_check(err);
}

static void append_details(const struct filter *filter, struct bdoc doc, bson_t *info)
{
    struct buf details = BUF_INIT;
    struct bval id;
    if (bdoc_find(doc, "_id", &id) && id.len <= VALIDATOR_ID_MAX_BYTES)
        bval_append(info, "failingDocumentId", -1, &id);
    filter_explain_failure(filter, doc, VALIDATOR_EXPLAIN_MAX_BYTES, &details);
    if (details.len > 0) {
        struct bval val = bval_from_doc((struct bdoc){.data = details.data, .len = (uint32_t)details.len});
        bval_append(info, "details", -1, &val);
    }
    buf_deinit(&details);
}

static bool refuse(const struct filter *filter, struct bdoc doc, struct err *err)
{
    bson_t details = BSON_INITIALIZER;
    bson_t info;
    BSON_APPEND_DOCUMENT_BEGIN(&details, "errInfo", &info);
    append_details(filter, doc, &info);
    bson_append_document_end(&details, &info);
    (void)err_set(err, ERR_DocumentValidationFailure, "Document failed validation");
    err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
    return false;
}

static void log_failure(const struct filter *filter, struct bdoc doc)
{
    bson_t info = BSON_INITIALIZER;
    append_details(filter, doc, &info);
    char *text = bson_as_relaxed_extended_json(&info, NULL);
    log_warn("STORAGE", 5320, "Document would fail validation", LOG_STR("errInfo", text == NULL ? "" : text));
    bson_free(text);
    bson_destroy(&info);
}

bool validator_check(const struct validator *validator, const struct filter *filter, struct bdoc before,
                     struct bdoc after, struct err *err)
{
    bool fits;
    bool did_fit = true;
    if (!test(filter, after, &fits, err))
        return false;
    if (!fits && validator->level == VALIDATOR_MODERATE && before.data != NULL && !test(filter, before, &did_fit, err))
        return false;
    if (fits || !did_fit)
        return true;
    if (validator->action != VALIDATOR_ERROR)
        log_failure(filter, after);
    return validator->action == VALIDATOR_WARN || refuse(filter, after, err);
}

enum validator_verdict validator_apply(const struct validator *validator, uint64_t tested, struct bdoc before,
                                       struct bdoc after, struct err *err)
{
    if (tested == VALIDATOR_BYPASSED || !validator_is_on(validator))
        return VALIDATOR_PASS;
    if (!validator->deterministic)
        return tested == validator->version ? VALIDATOR_PASS : VALIDATOR_REDO;
    return validator_check(validator, validator->filter, before, after, err) ? VALIDATOR_PASS : VALIDATOR_REFUSE;
}

bool validator_level_parse(const char *text, enum validator_level *out)
{
    static const char *const names[] = {"strict", "moderate", "off"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum validator_level)i;
            return true;
        }
    }
    return false;
}

bool validator_action_parse(const char *text, enum validator_action *out)
{
    static const char *const names[] = {"error", "warn", "errorAndLog"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum validator_action)i;
            return true;
        }
    }
    return false;
}
