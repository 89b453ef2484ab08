#define PCRE2_CODE_UNIT_WIDTH 8

#include "expr/regex.h"

#include "base/mem.h"
#include "query/filter.h"

#include <pcre2.h>
#include <string.h>

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
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
    if (len > FILTER_REGEX_MAX_PATTERN_BYTES)
        return err_set(err, REGEX_BAD_PATTERN, "Regular expression is invalid: pattern is too long");
    int number;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &number, &offset, NULL);
    if (code == NULL) {
        PCRE2_UCHAR text[128];
        pcre2_get_error_message(number, text, sizeof text);
        return err_set(err, REGEX_BAD_PATTERN, "Regular expression is invalid: %s", (const char *)text);
    }
    struct regex *regex = mem_alloc(sizeof *regex);
    regex->code = code;
    regex->limits = pcre2_match_context_create(NULL);
    if (regex->limits != NULL) {
        pcre2_set_match_limit(regex->limits, FILTER_REGEX_MATCH_LIMIT);
        pcre2_set_depth_limit(regex->limits, FILTER_REGEX_DEPTH_LIMIT);
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

enum regex_outcome regex_match(const struct regex *regex, const char *text, size_t len)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (data == NULL)
        return REGEX_LIMIT;
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text, len, 0, 0, data, regex->limits);
    pcre2_match_data_free(data);
    if (rc >= 0)
        return REGEX_MATCH;
    if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT)
        return REGEX_LIMIT;
    return REGEX_NO_MATCH;
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
