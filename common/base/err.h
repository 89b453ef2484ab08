/* Errors as values. A fallible function returns bool and takes a struct err * last; it fills it exactly when it returns
 * false. The code is MongoDB's number; names and categories are in base/err_codes.h. Translate a library's own codes
 * inside the folder that uses the library. Log an error once, where it is answered. */
#ifndef SHERD_BASE_ERR_H
#define SHERD_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#define ERR_WARN_UNUSED __attribute__((warn_unused_result))

enum err_code {
#define ERR_CODE(name, number, categories) ERR_##name = number,
#include "base/err_codes.h"
#undef ERR_CODE
};

/* What an error means to whoever may try again; several may be set. */
enum err_category {
    ERR_CAT_NONE = 0,
    ERR_CAT_RETRYABLE = 1 << 0,   /* nothing lasting happened, or a repeat is harmless */
    ERR_CAT_NOT_PRIMARY = 1 << 1, /* another member leads */
    ERR_CAT_NETWORK = 1 << 2,
    ERR_CAT_STALE = 1 << 3,   /* the sender's routing table is old */
    ERR_CAT_UNKNOWN = 1 << 4, /* the operation may or may not have happened */
};

enum {
    ERR_MSG_MAX = 512,
    ERR_DETAILS_MAX = 4096,
};

struct err {
    int32_t code;                     /* enum err_code, or another number of MongoDB's */
    uint32_t details_len;             /* 0: none */
    char msg[ERR_MSG_MAX];            /* one line, no trailing newline */
    uint8_t details[ERR_DETAILS_MAX]; /* a BSON document whose fields go into the error reply beside code and errmsg */
};

/* Fills `err` (NULL is allowed: the caller doesn't care) and returns false, for `return err_set(...)`. */
bool err_set(struct err *err, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with errno's text appended. */
bool err_set_errno(struct err *err, int32_t code, int errnum, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "context: " before the message; returns false. */
bool err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The compiler sees through these that the result is false, so it doesn't warn of outputs that only a success sets. */
static inline bool err_false(bool result)
{
    (void)result;
    return false;
}

#define err_set(...)       err_false(err_set(__VA_ARGS__))
#define err_set_errno(...) err_false(err_set_errno(__VA_ARGS__))
#define err_prefix(...)    err_false(err_prefix(__VA_ARGS__))

/* Attaches a copy of a BSON document. One that is larger than ERR_DETAILS_MAX is left out. */
void err_set_details(struct err *err, const void *bson, uint32_t len);
/* Enough for every name, with its NUL. */
#define ERR_NAME_MAX 64
/* "NamespaceNotFound"; a code without a name of its own is called "Location40415", written to `scratch`. */
const char *err_name(int32_t code, char scratch[ERR_NAME_MAX]);
/* A set of enum err_category. */
unsigned err_categories(int32_t code);

#endif
