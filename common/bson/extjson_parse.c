#include "bson/extjson.h"
#include "bson/extjson_types.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Type wrappers nest at most this deep inside each other ({"$dbPointer": {"$id": {"$oid": ...}}}). */
enum { WRAPPER_LEVELS = 3 };

struct parser {
    const char *start;
    const char *at;
    const char *end;
    struct err *err;
};

static bool parse_value(struct parser *parser, bson_t *to, const struct buf *key, int depth);

static bool fail(const struct parser *parser, const char *what)
{
    return err_set(parser->err, ERR_FailedToParse, "invalid JSON at byte %zu: %s", (size_t)(parser->at - parser->start),
                   what);
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->end && memchr(" \t\r\n", *parser->at, 4) != NULL)
        parser->at++;
}

/* Skips white space and the character `wanted`, if it is there. */
static bool take(struct parser *parser, char wanted)
{
    skip_space(parser);
    if (parser->at == parser->end || *parser->at != wanted)
        return false;
    parser->at++;
    return true;
}

/* --- strings --------------------------------------------------------------------------------------------------------
 */

static bool parse_hex4(struct parser *parser, uint32_t *out)
{
    *out = 0;
    if (parser->end - parser->at < 4)
        return fail(parser, "an unfinished escape");
    for (int i = 0; i < 4; i++) {
        char digit = *parser->at++;
        uint32_t value;
        if (digit >= '0' && digit <= '9')
            value = (uint32_t)(digit - '0');
        else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
            value = (uint32_t)((digit | 0x20) - 'a' + 10);
        else
            return fail(parser, "an escape needs four hexadecimal digits");
        *out = *out << 4 | value;
    }
    return true;
}

static void append_utf8(struct buf *out, uint32_t code)
{
    if (code < 0x80) {
        buf_append_u8(out, (uint8_t)code);
        return;
    }
    if (code < 0x800) {
        buf_append_u8(out, (uint8_t)(0xc0 | code >> 6));
    } else if (code < 0x10000) {
        buf_append_u8(out, (uint8_t)(0xe0 | code >> 12));
        buf_append_u8(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
    } else {
        buf_append_u8(out, (uint8_t)(0xf0 | code >> 18));
        buf_append_u8(out, (uint8_t)(0x80 | (code >> 12 & 0x3f)));
        buf_append_u8(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
    }
    buf_append_u8(out, (uint8_t)(0x80 | (code & 0x3f)));
}

/* After "\u". */
static bool parse_unicode(struct parser *parser, struct buf *out)
{
    uint32_t code;
    if (!parse_hex4(parser, &code))
        return false;
    if (code >= 0xd800 && code < 0xe000) {
        uint32_t low;
        if (code >= 0xdc00 || parser->end - parser->at < 2 || parser->at[0] != '\\' || parser->at[1] != 'u')
            return fail(parser, "half of a surrogate pair");
        parser->at += 2;
        if (!parse_hex4(parser, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return fail(parser, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, code);
    return true;
}

/* After the backslash. */
static bool parse_escape(struct parser *parser, struct buf *out)
{
    static const char named[] = "b\bf\fn\nr\rt\t\"\"\\\\//";
    if (parser->at == parser->end)
        return fail(parser, "an unfinished escape");
    char letter = *parser->at++;
    if (letter == 'u')
        return parse_unicode(parser, out);
    for (const char *at = named; *at != 0; at += 2) {
        if (*at == letter) {
            buf_append_u8(out, (uint8_t)at[1]);
            return true;
        }
    }
    return fail(parser, "an unknown escape");
}

/* After the opening quote; replaces what `out` holds, and adds a NUL behind it that is not counted. */
static bool parse_string(struct parser *parser, struct buf *out)
{
    buf_clear(out);
    for (;;) {
        const char *run = parser->at;
        while (parser->at < parser->end && *parser->at != '"' && *parser->at != '\\' &&
               (unsigned char)*parser->at >= 0x20)
            parser->at++;
        buf_append(out, run, (size_t)(parser->at - run));
        if (parser->at == parser->end)
            return fail(parser, "a string without an end");
        if (*parser->at == '"')
            break;
        if (*parser->at != '\\')
            return fail(parser, "a control character in a string");
        parser->at++;
        if (!parse_escape(parser, out))
            return false;
    }
    parser->at++;
    *buf_reserve(out, 1) = 0;
    return true;
}

/* A field's name and the colon. */
static bool parse_key(struct parser *parser, struct buf *key)
{
    if (!take(parser, '"'))
        return fail(parser, "a field name in quotes is missing");
    if (!parse_string(parser, key))
        return false;
    if (memchr(key->data, 0, key->len) != NULL)
        return fail(parser, "a NUL in a field name");
    return take(parser, ':') || fail(parser, "':' is missing");
}

/* --- numbers and words
 * ------------------------------------------------------------------------------------------------ */

static size_t skip_digits(struct parser *parser)
{
    const char *start = parser->at;
    while (parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9')
        parser->at++;
    return (size_t)(parser->at - start);
}

static bool take_number_text(struct parser *parser, bool *whole)
{
    *whole = true;
    if (parser->at < parser->end && *parser->at == '-')
        parser->at++;
    bool zero = parser->at < parser->end && *parser->at == '0';
    size_t digits = skip_digits(parser);
    if (digits == 0 || (zero && digits > 1))
        return false;
    if (parser->at < parser->end && *parser->at == '.') {
        *whole = false;
        parser->at++;
        if (skip_digits(parser) == 0)
            return false;
    }
    if (parser->at < parser->end && (*parser->at | 0x20) == 'e') {
        *whole = false;
        parser->at++;
        if (parser->at < parser->end && (*parser->at == '+' || *parser->at == '-'))
            parser->at++;
        if (skip_digits(parser) == 0)
            return false;
    }
    return true;
}

static bool parse_number(struct parser *parser, bson_t *to, const struct buf *key)
{
    const char *start = parser->at;
    bool whole;
    if (!take_number_text(parser, &whole))
        return fail(parser, "no value, or a malformed number");
    char small[64];
    size_t len = (size_t)(parser->at - start);
    char *text = len < sizeof small ? small : mem_alloc(len + 1);
    memcpy(text, start, len);
    text[len] = 0;
    errno = 0;
    long long integer = whole ? strtoll(text, NULL, 10) : 0;
    bool ok;
    if (whole && errno == 0 && integer >= INT32_MIN && integer <= INT32_MAX)
        ok = bson_append_int32(to, (const char *)key->data, (int)key->len, (int32_t)integer);
    else if (whole && errno == 0)
        ok = bson_append_int64(to, (const char *)key->data, (int)key->len, integer);
    else
        ok = bson_append_double(to, (const char *)key->data, (int)key->len, strtod(text, NULL));
    if (text != small)
        mem_free(text);
    return ok || fail(parser, "too large");
}

static bool take_word(struct parser *parser, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(parser->end - parser->at) < len || memcmp(parser->at, word, len) != 0)
        return false;
    parser->at += len;
    return true;
}

static bool parse_word_or_number(struct parser *parser, bson_t *to, const struct buf *key)
{
    const char *name = (const char *)key->data;
    if (take_word(parser, "true"))
        return bson_append_bool(to, name, (int)key->len, true);
    if (take_word(parser, "false"))
        return bson_append_bool(to, name, (int)key->len, false);
    if (take_word(parser, "null"))
        return bson_append_null(to, name, (int)key->len);
    return parse_number(parser, to, key);
}

/* --- documents and arrays -------------------------------------------------------------------------------------------
 */

/* The fields up to the closing brace; `key` holds the first one's name already. */
static bool parse_fields(struct parser *parser, bson_t *to, struct buf *key, int depth)
{
    for (;;) {
        if (!parse_value(parser, to, key, depth))
            return false;
        if (take(parser, '}'))
            return true;
        if (!take(parser, ','))
            return fail(parser, "',' or '}' is missing");
        if (!parse_key(parser, key))
            return false;
    }
}

static bool parse_wrapper(struct parser *parser, bson_t *to, const struct buf *key, struct buf *first, int depth)
{
    const char *start = parser->at;
    bson_t wrapper = BSON_INITIALIZER;
    bool ok = parse_fields(parser, &wrapper, first, depth);
    if (ok && !extjson_append_unwrapped(to, (const char *)key->data, (int)key->len, bdoc_of(&wrapper), parser->err)) {
        ok = err_prefix(parser->err, "invalid JSON at byte %zu", (size_t)(start - parser->start));
    }
    bson_destroy(&wrapper);
    return ok;
}

/* After the opening brace. */
static bool parse_document(struct parser *parser, bson_t *to, const struct buf *key, int depth)
{
    bson_t child;
    if (take(parser, '}'))
        return bson_append_document_begin(to, (const char *)key->data, (int)key->len, &child) &&
               bson_append_document_end(to, &child);
    struct buf name = BUF_INIT;
    bool ok = parse_key(parser, &name);
    if (ok && extjson_is_wrapper((const char *)name.data, name.len)) {
        ok = parse_wrapper(parser, to, key, &name, depth);
    } else if (ok) {
        ok =
            bson_append_document_begin(to, (const char *)key->data, (int)key->len, &child) || fail(parser, "too large");
        if (ok) {
            bool parsed = parse_fields(parser, &child, &name, depth);
            ok = bson_append_document_end(to, &child) && parsed;
        }
    }
    buf_deinit(&name);
    return ok;
}

static bool parse_elements(struct parser *parser, bson_t *array, int depth)
{
    for (uint32_t i = 0;; i++) {
        char text[16];
        struct buf key = {.data = (uint8_t *)text, .len = (size_t)snprintf(text, sizeof text, "%u", i)};
        if (!parse_value(parser, array, &key, depth))
            return false;
        if (take(parser, ']'))
            return true;
        if (!take(parser, ','))
            return fail(parser, "',' or ']' is missing");
    }
}

static bool parse_array(struct parser *parser, bson_t *to, const struct buf *key, int depth)
{
    bson_t array;
    if (!bson_append_array_begin(to, (const char *)key->data, (int)key->len, &array))
        return fail(parser, "too large");
    bool ok = take(parser, ']') || parse_elements(parser, &array, depth);
    return bson_append_array_end(to, &array) && ok;
}

static bool parse_string_value(struct parser *parser, bson_t *to, const struct buf *key)
{
    struct buf text = BUF_INIT;
    bool ok = parse_string(parser, &text);
    if (ok && !bson_append_utf8(to, (const char *)key->data, (int)key->len, (const char *)text.data, (int)text.len))
        ok = fail(parser, "too large");
    buf_deinit(&text);
    return ok;
}

static bool parse_value(struct parser *parser, bson_t *to, const struct buf *key, int depth)
{
    skip_space(parser);
    if (parser->at == parser->end)
        return fail(parser, "a value is missing");
    char first = *parser->at;
    if ((first == '{' || first == '[') && depth == 0)
        return fail(parser, "nested too deeply");
    if (first == '{' || first == '[' || first == '"')
        parser->at++;
    switch (first) {
    case '{':
        return parse_document(parser, to, key, depth - 1);
    case '[':
        return parse_array(parser, to, key, depth - 1);
    case '"':
        return parse_string_value(parser, to, key);
    default:
        return parse_word_or_number(parser, to, key);
    }
}

static bool parse_top(struct parser *parser, bson_t *out)
{
    struct buf key = BUF_INIT;
    bool ok = take(parser, '{') || fail(parser, "'{' is missing");
    if (ok && !take(parser, '}'))
        ok = parse_key(parser, &key) && parse_fields(parser, out, &key, BDOC_MAX_DEPTH + WRAPPER_LEVELS);
    buf_deinit(&key);
    if (!ok)
        return false;
    skip_space(parser);
    return parser->at == parser->end || fail(parser, "something follows the document");
}

bool extjson_parse(const char *text, size_t len, bson_t *out, struct err *err)
{
    struct parser parser = {.start = text, .at = text, .end = text + len, .err = err};
    if (!bson_utf8_validate(text, len, true))
        return fail(&parser, "not UTF-8");
    bson_init(out);
    if (!parse_top(&parser, out) || !bdoc_validate(bson_get_data(out), out->len, BDOC_MAX_DEPTH, err)) {
        bson_destroy(out);
        return false;
    }
    return true;
}
