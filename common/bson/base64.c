#include "bson/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *to, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    char *out = (char *)buf_reserve(to, (len + 2) / 3 * 4);
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t bits = (uint32_t)bytes[i] << 16;
        bits |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        bits |= left > 2 ? bytes[i + 2] : 0;
        *out++ = alphabet[bits >> 18];
        *out++ = alphabet[bits >> 12 & 63];
        *out++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
        *out++ = left > 2 ? alphabet[bits & 63] : '=';
    }
    to->len += (len + 2) / 3 * 4;
}

static int digit_of(char digit)
{
    const char *at = digit == 0 ? NULL : strchr(alphabet, digit);
    return at == NULL ? -1 : (int)(at - alphabet);
}

bool base64_decode(struct buf *to, const char *text, size_t len)
{
    if (len % 4 != 0)
        return false;
    for (size_t i = 0; i < len; i += 4) {
        uint32_t bits = 0;
        size_t digits = 0;
        for (; digits < 4 && text[i + digits] != '='; digits++) {
            int digit = digit_of(text[i + digits]);
            if (digit < 0)
                return false;
            bits |= (uint32_t)digit << (18 - 6 * digits);
        }
        bool padded = digits < 4;
        if (digits < 2 || (padded && (i + 4 != len || text[i + 3] != '=')))
            return false;
        uint8_t bytes[3] = {(uint8_t)(bits >> 16), (uint8_t)(bits >> 8), (uint8_t)bits};
        buf_append(to, bytes, digits - 1);
    }
    return true;
}
