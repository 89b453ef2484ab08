/* The compiled form of expressions, shared by the files of this folder. */
#ifndef SHERD_EXPR_EXPR_TREE_H
#define SHERD_EXPR_EXPR_TREE_H

#include "bson/compare.h"
#include "expr/expr.h"
#include "expr/number.h"
#include "expr/writer.h"

enum expr_kind {
    EXPR_CONSTANT,
    EXPR_PATH,     /* a path from $$CURRENT or from a variable */
    EXPR_DOCUMENT, /* {name: expression, ...} */
    EXPR_ARRAY,
    EXPR_CALL,
};

/* Variables that need no slot. */
enum {
    EXPR_SLOT_ROOT = -1, /* $$ROOT and $$CURRENT */
};

struct expr_scope;

/* The arguments, evaluated unless the operator is lazy (then NULL). */
typedef bool expr_fn(struct expr_scope *scope, const struct expr *call, const struct bval *args, struct bval *out);

struct expr_compiler;
/* Operators that define variables or read literals compile their operand themselves. */
typedef bool expr_compile_fn(struct expr_compiler *c, struct expr *call, const struct bval *operand);

struct expr_operator {
    const char *name;
    int min_args;
    int max_args; /* -1: any number */
    bool lazy;    /* evaluates its arguments itself, some of them perhaps not */
    expr_fn *eval;
    const char *arg_names;    /* "input to onError": names of a document operand, in argument order; NULL: none */
    expr_compile_fn *compile; /* NULL: the general way */
    int tag;                  /* lets several operators share one function */
};

struct expr_name {
    const char *text;
    uint32_t len;
};

struct expr {
    enum expr_kind kind;
    bool constant;           /* doesn't depend on the document or on variables */
    struct bval value;       /* EXPR_CONSTANT */
    int slot;                /* EXPR_PATH: variable, or EXPR_SLOT_ROOT; also a slot that the operator defines */
    int slot2;               /* a second slot that the operator defines */
    struct expr_name *names; /* EXPR_PATH: components; EXPR_DOCUMENT: names */
    uint32_t name_count;
    const char *path;               /* EXPR_PATH: dotted text after the variable */
    const struct expr_operator *op; /* EXPR_CALL */
    struct expr **args; /* EXPR_CALL, EXPR_DOCUMENT (one for each name), EXPR_ARRAY; an absent named one is NULL */
    uint32_t arg_count;
    uint64_t seed;                  /* $rand */
    int *slots;                     /* $let: slot of each argument but the last */
    const struct bval_order *order; /* the operation's collation; NULL: simple */
    void *extra;                    /* of the operator's own file */
};

/* One evaluation. */
struct expr_scope {
    struct bdoc root;
    struct arena *scratch;
    struct err *err;
    const struct bval_order *order; /* how strings compare; NULL: by bytes */
    const struct expr_meta *meta;   /* NULL: none */
    struct bval vars[EXPR_MAX_VARIABLES];
    int depth;
};

struct expr_variable {
    const char *name;
    uint32_t len;
    int slot;
};

struct expr_compiler {
    struct arena *arena;
    const struct expr_env *env;
    struct err *err;
    struct expr_variable vars[EXPR_MAX_VARIABLES]; /* those in scope, innermost last */
    int var_count;
    int depth;
    uint64_t rand_count; /* $rand operators so far: each has a seed of its own */
};

struct expr *expr_new(struct expr_compiler *c, enum expr_kind kind);
struct expr *expr_new_constant(struct expr_compiler *c, const struct bval *value);
/* NULL after an error. */
struct expr *expr_compile_value(struct expr_compiler *c, const struct bval *source);
/* Room for `count` arguments. */
void expr_reserve_args(struct expr_compiler *c, struct expr *call, uint32_t count);
bool expr_compile_arg(struct expr_compiler *c, struct expr *call, uint32_t index, const struct bval *source);
/* The operand of a call that has no compile function of its own: a list, a single argument or named ones. */
bool expr_compile_operand(struct expr_compiler *c, struct expr *call, const struct bval *operand);
/* The argument stands in the specification. */
bool expr_has_arg(const struct expr *call, uint32_t index);
/* Brings a variable into scope and returns its slot; -1 after an error. `keep` variables remain: set var_count back. */
int expr_define(struct expr_compiler *c, const char *name, uint32_t len);

bool expr_run(struct expr_scope *scope, const struct expr *expr, struct bval *out) ERR_WARN_UNUSED;
/* Null, undefined or missing. */
bool expr_is_nullish(const struct bval *val);
/* The operand of an operator on one number: *null when there is none; 28765 when it is something else. */
bool expr_one_number(struct expr_scope *s, const struct expr *call, const struct bval *arg, bool *null,
                     struct number *out);
/* Descends from a document as a field path does: through arrays of documents too. */
bool expr_walk(struct expr_scope *scope, struct bdoc doc, const struct expr_name *names, uint32_t count,
               struct bval *out);
/* A document of values under names, in scratch; missing ones are left out. */
bool expr_make_document(struct expr_scope *scope, const struct expr_name *names, const struct bval *values,
                        size_t count, struct bval *out);
/* Fails when intermediate values take more than EXPR_MAX_SCRATCH_BYTES: loops ask, as they keep every step. */
bool expr_check_scratch(struct expr_scope *scope);
/* The same for `count` values that are about to be kept, and looks at the clock: before an array is copied. */
bool expr_check_room(struct expr_scope *scope, size_t count);
/* Fails when the result would be larger than EXPR_MAX_RESULT_BYTES. */
bool expr_check_size(struct expr_scope *scope, size_t bytes);
/* A list of values becomes an array value in scratch; missing ones are nulls. */
bool expr_make_array(struct expr_scope *scope, const struct bval *items, size_t count, struct bval *out);

/* What $toString gives, also where strings are expected; 241 for types that have no text. */
bool expr_to_string(struct expr_scope *scope, const struct bval *val, struct bval *out);

/* Elements of an array as values in scratch. */
struct expr_items {
    struct bval *items;
    size_t count;
};
struct expr_items expr_array_items(struct expr_scope *scope, const struct bval *array);

const struct expr_operator *expr_find_operator(const char *name);

/* Tables of operators, one for each file; ended by a NULL name. */
extern const struct expr_operator expr_ops_arithmetic[];
extern const struct expr_operator expr_ops_logic[];
extern const struct expr_operator expr_ops_array[];
extern const struct expr_operator expr_ops_scope[];
extern const struct expr_operator expr_ops_string[];
extern const struct expr_operator expr_ops_object[];
extern const struct expr_operator expr_ops_set[];
extern const struct expr_operator expr_ops_date[];
extern const struct expr_operator expr_ops_convert[];
extern const struct expr_operator expr_ops_sum[];
extern const struct expr_operator expr_ops_math[];
extern const struct expr_operator expr_ops_bits[];
extern const struct expr_operator expr_ops_sort[];
extern const struct expr_operator expr_ops_regex[];
extern const struct expr_operator expr_ops_date_text[];
extern const struct expr_operator expr_ops_date_math[];
extern const struct expr_operator expr_ops_fields[];
extern const struct expr_operator expr_ops_other[];
extern const struct expr_operator expr_ops_percentile[];

#endif
