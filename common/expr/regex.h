/* Regular expressions of filters and expressions: PCRE2 with limits, so that a pattern from a client cannot hold a
 * thread for long. Any thread: a compiled expression is read-only; each match takes a small block from the heap and
 * gives it back. Syntax: https://www.mongodb.com/docs/manual/reference/operator/query/regex/ */
#ifndef SHERD_QUERY_REGEX_H
#define SHERD_QUERY_REGEX_H

#include "base/err.h"

#include <stddef.h>

struct regex;

enum regex_outcome {
    REGEX_NO_MATCH,
    REGEX_MATCH,
    REGEX_LIMIT, /* gave up: match or depth limit */
};

/* Flags i, m, s, x, u. Errors: 51091 for the pattern, 51108 for a flag. Freed by regex_free. */
bool regex_compile(const char *pattern, const char *flags, struct regex **out, struct err *err) ERR_WARN_UNUSED;
/* Accepts NULL. */
void regex_free(struct regex *regex);
enum regex_outcome regex_match(const struct regex *regex, const char *text, size_t len);
/* The prefix that every matching string begins with ("^abc" without flags): its length, 0 when there is none; `*whole`
 * says that the pattern asks for nothing more. The text is borrowed. */
size_t regex_literal_prefix(const char *pattern, const char *flags, const char **prefix, bool *whole);

#endif
