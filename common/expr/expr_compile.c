#include "expr/expr_tree.h"

#include <ctype.h>
#include <string.h>

enum {
    ERR_EXPR_UNKNOWN = 168,
    ERR_EXPR_FIELD_COUNT = 15983,
    ERR_EXPR_VARIABLE = 17276,
    ERR_EXPR_UNAVAILABLE = 51144,
    ERR_EXPR_EMPTY_NAME = 15998,
    ERR_EXPR_PATH_END = 40353,
    ERR_EXPR_EMPTY_PATH = 40352,
    ERR_EXPR_DOLLAR_NAME = 16410,
    ERR_EXPR_DOT_NAME = 16412,
    ERR_EXPR_NULL_NAME = 16411,
    ERR_EXPR_BAD_PATH = 16872,
    ERR_EXPR_DEPTH = 15,        /* Overflow */
    FOLD_MAX_BYTES = 64 * 1024, /* of a constant's value that is kept */
};

struct expr *expr_new(struct expr_compiler *c, enum expr_kind kind)
{
    struct expr *node = arena_alloc(c->arena, sizeof *node);
    node->kind = kind;
    node->slot = EXPR_SLOT_ROOT;
    node->slot2 = EXPR_SLOT_ROOT;
    node->order = c->env != NULL ? c->env->order : NULL;
    return node;
}

struct expr *expr_new_constant(struct expr_compiler *c, const struct bval *value)
{
    struct expr *node = expr_new(c, EXPR_CONSTANT);
    node->value = *value;
    node->constant = true;
    return node;
}

void expr_reserve_args(struct expr_compiler *c, struct expr *call, uint32_t count)
{
    call->args = arena_alloc(c->arena, (count > 0 ? count : 1) * sizeof(struct expr *));
    call->arg_count = count;
}

bool expr_compile_arg(struct expr_compiler *c, struct expr *call, uint32_t index, const struct bval *source)
{
    call->args[index] = expr_compile_value(c, source);
    return call->args[index] != NULL;
}

int expr_define(struct expr_compiler *c, const char *name, uint32_t len)
{
    bool current = len == 7 && memcmp(name, "CURRENT", 7) == 0;
    if (!current && (len == 0 || (!islower((unsigned char)name[0]) && (name[0] & 0x80) == 0))) {
        err_set(c->err, ERR_FailedToParse, "'%.*s' starts with an invalid character for a user variable name", (int)len,
                name);
        return -1;
    }
    for (uint32_t i = 1; i < len; i++) {
        unsigned char ch = (unsigned char)name[i];
        if (!isalnum(ch) && ch != '_' && (ch & 0x80) == 0) {
            err_set(c->err, ERR_FailedToParse, "'%.*s' contains an invalid character for a variable name: '%c'",
                    (int)len, name, ch);
            return -1;
        }
    }
    if (c->var_count == EXPR_MAX_VARIABLES) {
        err_set(c->err, ERR_FailedToParse, "more than %d variables in one expression", EXPR_MAX_VARIABLES);
        return -1;
    }
    c->vars[c->var_count] = (struct expr_variable){.name = name, .len = len, .slot = c->var_count};
    return c->var_count++;
}

/* Splits a dotted path into components that lie in its own text. */
static bool split_path(struct expr_compiler *c, struct expr *node, const char *text, uint32_t len)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < len; i++)
        count += text[i] == '.' ? 1 : 0;
    if (len == 0)
        return err_set(c->err, ERR_EXPR_EMPTY_PATH, "FieldPath cannot be constructed with empty string");
    if (text[len - 1] == '.')
        return err_set(c->err, ERR_EXPR_PATH_END, "FieldPath must not end with a '.'.");
    if (memchr(text, 0, len) != NULL)
        return err_set(c->err, ERR_EXPR_NULL_NAME, "FieldPath field names may not contain '\\0'.");
    if (count > BDOC_MAX_WIRE_DEPTH)
        return err_set(c->err, ERR_EXPR_DEPTH, "FieldPath is too long");
    node->path = arena_copy_str(c->arena, text, len);
    node->names = arena_alloc(c->arena, count * sizeof *node->names);
    const char *at = node->path;
    for (uint32_t i = 0; i < count; i++) {
        const char *dot = strchr(at, '.');
        size_t part = dot != NULL ? (size_t)(dot - at) : strlen(at);
        if (part == 0)
            return err_set(c->err, ERR_EXPR_EMPTY_NAME, "FieldPath field names may not be empty strings.");
        if (at[0] == '$')
            return err_set(c->err, ERR_EXPR_DOLLAR_NAME,
                           "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
        node->names[i] = (struct expr_name){at, (uint32_t)part};
        at += part + 1;
    }
    node->name_count = count;
    return true;
}

/* $$NOW, $$REMOVE and their like: constants. False: no such name. */
static bool find_constant(struct expr_compiler *c, const char *name, uint32_t len, struct bval *out)
{
    *out = BVAL_MISSING;
    if (len == 6 && memcmp(name, "REMOVE", 6) == 0)
        return true;
    if (len == 3 && memcmp(name, "NOW", 3) == 0) {
        *out = make_date(c->arena, c->env != NULL ? c->env->now_ms : 0);
        return true;
    }
    if (len == 12 && memcmp(name, "CLUSTER_TIME", 12) == 0 && c->env != NULL && c->env->cluster_time != 0) {
        *out = make_timestamp(c->arena, c->env->cluster_time);
        return true;
    }
    /* What $redact's expression answers with. */
    static const char *const verdicts[] = {"keep", "KEEP", "prune", "PRUNE", "descend", "DESCEND"};
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i += 2) {
        if (strlen(verdicts[i + 1]) == len && memcmp(verdicts[i + 1], name, len) == 0) {
            *out = make_str(c->arena, verdicts[i], strlen(verdicts[i]));
            return true;
        }
    }
    return false;
}

/* A variable of the command's `let`: its expression, which reads no document, is evaluated here. */
static bool find_let(struct expr_compiler *c, const char *name, uint32_t len, bool *found, struct bval *out)
{
    struct bval source;
    *found = c->env != NULL && c->env->let.data != NULL && bdoc_find_n(c->env->let, name, len, &source);
    if (!*found)
        return true;
    struct expr_env outer = *c->env;
    outer.let = (struct bdoc){0};
    struct expr *expr;
    return expr_compile(c->arena, &source, &outer, &expr, c->err) &&
           expr_eval(expr, bdoc_empty(), c->arena, out, c->err);
}

static struct expr *constant_path(struct expr_compiler *c, struct bval value, const char *rest, uint32_t rest_len)
{
    if (rest_len == 0)
        return expr_new_constant(c, &value);
    /* A path into a constant: walked when it runs. */
    struct expr *node = expr_new(c, EXPR_PATH);
    if (!split_path(c, node, rest, rest_len))
        return NULL;
    expr_reserve_args(c, node, 1);
    node->args[0] = expr_new_constant(c, &value);
    node->constant = true;
    return node;
}

/* Variables of MongoDB that have no value here: there are no users yet, and no cluster time before it is known. */
static bool is_unavailable(uint32_t len, const char *name)
{
    static const char *const names[] = {"CLUSTER_TIME", "USER_ROLES", "SEARCH_META"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* "$$name.rest". */
static struct expr *compile_variable(struct expr_compiler *c, const char *text, uint32_t len)
{
    const char *dot = memchr(text, '.', len);
    uint32_t name_len = dot != NULL ? (uint32_t)(dot - text) : len;
    const char *rest = dot != NULL ? dot + 1 : text + len;
    uint32_t rest_len = dot != NULL ? len - name_len - 1 : 0;
    if (name_len == 0) {
        err_set(c->err, ERR_FailedToParse, "empty variable names are not allowed");
        return NULL;
    }
    if (dot != NULL && rest_len == 0) {
        err_set(c->err, ERR_EXPR_PATH_END, "FieldPath must not end with a '.'.");
        return NULL;
    }
    struct expr *node = expr_new(c, EXPR_PATH);
    bool found = name_len == 4 && memcmp(text, "ROOT", 4) == 0;
    for (int i = c->var_count - 1; i >= 0 && !found; i--) {
        if (c->vars[i].len == name_len && memcmp(c->vars[i].name, text, name_len) == 0) {
            node->slot = c->vars[i].slot;
            found = true;
        }
    }
    found = found || (name_len == 7 && memcmp(text, "CURRENT", 7) == 0);
    struct bval value;
    if (!found && find_constant(c, text, name_len, &value))
        return constant_path(c, value, rest, rest_len);
    bool in_let = false;
    if (!found && !find_let(c, text, name_len, &in_let, &value))
        return NULL;
    if (in_let)
        return constant_path(c, value, rest, rest_len);
    if (!found && is_unavailable(name_len, text)) {
        err_set(c->err, ERR_EXPR_UNAVAILABLE, "the system variable '%.*s' is not available here", (int)name_len, text);
        return NULL;
    }
    if (!found) {
        err_set(c->err, ERR_EXPR_VARIABLE, "Use of undefined variable: %.*s", (int)name_len, text);
        return NULL;
    }
    if (rest_len > 0 && !split_path(c, node, rest, rest_len))
        return NULL;
    return node;
}

static struct expr *compile_string(struct expr_compiler *c, const struct bval *source)
{
    uint32_t len;
    const char *text = bval_str(source, &len);
    if (len == 0 || text[0] != '$')
        return expr_new_constant(c, source);
    if (len == 1) {
        err_set(c->err, ERR_EXPR_BAD_PATH, "'$' by itself is not a valid FieldPath");
        return NULL;
    }
    if (text[1] == '$')
        return compile_variable(c, text + 2, len - 2);
    struct expr *node = expr_new(c, EXPR_PATH);
    /* "$a" is $$CURRENT.a, and $let may give CURRENT another meaning. */
    for (int i = 0; i < c->var_count; i++)
        if (c->vars[i].len == 7 && memcmp(c->vars[i].name, "CURRENT", 7) == 0)
            node->slot = c->vars[i].slot;
    return split_path(c, node, text + 1, len - 1) ? node : NULL;
}

static struct expr *compile_array(struct expr_compiler *c, const struct bval *source)
{
    struct bdoc list = bval_doc(source);
    struct expr *node = expr_new(c, EXPR_ARRAY);
    expr_reserve_args(c, node, bdoc_count(list));
    struct biter iter;
    struct belem item;
    uint32_t i = 0;
    node->constant = true;
    biter_init(&iter, list);
    while (biter_next(&iter, &item)) {
        if (!expr_compile_arg(c, node, i, &item.val))
            return NULL;
        node->constant = node->constant && node->args[i]->constant;
        i++;
    }
    return node;
}

/* An intersection is done as soon as it is empty, before a null behind it is seen; constants are looked at last, as in
 * MongoDB. */
static void constants_last(struct expr *call)
{
    if (strcmp(call->op->name, "$setIntersection") != 0)
        return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        struct expr *arg = call->args[i];
        if (arg->constant)
            continue;
        memmove(&call->args[kept + 1], &call->args[kept], (i - kept) * sizeof(struct expr *));
        call->args[kept++] = arg;
    }
}

/* A call that reads no document is evaluated once, here. One that fails stays as it is: it may never be reached. */
static void fold(struct expr_compiler *c, struct expr *call)
{
    if (!call->constant || call->kind == EXPR_CONSTANT)
        return;
    struct arena scratch;
    struct err ignored;
    struct bval value;
    arena_init(&scratch);
    if (expr_eval(call, bdoc_empty(), &scratch, &value, &ignored) && value.len <= FOLD_MAX_BYTES) {
        call->value = make_copy(c->arena, &value);
        call->kind = EXPR_CONSTANT;
    }
    arena_deinit(&scratch);
}

static struct expr *compile_call(struct expr_compiler *c, struct bdoc doc, const struct belem *first)
{
    if (bdoc_count(doc) != 1) {
        err_set(
            c->err, ERR_EXPR_FIELD_COUNT,
            "an expression specification must contain exactly one field, the name of the expression. Found %u fields",
            bdoc_count(doc));
        return NULL;
    }
    const struct expr_operator *op = expr_find_operator(first->key);
    if (op == NULL) {
        err_set(c->err, ERR_EXPR_UNKNOWN, "Unrecognized expression '%s'", first->key);
        return NULL;
    }
    struct expr *call = expr_new(c, EXPR_CALL);
    call->op = op;
    bool compiled =
        op->compile != NULL ? op->compile(c, call, &first->val) : expr_compile_operand(c, call, &first->val);
    if (!compiled)
        return NULL;
    call->constant = op->compile == NULL || call->kind == EXPR_CONSTANT;
    for (uint32_t i = 0; i < call->arg_count; i++)
        call->constant = call->constant && (call->args[i] == NULL || call->args[i]->constant);
    constants_last(call);
    fold(c, call);
    return call;
}

static bool add_field(struct expr_compiler *c, struct expr *node, uint32_t index, const struct belem *elem)
{
    if (elem->key[0] == '$')
        return err_set(c->err, ERR_EXPR_DOLLAR_NAME,
                       "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    if (elem->key_len == 0)
        return err_set(c->err, ERR_EXPR_EMPTY_NAME, "FieldPath field names may not be empty strings.");
    if (memchr(elem->key, '.', elem->key_len) != NULL)
        return err_set(c->err, ERR_EXPR_DOT_NAME,
                       "FieldPath field names may not contain '.'. Consider using $getField or "
                       "$setField.");
    node->names[index] = (struct expr_name){elem->key, elem->key_len};
    return expr_compile_arg(c, node, index, &elem->val);
}

static struct expr *compile_document(struct expr_compiler *c, const struct bval *source)
{
    struct bdoc doc = bval_doc(source);
    struct biter iter;
    struct belem elem;
    uint32_t count = bdoc_count(doc);
    biter_init(&iter, doc);
    struct expr *node = expr_new(c, EXPR_DOCUMENT);
    node->names = arena_alloc(c->arena, (count + 1) * sizeof *node->names);
    node->name_count = count;
    expr_reserve_args(c, node, count);
    node->constant = true;
    for (uint32_t i = 0; biter_next(&iter, &elem); i++) {
        if (i == 0 && elem.key[0] == '$')
            return compile_call(c, doc, &elem);
        if (!add_field(c, node, i, &elem))
            return NULL;
        node->constant = node->constant && node->args[i]->constant;
    }
    return node;
}

struct expr *expr_compile_value(struct expr_compiler *c, const struct bval *source)
{
    if (++c->depth > EXPR_MAX_DEPTH) {
        err_set(c->err, ERR_EXPR_DEPTH, "expression is nested more than %d levels deep", EXPR_MAX_DEPTH);
        return NULL;
    }
    struct expr *node;
    switch (source->type) {
    case BT_STRING:
        node = compile_string(c, source);
        break;
    case BT_ARRAY:
        node = compile_array(c, source);
        break;
    case BT_DOCUMENT:
        node = compile_document(c, source);
        break;
    default:
        node = expr_new_constant(c, source);
        break;
    }
    c->depth--;
    return node;
}

bool expr_compile(struct arena *arena, const struct bval *source, const struct expr_env *env, struct expr **out,
                  struct err *err)
{
    struct expr_compiler c = {.arena = arena, .env = env, .err = err};
    *out = expr_compile_value(&c, source);
    return *out != NULL;
}

bool expr_is_constant(const struct expr *expr)
{
    return expr->constant;
}

const char *expr_field_path(const struct expr *expr)
{
    bool plain = expr->kind == EXPR_PATH && expr->slot == EXPR_SLOT_ROOT && expr->arg_count == 0;
    return plain ? expr->path : NULL;
}

bool expr_dependencies(const struct expr *expr, void (*add)(void *arg, const char *path), void *arg)
{
    if (expr == NULL || expr->kind == EXPR_CONSTANT)
        return true;
    if (expr->kind == EXPR_PATH && expr->slot == EXPR_SLOT_ROOT && expr->arg_count == 0) {
        if (expr->path == NULL)
            return false;
        add(arg, expr->path);
        return true;
    }
    for (uint32_t i = 0; i < expr->arg_count; i++)
        if (!expr_dependencies(expr->args[i], add, arg))
            return false;
    return true;
}

const struct expr_operator *expr_find_operator(const char *name)
{
    static const struct expr_operator *const tables[] = {
        expr_ops_arithmetic, expr_ops_logic,  expr_ops_array, expr_ops_scope,      expr_ops_string,
        expr_ops_object,     expr_ops_set,    expr_ops_date,  expr_ops_convert,    expr_ops_sum,
        expr_ops_math,       expr_ops_bits,   expr_ops_sort,  expr_ops_regex,      expr_ops_date_text,
        expr_ops_date_math,  expr_ops_fields, expr_ops_other, expr_ops_percentile,
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct expr_operator *op = tables[i]; op->name != NULL; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return NULL;
}
