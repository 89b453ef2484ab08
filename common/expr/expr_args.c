/* The operands of operators: a list, a single argument, or a document of named arguments; and the error codes for what
 * is wrong with them. */
#include "expr/expr_tree.h"

#include <string.h>

enum {
    ERR_EXPR_ARG_COUNT = 16020,
    ERR_EXPR_ARG_RANGE = 28667,
    NAMED_MAX_REQUIRED = 3,
};

/* Codes of operators with named arguments; those that aren't here answer FailedToParse. */
static const struct arg_codes {
    const char *name;
    int32_t not_object;
    int32_t unknown;
    int32_t missing[NAMED_MAX_REQUIRED]; /* of each required argument */
} arg_codes[] = {
    {"$cond", 0, 17083, {17080, 17081, 17082}},
    {"$trim", 50696, 50694, {50695}},
    {"$ltrim", 50696, 50694, {50695}},
    {"$rtrim", 50696, 50694, {50695}},
    {"$replaceOne", 51751, 51750, {51749, 51748, 51747}},
    {"$replaceAll", 51751, 51750, {51749, 51748, 51747}},
    {"$regexMatch", 51103, 31024, {31022, 31023}},
    {"$regexFind", 51103, 31024, {31022, 31023}},
    {"$regexFindAll", 51103, 31024, {31022, 31023}},
    {"$dateToString", 18629, 18534, {18628}},
    {"$dateFromString", 40540, 40541, {40542}},
    {"$dateFromParts", 40519, 40518, {0}},
    {"$dateToParts", 40524, 40520, {40522}},
    {"$dateAdd", 5166400, 5166401, {5166402, 5166402, 5166402}},
    {"$dateSubtract", 5166400, 5166401, {5166402, 5166402, 5166402}},
    {"$dateDiff", 5166301, 5166302, {5166303, 5166304, 5166305}},
    {"$dateTrunc", 5439007, 5439008, {5439009, 5439010}},
    {"$sortArray", 2942500, 2942501, {2942502, 2942503}},
    {"$firstN", 5787801, 5787901, {5787906, 5787907}},
    {"$lastN", 5787801, 5787901, {5787906, 5787907}},
    {"$minN", 5787900, 5787901, {5787906, 5787907}},
    {"$maxN", 5787900, 5787901, {5787906, 5787907}},
    {"$percentile", 7429703, 40415, {40414, 40414, 40414}},
    {"$median", 7436100, 40415, {40414, 40414}},
};

static const struct arg_codes *find_codes(const struct expr_operator *op)
{
    static const struct arg_codes others = {
        "", ERR_FailedToParse, ERR_FailedToParse, {ERR_FailedToParse, ERR_FailedToParse, ERR_FailedToParse}};
    for (size_t i = 0; i < sizeof arg_codes / sizeof *arg_codes; i++)
        if (strcmp(arg_codes[i].name, op->name) == 0)
            return &arg_codes[i];
    return &others;
}

bool expr_has_arg(const struct expr *call, uint32_t index)
{
    return index < call->arg_count && call->args[index] != NULL;
}

static bool check_count(struct expr_compiler *c, const struct expr_operator *op, uint32_t count)
{
    int passed = (int)count;
    if (passed >= op->min_args && (op->max_args < 0 || passed <= op->max_args))
        return true;
    if (strcmp(op->name, "$ifNull") == 0)
        return err_set(c->err, 1257300, "$ifNull needs at least two arguments, had: %d", passed);
    if (strcmp(op->name, "$setEquals") == 0)
        return err_set(c->err, 17045, "$setEquals needs at least two arguments had: %d", passed);
    if (op->min_args == op->max_args)
        return err_set(c->err, ERR_EXPR_ARG_COUNT, "Expression %s takes exactly %d arguments. %d were passed in.",
                       op->name, op->min_args, passed);
    return err_set(c->err, ERR_EXPR_ARG_RANGE,
                   "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", op->name,
                   op->min_args, op->max_args, passed);
}

/* Place of `name` among the blank-separated names; -1: not there. */
static int named_index(const char *names, const char *name, uint32_t *count)
{
    int found = -1;
    int index = 0;
    size_t len = strlen(name);
    for (const char *at = names; *at != 0; index++) {
        size_t part = strcspn(at, " ");
        if (part == len && memcmp(at, name, len) == 0)
            found = index;
        at += part;
        at += *at == ' ' ? 1 : 0;
    }
    *count = (uint32_t)index;
    return found;
}

/* {$op: {input: ..., to: ...}}; the required arguments come first in arg_names. */
static bool compile_named(struct expr_compiler *c, struct expr *call, struct bdoc operand)
{
    const struct expr_operator *op = call->op;
    const struct arg_codes *codes = find_codes(op);
    uint32_t count;
    named_index(op->arg_names, "", &count);
    expr_reserve_args(c, call, count);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, operand);
    while (biter_next(&iter, &elem)) {
        int index = named_index(op->arg_names, elem.key, &count);
        if (index < 0)
            return err_set(c->err, codes->unknown, "%s found an unknown argument: %s", op->name, elem.key);
        if (!expr_compile_arg(c, call, (uint32_t)index, &elem.val))
            return false;
    }
    for (int i = 0; i < op->min_args; i++)
        if (call->args[i] == NULL)
            return err_set(c->err, codes->missing[i], "a required argument of %s is missing (they are: %s)", op->name,
                           op->arg_names);
    return true;
}

bool expr_compile_operand(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    const struct expr_operator *op = call->op;
    if (op->arg_names != NULL && operand->type == BT_DOCUMENT)
        return compile_named(c, call, bval_doc(operand));
    /* Of the operators with named arguments only $cond has a positional form. */
    if (op->arg_names != NULL && strcmp(op->name, "$cond") != 0)
        return err_set(c->err, find_codes(op)->not_object, "%s only supports an object as its argument, found %s",
                       op->name, bval_type_name(operand->type));
    if (operand->type != BT_ARRAY) {
        if (!check_count(c, op, 1))
            return false;
        expr_reserve_args(c, call, 1);
        return expr_compile_arg(c, call, 0, operand);
    }
    struct bdoc list = bval_doc(operand);
    uint32_t count = bdoc_count(list);
    if (!check_count(c, op, count))
        return false;
    expr_reserve_args(c, call, count);
    struct biter iter;
    struct belem item;
    uint32_t i = 0;
    biter_init(&iter, list);
    while (biter_next(&iter, &item))
        if (!expr_compile_arg(c, call, i++, &item.val))
            return false;
    return true;
}
