/* The compiled form of a filter, shared by the files that build it (filter_compile, filter_operators), test with it
 * (filter_match) and read it (filter_facts, bounds). Not for other folders. */
#ifndef SHERD_QUERY_FILTER_TREE_H
#define SHERD_QUERY_FILTER_TREE_H

#include "bson/compare.h"
#include "bson/path.h"
#include "expr/regex.h"
#include "query/filter.h"
#include "query/schema.h"

enum filter_op {
    /* of children */
    FILTER_AND,
    FILTER_OR,
    FILTER_NOR,
    FILTER_NOT, /* one child */
    /* of a value at a path */
    FILTER_EQ,
    FILTER_LT,
    FILTER_LTE,
    FILTER_GT,
    FILTER_GTE,
    FILTER_IN,
    FILTER_EXISTS,
    FILTER_TYPE,
    FILTER_MOD,
    FILTER_REGEX,
    FILTER_BITS,
    /* of an array at a path */
    FILTER_SIZE,
    FILTER_ELEM_DOCUMENT, /* children see each element as a document */
    FILTER_ELEM_VALUE,    /* children see each element as a value */
    /* of the whole document */
    FILTER_EXPR,
    FILTER_SCHEMA,
    FILTER_SAMPLE,
    FILTER_TRUE,
    FILTER_FALSE,
};

enum filter_bits_kind {
    FILTER_BITS_ALL_SET,
    FILTER_BITS_ALL_CLEAR,
    FILTER_BITS_ANY_SET,
    FILTER_BITS_ANY_CLEAR,
};

struct filter_nodes {
    struct filter_node **items;
    uint32_t count;
    uint32_t capacity;
};

/* Members of $in: constants sorted in the filter's order without duplicates, and regular expressions. */
struct filter_members {
    struct bval *values;
    uint32_t count;
    bool has_null;                /* null is among them: missing fields match */
    struct filter_node **regexes; /* FILTER_REGEX nodes */
    uint32_t regex_count;
};

struct filter_node {
    enum filter_op op;
    struct path path; /* of leaves; parts and text lie in the arena */
    bool simple_path; /* one component: the fast way */
    bool implied;     /* follows from an $expr beside it: there for the planner, nobody wrote it */
    struct bval
        value; /* operand of comparisons, $expr, $jsonSchema, $sampleRate; the pattern of a regular expression */
    enum bclass class_of;           /* of value */
    const struct bval_order *order; /* of the strings in the operand; NULL: by bytes, or there are none */
    union {
        struct filter_nodes children;
        struct filter_members in;
        struct {
            int64_t divisor;
            int64_t remainder;
        } mod;
        struct {
            enum filter_bits_kind kind;
            const uint8_t *mask; /* little-endian bytes; bit 64 and above only from binary masks and positions */
            uint32_t mask_len;
        } bits;
        uint32_t types;        /* of FILTER_TYPE: bit 1 << type, see filter_type_bit */
        int64_t size;          /* of FILTER_SIZE */
        struct regex *regex;   /* owned, freed by filter_release */
        struct expr *expr;     /* of FILTER_EXPR */
        struct schema *schema; /* of FILTER_SCHEMA */
        struct {
            double rate;   /* above 0, below 1 */
            uint64_t seed; /* mixed with the document's hash */
        } sample;
    };
};

struct filter {
    struct bdoc source;
    struct filter_node *root;     /* FILTER_AND at the top, or the only predicate */
    struct filter_node **regexes; /* all FILTER_REGEX nodes, for filter_release */
    uint32_t regex_count;
    uint32_t regex_capacity;
    bool has_expr;
    bool has_sample;                /* $sampleRate */
    bool has_schema_regex;          /* a $jsonSchema with patterns */
    const struct bval_order *order; /* the operation's collation; NULL: strings compare by bytes */
    bool uses_order;                /* some operand holds a string for it */
};

/* What is carried through compilation. */
struct filter_compiler {
    struct arena *arena;
    struct filter *filter;
    const struct expr_env *env;
    struct err *err;
    uint32_t node_count;
    int depth;
};

/* Bit of a type in filter_node.types; MinKey and MaxKey get the two highest. */
uint32_t filter_type_bit(uint8_t type);
/* A new node in the arena; NULL with `err` set beyond FILTER_MAX_NODES. */
struct filter_node *filter_node_new(struct filter_compiler *c, enum filter_op op);
struct filter_node *filter_leaf_new(struct filter_compiler *c, enum filter_op op, const char *path);
void filter_nodes_add(struct arena *arena, struct filter_nodes *nodes, struct filter_node *node);
/* {a: 1, $or: [...]}: every predicate added to `out`. */
bool filter_compile_document(struct filter_compiler *c, struct bdoc doc, struct filter_nodes *out) ERR_WARN_UNUSED;
/* The operators of {path: {$gt: 1, $lt: 5}}. */
bool filter_compile_operators(struct filter_compiler *c, const char *path, struct bdoc doc,
                              struct filter_nodes *out) ERR_WARN_UNUSED;
/* {path: /regex/} and the members of $in, $all. */
struct filter_node *filter_regex_new(struct filter_compiler *c, const char *path, const char *pattern,
                                     const char *flags);
struct filter_node *filter_compare_new(struct filter_compiler *c, enum filter_op op, const char *path,
                                       const struct bval *value);
/* The order to compare with `value`: the collation only where the operand holds a string, since nothing else is decided
 * by it. */
const struct bval_order *filter_order_for(struct filter_compiler *c, const struct bval *value);
/* The operators whose operand is not a plain constant. */
bool filter_compile_type(struct filter_compiler *c, const char *path, const struct bval *arg, struct filter_nodes *out);
bool filter_compile_mod(struct filter_compiler *c, const char *path, const struct bval *arg, struct filter_nodes *out);
bool filter_compile_bits(struct filter_compiler *c, const char *path, enum filter_bits_kind kind, const char *name,
                         const struct bval *arg, struct filter_nodes *out);

/* Does this one value (BT_EOO: missing) satisfy the node? Of a leaf: without its path. */
struct filter_eval;
bool filter_node_test(const struct filter_node *node, const struct bval *value, struct filter_eval *eval);

#endif
