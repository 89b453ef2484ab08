#include "tests/unit/bson/random_value.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>

static const double doubles[] = {0.0,
                                 -0.0,
                                 0.1,
                                 0.5,
                                 1.0,
                                 1.5,
                                 1.99,
                                 2.0,
                                 255.0,
                                 256.0,
                                 1e15,
                                 0x1p52,
                                 0x1p53,
                                 0x1p53 + 2,
                                 0x1p62,
                                 0x1p63,
                                 0x1.fffffffffffffp62,
                                 0x1p64,
                                 1e18,
                                 1e19,
                                 1e22,
                                 1e23,
                                 1e100,
                                 1.7976931348623157e308,
                                 2.2250738585072014e-308,
                                 4.9406564584124654e-324,
                                 1e-10,
                                 0.3,
                                 123456.789};

static const int64_t integers[] = {0,
                                   1,
                                   2,
                                   127,
                                   128,
                                   255,
                                   256,
                                   32767,
                                   32768,
                                   8388607,
                                   8388608,
                                   2147483647,
                                   2147483648,
                                   4503599627370496,
                                   9007199254740991,
                                   9007199254740992,
                                   9007199254740993,
                                   9007199254740994,
                                   1000000000000000000,
                                   4611686018427387904,
                                   9223372036854774784,
                                   9223372036854775806,
                                   9223372036854775807};

static const char *const decimals[] = {
    "0",
    "-0",
    "0E+6000",
    "0.1",
    "0.10",
    "0.1000000000000000055511151231257827",
    "0.1000000000000000055511151231257828",
    "0.3",
    "0.5",
    "0.50000",
    "1",
    "1.0",
    "1.000000000000000000000000000000000",
    "1.000000000000000000000000000000001",
    "1.5",
    "1.99",
    "2",
    "255.9999999999999999999999999999",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.0",
    "9007199254740992.5",
    "9223372036854775807",
    "9223372036854775807.5",
    "9223372036854775808",
    "9223372036854775808.5",
    "18446744073709551616",
    "1E+22",
    "1E+23",
    "9.999999999999999161137854123950081E+22",
    "1E+100",
    "1.7976931348623157E+308",
    "1.797693134862315708145274237317043E+308",
    "1.797693134862315708145274237317044E+308",
    "9.999999999999999999999999999999999E+6144",
    "1E-6176",
    "4.940656458412465441765687928682213E-324",
    "4.940656458412465441765687928682214E-324",
    "2E-324",
    "1E-10",
    "1.000000000000000036432194806E-10",
    "123456.789",
    "123456.7890000000013969838619232178",
    "NaN",
    "Infinity",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static double random_f64(struct prng *prng)
{
    switch (prng_below(prng, 8)) {
    case 0:
        return (double)NAN;
    case 1:
        return prng_below(prng, 2) ? (double)INFINITY : -(double)INFINITY;
    case 2: { /* any bits */
        uint64_t bits = prng_next(prng);
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    default: {
        double value = doubles[prng_below(prng, COUNT(doubles))];
        if (prng_below(prng, 3) == 0)
            value = nextafter(value, prng_below(prng, 2) ? 1e308 : 0);
        return prng_below(prng, 2) ? value : -value;
    }
    }
}

static int64_t random_i64(struct prng *prng)
{
    if (prng_below(prng, 8) == 0)
        return (int64_t)prng_next(prng);
    if (prng_below(prng, 16) == 0)
        return INT64_MIN;
    int64_t value = integers[prng_below(prng, COUNT(integers))];
    return prng_below(prng, 2) ? value : -value;
}

static void random_decimal(struct prng *prng, bson_decimal128_t *out)
{
    char text[64];
    switch (prng_below(prng, 6)) {
    case 0:
        snprintf(text, sizeof text, "%s%llu%016lluE%d", prng_below(prng, 2) ? "-" : "",
                 (unsigned long long)prng_below(prng, 1000000000000000),
                 (unsigned long long)prng_below(prng, 10000000000000000), (int)prng_below(prng, 700) - 350);
        break;
    case 1: /* exactly, or nearly, some double */
        snprintf(text, sizeof text, "%.*e", 12 + (int)prng_below(prng, 22), fabs(random_f64(prng)));
        if (strstr(text, "nan") != NULL)
            snprintf(text, sizeof text, "NaN");
        if (strstr(text, "inf") != NULL)
            snprintf(text, sizeof text, "-Infinity");
        break;
    case 2:
        snprintf(text, sizeof text, "%lld", (long long)random_i64(prng));
        break;
    default:
        snprintf(text, sizeof text, "%s%s", prng_below(prng, 2) ? "-" : "",
                 decimals[prng_below(prng, COUNT(decimals))]);
    }
    /* "-NaN" is refused. */
    CHECK(bson_decimal128_from_string(text, out) || bson_decimal128_from_string("NaN", out));
}

void random_number_append(struct prng *prng, bson_t *to, const char *key)
{
    bson_decimal128_t decimal;
    switch (prng_below(prng, 4)) {
    case 0:
        bson_append_int32(to, key, -1, (int32_t)random_i64(prng));
        break;
    case 1:
        bson_append_int64(to, key, -1, random_i64(prng));
        break;
    case 2:
        bson_append_double(to, key, -1, random_f64(prng));
        break;
    default:
        random_decimal(prng, &decimal);
        bson_append_decimal128(to, key, -1, &decimal);
    }
}

/* Up to 12 characters out of few, NUL and \1 among them; never a NUL when `cstring`. */
static int random_text(struct prng *prng, char out[16], bool cstring)
{
    static const char alphabet[] = {'a', 'b', '\1', '\2', 'z', '\x7f', '\0'};
    int len = (int)prng_below(prng, prng_below(prng, 3) == 0 ? 13 : 3);
    for (int i = 0; i < len; i++)
        out[i] = alphabet[prng_below(prng, sizeof alphabet - cstring)];
    out[len] = 0;
    return len;
}

static void random_sub_document(struct prng *prng, bson_t *out, int depth)
{
    bson_init(out);
    int count = (int)prng_below(prng, 4);
    for (int i = 0; i < count; i++) {
        char name[16];
        random_text(prng, name, true);
        random_value_append(prng, out, name, depth - 1);
    }
}

static void random_nested_append(struct prng *prng, bson_t *to, const char *key, int depth)
{
    bson_t sub;
    if (prng_below(prng, 2)) {
        random_sub_document(prng, &sub, depth);
        bson_append_document(to, key, -1, &sub);
        bson_destroy(&sub);
        return;
    }
    bson_init(&sub);
    int count = (int)prng_below(prng, 4);
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        random_value_append(prng, &sub, name, depth - 1);
    }
    bson_append_array(to, key, -1, &sub);
    bson_destroy(&sub);
}

static void random_text_type_append(struct prng *prng, bson_t *to, const char *key)
{
    char text[16];
    char options[16];
    bson_t scope;
    bson_oid_t oid = {{0}};
    switch (prng_below(prng, 6)) {
    case 0:
        bson_append_utf8(to, key, -1, text, random_text(prng, text, false));
        break;
    case 1:
        bson_append_symbol(to, key, -1, text, random_text(prng, text, false));
        break;
    case 2:
        random_text(prng, text, true);
        bson_append_code(to, key, -1, text);
        break;
    case 3:
        random_text(prng, text, true);
        random_sub_document(prng, &scope, 0);
        bson_append_code_with_scope(to, key, -1, text, &scope);
        bson_destroy(&scope);
        break;
    case 4:
        random_text(prng, text, true);
        random_text(prng, options, true);
        bson_append_regex(to, key, -1, text, options);
        break;
    default:
        random_text(prng, text, true);
        oid.bytes[11] = (uint8_t)prng_below(prng, 2);
        bson_append_dbpointer(to, key, -1, text, &oid);
    }
}

static void random_binary_append(struct prng *prng, bson_t *to, const char *key)
{
    char bytes[16];
    int len = random_text(prng, bytes, false);
    static const bson_subtype_t subtypes[] = {BSON_SUBTYPE_BINARY, BSON_SUBTYPE_BINARY_DEPRECATED, BSON_SUBTYPE_USER};
    bson_append_binary(to, key, -1, subtypes[prng_below(prng, 3)], (const uint8_t *)bytes, (uint32_t)len);
}

static void random_fixed_append(struct prng *prng, bson_t *to, const char *key)
{
    bson_oid_t oid = {{0}};
    switch (prng_below(prng, 8)) {
    case 0:
        bson_append_minkey(to, key, -1);
        break;
    case 1:
        bson_append_maxkey(to, key, -1);
        break;
    case 2:
        bson_append_null(to, key, -1);
        break;
    case 3:
        bson_append_undefined(to, key, -1);
        break;
    case 4:
        bson_append_bool(to, key, -1, prng_below(prng, 2) != 0);
        break;
    case 5:
        bson_append_date_time(to, key, -1, random_i64(prng));
        break;
    case 6:
        bson_append_timestamp(to, key, -1, (uint32_t)random_i64(prng), (uint32_t)random_i64(prng));
        break;
    default:
        oid.bytes[prng_below(prng, 12)] = (uint8_t)prng_next(prng);
        bson_append_oid(to, key, -1, &oid);
    }
}

void random_value_append(struct prng *prng, bson_t *to, const char *key, int depth)
{
    switch (prng_below(prng, depth > 0 ? 6 : 5)) {
    case 0:
        random_fixed_append(prng, to, key);
        break;
    case 1:
    case 2:
        random_text_type_append(prng, to, key);
        break;
    case 3:
        random_binary_append(prng, to, key);
        break;
    case 4:
        random_number_append(prng, to, key);
        break;
    default:
        random_nested_append(prng, to, key, depth);
    }
}

bson_t *random_value_new(struct prng *prng, int depth)
{
    bson_t *doc = bson_new();
    random_value_append(prng, doc, "v", depth);
    return doc;
}

bson_t *random_number_new(struct prng *prng)
{
    bson_t *doc = bson_new();
    random_number_append(prng, doc, "v");
    return doc;
}

struct bval random_value_of(const bson_t *doc)
{
    struct bval val;
    bdoc_find(bdoc_of(doc), "v", &val);
    return val;
}
