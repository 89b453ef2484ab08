#include "tests/unit/plan/random_query.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *pick(struct prng *prng, const char *const *from, size_t count)
{
    return from[prng_below(prng, count)];
}

static const char *const scalars[] = {
    "0",
    "1",
    "2",
    "3",
    "{\"$numberDouble\": \"2\"}",
    "{\"$numberLong\": \"3\"}",
    "{\"$numberDecimal\": \"2.0\"}",
    "1.5",
    "-1",
    "{\"$numberDouble\": \"NaN\"}",
    "{\"$numberDouble\": \"Infinity\"}",
    "null",
    "\"\"",
    "\"x\"",
    "\"X\"",
    "\"xy\"",
    "\"y\"",
    "true",
    "false",
    "{\"$date\": {\"$numberLong\": \"5\"}}",
    "{\"$date\": {\"$numberLong\": \"-7\"}}",
    "{\"$oid\": \"000000000000000000000005\"}",
    "{\"$timestamp\": {\"t\": 3, \"i\": 1}}",
    "{\"$binary\": {\"base64\": \"AQI=\", \"subType\": \"00\"}}",
};

static const char *const stored_only[] = {
    "{\"$minKey\": 1}",
    "{\"$maxKey\": 1}",
    "{\"$regularExpression\": {\"pattern\": \"^x\", \"options\": \"\"}}",
    "{}",
    "{\"c\": 2}",
    "{\"c\": 2, \"e\": 1}",
    "{\"c\": \"x\", \"e\": null}",
    "{\"e\": 3}",
    "{\"c\": {\"f\": 1}}",
};

static const char *const arrays[] = {
    "[]",
    "[1, 3]",
    "[2]",
    "[null]",
    "[null, 2]",
    "[2, [4]]",
    "[[1, 3]]",
    "[\"x\", 5]",
    "[{\"c\": 1}, {\"c\": 3}]",
    "[{\"c\": 2, \"e\": 1}, {\"c\": 1, \"e\": 2}]",
    "[{\"c\": 2}, {\"e\": 2}, 7]",
    "[{\"c\": [1, 2], \"e\": 3}, {\"c\": [], \"e\": 1}]",
    "[{}]",
    "{\"c\": [0, 3]}",
    "{\"c\": []}",
    "{\"c\": [1, 2], \"e\": 2}",
};

static const char *any_value(struct prng *prng, int arrays_per_cent)
{
    if ((int)prng_below(prng, 100) < arrays_per_cent)
        return pick(prng, arrays, COUNT(arrays));
    return prng_below(prng, 3) == 0 ? pick(prng, stored_only, COUNT(stored_only)) : pick(prng, scalars, COUNT(scalars));
}

/* `b` never holds an array, `d` seldom: so that some indexes stay without. */
void random_document(struct prng *prng, int id, char *out, size_t size)
{
    int at = snprintf(out, size, "{\"_id\": %d", id);
    if (prng_below(prng, 5) > 0)
        at += snprintf(out + at, size - (size_t)at, ", \"a\": %s", any_value(prng, 40));
    if (prng_below(prng, 5) > 0)
        at += snprintf(out + at, size - (size_t)at, ", \"b\": %s", any_value(prng, 0));
    if (prng_below(prng, 2) > 0)
        at += snprintf(out + at, size - (size_t)at, ", \"d\": %s", any_value(prng, id % 100 == 99 ? 50 : 0));
    snprintf(out + at, size - (size_t)at, "}");
}

static const char *const fields[] = {"a", "a", "b", "b", "d", "_id", "a.c", "a.e", "a.c.f", "b.c", "a.0", "a.0.c"};

static const char *operand(struct prng *prng)
{
    switch (prng_below(prng, 12)) {
    case 0:
        return pick(prng, arrays, COUNT(arrays));
    case 1:
        return pick(prng, stored_only, COUNT(stored_only));
    default:
        return pick(prng, scalars, COUNT(scalars));
    }
}

/* A comparable operand: no regular expression. */
static const char *ordered_operand(struct prng *prng)
{
    return prng_below(prng, 10) == 0 ? (prng_below(prng, 2) ? "{\"c\": 2}" : "[1, 3]")
                                     : pick(prng, scalars, COUNT(scalars));
}

/* Operators of one path: {"$gt": 1, ...} without the braces. */
static void random_operator(struct prng *prng, int depth, char *out, size_t size)
{
    static const char *const orders[] = {"$gt", "$gte", "$lt", "$lte"};
    static const char *const types[] = {"\"number\"",   "\"string\"", "\"null\"",
                                        "\"array\"",    "\"object\"", "\"date\"",
                                        "\"int\"",      "\"bool\"",   "\"double\", \"binData\"",
                                        "\"undefined\""};
    static const char *const patterns[] = {"^x", "^xy", "y", "^", "^X", "^x|y"};
    char inner[600];
    switch (prng_below(prng, depth > 0 ? 13 : 11)) {
    case 0:
        snprintf(out, size, "\"%s\": %s", orders[prng_below(prng, 4)], ordered_operand(prng));
        break;
    case 1:
        snprintf(out, size, "\"$gte\": %s, \"$lt\": %s", ordered_operand(prng), ordered_operand(prng));
        break;
    case 2:
        snprintf(out, size, "\"$in\": [%s, %s, %s]", operand(prng), operand(prng), operand(prng));
        break;
    case 3:
        snprintf(out, size, "\"$ne\": %s", ordered_operand(prng));
        break;
    case 4:
        snprintf(out, size, "\"$nin\": [%s, %s]", operand(prng), operand(prng));
        break;
    case 5:
        snprintf(out, size, "\"$exists\": %s", prng_below(prng, 2) ? "true" : "false");
        break;
    case 6:
        snprintf(out, size, "\"$type\": [%s]", pick(prng, types, COUNT(types)));
        break;
    case 7:
        snprintf(out, size, "\"$all\": [{\"$regularExpression\": {\"pattern\": \"%s\", \"options\": \"\"}}]",
                 pick(prng, patterns, COUNT(patterns)));
        break;
    case 8:
        snprintf(out, size, "\"$mod\": [2, %d]", (int)prng_below(prng, 2));
        break;
    case 9:
        snprintf(out, size, "\"$all\": [%s, %s]", ordered_operand(prng), ordered_operand(prng));
        break;
    case 10:
        snprintf(out, size, "\"$eq\": %s", operand(prng));
        break;
    case 11:
        random_operator(prng, depth - 1, inner, sizeof inner);
        snprintf(out, size, "\"$not\": {%s}", inner);
        break;
    default:
        random_operator(prng, depth - 1, inner, sizeof inner);
        snprintf(out, size, "\"$elemMatch\": {%s}", inner);
        break;
    }
}

static void random_filter(struct prng *prng, int depth, char *out, size_t size);

static void random_element(struct prng *prng, char *out, size_t size)
{
    char one[600];
    char two[600];
    random_operator(prng, 0, one, sizeof one);
    random_operator(prng, 0, two, sizeof two);
    if (prng_below(prng, 2) == 0)
        snprintf(out, size, "\"a\": {\"$elemMatch\": {\"c\": {%s}}}", one);
    else
        snprintf(out, size, "\"a\": {\"$elemMatch\": {\"c\": {%s}, \"e\": {%s}}}", one, two);
}

/* One predicate without braces. */
static void random_predicate(struct prng *prng, int depth, char *out, size_t size)
{
    static const char *const trees[] = {"$or", "$or", "$and", "$nor"};
    char one[1500];
    char two[1500];
    const char *field = pick(prng, fields, COUNT(fields));
    switch (prng_below(prng, depth > 0 ? 10 : 8)) {
    case 0:
    case 1:
    case 2:
        snprintf(out, size, "\"%s\": %s", field, operand(prng));
        break;
    case 3:
        random_element(prng, out, size);
        break;
    case 8:
    case 9:
        random_filter(prng, depth - 1, one, sizeof one);
        random_filter(prng, depth - 1, two, sizeof two);
        snprintf(out, size, "\"%s\": [%s, %s]", pick(prng, trees, COUNT(trees)), one, two);
        break;
    default:
        random_operator(prng, 1, one, sizeof one);
        snprintf(out, size, "\"%s\": {%s}", field, one);
        break;
    }
}

static void random_filter(struct prng *prng, int depth, char *out, size_t size)
{
    char one[1800];
    char two[1800];
    random_predicate(prng, depth, one, sizeof one);
    random_predicate(prng, depth, two, sizeof two);
    if (prng_below(prng, 3) == 0)
        snprintf(out, size, "{%s}", one);
    else
        snprintf(out, size, "{\"$and\": [{%s}, {%s}]}", one, two);
}

void random_query_make(struct prng *prng, struct random_query *out)
{
    static const char *const sorts[] = {"{\"a\": 1, \"_id\": 1}",
                                        "{\"a\": -1, \"b\": 1, \"_id\": 1}",
                                        "{\"b\": 1, \"a\": 1, \"_id\": 1}",
                                        "{\"b\": -1, \"a\": -1, \"_id\": -1}",
                                        "{\"_id\": -1}",
                                        "{\"d\": 1, \"a\": 1, \"_id\": -1}",
                                        "{\"d\": -1, \"_id\": 1}",
                                        "{\"a.c\": 1, \"_id\": 1}"};
    static const char *const projections[] = {"{\"b\": 1, \"_id\": 0}", "{\"a\": 1, \"b\": 1, \"_id\": 1}",
                                              "{\"d\": 1}", "{\"d\": 1, \"b\": 1, \"_id\": 0}"};
    *out = (struct random_query){.batch_size = (int)prng_below(prng, 12) + 1};
    if (prng_below(prng, 12) == 0)
        snprintf(out->filter, sizeof out->filter, "{}");
    else
        random_filter(prng, 1, out->filter, sizeof out->filter);
    if (prng_below(prng, 2) == 0) {
        snprintf(out->sort, sizeof out->sort, ", \"sort\": %s", pick(prng, sorts, COUNT(sorts)));
        out->total_order = true;
    }
    if (prng_below(prng, 3) == 0)
        snprintf(out->projection, sizeof out->projection, ", \"projection\": %s",
                 pick(prng, projections, COUNT(projections)));
    if (prng_below(prng, 6) == 0)
        snprintf(out->collation, sizeof out->collation, ", \"collation\": {\"locale\": \"en\", \"strength\": 2}");
    if (prng_below(prng, 4) == 0)
        out->limit = (int)prng_below(prng, 10) + 1;
    if (prng_below(prng, 6) == 0)
        out->skip = (int)prng_below(prng, 10);
    if (!out->total_order)
        out->skip = 0;
}

void random_query_find(const struct random_query *query, int coll, char *out, size_t size)
{
    snprintf(out, size, "{\"find\": \"c%d\", \"filter\": %s%s%s%s, \"limit\": %d, \"skip\": %d, \"batchSize\": %d}",
             coll, query->filter, query->sort, query->projection, query->collation, query->limit, query->skip,
             query->batch_size);
}
