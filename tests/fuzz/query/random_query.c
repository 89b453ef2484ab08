#include "tests/fuzz/query/random_query.h"

#include <stdio.h>
#include <string.h>

/* A name, and what usually stands behind it. */
struct word {
    const char *name;
    char operand; /* v any value, d document, f filter, o operators, e expression, l list of values, F list of filters,
                     E list of expressions, u update fields, p push, s sort, g group, a accumulator, n small number, S
                     list of stages */
};

static const struct word field_words[] = {{"a", 'v'},   {"b", 'v'}, {"a.b", 'v'}, {"a.0", 'v'}, {"b.c.d", 'v'},
                                          {"_id", 'v'}, {"c", 'v'}, {"", 'v'},    {"a.", 'v'},  {"$x", 'v'}};
static const struct word filter_words[] = {{"a", 'o'},     {"b", 'v'},    {"a.b", 'o'},      {"a.1", 'o'},
                                           {"c", 'o'},     {"$and", 'F'}, {"$or", 'F'},      {"$nor", 'F'},
                                           {"$expr", 'e'}, {"_id", 'v'},  {"$comment", 'v'}, {"a.0.b", 'o'}};
static const struct word operator_words[] = {
    {"$eq", 'v'},        {"$ne", 'v'},         {"$gt", 'v'},           {"$gte", 'v'},  {"$lt", 'v'},
    {"$lte", 'v'},       {"$in", 'l'},         {"$nin", 'l'},          {"$not", 'o'},  {"$all", 'l'},
    {"$elemMatch", 'f'}, {"$elemMatch", 'o'},  {"$size", 'n'},         {"$type", 'n'}, {"$mod", 'l'},
    {"$exists", 'v'},    {"$bitsAllSet", 'n'}, {"$bitsAnyClear", 'l'}, {"$regex", 'v'}};
static const struct word expr_words[] = {
    {"$add", 'E'},          {"$subtract", 'E'},      {"$multiply", 'E'},      {"$divide", 'E'},
    {"$mod", 'E'},          {"$cond", 'E'},          {"$ifNull", 'E'},        {"$eq", 'E'},
    {"$cmp", 'E'},          {"$and", 'E'},           {"$not", 'E'},           {"$concat", 'E'},
    {"$size", 'e'},         {"$slice", 'E'},         {"$arrayElemAt", 'E'},   {"$concatArrays", 'E'},
    {"$range", 'E'},        {"$substrCP", 'E'},      {"$substrBytes", 'E'},   {"$split", 'E'},
    {"$mergeObjects", 'E'}, {"$objectToArray", 'e'}, {"$arrayToObject", 'e'}, {"$sum", 'E'},
    {"$avg", 'e'},          {"$max", 'E'},           {"$setUnion", 'E'},      {"$setDifference", 'E'},
    {"$toString", 'e'},     {"$toLong", 'e'},        {"$year", 'e'},          {"$literal", 'v'},
    {"$pow", 'E'},          {"$round", 'E'},         {"$trunc", 'E'},         {"$indexOfCP", 'E'},
    {"$trim", 'd'},         {"$zip", 'd'},           {"$filter", 'd'},        {"$map", 'd'},
    {"$let", 'd'},          {"$type", 'e'},          {"$dateToString", 'd'},  {"$reverseArray", 'e'},
    {"$in", 'E'},           {"$stdDevPop", 'E'},     {"$convert", 'd'},       {"x", 'e'}};
static const struct word update_words[] = {
    {"$set", 'u'},  {"$unset", 'u'},       {"$inc", 'u'},         {"$mul", 'u'},     {"$min", 'u'}, {"$max", 'u'},
    {"$push", 'U'}, {"$addToSet", 'U'},    {"$pull", 'O'},        {"$pullAll", 'L'}, {"$pop", 'N'}, {"$rename", 'R'},
    {"$bit", 'B'},  {"$setOnInsert", 'u'}, {"$currentDate", 'u'}, {"a", 'v'}};
static const struct word path_words[] = {{"a", 'v'},   {"b", 'v'},     {"a.b", 'v'}, {"a.0", 'v'},
                                         {"a.3", 'v'}, {"a.$[]", 'v'}, {"c.d", 'v'}, {"a.$[].b", 'v'},
                                         {"a.$", 'v'}, {"_id", 'v'},   {"b.c", 'v'}, {"a.$[e]", 'v'}};
static const struct word push_words[] = {
    {"$each", 'l'}, {"$slice", 'n'}, {"$position", 'n'}, {"$sort", 's'}, {"$sort", 'n'}};
static const struct word projection_words[] = {{"a", 'n'}, {"b", 'n'},   {"a.b", 'n'}, {"_id", 'n'}, {"c", 'e'},
                                               {"a", 'X'}, {"b.c", 'n'}, {"d", 'd'},   {"a.$", 'n'}};
static const struct word sort_words[] = {{"a", 'D'}, {"b", 'D'}, {"a.b", 'D'}, {"_id", 'D'}, {"b.0", 'D'}};
static const struct word stage_words[] = {{"$match", 'f'},
                                          {"$project", 'P'},
                                          {"$addFields", 'x'},
                                          {"$unset", 'v'},
                                          {"$limit", 'n'},
                                          {"$skip", 'n'},
                                          {"$sort", 's'},
                                          {"$count", 'v'},
                                          {"$group", 'g'},
                                          {"$unwind", 'v'},
                                          {"$sortByCount", 'e'},
                                          {"$replaceRoot", 'd'},
                                          {"$replaceWith", 'e'},
                                          {"$facet", 'T'},
                                          {"$bucket", 'd'},
                                          {"$bucketAuto", 'd'},
                                          {"$redact", 'e'},
                                          {"$_internalGroupMerge", 'g'},
                                          {"$_internalGroupPartial", 'g'}};
static const struct word group_words[] = {{"_id", 'e'}, {"_id", 'e'}, {"s", 'a'}, {"t", 'a'}};
static const struct word accumulator_words[] = {
    {"$sum", 'e'},  {"$avg", 'e'},  {"$min", 'e'},      {"$max", 'e'},       {"$first", 'e'},
    {"$last", 'e'}, {"$push", 'e'}, {"$addToSet", 'e'}, {"$stdDevPop", 'e'}, {"$mergeObjects", 'e'}};

static const struct word key_words[] = {{"a", 'D'},     {"a", 'D'},   {"b", 'D'},   {"a.b", 'D'},
                                        {"_id", 'D'},   {"c", 'h'},   {"a.0", 'D'}, {"$**", 'D'},
                                        {"a.$**", 'D'}, {"b.c", 'D'}, {"d", 'v'},   {"", 'D'}};
static const struct word index_words[] = {{"unique", 'y'},
                                          {"sparse", 'y'},
                                          {"hidden", 'y'},
                                          {"partialFilterExpression", 'f'},
                                          {"collation", 'c'},
                                          {"v", 'n'},
                                          {"background", 'y'},
                                          {"expireAfterSeconds", 'n'},
                                          {"wildcardProjection", 'P'},
                                          {"key", 'k'},
                                          {"name", 'v'},
                                          {"nope", 'v'},
                                          {"prepareUnique", 'y'},
                                          {"weights", 'd'},
                                          {"sparse", 'v'},
                                          {"collation", 'd'},
                                          {"unique", 'v'},
                                          {"bits", 'n'}};

#define WORDS(list)                                                                                                    \
    {                                                                                                                  \
        list, sizeof(list) / sizeof *(list)                                                                            \
    }
static const struct {
    const struct word *words;
    size_t count;
} vocabulary[] = {
    [RANDOM_DOCUMENT] = WORDS(field_words),
    [RANDOM_FILTER] = WORDS(filter_words),
    [RANDOM_OPERATORS] = WORDS(operator_words),
    [RANDOM_EXPRESSION] = WORDS(expr_words),
    [RANDOM_UPDATE] = WORDS(update_words),
    [RANDOM_UPDATE_FIELDS] = WORDS(path_words),
    [RANDOM_PUSH] = WORDS(push_words),
    [RANDOM_PROJECTION] = WORDS(projection_words),
    [RANDOM_SORT] = WORDS(sort_words),
    [RANDOM_STAGE] = WORDS(stage_words),
    [RANDOM_GROUP] = WORDS(group_words),
    [RANDOM_ACCUMULATOR] = WORDS(accumulator_words),
    [RANDOM_KEY] = WORDS(key_words),
    [RANDOM_INDEX] = WORDS(index_words),
};

static void append_value(struct chooser *choose, bson_t *to, const char *key, int depth);

static void append_strings(struct chooser *choose, bson_t *to, const char *key)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "abc",
                                        "$a",
                                        "$a.b",
                                        "$$ROOT",
                                        "$b",
                                        "date",
                                        "12",
                                        "1.5e3",
                                        "\xc3\xa9t\xc3\xa9",
                                        "b.c",
                                        "$$CURRENT.a",
                                        "2024-01-02T03:04:05Z",
                                        "^a.*",
                                        "$$this"};
    /* The macro uses its arguments twice. */
    const char *text = texts[chooser_below(choose, sizeof texts / sizeof *texts)];
    BSON_APPEND_UTF8(to, key, text);
}

static void append_number(struct chooser *choose, bson_t *to, const char *key)
{
    static const double doubles[] = {0.0, -0.0, 1.5, 1e300, -1e18, 9.3e18, 0.1};
    bson_decimal128_t dec;
    switch (chooser_below(choose, 6)) {
    case 0:
        BSON_APPEND_DOUBLE(to, key, doubles[chooser_below(choose, sizeof doubles / sizeof *doubles)]);
        break;
    case 1:
        BSON_APPEND_INT64(to, key, chooser_below(choose, 2) == 0 ? INT64_MIN : INT64_MAX);
        break;
    case 2:
        bson_decimal128_from_string(chooser_below(choose, 2) == 0 ? "1.50" : "9.99E+6000", &dec);
        BSON_APPEND_DECIMAL128(to, key, &dec);
        break;
    default:
        BSON_APPEND_INT32(to, key, (int32_t)chooser_below(choose, 12) - 3);
        break;
    }
}

static void append_other(struct chooser *choose, bson_t *to, const char *key)
{
    switch (chooser_below(choose, 8)) {
    case 0:
        BSON_APPEND_NULL(to, key);
        break;
    case 1:
        BSON_APPEND_BOOL(to, key, chooser_below(choose, 2) == 0);
        break;
    case 2:
        BSON_APPEND_DATE_TIME(to, key, (int64_t)chooser_next(choose) >> chooser_below(choose, 40));
        break;
    case 3:
        BSON_APPEND_REGEX(to, key, chooser_below(choose, 3) == 0 ? "(" : "^a", "i");
        break;
    case 4:
        BSON_APPEND_BINARY(to, key, BSON_SUBTYPE_BINARY, (const uint8_t *)"abc", (uint32_t)chooser_below(choose, 4));
        break;
    case 5:
        BSON_APPEND_UNDEFINED(to, key);
        break;
    case 6:
        BSON_APPEND_MAXKEY(to, key);
        break;
    default:
        BSON_APPEND_TIMESTAMP(to, key, 5, 6);
        break;
    }
}

static void append_values(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t array;
    char name[16];
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    for (int i = (int)chooser_below(choose, 4); i > 0; i--) {
        snprintf(name, sizeof name, "%u", bson_count_keys(&array));
        append_value(choose, &array, name, depth - 1);
    }
    bson_append_array_end(to, &array);
}

static void append_value(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    uint64_t choice = chooser_below(choose, depth > 0 ? 8 : 6);
    if (choice < 3)
        append_number(choose, to, key);
    else if (choice < 5)
        append_strings(choose, to, key);
    else if (choice == 5)
        append_other(choose, to, key);
    else if (choice == 6)
        append_values(choose, to, key, depth);
    else
        random_query_append(choose, to, key, RANDOM_DOCUMENT, depth - 1);
}

static void append_expression(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    if (depth <= 0 || chooser_below(choose, 3) == 0)
        append_value(choose, to, key, 1);
    else
        random_query_append(choose, to, key, RANDOM_EXPRESSION, depth);
}

static void append_expressions(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t array;
    char name[16];
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    for (int i = (int)chooser_below(choose, 4); i > 0; i--) {
        snprintf(name, sizeof name, "%u", bson_count_keys(&array));
        append_expression(choose, &array, name, depth - 1);
    }
    bson_append_array_end(to, &array);
}

static void append_facets(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t doc;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
    random_query_append_list(choose, &doc, "x", RANDOM_STAGE, depth - 1);
    bson_append_document_end(to, &doc);
}

/* {path: {kind}}, for operators whose fields have operands of their own. */
static void append_below_paths(struct chooser *choose, bson_t *to, const char *key, char operand, int depth)
{
    bson_t doc;
    bson_t bits;
    const char *path = path_words[chooser_below(choose, sizeof path_words / sizeof *path_words)].name;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
    if (operand == 'U') {
        random_query_append(choose, &doc, path, RANDOM_PUSH, depth - 1);
    } else if (operand == 'O') {
        random_query_append(choose, &doc, path, chooser_below(choose, 2) == 0 ? RANDOM_OPERATORS : RANDOM_FILTER,
                            depth - 1);
    } else if (operand == 'L') {
        append_values(choose, &doc, path, depth);
    } else if (operand == 'N') {
        append_number(choose, &doc, path);
    } else if (operand == 'R') {
        const char *target = path_words[chooser_below(choose, sizeof path_words / sizeof *path_words)].name;
        BSON_APPEND_UTF8(&doc, path, target);
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(&doc, path, &bits);
        append_number(choose, &bits, chooser_below(choose, 2) == 0 ? "and" : "xor");
        bson_append_document_end(&doc, &bits);
    }
    bson_append_document_end(to, &doc);
}

static void append_projection_operator(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t doc;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
    if (chooser_below(choose, 2) == 0)
        append_number(choose, &doc, "$slice");
    else
        random_query_append(choose, &doc, "$elemMatch", RANDOM_FILTER, depth - 1);
    bson_append_document_end(to, &doc);
}

static void append_collation(struct chooser *choose, bson_t *to, const char *key)
{
    static const char *const locales[] = {"en", "simple", "de", "xx"};
    bson_t doc;
    const char *locale = locales[chooser_below(choose, sizeof locales / sizeof *locales)];
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
    BSON_APPEND_UTF8(&doc, "locale", locale);
    if (chooser_below(choose, 2) == 1)
        BSON_APPEND_INT32(&doc, "strength", (int32_t)chooser_below(choose, 7));
    bson_append_document_end(to, &doc);
}

static void append_operand(struct chooser *choose, bson_t *to, const struct word *word, int depth)
{
    static const struct {
        char operand;
        enum random_kind kind;
    } documents[] = {{'d', RANDOM_DOCUMENT},      {'f', RANDOM_FILTER},      {'o', RANDOM_OPERATORS},
                     {'u', RANDOM_UPDATE_FIELDS}, {'p', RANDOM_PUSH},        {'s', RANDOM_SORT},
                     {'g', RANDOM_GROUP},         {'a', RANDOM_ACCUMULATOR}, {'P', RANDOM_PROJECTION},
                     {'x', RANDOM_PROJECTION},    {'k', RANDOM_KEY}};
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        if (documents[i].operand == word->operand) {
            random_query_append(choose, to, word->name, documents[i].kind, depth - 1);
            return;
        }
    }
    if (word->operand == 'e')
        append_expression(choose, to, word->name, depth - 1);
    else if (word->operand == 'E')
        append_expressions(choose, to, word->name, depth - 1);
    else if (word->operand == 'l')
        append_values(choose, to, word->name, depth);
    else if (word->operand == 'F')
        random_query_append_list(choose, to, word->name, RANDOM_FILTER, depth - 1);
    else if (word->operand == 'T')
        append_facets(choose, to, word->name, depth);
    else if (word->operand == 'n')
        append_number(choose, to, word->name);
    else if (word->operand == 'D')
        BSON_APPEND_INT32(to, word->name, chooser_below(choose, 2) == 0 ? 1 : -1);
    else if (word->operand == 'y')
        BSON_APPEND_BOOL(to, word->name, chooser_below(choose, 4) != 0);
    else if (word->operand == 'h')
        BSON_APPEND_UTF8(to, word->name, "hashed");
    else if (word->operand == 'c')
        append_collation(choose, to, word->name);
    else if (word->operand == 'X')
        append_projection_operator(choose, to, word->name, depth);
    else if (strchr("UOLNRB", word->operand) != NULL)
        append_below_paths(choose, to, word->name, word->operand, depth);
    else
        append_value(choose, to, word->name, depth);
}

void random_query_append(struct chooser *choose, bson_t *to, const char *key, enum random_kind kind, int depth)
{
    bson_t doc;
    bool single = kind == RANDOM_EXPRESSION || kind == RANDOM_STAGE || kind == RANDOM_ACCUMULATOR;
    int fields = single ? 1 : (int)chooser_below(choose, 4);
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
    if (kind == RANDOM_INDEX && chooser_below(choose, 8) != 7) {
        random_query_append(choose, &doc, "key", RANDOM_KEY, depth - 1);
        BSON_APPEND_UTF8(&doc, "name", "i");
    }
    for (; fields > 0; fields--) {
        const struct word *word = &vocabulary[kind].words[chooser_below(choose, vocabulary[kind].count)];
        /* What a document with one name twice means is nobody's business. */
        if (kind == RANDOM_DOCUMENT && bson_has_field(&doc, word->name))
            continue;
        /* Now and then something that doesn't belong there. */
        if (depth <= 0 || chooser_below(choose, 12) == 0)
            append_value(choose, &doc, word->name, depth);
        else
            append_operand(choose, &doc, word, depth);
    }
    bson_append_document_end(to, &doc);
}

void random_query_append_list(struct chooser *choose, bson_t *to, const char *key, enum random_kind kind, int depth)
{
    bson_t array;
    char name[16];
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    for (int i = (int)chooser_below(choose, 4); i > 0; i--) {
        snprintf(name, sizeof name, "%u", bson_count_keys(&array));
        random_query_append(choose, &array, name, kind, depth);
    }
    bson_append_array_end(to, &array);
}
