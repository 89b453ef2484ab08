/* The compiled form of an update, shared by the files of this folder. */
#ifndef SHERD_UPDATE_UPDATE_TREE_H
#define SHERD_UPDATE_UPDATE_TREE_H

#include "expr/number.h"
#include "expr/writer.h"
#include "query/projection.h"
#include "query/sort.h"
#include "update/update.h"

struct update_op;
struct applier;

/* What an operator makes of a value. */
enum outcome_kind {
    OUTCOME_KEEP,
    OUTCOME_SET,    /* a modification unless the bytes are the same */
    OUTCOME_CHANGE, /* as OUTCOME_SET, and counted as a modification in any case */
    OUTCOME_REMOVE,
};

struct outcome {
    enum outcome_kind kind;
    struct bval
        value; /* of OUTCOME_SET and OUTCOME_CHANGE; borrowed from the update, the document or the scratch arena */
};

/* `existing` is BT_EOO for a missing field. */
typedef bool update_op_fn(struct applier *a, const struct update_op *op, const struct bval *existing,
                          struct outcome *out);

struct update_compiler;
typedef bool update_op_compile_fn(struct update_compiler *c, struct update_op *op);

/* When an operator makes a field that is missing. */
enum update_creates {
    CREATES_NEVER,
    CREATES_ALWAYS,
    CREATES_ON_INSERT,
    CREATES_IF_SOURCE, /* $rename's target */
};

struct update_operator {
    const char *name;
    update_op_compile_fn *compile; /* NULL: any operand */
    update_op_fn *apply;
    enum update_creates creates;
    bool needs_path; /* a scalar on the way is an error even when nothing would be created */
};

struct push_options {
    struct bval *items;
    uint32_t item_count;
    bool has_position;
    int64_t position;
    bool has_slice;
    int64_t slice;
    bool has_sort;
    bool sort_whole;             /* by the elements themselves */
    int whole_direction;         /* 1 or -1 */
    struct sort_spec *sort_spec; /* by fields of the elements */
};

struct update_op {
    const struct update_operator *operator_of;
    const char *path; /* whole dotted path, for messages */
    struct bval arg;
    struct push_options *push; /* $push, $addToSet (items only), $pullAll (items only) */
    struct filter *filter;     /* $pull with a condition */
    bool filter_by_value;      /* the condition sees the element under the name "" */
    const char *source;        /* $rename: where the value comes from */
    bool now_as_timestamp;     /* $currentDate */
};

enum node_kind {
    NODE_NAME,
    NODE_POSITIONAL, /* $ */
    NODE_ALL,        /* $[] */
    NODE_FILTERED,   /* $[id] */
};

struct update_node {
    enum node_kind kind;
    const char *name; /* NODE_NAME; else as written, for messages */
    uint32_t name_len;
    int64_t index;                 /* NODE_NAME of digits without leading zeros: the array position; else -1 */
    const struct filter *filter;   /* NODE_FILTERED */
    const char *filter_name;       /* NODE_FILTERED: name that stands for the element */
    struct update_node **children; /* sorted: positions by number, names by bytes */
    uint32_t child_count;
    uint32_t child_capacity;
    struct update_op *op; /* a leaf; NULL: children decide */
};

struct array_filter {
    const char *name;
    struct filter *filter;
    bool used;
};

enum stage_kind {
    STAGE_PROJECTION,
    STAGE_REPLACE,
};

struct update_stage {
    enum stage_kind kind;
    struct projection *projection;
    struct expr *expr;
};

struct update {
    enum update_kind kind;
    struct bdoc source;       /* replacement: the document */
    struct update_node *root; /* operators */
    struct array_filter *filters;
    uint32_t filter_count;
    const char *dollar_name; /* a top-level name that begins with $: only an insert may bring it in; NULL: none */
    bool needs_match;
    bool deterministic;
    const struct bval_order *order; /* the statement's collation; NULL: strings by bytes */
    int64_t now_ms;
    struct update_stage *stages; /* pipeline */
    uint32_t stage_count;
};

struct update_compiler {
    struct arena *arena;
    struct update *update;
    const struct update_options *options;
    struct err *err;
    uint32_t op_count;
};

/* One application. */
struct applier {
    const struct update *update;
    struct bdoc doc;
    const struct filter_match *match;
    struct arena scratch;
    struct err *err;
    bool insert; /* $setOnInsert counts */
    bool modified;
    bool failed;     /* a predicate could not be evaluated: *err says why */
    bool diagnosing; /* a second run after an error: fields in the order of their names, to find the error that comes
                        first */
};

extern const struct update_operator update_operators_value[];
extern const struct update_operator update_operators_array[];

/* Reads arrayFilters and finds one by name. */
bool update_compile_array_filters(struct update_compiler *c) ERR_WARN_UNUSED;
struct array_filter *update_find_array_filter(const struct update *update, const char *name, size_t len);
/* Adds an operator at a path; ConflictingUpdateOperators when another one is in the way. */
bool update_add_op(struct update_compiler *c, struct update_op *op) ERR_WARN_UNUSED;
/* The collation decides about the operand: only the leader may evaluate it. */
void update_note_order(struct update_compiler *c, const struct bval *operand);
bool update_compile_pipeline(struct update_compiler *c, struct bdoc stages) ERR_WARN_UNUSED;
bool update_apply_pipeline(struct applier *a, struct buf *out) ERR_WARN_UNUSED;
/* Writes the document with the operators applied (its fields only: the caller opened it). */
bool update_apply_tree(struct applier *a, struct bdoc doc, struct buf *out) ERR_WARN_UNUSED;
/* Writes a replacement: `_id` of the old document first. */
bool update_apply_replacement(struct applier *a, struct buf *out) ERR_WARN_UNUSED;
/* $rename's target half: is there something to move (or a path that cannot be followed, which is an error)? */
bool update_rename_has_source(struct applier *a, const struct update_op *op);
/* Neither path may run through an array. */
bool update_check_rename(struct applier *a, const struct update_op *op) ERR_WARN_UNUSED;
/* {_id: ...} of the document being changed, as text for messages; short. */
const char *update_id_text(struct applier *a);
/* An existing document must not get a top-level name that begins with $. */
bool update_check_dollar_name(const struct update *update, struct err *err) ERR_WARN_UNUSED;
/* Checks of every result: size, _id's type, depth. */
bool update_check_result(struct bdoc doc, int32_t too_large_code, struct err *err) ERR_WARN_UNUSED;

#endif
