#include "generate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONG_TEXT = 700 };

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    /* xorshift64*: https://en.wikipedia.org/wiki/Xorshift#xorshift* */
    uint64_t x = rng->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return (uint32_t)(((x * 0x2545f4914f6cdd1dULL) >> 32) % bound);
}

bool rng_chance(struct rng *rng, uint32_t percent)
{
    return rng_below(rng, 100) < percent;
}

static const char *const strings[] = {"",
                                      "a",
                                      "A",
                                      "ab",
                                      "aB",
                                      "b",
                                      "B",
                                      "\xc3\xa4"
                                      "b",
                                      "Ab c",
                                      "z",
                                      "z10",
                                      "z9",
                                      "x.y",
                                      "$in",
                                      "\xc3\x84"
                                      "B",
                                      "r\xc3\xa9"
                                      "s",
                                      "res",
                                      "Res",
                                      "10",
                                      "9"};
static const char *const decimals[] = {"0", "1", "2.5", "-3", "7", "10"};

static void append_string(struct rng *rng, bson_t *out, const char *key)
{
    const char *text = strings[rng_below(rng, sizeof strings / sizeof strings[0])];
    char text_long[LONG_TEXT + 32];
    if (rng_chance(rng, 5)) {
        /* Longer than a key in a page may be: several share its beginning. */
        memset(text_long, 'm', LONG_TEXT);
        snprintf(text_long + LONG_TEXT - rng_below(rng, 2), 32, "%s", text);
        text = text_long;
    }
    bson_append_utf8(out, key, -1, text, -1);
}

static void append_number(struct rng *rng, bson_t *out, const char *key)
{
    int32_t number = (int32_t)rng_below(rng, 14) - 3;
    bson_decimal128_t decimal;
    switch (rng_below(rng, 5)) {
    case 0:
        bson_append_int64(out, key, -1, number);
        break;
    case 1:
        bson_append_double(out, key, -1, number + (rng_chance(rng, 40) ? 0.5 : 0));
        break;
    case 2:
        bson_decimal128_from_string(decimals[rng_below(rng, 6)], &decimal);
        bson_append_decimal128(out, key, -1, &decimal);
        break;
    default:
        bson_append_int32(out, key, -1, number);
    }
}

static void append_odd(struct rng *rng, bson_t *out, const char *key)
{
    bson_oid_t oid;
    uint8_t bytes[3] = {1, 2, (uint8_t)rng_below(rng, 3)};
    switch (rng_below(rng, 8)) {
    case 0:
        bson_append_minkey(out, key, -1);
        break;
    case 1:
        bson_append_maxkey(out, key, -1);
        break;
    case 2:
        memset(&oid, (int)rng_below(rng, 4), sizeof oid);
        bson_append_oid(out, key, -1, &oid);
        break;
    case 3:
        bson_append_binary(out, key, -1, BSON_SUBTYPE_BINARY, bytes, 1 + rng_below(rng, 3));
        break;
    case 4:
        bson_append_timestamp(out, key, -1, 1 + rng_below(rng, 4), rng_below(rng, 3));
        break;
    case 5:
        bson_append_double(out, key, -1, rng_chance(rng, 50) ? (double)NAN : (double)INFINITY);
        break;
    default:
        bson_append_bool(out, key, -1, rng_chance(rng, 50));
    }
}

static void append_scalar(struct rng *rng, bson_t *out, const char *key)
{
    switch (rng_below(rng, 10)) {
    case 0:
        bson_append_null(out, key, -1);
        break;
    case 1:
    case 2:
        append_string(rng, out, key);
        break;
    case 3:
        append_odd(rng, out, key);
        break;
    case 4:
        bson_append_date_time(out, key, -1, (int64_t)rng_below(rng, 5) * 86400000);
        break;
    default:
        append_number(rng, out, key);
    }
}

/* {x, y}: fields that paths into `a` and `c` look for. */
static void append_pair(struct rng *rng, bson_t *out, const char *key)
{
    bson_t pair;
    bson_append_document_begin(out, key, -1, &pair);
    if (rng_chance(rng, 80))
        append_scalar(rng, &pair, "x");
    if (rng_chance(rng, 60))
        append_scalar(rng, &pair, "y");
    bson_append_document_end(out, &pair);
}

static void append_any(struct rng *rng, int depth, bson_t *out, const char *key)
{
    uint32_t kind = rng_below(rng, 10);
    bson_t child;
    if (kind < 4 && depth > 0) {
        bson_append_array_begin(out, key, -1, &child);
        uint32_t count = rng_below(rng, 4);
        for (uint32_t i = 0; i < count; i++) {
            char name[12];
            snprintf(name, sizeof name, "%u", i);
            append_any(rng, depth - 1, &child, name);
        }
        bson_append_array_end(out, &child);
    } else if (kind == 4 && depth > 0) {
        append_pair(rng, out, key);
    } else {
        append_scalar(rng, out, key);
    }
}

static void append_part(struct rng *rng, bson_t *out, const char *key)
{
    bson_t part, list;
    bson_append_document_begin(out, key, -1, &part);
    if (rng_chance(rng, 80))
        append_scalar(rng, &part, "x");
    if (rng_chance(rng, 70))
        append_scalar(rng, &part, "y");
    if (rng_chance(rng, 50)) {
        bson_append_array_begin(&part, "z", -1, &list);
        if (rng_chance(rng, 80))
            append_number(rng, &list, "0");
        if (rng_chance(rng, 40))
            append_string(rng, &list, "1");
        bson_append_array_end(&part, &list);
    }
    bson_append_document_end(out, &part);
}

void generate_id(int32_t number, bson_t *out, const char *key)
{
    char text[24];
    switch (number % 4) {
    case 1:
        snprintf(text, sizeof text, "id%d", number);
        bson_append_utf8(out, key, -1, text, -1);
        break;
    case 2:
        bson_append_double(out, key, -1, number + 0.25);
        break;
    default:
        bson_append_int32(out, key, -1, number);
    }
}

void generate_document(struct rng *rng, int32_t number, bson_t *out)
{
    bson_t list;
    generate_id(number, out, "_id");
    if (rng_chance(rng, 90))
        append_scalar(rng, out, "k");
    append_number(rng, out, "n");
    if (rng_chance(rng, 85))
        append_any(rng, 2, out, "a");
    if (rng_chance(rng, 20))
        append_pair(rng, out, "b");
    else if (rng_chance(rng, 80))
        append_scalar(rng, out, "b");
    if (rng_chance(rng, 40)) {
        append_part(rng, out, "c");
    } else if (rng_chance(rng, 60)) {
        bson_append_array_begin(out, "c", -1, &list);
        append_part(rng, &list, "0");
        if (rng_chance(rng, 60))
            append_part(rng, &list, "1");
        bson_append_array_end(out, &list);
    }
    append_string(rng, out, "s");
    if (rng_chance(rng, 70))
        bson_append_date_time(out, "d", -1, (int64_t)rng_below(rng, 12) * 3600000);
}

/* ---- filters ---- */

static const char *const paths[] = {"a",   "b",   "n",   "s",   "k",   "d",     "_id",   "c",
                                    "c.x", "c.y", "c.z", "a.0", "a.x", "c.0.x", "c.z.1", "b.x"};

const char *generate_path(struct rng *rng)
{
    return paths[rng_below(rng, sizeof paths / sizeof paths[0])];
}

/* An operand that has a chance of being stored at `path`. */
static void append_operand(struct rng *rng, const char *path, bson_t *out, const char *key)
{
    if (strcmp(path, "_id") == 0)
        generate_id((int32_t)rng_below(rng, 120), out, key);
    else if (strcmp(path, "n") == 0)
        append_number(rng, out, key);
    else if (strcmp(path, "s") == 0)
        append_string(rng, out, key);
    else if (strcmp(path, "d") == 0)
        bson_append_date_time(out, key, -1, (int64_t)rng_below(rng, 12) * 3600000);
    else if (strcmp(path, "a") == 0 || strcmp(path, "b") == 0)
        append_any(rng, 1, out, key);
    else
        append_scalar(rng, out, key);
}

static void append_list(struct rng *rng, const char *path, bson_t *out, const char *key, bool regex)
{
    bson_t list;
    uint32_t count = 1 + rng_below(rng, 4);
    bson_append_array_begin(out, key, -1, &list);
    for (uint32_t i = 0; i < count; i++) {
        char name[12];
        snprintf(name, sizeof name, "%u", i);
        if (regex && rng_chance(rng, 10))
            bson_append_regex(&list, name, -1, "^z", "");
        else
            append_operand(rng, path, &list, name);
    }
    bson_append_array_end(out, &list);
}

static void append_bits(struct rng *rng, bson_t *out)
{
    static const char *const names[] = {"$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"};
    bson_append_int32(out, names[rng_below(rng, 4)], -1, 1 + (int32_t)rng_below(rng, 7));
}

static void append_elem_match(struct rng *rng, const char *path, bson_t *out)
{
    static const char *const names[] = {"$gt", "$lt", "$gte", "$lte", "$eq", "$ne"};
    bson_t child, condition;
    bson_append_document_begin(out, "$elemMatch", -1, &child);
    if (path[0] == 'c' && path[1] == '\0') {
        append_scalar(rng, &child, "x");
        if (rng_chance(rng, 50)) {
            bson_append_document_begin(&child, "y", -1, &condition);
            append_scalar(rng, &condition, names[rng_below(rng, 6)]);
            bson_append_document_end(&child, &condition);
        }
    } else {
        append_scalar(rng, &child, names[rng_below(rng, 2)]);
        if (rng_chance(rng, 60))
            append_scalar(rng, &child, names[2 + rng_below(rng, 4)]);
    }
    bson_append_document_end(out, &child);
}

static void append_regex(struct rng *rng, bson_t *out)
{
    static const char *const patterns[] = {"^a", "^z1", "b$", "^A", "^$", "res|z", "^(a|b)", "[0-9]+", "^x\\.y"};
    bson_append_utf8(out, "$regex", -1, patterns[rng_below(rng, 9)], -1);
    if (rng_chance(rng, 30))
        bson_append_utf8(out, "$options", -1, "i", -1);
}

static void append_type(struct rng *rng, bson_t *out)
{
    static const char *const types[] = {"number", "string", "array", "object", "null", "int", "double", "bool", "date"};
    bson_t list;
    if (rng_chance(rng, 30)) {
        bson_append_array_begin(out, "$type", -1, &list);
        bson_append_utf8(&list, "0", -1, types[rng_below(rng, 9)], -1);
        bson_append_int32(&list, "1", -1, 1 + (int32_t)rng_below(rng, 4));
        bson_append_array_end(out, &list);
    } else {
        bson_append_utf8(out, "$type", -1, types[rng_below(rng, 9)], -1);
    }
}

static void append_operator(struct rng *rng, const char *path, bson_t *out)
{
    static const char *const comparisons[] = {"$eq", "$gt", "$gte", "$lt", "$lte", "$ne"};
    bson_t child;
    switch (rng_below(rng, 17)) {
    case 0:
        append_list(rng, path, out, "$in", true);
        break;
    case 1:
        append_list(rng, path, out, "$nin", true);
        break;
    case 2:
        bson_append_bool(out, "$exists", -1, rng_chance(rng, 50));
        break;
    case 3:
        append_type(rng, out);
        break;
    case 4:
        append_list(rng, path, out, "$all", false);
        break;
    case 5:
        bson_append_int32(out, "$size", -1, (int32_t)rng_below(rng, 4));
        break;
    case 6:
        append_bits(rng, out);
        break;
    case 7:
        append_elem_match(rng, path, out);
        break;
    case 8:
        append_regex(rng, out);
        break;
    case 9:
        bson_append_array_begin(out, "$mod", -1, &child);
        bson_append_int32(&child, "0", -1, 2 + (int32_t)rng_below(rng, 3));
        bson_append_int32(&child, "1", -1, (int32_t)rng_below(rng, 3));
        bson_append_array_end(out, &child);
        break;
    case 10:
        bson_append_document_begin(out, "$not", -1, &child);
        append_operand(rng, path, &child, comparisons[rng_below(rng, 5)]);
        bson_append_document_end(out, &child);
        break;
    case 11:
    case 12: /* a range; its ends may be of different types, or the wrong way round */
        append_operand(rng, path, out, rng_chance(rng, 50) ? "$gt" : "$gte");
        append_operand(rng, path, out, rng_chance(rng, 50) ? "$lt" : "$lte");
        break;
    default:
        append_operand(rng, path, out, comparisons[rng_below(rng, 6)]);
    }
}

static void append_expr(struct rng *rng, bson_t *out)
{
    static const char *const names[] = {"$eq", "$gt", "$lte", "$ne"};
    static const char *const fields[] = {"$n", "$b", "$s", "$k", "$c.x"};
    bson_t expr, operands;
    bson_append_document_begin(out, "$expr", -1, &expr);
    bson_append_array_begin(&expr, names[rng_below(rng, 4)], -1, &operands);
    bson_append_utf8(&operands, "0", -1, fields[rng_below(rng, 5)], -1);
    append_number(rng, &operands, "1");
    bson_append_array_end(&expr, &operands);
    bson_append_document_end(out, &expr);
}

static void append_leaf(struct rng *rng, bson_t *out)
{
    const char *path = generate_path(rng);
    bson_t child;
    if (bson_has_field(out, path) && strchr(path, '.') == NULL)
        return;
    if (rng_chance(rng, 25)) {
        append_operand(rng, path, out, path);
        return;
    }
    if (rng_chance(rng, 4)) {
        append_expr(rng, out);
        return;
    }
    bson_append_document_begin(out, path, -1, &child);
    append_operator(rng, path, &child);
    bson_append_document_end(out, &child);
}

void generate_filter(struct rng *rng, int depth, bson_t *out)
{
    static const char *const names[] = {"$or", "$and", "$nor", "$or"};
    if (rng_chance(rng, 4))
        return;
    if (depth > 0 && rng_chance(rng, 25)) {
        bson_t list;
        uint32_t count = 1 + rng_below(rng, 3);
        bson_append_array_begin(out, names[rng_below(rng, 4)], -1, &list);
        for (uint32_t i = 0; i < count; i++) {
            char name[12];
            bson_t child;
            snprintf(name, sizeof name, "%u", i);
            bson_append_document_begin(&list, name, -1, &child);
            generate_filter(rng, depth - 1, &child);
            bson_append_document_end(&list, &child);
        }
        bson_append_array_end(out, &list);
        if (rng_chance(rng, 50))
            return;
    }
    append_leaf(rng, out);
    while (rng_chance(rng, 35))
        append_leaf(rng, out);
}

void generate_sort(struct rng *rng, bson_t *out)
{
    static const char *const fields[] = {"a", "b", "n", "s", "k", "d", "c.x", "c.y", "c.z", "a.0", "b.x", "c"};
    uint32_t count = rng_below(rng, 3);
    /* Not two that may run through arrays: parallel ones are refused, unless a plan has no need to sort. */
    bool array = false;
    for (uint32_t i = 0; i < count; i++) {
        const char *field = fields[rng_below(rng, 12)];
        bson_iter_t iter;
        bool may_be_array = field[0] == 'a' || field[0] == 'c';
        if (array && may_be_array)
            continue;
        array |= may_be_array;
        if (!bson_iter_init_find(&iter, out, field))
            bson_append_int32(out, field, -1, rng_chance(rng, 50) ? 1 : -1);
    }
    bson_append_int32(out, "_id", -1, rng_chance(rng, 70) ? 1 : -1);
}

void generate_projection(struct rng *rng, bson_t *out)
{
    static const char *const inclusions[] = {"n", "b", "s", "k", "d", "c.x", "c.y", "a"};
    bson_t child;
    if (rng_chance(rng, 50))
        bson_append_int32(out, "_id", -1, 0);
    switch (rng_below(rng, 6)) {
    case 0:
        bson_append_document_begin(out, "a", -1, &child);
        bson_append_int32(&child, "$slice", -1, rng_chance(rng, 50) ? 1 : -2);
        bson_append_document_end(out, &child);
        break;
    case 1:
        bson_append_int32(out, "c.y", -1, 0);
        bson_append_int32(out, "b", -1, 0);
        break;
    default:
        for (uint32_t i = 0, first = rng_below(rng, 8); i < 1 + rng_below(rng, 2); i++)
            bson_append_int32(out, inclusions[(first + i * 3) % 8], -1, 1);
    }
}
