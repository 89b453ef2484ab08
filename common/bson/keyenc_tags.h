/* Inside this folder: the type bytes of encoded keys; the layout is in keyenc.h. The neighbours of each are free for
 * keyenc_append_before_class and _after_class. */
#ifndef SHERD_BSON_KEYENC_TAGS_H
#define SHERD_BSON_KEYENC_TAGS_H

enum {
    TAG_MIN_KEY = 0x08,
    TAG_UNDEFINED = 0x10,
    TAG_NULL = 0x18,
    TAG_NAN = 0x20,
    TAG_ZERO = 0x2c,
    TAG_SMALL = 0x2d,
    TAG_WHOLE = 0x2d, /* + number of bytes, 1 to 8 */
    TAG_LARGE = 0x36,
    TAG_INFINITY = 0x37,
    TAG_NEGATIVE = 0x58, /* minus the tag of the magnitude */
    TAG_STRING = 0x48,
    TAG_DOCUMENT = 0x50,
    TAG_ARRAY = 0x58,
    TAG_BINARY = 0x60,
    TAG_OBJECT_ID = 0x68,
    TAG_BOOL = 0x70,
    TAG_DATE = 0x78,
    TAG_TIMESTAMP = 0x80,
    TAG_REGEX = 0x88,
    TAG_DB_POINTER = 0x90,
    TAG_CODE = 0x98,
    TAG_CODE_WITH_SCOPE = 0xa0,
    TAG_MAX_KEY = 0xf0,
    TAG_ABOVE_ALL = 0xf8,
};

#endif
