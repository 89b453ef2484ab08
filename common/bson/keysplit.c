/* Follows the format that bson/keyenc.h describes. */
#include "bson/keysplit.h"

#include "bson/keyenc_tags.h"
#include "bson/value.h"

#include <stddef.h>
#include <string.h>

enum {
    TAG_MINUS_INFINITY = TAG_NEGATIVE - TAG_INFINITY,
    TAG_NEGATIVE_FIRST = TAG_NEGATIVE - TAG_LARGE,
    TAG_NEGATIVE_LAST = TAG_NEGATIVE - TAG_SMALL,
};

enum {
    FRACTION_BYTES = 7,
    DECIMAL_BYTES = 17,
};

/* What is left to be read; every byte is seen through `flip`. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    uint8_t flip; /* all ones for a descending component */
    bool damaged;
};

static uint8_t peek(struct reader *reader)
{
    if (reader->at == reader->end) {
        reader->damaged = true;
        return 0;
    }
    return *reader->at ^ reader->flip;
}

static void skip(struct reader *reader, uint64_t count)
{
    if ((uint64_t)(reader->end - reader->at) < count) {
        reader->damaged = true;
        reader->at = reader->end;
        return;
    }
    reader->at += count;
}

static void skip_string(struct reader *reader)
{
    const uint8_t *end = memchr(reader->at, reader->flip, (size_t)(reader->end - reader->at));
    if (end == NULL)
        reader->damaged = true;
    reader->at = end == NULL ? reader->end : end + 1;
}

/* be32 length, `more` bytes and as many as it says. */
static void skip_counted(struct reader *reader, uint32_t more)
{
    uint32_t count = 0;
    for (int i = 0; i < 4; i++) {
        count = count << 8 | peek(reader);
        skip(reader, 1);
    }
    skip(reader, (uint64_t)count + more);
}

/* The lowest bit of the byte read last. */
static bool marked(const struct reader *reader, uint8_t sign)
{
    return !reader->damaged && ((reader->at[-1] ^ reader->flip ^ sign) & 1) != 0;
}

static void skip_number(struct reader *reader, uint8_t tag)
{
    bool negative = tag <= TAG_NEGATIVE_LAST;
    uint8_t sign = negative ? 0xff : 0;
    uint8_t magnitude = negative ? (uint8_t)(TAG_NEGATIVE - tag) : tag;
    bool whole = magnitude != TAG_SMALL && magnitude != TAG_LARGE;
    skip(reader, whole ? (uint64_t)(magnitude - TAG_SMALL) : 8);
    if (!marked(reader, sign))
        return;
    if (whole) {
        skip(reader, FRACTION_BYTES);
        if (!marked(reader, sign))
            return;
    }
    skip(reader, DECIMAL_BYTES);
}

static void skip_value(struct reader *reader, int depth);

static void skip_fields(struct reader *reader, int depth)
{
    while (!reader->damaged && peek(reader) != 0) {
        skip(reader, 1);
        skip_string(reader);
        skip_value(reader, depth + 1);
    }
    skip(reader, 1);
}

static void skip_elements(struct reader *reader, int depth)
{
    while (!reader->damaged && peek(reader) != 0)
        skip_value(reader, depth + 1);
    skip(reader, 1);
}

static void skip_payload(struct reader *reader, uint8_t tag, int depth)
{
    switch (tag) {
    case TAG_STRING:
    case TAG_CODE:
        skip_string(reader);
        break;
    case TAG_DOCUMENT:
        skip_fields(reader, depth);
        break;
    case TAG_ARRAY:
        skip_elements(reader, depth);
        break;
    case TAG_BINARY:
        skip_counted(reader, 1);
        break;
    case TAG_OBJECT_ID:
        skip(reader, 12);
        break;
    case TAG_BOOL:
        skip(reader, 1);
        break;
    case TAG_DATE:
    case TAG_TIMESTAMP:
        skip(reader, 8);
        break;
    case TAG_REGEX:
        skip_string(reader);
        skip_string(reader);
        break;
    case TAG_DB_POINTER:
        skip_counted(reader, 0);
        break;
    case TAG_CODE_WITH_SCOPE:
        skip_string(reader);
        skip_fields(reader, depth);
        break;
    default: /* the type byte says it all */
        break;
    }
}

static void skip_value(struct reader *reader, int depth)
{
    if (depth > BDOC_MAX_WIRE_DEPTH) {
        reader->damaged = true;
        return;
    }
    uint8_t tag = peek(reader);
    skip(reader, 1);
    if (tag >= TAG_NEGATIVE_FIRST && tag < TAG_INFINITY && tag != TAG_ZERO)
        skip_number(reader, tag);
    else
        skip_payload(reader, tag, depth);
}

uint32_t keysplit_component(const uint8_t *key, uint32_t len, bool descending)
{
    struct reader reader = {.at = key, .end = key + len, .flip = descending ? 0xff : 0};
    skip_value(&reader, 0);
    return reader.damaged ? 0 : (uint32_t)(reader.at - key);
}
