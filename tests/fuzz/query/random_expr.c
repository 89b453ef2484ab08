#include "tests/fuzz/query/random_expr.h"

#include <stdio.h>
#include <string.h>

/* An operator; `args` are names of arguments, or "1" to "4": so many in a list, "*": any number. */
struct operator_word {
    const char *name;
    const char *args;
};

static const struct operator_word operators[] = {
    {"$add", "*"},
    {"$subtract", "2"},
    {"$multiply", "*"},
    {"$divide", "2"},
    {"$mod", "2"},
    {"$abs", "1"},
    {"$floor", "1"},
    {"$ceil", "1"},
    {"$round", "2"},
    {"$trunc", "2"},
    {"$sqrt", "1"},
    {"$exp", "1"},
    {"$ln", "1"},
    {"$log10", "1"},
    {"$log", "2"},
    {"$pow", "2"},
    {"$sin", "1"},
    {"$acosh", "1"},
    {"$atan2", "2"},
    {"$degreesToRadians", "1"},
    {"$bitAnd", "*"},
    {"$bitNot", "1"},
    {"$tsSecond", "1"},
    {"$binarySize", "1"},
    {"$bsonSize", "1"},
    {"$eq", "2"},
    {"$cmp", "2"},
    {"$gt", "2"},
    {"$and", "*"},
    {"$or", "*"},
    {"$not", "1"},
    {"$cond", "if then else"},
    {"$ifNull", "*"},
    {"$concat", "*"},
    {"$toLower", "1"},
    {"$strcasecmp", "2"},
    {"$strLenCP", "1"},
    {"$substrBytes", "3"},
    {"$substrCP", "3"},
    {"$indexOfBytes", "4"},
    {"$indexOfCP", "4"},
    {"$split", "2"},
    {"$trim", "input chars"},
    {"$replaceOne", "input find replacement"},
    {"$replaceAll", "input find replacement"},
    {"$regexMatch", "input regex options"},
    {"$regexFind", "input regex"},
    {"$regexFindAll", "input regex"},
    {"$size", "1"},
    {"$arrayElemAt", "2"},
    {"$first", "1"},
    {"$concatArrays", "*"},
    {"$in", "2"},
    {"$indexOfArray", "4"},
    {"$reverseArray", "1"},
    {"$slice", "3"},
    {"$range", "3"},
    {"$sortArray", "input sortBy"},
    {"$firstN", "n input"},
    {"$lastN", "n input"},
    {"$minN", "n input"},
    {"$maxN", "n input"},
    {"$map", "input in"},
    {"$filter", "input cond limit"},
    {"$reduce", "input initialValue in"},
    {"$setUnion", "*"},
    {"$setIntersection", "*"},
    {"$setDifference", "2"},
    {"$setEquals", "2"},
    {"$setIsSubset", "2"},
    {"$anyElementTrue", "1"},
    {"$mergeObjects", "*"},
    {"$objectToArray", "1"},
    {"$arrayToObject", "1"},
    {"$getField", "field input"},
    {"$setField", "field input value"},
    {"$type", "1"},
    {"$isNumber", "1"},
    {"$toHashedIndexKey", "1"},
    {"$sum", "*"},
    {"$avg", "*"},
    {"$min", "*"},
    {"$stdDevSamp", "*"},
    {"$median", "input method"},
    {"$percentile", "input p method"},
    {"$toString", "1"},
    {"$toInt", "1"},
    {"$toLong", "1"},
    {"$toDouble", "1"},
    {"$toDecimal", "1"},
    {"$toBool", "1"},
    {"$toDate", "1"},
    {"$toObjectId", "1"},
    {"$toUUID", "1"},
    {"$convert", "input to format"},
    {"$convert", "input to base"},
    {"$convert", "input to onError byteOrder"},
    {"$year", "date timezone"},
    {"$isoWeekYear", "date timezone"},
    {"$week", "1"},
    {"$dateToString", "date format timezone"},
    {"$dateFromString", "dateString format timezone"},
    {"$dateFromString", "dateString"},
    {"$dateFromParts", "year month day hour minute second timezone"},
    {"$dateFromParts", "isoWeekYear isoWeek isoDayOfWeek"},
    {"$dateToParts", "date timezone iso8601"},
    {"$dateAdd", "startDate unit amount timezone"},
    {"$dateSubtract", "startDate unit amount"},
    {"$dateDiff", "startDate endDate unit timezone startOfWeek"},
    {"$dateTrunc", "date unit binSize timezone"},
    {"$dateTrunc", "date unit startOfWeek"},
    {"$literal", "1"},
    {"$rand", "*"},
    {"$zip", "inputs"},
    {"$meta", "1"},
};

static void append_text(struct chooser *choose, bson_t *to, const char *key)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "abc",
                                        "a b,a",
                                        "\xc3\xa9t\xc3\xa9",
                                        "12",
                                        "-7",
                                        "1e5",
                                        "2024-02-29T03:04:05.678+02:00",
                                        "May 5, 2024 3:04 pm",
                                        "%Y-%m-%dT%H:%M:%S.%L%z",
                                        "%G W%V %u%%",
                                        "Europe/Berlin",
                                        "+05:45",
                                        "UTC",
                                        "day",
                                        "month",
                                        "week",
                                        "hour",
                                        "monday",
                                        "approximate",
                                        "a(b)?|c",
                                        "^[a-z]+$",
                                        "i",
                                        "int",
                                        "binData",
                                        "string",
                                        "base64",
                                        "hex",
                                        "auto",
                                        "big",
                                        "aGVsbG8=",
                                        "00112233-4455-6677-8899-aabbccddeeff"};
    const char *text = texts[chooser_below(choose, sizeof texts / sizeof *texts)];
    BSON_APPEND_UTF8(to, key, text);
}

static void append_path(struct chooser *choose, bson_t *to, const char *key)
{
    static const char *const paths[] = {"$a",     "$b",      "$a.b",  "$b.c.d",  "$$ROOT",
                                        "$$this", "$$value", "$$NOW", "$$REMOVE"};
    const char *path = paths[chooser_below(choose, sizeof paths / sizeof *paths)];
    BSON_APPEND_UTF8(to, key, path);
}

static void append_number(struct chooser *choose, bson_t *to, const char *key)
{
    static const double doubles[] = {0.5, -1.5, 1e300, 9.3e18, -0.0, 5e-324};
    static const char *const decimals[] = {"1.50", "-0", "9.99E+6000", "NaN", "Infinity", "1E-6176"};
    bson_decimal128_t dec;
    switch (chooser_below(choose, 5)) {
    case 0:
        BSON_APPEND_DOUBLE(to, key, doubles[chooser_below(choose, sizeof doubles / sizeof *doubles)]);
        break;
    case 1:
        BSON_APPEND_INT64(to, key, chooser_below(choose, 2) == 0 ? INT64_MIN : INT64_MAX);
        break;
    case 2:
        bson_decimal128_from_string(decimals[chooser_below(choose, sizeof decimals / sizeof *decimals)], &dec);
        BSON_APPEND_DECIMAL128(to, key, &dec);
        break;
    default:
        BSON_APPEND_INT32(to, key, (int32_t)chooser_below(choose, 40) - 8);
        break;
    }
}

static void append_other(struct chooser *choose, bson_t *to, const char *key)
{
    bson_oid_t oid;
    switch (chooser_below(choose, 7)) {
    case 0:
        BSON_APPEND_NULL(to, key);
        break;
    case 1:
        BSON_APPEND_BOOL(to, key, true);
        break;
    case 2:
        BSON_APPEND_DATE_TIME(to, key, (int64_t)chooser_next(choose) >> chooser_below(choose, 40));
        break;
    case 3:
        BSON_APPEND_BINARY(to, key, BSON_SUBTYPE_BINARY, (const uint8_t *)"abcdefgh",
                           (uint32_t)chooser_below(choose, 9));
        break;
    case 4:
        bson_oid_init_from_string(&oid, "0123456789abcdef01234567");
        BSON_APPEND_OID(to, key, &oid);
        break;
    case 5:
        BSON_APPEND_REGEX(to, key, "(a)|b", "i");
        break;
    default:
        BSON_APPEND_TIMESTAMP(to, key, 5, 6);
        break;
    }
}

static void append_list(struct chooser *choose, bson_t *to, const char *key, uint64_t count, int depth)
{
    bson_t array;
    char name[16];
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    for (uint64_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%d", (int)i);
        random_expr_append(choose, &array, name, depth - 1);
    }
    bson_append_array_end(to, &array);
}

static void append_arguments(struct chooser *choose, bson_t *to, const struct operator_word *op, int depth)
{
    bson_t named;
    if (op->args[0] == '*' || (op->args[0] >= '1' && op->args[0] <= '9')) {
        uint64_t count = op->args[0] == '*' ? chooser_below(choose, 4) : (uint64_t)(op->args[0] - '0');
        count -= count > 2 ? chooser_below(choose, 2) : 0; /* the last one may be optional */
        append_list(choose, to, op->name, count, depth);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(to, op->name, &named);
    for (const char *at = op->args; *at != 0;) {
        char name[32];
        size_t len = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        if (chooser_below(choose, 12) != 1)
            random_expr_append(choose, &named, name, depth - 1);
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    bson_append_document_end(to, &named);
}

void random_expr_append(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t doc;
    uint64_t choice = chooser_below(choose, depth > 0 ? 12 : 6);
    if (choice == 0) {
        append_other(choose, to, key);
    } else if (choice < 3) {
        append_text(choose, to, key);
    } else if (choice == 3) {
        append_path(choose, to, key);
    } else if (choice < 6) {
        append_number(choose, to, key);
    } else if (choice == 6) {
        append_list(choose, to, key, chooser_below(choose, 4), depth);
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
        if (choice == 7)
            random_expr_append(choose, &doc, "x", depth - 1);
        else
            append_arguments(choose, &doc, &operators[chooser_below(choose, sizeof operators / sizeof *operators)],
                             depth);
        bson_append_document_end(to, &doc);
    }
}

/* v value, n number, t type, b boolean, T text, s schema, S list of schemas, p named schemas, l list of values, r list
 * of names, d dependencies */
static const struct {
    const char *name;
    char operand;
} keywords[] = {
    {"bsonType", 't'},
    {"type", 't'},
    {"enum", 'l'},
    {"minimum", 'n'},
    {"maximum", 'n'},
    {"exclusiveMinimum", 'b'},
    {"multipleOf", 'n'},
    {"minLength", 'n'},
    {"maxLength", 'n'},
    {"pattern", 'T'},
    {"minItems", 'n'},
    {"maxItems", 'n'},
    {"uniqueItems", 'b'},
    {"items", 's'},
    {"items", 'S'},
    {"additionalItems", 'b'},
    {"additionalItems", 's'},
    {"minProperties", 'n'},
    {"maxProperties", 'n'},
    {"required", 'r'},
    {"properties", 'p'},
    {"patternProperties", 'p'},
    {"additionalProperties", 'b'},
    {"additionalProperties", 's'},
    {"dependencies", 'p'},
    {"dependencies", 'd'},
    {"allOf", 'S'},
    {"anyOf", 'S'},
    {"oneOf", 'S'},
    {"not", 's'},
    {"title", 'T'},
    {"nope", 'n'},
};

static const char *property(struct chooser *choose)
{
    static const char *const names[] = {"a", "b", "_id", "c", "x", "d"};
    return names[chooser_below(choose, sizeof names / sizeof *names)];
}

static void append_names(struct chooser *choose, bson_t *to, const char *key)
{
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    const char *name = property(choose);
    BSON_APPEND_UTF8(&array, "0", name);
    if (chooser_below(choose, 2) == 1) {
        name = property(choose);
        BSON_APPEND_UTF8(&array, "1", name);
    }
    bson_append_array_end(to, &array);
}

static void append_schemas(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    random_schema_append(choose, &array, "0", depth - 1);
    if (chooser_below(choose, 2) == 1)
        random_schema_append(choose, &array, "1", depth - 1);
    bson_append_array_end(to, &array);
}

static void append_keyword(struct chooser *choose, bson_t *to, const char *name, char operand, int depth)
{
    static const char *const types[] = {"int", "string", "object", "array", "number", "null", "double", "bool"};
    bson_t doc;
    const char *type;
    switch (operand) {
    case 't':
        type = types[chooser_below(choose, sizeof types / sizeof *types)];
        BSON_APPEND_UTF8(to, name, type);
        break;
    case 'n':
        append_number(choose, to, name);
        break;
    case 'b':
        BSON_APPEND_BOOL(to, name, chooser_below(choose, 2) == 0);
        break;
    case 'T':
        append_text(choose, to, name);
        break;
    case 's':
        random_schema_append(choose, to, name, depth - 1);
        break;
    case 'S':
        append_schemas(choose, to, name, depth);
        break;
    case 'l':
        append_list(choose, to, name, 1 + chooser_below(choose, 3), 1);
        break;
    case 'r':
        append_names(choose, to, name);
        break;
    default:
        BSON_APPEND_DOCUMENT_BEGIN(to, name, &doc);
        for (uint64_t i = chooser_below(choose, 3); i > 0; i--) {
            const char *inner = property(choose);
            if (operand == 'd')
                append_names(choose, &doc, inner);
            else
                random_schema_append(choose, &doc, inner, depth - 1);
        }
        bson_append_document_end(to, &doc);
        break;
    }
}

void random_schema_append(struct chooser *choose, bson_t *to, const char *key, int depth)
{
    bson_t doc;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &doc);
    for (uint64_t i = depth > 0 ? 1 + chooser_below(choose, 3) : 0; i > 0; i--) {
        size_t word = chooser_below(choose, sizeof keywords / sizeof *keywords);
        append_keyword(choose, &doc, keywords[word].name, keywords[word].operand, depth);
    }
    bson_append_document_end(to, &doc);
}
