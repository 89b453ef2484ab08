#define PCRE2_CODE_UNIT_WIDTH 8

#include "expr/regex.h"

#include "base/interrupt.h"
#include "base/mem.h"

#include <pcre2.h>
#include <pthread.h>
#include <string.h>

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
    uint32_t groups;
};

enum {
    REGEX_BAD_PATTERN = 51091,
    REGEX_BAD_FLAG = 51108,
};

static bool parse_flags(const char *flags, uint32_t *options, struct err *err)
{
    *options = PCRE2_UTF;
    for (; *flags != 0; flags++) {
        switch (*flags) {
        case 'i':
            *options |= PCRE2_CASELESS;
            break;
        case 'm':
            *options |= PCRE2_MULTILINE;
            break;
        case 's':
            *options |= PCRE2_DOTALL;
            break;
        case 'x':
            *options |= PCRE2_EXTENDED;
            break;
        case 'u':
            break;
        default:
            return err_set(err, REGEX_BAD_FLAG, "invalid flag in regex options: %c", *flags);
        }
    }
    return true;
}

bool regex_compile(const char *pattern, const char *flags, struct regex **out, struct err *err)
{
    uint32_t options;
    if (!parse_flags(flags, &options, err))
        return false;
    size_t len = strlen(pattern);
    if (len > REGEX_MAX_PATTERN_BYTES)
        return err_set(err, REGEX_BAD_PATTERN, "Regular expression is invalid: pattern is too long");
    int number;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &number, &offset, NULL);
    if (code == NULL) {
        PCRE2_UCHAR text[128];
        pcre2_get_error_message(number, text, sizeof text);
        return err_set(err, REGEX_BAD_PATTERN, "Regular expression is invalid: %s", (const char *)text);
    }
    uint32_t groups = 0;
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups > REGEX_MAX_CAPTURES) {
        pcre2_code_free(code);
        return err_set(err, REGEX_BAD_PATTERN, "Regular expression is invalid: more than %d groups",
                       REGEX_MAX_CAPTURES);
    }
    struct regex *regex = mem_alloc(sizeof *regex);
    regex->code = code;
    regex->groups = groups;
    regex->limits = pcre2_match_context_create(NULL);
    if (regex->limits != NULL) {
        pcre2_set_match_limit(regex->limits, REGEX_MATCH_LIMIT);
        pcre2_set_depth_limit(regex->limits, REGEX_DEPTH_LIMIT);
        pcre2_set_heap_limit(regex->limits, REGEX_HEAP_LIMIT_KIB);
    }
    *out = regex;
    return true;
}

void regex_free(struct regex *regex)
{
    if (regex == NULL)
        return;
    pcre2_match_context_free(regex->limits);
    pcre2_code_free(regex->code);
    mem_free(regex);
}

/* What a match works in; it keeps its memory from one match to the next, so that a scan allocates once. */
static _Thread_local pcre2_match_data *thread_data;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void free_thread_data(void *data)
{
    pcre2_match_data_free(data);
}

static void make_thread_key(void)
{
    pthread_key_create(&thread_key, free_thread_data);
}

static pcre2_match_data *match_data(void)
{
    if (thread_data == NULL) {
        pthread_once(&thread_once, make_thread_key);
        thread_data = pcre2_match_data_create(REGEX_MAX_CAPTURES + 1, NULL);
        pthread_setspecific(thread_key, thread_data);
    }
    return thread_data;
}

static enum regex_outcome run(const struct regex *regex, const char *text, size_t len, size_t from,
                              pcre2_match_data *data)
{
    if (data == NULL)
        return REGEX_LIMIT;
    /* Whoever goes on within a text has had it checked at its beginning. */
    uint32_t options = from > 0 ? PCRE2_NO_UTF_CHECK : 0;
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text, len, from, options, data, regex->limits);
    if (rc >= 0)
        return REGEX_MATCH;
    if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT ||
        rc == PCRE2_ERROR_NOMEMORY)
        return REGEX_LIMIT;
    return REGEX_NO_MATCH;
}

bool regex_step(struct err *err)
{
    static _Thread_local unsigned calls;
    return ++calls % REGEX_CHECK_EVERY != 0 || interrupt_check(err);
}

enum regex_outcome regex_match(const struct regex *regex, const char *text, size_t len)
{
    return run(regex, text, len, 0, match_data());
}

uint32_t regex_group_count(const struct regex *regex)
{
    return regex->groups;
}

enum regex_outcome regex_find(const struct regex *regex, const char *text, size_t len, size_t from,
                              struct regex_span *spans)
{
    pcre2_match_data *data = match_data();
    enum regex_outcome outcome = run(regex, text, len, from, data);
    if (outcome != REGEX_MATCH)
        return outcome;
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(data);
    for (uint32_t i = 0; i <= regex->groups; i++) {
        bool set = offsets[2 * i] != PCRE2_UNSET && offsets[2 * i] <= offsets[2 * i + 1];
        spans[i] = set ? (struct regex_span){offsets[2 * i], offsets[2 * i + 1]} : (struct regex_span){SIZE_MAX, 0};
    }
    return REGEX_MATCH;
}

size_t regex_literal_prefix(const char *pattern, const char *flags, const char **prefix, bool *whole)
{
    static const char special[] = "\\^$.|?*+()[]{}";
    *whole = false;
    if (flags[0] != 0 || pattern[0] != '^')
        return 0;
    if (strchr(pattern, '|') != NULL)
        return 0;
    *prefix = pattern + 1;
    size_t len = strcspn(*prefix, special);
    char next = (*prefix)[len];
    *whole = next == 0;
    if (next == '?' || next == '*' || next == '{') {
        /* The quantifier makes the last character optional; a character of several bytes goes whole. */
        while (len > 0 && ((unsigned char)(*prefix)[len - 1] & 0xC0) == 0x80)
            len--;
        if (len > 0)
            len--;
    }
    return len;
}
