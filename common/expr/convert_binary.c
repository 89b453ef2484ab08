#include "expr/convert_binary.h"

#include "bson/base64.h"

#include <ctype.h>
#include <string.h>

enum {
    ERR_NO_FORMAT = 4341115,
    UUID_BYTES = 16,
    UUID_TEXT = 36,
};

bool convert_format_of_name(const char *name, enum convert_format *out)
{
    static const char *const names[] = {
        [FORMAT_AUTO] = "auto", [FORMAT_BASE64] = "base64", [FORMAT_BASE64_URL] = "base64url",
        [FORMAT_HEX] = "hex",   [FORMAT_UTF8] = "utf8",     [FORMAT_UUID] = "uuid"};
    for (size_t i = FORMAT_AUTO; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum convert_format)i;
            return true;
        }
    }
    return false;
}

static bool malformed(struct expr_scope *s, const char *why)
{
    return err_set(s->err, ERR_CONVERSION, "Failed to convert in $convert with no onError value: %s", why);
}

/* A format that fits the subtype: "uuid" and UUIDs belong together. */
static bool choose_format(struct expr_scope *s, const struct convert_options *options, uint8_t subtype,
                          enum convert_format *out)
{
    bool uuid = subtype == BINARY_UUID;
    *out = options->format;
    if (*out == FORMAT_NONE)
        return err_set(s->err, ERR_NO_FORMAT, "$convert between strings and binary data takes a 'format'");
    if (*out == FORMAT_AUTO)
        *out = uuid ? FORMAT_UUID : FORMAT_BASE64;
    if ((*out == FORMAT_UUID) != uuid)
        return malformed(s, "only binary data of the subtype UUID has the format 'uuid', and no other");
    return true;
}

static void append_hex(struct buf *to, const uint8_t *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        buf_append_u8(to, (uint8_t)digits[data[i] >> 4]);
        buf_append_u8(to, (uint8_t)digits[data[i] & 15]);
    }
}

static void append_uuid(struct buf *to, const uint8_t *data)
{
    static const size_t groups[] = {4, 2, 2, 2, 6};
    for (size_t i = 0; i < 5; i++) {
        if (i > 0)
            buf_append_u8(to, '-');
        append_hex(to, data, groups[i]);
        data += groups[i];
    }
}

/* Between the two alphabets of base64: the URL one has no padding. */
static void to_url_alphabet(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        text->data[i] = text->data[i] == '+' ? '-' : text->data[i] == '/' ? '_' : text->data[i];
    while (text->len > 0 && text->data[text->len - 1] == '=')
        text->len--;
}

static void from_url_alphabet(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        text->data[i] = text->data[i] == '-' ? '+' : text->data[i] == '_' ? '/' : text->data[i];
    while (text->len % 4 != 0)
        buf_append_u8(text, '=');
}

bool convert_binary_to_string(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                              struct bval *out)
{
    uint8_t subtype;
    uint32_t len;
    const uint8_t *data = bval_binary(val, &subtype, &len);
    enum convert_format format;
    if (!choose_format(s, options, subtype, &format))
        return false;
    if (format == FORMAT_UTF8 && !bson_utf8_validate((const char *)data, len, true))
        return malformed(s, "the bytes are no UTF-8");
    if (format == FORMAT_UUID && len != UUID_BYTES)
        return malformed(s, "a UUID has 16 bytes");
    struct buf text = BUF_INIT;
    switch (format) {
    case FORMAT_UTF8:
        buf_append(&text, data, len);
        break;
    case FORMAT_HEX:
        append_hex(&text, data, len);
        break;
    case FORMAT_UUID:
        append_uuid(&text, data);
        break;
    default:
        base64_encode(&text, data, len);
        if (format == FORMAT_BASE64_URL)
            to_url_alphabet(&text);
        break;
    }
    bool ok = expr_check_size(s, text.len);
    if (ok)
        *out = make_str(s->scratch, (const char *)text.data, text.len);
    buf_deinit(&text);
    return ok;
}

static uint64_t read_bytes(const uint8_t *data, uint32_t len, bool big_endian)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < len; i++)
        bits = bits << 8 | data[big_endian ? i : len - 1 - i];
    return bits;
}

bool convert_binary_to_number(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                              struct bval *out)
{
    uint8_t subtype;
    uint32_t len;
    const uint8_t *data = bval_binary(val, &subtype, &len);
    if (options->type == BT_DOUBLE) {
        if (len != 4 && len != 8)
            return malformed(s, "a double is made of 4 or 8 bytes");
        uint64_t bits = read_bytes(data, len, options->big_endian);
        double number;
        if (len == 4) {
            uint32_t half = (uint32_t)bits;
            float single;
            memcpy(&single, &half, sizeof single);
            number = (double)single;
        } else {
            memcpy(&number, &bits, sizeof number);
        }
        *out = make_f64(s->scratch, number);
        return true;
    }
    bool fits = len == 1 || len == 2 || len == 4 || (len == 8 && options->type == BT_INT64);
    if (!fits)
        return malformed(s, "the length of the binary data is not that of an integer of this type");
    uint64_t bits = read_bytes(data, len, options->big_endian) << (64 - 8 * len);
    int64_t number = (int64_t)bits >> (64 - 8 * len);
    *out = options->type == BT_INT32 ? make_i32(s->scratch, (int32_t)number) : make_i64(s->scratch, number);
    return true;
}

static struct bval make_binary(struct expr_scope *s, uint8_t subtype, const void *data, size_t len)
{
    uint8_t *bytes = arena_alloc(s->scratch, len + 5);
    store_le32(bytes, (uint32_t)len);
    bytes[4] = subtype;
    if (len > 0)
        memcpy(bytes + 5, data, len);
    return (struct bval){.type = BT_BINARY, .len = (uint32_t)len + 5, .data = bytes};
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    int lower = tolower((unsigned char)digit);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool read_hex(struct buf *to, const char *text, size_t len)
{
    if (len % 2 != 0)
        return false;
    for (size_t i = 0; i < len; i += 2) {
        int high = hex_digit(text[i]);
        int low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            return false;
        buf_append_u8(to, (uint8_t)(high << 4 | low));
    }
    return true;
}

static bool read_uuid(struct buf *to, const char *text, size_t len)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    if (len != UUID_TEXT)
        return false;
    for (size_t i = 0; i < 5; i++) {
        if (!read_hex(to, text, groups[i]))
            return false;
        text += groups[i];
        if (i < 4 && *text++ != '-')
            return false;
    }
    return true;
}

static bool read_base64(struct buf *to, const char *text, size_t len, bool url)
{
    if (!url)
        return base64_decode(to, text, len);
    struct buf changed = BUF_INIT;
    bool plain = memchr(text, '+', len) == NULL && memchr(text, '/', len) == NULL;
    buf_append(&changed, text, len);
    from_url_alphabet(&changed);
    bool ok = plain && base64_decode(to, (const char *)changed.data, changed.len);
    buf_deinit(&changed);
    return ok;
}

static bool string_to_binary(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                             struct bval *out)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    enum convert_format format;
    if (!choose_format(s, options, options->subtype, &format))
        return false;
    struct buf data = BUF_INIT;
    bool ok = true;
    if (format == FORMAT_UTF8)
        buf_append(&data, text, len);
    else if (format == FORMAT_HEX)
        ok = read_hex(&data, text, len);
    else if (format == FORMAT_UUID)
        ok = read_uuid(&data, text, len);
    else
        ok = read_base64(&data, text, len, format == FORMAT_BASE64_URL);
    if (ok)
        *out = make_binary(s, options->subtype, data.data, data.len);
    buf_deinit(&data);
    return ok || malformed(s, "the string is not in the given format");
}

static bool number_to_binary(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                             struct bval *out)
{
    uint8_t bytes[8];
    for (uint32_t i = 0; i < val->len; i++)
        bytes[i] = val->data[options->big_endian ? val->len - 1 - i : i];
    if (options->subtype == BINARY_UUID)
        return malformed(s, "a number is no UUID");
    *out = make_binary(s, options->subtype, bytes, val->len);
    return true;
}

bool convert_to_binary(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                       struct bval *out)
{
    uint8_t subtype;
    uint32_t len;
    switch (val->type) {
    case BT_STRING:
        return string_to_binary(s, val, options, out);
    case BT_INT32:
    case BT_INT64:
    case BT_DOUBLE:
        return number_to_binary(s, val, options, out);
    case BT_BINARY:
        bval_binary(val, &subtype, &len);
        *out = *val;
        return subtype == options->subtype || malformed(s, "the binary data has another subtype");
    default:
        return err_set(s->err, ERR_CONVERSION,
                       "Unsupported conversion from %s to binData in $convert with no onError value",
                       bval_type_name(val->type));
    }
}
