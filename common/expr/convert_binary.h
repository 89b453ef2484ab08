/* $convert between binary data and strings or numbers. */
#ifndef SHERD_EXPR_CONVERT_BINARY_H
#define SHERD_EXPR_CONVERT_BINARY_H

#include "expr/expr_tree.h"

enum {
    ERR_CONVERSION = 241,
    BINARY_UUID = 4, /* subtype */
};

enum convert_format {
    FORMAT_NONE,
    FORMAT_AUTO,
    FORMAT_BASE64,
    FORMAT_BASE64_URL,
    FORMAT_HEX,
    FORMAT_UTF8,
    FORMAT_UUID,
};

/* What the other arguments of $convert say. */
struct convert_options {
    uint8_t type;    /* BSON type to make */
    uint8_t subtype; /* of binary data to make */
    enum convert_format format;
    bool big_endian; /* byteOrder of numbers */
    int base;        /* of numbers in strings; 0: not given */
};

bool convert_format_of_name(const char *name, enum convert_format *out);
bool convert_binary_to_string(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                              struct bval *out);
/* To int32, int64 or double: 1, 2, 4 or 8 bytes. */
bool convert_binary_to_number(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                              struct bval *out);
/* From a string, a number or binary data. */
bool convert_to_binary(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                       struct bval *out);

#endif
