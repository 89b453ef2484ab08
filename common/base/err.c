#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int32_t code;
    unsigned categories;
    const char *name;
} err_table[] = {
#define ERR_CODE(name, number, categories) {number, categories, #name},
#include "base/err_codes.h"
#undef ERR_CODE
};

__attribute__((format(printf, 3, 0))) static void format_into(struct err *err, int32_t code, const char *format,
                                                              va_list args)
{
    err->code = code;
    err->details_len = 0;
    vsnprintf(err->msg, sizeof err->msg, format, args);
}

bool(err_set)(struct err *err, int32_t code, const char *format, ...)
{
    if (err == NULL)
        return false;
    va_list args;
    va_start(args, format);
    format_into(err, code, format, args);
    va_end(args);
    return false;
}

bool(err_set_errno)(struct err *err, int32_t code, int errnum, const char *format, ...)
{
    if (err == NULL)
        return false;
    va_list args;
    va_start(args, format);
    format_into(err, code, format, args);
    va_end(args);
    char reason[128];
    size_t len = strlen(err->msg);
    snprintf(err->msg + len, sizeof err->msg - len, ": %s", strerror_r(errnum, reason, sizeof reason));
    return false;
}

bool(err_prefix)(struct err *err, const char *format, ...)
{
    if (err == NULL)
        return false;
    char prefixed[ERR_MSG_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(prefixed, sizeof prefixed, format, args);
    va_end(args);
    size_t len = strlen(prefixed);
    int added = snprintf(prefixed + len, sizeof prefixed - len, ": %s", err->msg);
    if (added > 0)
        memcpy(err->msg, prefixed, sizeof err->msg);
    return false;
}

void err_set_details(struct err *err, const void *bson, uint32_t len)
{
    if (err == NULL || len > ERR_DETAILS_MAX)
        return;
    memcpy(err->details, bson, len);
    err->details_len = len;
}

const char *err_name(int32_t code, char scratch[ERR_NAME_MAX])
{
    for (size_t i = 0; i < sizeof err_table / sizeof err_table[0]; i++) {
        if (err_table[i].code == code)
            return err_table[i].name;
    }
    snprintf(scratch, ERR_NAME_MAX, "Location%d", (int)code);
    return scratch;
}

unsigned err_categories(int32_t code)
{
    for (size_t i = 0; i < sizeof err_table / sizeof err_table[0]; i++) {
        if (err_table[i].code == code)
            return err_table[i].categories;
    }
    return ERR_CAT_NONE;
}
