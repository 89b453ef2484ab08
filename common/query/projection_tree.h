/* The compiled form of a projection: a tree of names. Shared by projection_compile.c and projection_apply.c. */
#ifndef SHERD_QUERY_PROJECTION_TREE_H
#define SHERD_QUERY_PROJECTION_TREE_H

#include "query/projection.h"

enum projection_action {
    PROJECT_NESTED, /* names below decide */
    PROJECT_INCLUDE,
    PROJECT_EXCLUDE,
    PROJECT_COMPUTE,
    PROJECT_SLICE,
    PROJECT_ELEM_MATCH,
};

struct projection_node {
    const char *name;
    uint32_t name_len;
    enum projection_action action;
    bool computes;                     /* an expression here or below */
    struct projection_node **children; /* in the order of the specification */
    uint32_t child_count;
    uint32_t child_capacity;
    struct projection_node **by_name; /* children sorted by name, made when there are many */
    struct expr *expr;                /* PROJECT_COMPUTE */
    const struct filter *elem_filter; /* PROJECT_ELEM_MATCH: {name: {$elemMatch: ...}} */
    int64_t slice_skip;               /* PROJECT_SLICE: negative counts from the end */
    int64_t slice_limit;              /* INT64_MAX: to the end */
};

struct projection {
    struct projection_node *root;
    bool excludes;          /* fields that are not named stay */
    bool adds;              /* PROJECTION_ADD_FIELDS: everything stays, computed values replace */
    unsigned wanted_meta;   /* set of enum expr_meta_kind */
    const char *positional; /* path before ".$"; NULL: none */
};

#endif
