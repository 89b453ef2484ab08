/* {name: {$op: operand}} of $group, $bucket and $bucketAuto. */
#include "aggregate/accumulator.h"

#include <string.h>

static const struct {
    const char *name;
    enum accumulator_op op;
} names[] = {
    {"$sum", ACCUMULATOR_SUM},
    {"$count", ACCUMULATOR_COUNT},
    {"$avg", ACCUMULATOR_AVG},
    {"$min", ACCUMULATOR_MIN},
    {"$max", ACCUMULATOR_MAX},
    {"$first", ACCUMULATOR_FIRST},
    {"$last", ACCUMULATOR_LAST},
    {"$push", ACCUMULATOR_PUSH},
    {"$addToSet", ACCUMULATOR_ADD_TO_SET},
    {"$stdDevPop", ACCUMULATOR_DEV_POP},
    {"$stdDevSamp", ACCUMULATOR_DEV_SAMP},
    {"$mergeObjects", ACCUMULATOR_MERGE_OBJECTS},
    {"$firstN", ACCUMULATOR_FIRST_N},
    {"$lastN", ACCUMULATOR_LAST_N},
    {"$minN", ACCUMULATOR_MIN_N},
    {"$maxN", ACCUMULATOR_MAX_N},
    {"$top", ACCUMULATOR_TOP},
    {"$topN", ACCUMULATOR_TOP_N},
    {"$bottom", ACCUMULATOR_BOTTOM},
    {"$bottomN", ACCUMULATOR_BOTTOM_N},
    {"$median", ACCUMULATOR_MEDIAN},
    {"$percentile", ACCUMULATOR_PERCENTILE},
};

/* What is handed around while one field is read. */
struct compiler {
    struct arena *arena;
    const struct expr_env *env;
    struct accumulator_field *field;
    const char *name; /* the operator's */
    struct err *err;
};

/* Named operands of an accumulator; those that it doesn't know stay BT_EOO. */
struct operands {
    struct bval n;
    struct bval input; /* or output */
    struct bval sort_by;
    struct bval p;
    struct bval method;
};

/* Codes of what is wrong with them. */
struct codes {
    int32_t not_object;
    int32_t unknown;
    int32_t no_n;
    int32_t no_input;
    int32_t no_sort_by;
};

static bool find_op(const char *name, enum accumulator_op *out, struct err *err)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].op;
            return true;
        }
    }
    if (strcmp(name, "$accumulator") == 0)
        return err_set(err, 31264, "$accumulator takes JavaScript, which this server does not run");
    return err_set(err, 15952, "unknown group operator '%s'", name);
}

/* `known`: blank-separated names; "output" is the same place as "input". */
static bool read_operands(struct compiler *c, const struct bval *operand, const char *known, const struct codes *codes,
                          struct operands *out)
{
    struct biter iter;
    struct belem elem;
    struct {
        const char *name;
        struct bval *to;
    } places[] = {{"n", &out->n}, {"input", &out->input},  {"output", &out->input}, {"sortBy", &out->sort_by},
                  {"p", &out->p}, {"method", &out->method}};
    *out = (struct operands){BVAL_MISSING, BVAL_MISSING, BVAL_MISSING, BVAL_MISSING, BVAL_MISSING};
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, codes->not_object, "the specification of %s must be an object; found %s", c->name,
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        struct bval *to = NULL;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (strcmp(places[i].name, elem.key) == 0 && strstr(known, elem.key) != NULL)
                to = places[i].to;
        if (to == NULL)
            return err_set(c->err, codes->unknown, "unknown argument of %s: %s", c->name, elem.key);
        *to = elem.val;
    }
    return true;
}

static bool need(struct compiler *c, const struct bval *val, int32_t code, const char *what)
{
    return val->type != BT_EOO || err_set(c->err, code, "%s misses its '%s'", c->name, what);
}

static bool compile_input(struct compiler *c, const struct bval *input)
{
    return expr_compile(c->arena, input, c->env, &c->field->expr, c->err);
}

static bool compile_n(struct compiler *c, const struct bval *n)
{
    int64_t ignored;
    struct bval val;
    if (!expr_compile(c->arena, n, c->env, &c->field->n, c->err))
        return false;
    if (!expr_is_constant(c->field->n))
        return true;
    return expr_eval(c->field->n, bdoc_empty(), c->arena, &val, c->err) && expr_read_n(&val, &ignored, c->err);
}

/* {n, input}. */
static bool compile_list(struct compiler *c, const struct bval *operand)
{
    bool extreme = c->field->op == ACCUMULATOR_MIN_N || c->field->op == ACCUMULATOR_MAX_N;
    const struct codes codes = {extreme ? 5787900 : 5787801, 5787901, 5787906, 5787907, 0};
    struct operands operands;
    return read_operands(c, operand, "n input", &codes, &operands) && need(c, &operands.n, codes.no_n, "n") &&
           need(c, &operands.input, codes.no_input, "input") && compile_n(c, &operands.n) &&
           compile_input(c, &operands.input);
}

/* {n, sortBy, output}. */
static bool compile_top(struct compiler *c, const struct bval *operand)
{
    static const struct codes codes = {5788001, 5788002, 5788003, 5788004, 5788005};
    bool many = c->field->op == ACCUMULATOR_TOP_N || c->field->op == ACCUMULATOR_BOTTOM_N;
    struct operands operands;
    if (!read_operands(c, operand, many ? "n sortBy output" : "sortBy output", &codes, &operands) ||
        (many && !need(c, &operands.n, codes.no_n, "n")) || !need(c, &operands.input, codes.no_input, "output") ||
        !need(c, &operands.sort_by, codes.no_sort_by, "sortBy"))
        return false;
    if (operands.sort_by.type != BT_DOCUMENT)
        return err_set(c->err, 10065, "the 'sortBy' of %s must be an object", c->name);
    if (many && !compile_n(c, &operands.n))
        return false;
    return compile_input(c, &operands.input) &&
           sort_spec_compile(c->arena, bval_doc(&operands.sort_by), c->field->order, &c->field->sort, c->err);
}

/* {input, p, method}. */
static bool compile_percentile(struct compiler *c, const struct bval *operand)
{
    bool many = c->field->op == ACCUMULATOR_PERCENTILE;
    const struct codes codes = {many ? 7429703 : 7436100, 40415, 0, 40414, 0};
    struct operands operands;
    if (!read_operands(c, operand, many ? "input p method" : "input method", &codes, &operands) ||
        !need(c, &operands.input, codes.no_input, "input") || (many && !need(c, &operands.p, 40414, "p")) ||
        !need(c, &operands.method, 40414, "method") || !percentiles_check_method(&operands.method, c->err) ||
        !compile_input(c, &operands.input))
        return false;
    if (!many)
        return percentiles_read(c->arena, NULL, &c->field->percentiles, c->err);
    struct expr *p;
    struct bval val;
    if (!expr_compile(c->arena, &operands.p, c->env, &p, c->err))
        return false;
    if (!expr_is_constant(p))
        return err_set(c->err, 7750300, "the 'p' of $percentile must be constant");
    return expr_eval(p, bdoc_empty(), c->arena, &val, c->err) &&
           percentiles_read(c->arena, &val, &c->field->percentiles, c->err);
}

static bool compile_operand(struct compiler *c, const struct bval *operand)
{
    switch (c->field->op) {
    case ACCUMULATOR_COUNT:
        if (operand->type != BT_DOCUMENT || !bdoc_is_empty(bval_doc(operand)))
            return err_set(c->err, ERR_TypeMismatch, "$count takes no arguments, i.e. $count:{}");
        return compile_input(c, &BVAL_NULL);
    case ACCUMULATOR_FIRST_N:
    case ACCUMULATOR_LAST_N:
    case ACCUMULATOR_MIN_N:
    case ACCUMULATOR_MAX_N:
        return compile_list(c, operand);
    case ACCUMULATOR_TOP:
    case ACCUMULATOR_TOP_N:
    case ACCUMULATOR_BOTTOM:
    case ACCUMULATOR_BOTTOM_N:
        return compile_top(c, operand);
    case ACCUMULATOR_MEDIAN:
    case ACCUMULATOR_PERCENTILE:
        return compile_percentile(c, operand);
    default:
        if (operand->type == BT_ARRAY)
            return err_set(c->err, 40237, "The %s accumulator is a unary operator", c->name);
        return compile_input(c, operand);
    }
}

bool accumulator_field_compile(struct arena *arena, const struct belem *elem, const struct expr_env *env,
                               struct accumulator_field *out, struct err *err)
{
    struct biter iter;
    struct belem inner;
    if (strchr(elem->key, '.') != NULL)
        return err_set(err, 40235, "The field name '%s' cannot contain '.'", elem->key);
    if (elem->key[0] == '$')
        return err_set(err, 40236, "The field name '%s' cannot be an operator name", elem->key);
    if (elem->val.type != BT_DOCUMENT)
        return err_set(err, 40234, "The field '%s' must be an accumulator object", elem->key);
    struct bdoc doc = bval_doc(&elem->val);
    biter_init(&iter, doc);
    if (bdoc_count(doc) != 1 || !biter_next(&iter, &inner))
        return err_set(err, 40238, "The field '%s' must specify one accumulator", elem->key);
    *out = (struct accumulator_field){.name = elem->key, .order = env != NULL ? env->order : NULL};
    struct compiler c = {.arena = arena, .env = env, .field = out, .name = inner.key, .err = err};
    return find_op(inner.key, &out->op, err) && compile_operand(&c, &inner.val);
}
