/* Regular expressions of filters and expressions: PCRE2 with limits, so that a pattern from a client cannot hold a
 * thread for long. Any thread: a compiled expression is read-only; what a match needs is kept by each thread and used
 * again. Syntax: https://www.mongodb.com/docs/manual/reference/operator/query/regex/ */
#ifndef SHERD_EXPR_REGEX_H
#define SHERD_EXPR_REGEX_H

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>

enum {
    REGEX_MATCH_LIMIT = 1000000,         /* PCRE2 backtracking steps for one string */
    REGEX_DEPTH_LIMIT = 10000,           /* PCRE2 nesting depth */
    REGEX_HEAP_LIMIT_KIB = 32 * 1024,    /* of one match */
    REGEX_MAX_PATTERN_BYTES = 16 * 1024, /* PCRE2's own limit is 64 KiB; as MongoDB's */
    REGEX_MAX_CAPTURES = 1000,           /* groups of one pattern */
    REGEX_CHECK_EVERY = 16,
};

struct regex;

enum regex_outcome {
    REGEX_NO_MATCH,
    REGEX_MATCH,
    REGEX_LIMIT, /* gave up: match, depth or memory limit */
};

/* Bytes of the text; start SIZE_MAX: the group took no part. */
struct regex_span {
    size_t start;
    size_t end;
};

/* Flags i, m, s, x, u. Errors: 51091 for the pattern, 51108 for a flag. Freed by regex_free. */
bool regex_compile(const char *pattern, const char *flags, struct regex **out, struct err *err) ERR_WARN_UNUSED;
/* Accepts NULL. */
void regex_free(struct regex *regex);
/* Before each match of a loop: interrupt_check (base/interrupt.h) at every REGEX_CHECK_EVERYth call, since one match
 * may take milliseconds. */
bool regex_step(struct err *err) ERR_WARN_UNUSED;
/* Somewhere in the text. */
enum regex_outcome regex_match(const struct regex *regex, const char *text, size_t len);
/* Groups of the pattern, without the whole match. */
uint32_t regex_group_count(const struct regex *regex);
/* The first match that begins at byte `from` (above 0 only after a call with 0) or later: spans[0] is the whole, then
 * regex_group_count groups. */
enum regex_outcome regex_find(const struct regex *regex, const char *text, size_t len, size_t from,
                              struct regex_span *spans);
/* The prefix that every matching string begins with ("^abc" without flags): its length, 0 when there is none; `*whole`
 * says that the pattern asks for nothing more. The text is borrowed. */
size_t regex_literal_prefix(const char *pattern, const char *flags, const char **prefix, bool *whole);

#endif
