/* Chooses how the documents of a filter are found: by _id, through an index, or by walking all records. Called once per
 * command on a worker, inside its read transaction; the plan outlives it and is checked again when a cursor goes on. */
#ifndef SHERD_DOCUMENT_PLANNER_H
#define SHERD_DOCUMENT_PLANNER_H

#include "base/arena.h"
#include "query/bounds.h"
#include "query/filter.h"
#include "query/sort.h"
#include "storage/catalog.h"

enum plan_kind {
    PLAN_NOTHING, /* no document can match */
    PLAN_ID,      /* one document by its _id */
    PLAN_INDEX,
    PLAN_RECORDS, /* all records, in the order of their ids */
};

struct plan_request {
    const struct filter *filter;
    const struct sort_spec *sort; /* NULL: any order */
    int natural;                  /* 1 or -1: {$natural: n} was asked for as sort or hint; 0: not */
    struct bval hint;             /* an index's name or key pattern; BT_EOO: none */
    bool limited;                 /* few documents are wanted: an index that gives the order is worth more */
};

/* Lies in the arena that was given, with everything it points at. */
struct plan {
    enum plan_kind kind;
    bool backward;
    bool sorted;      /* documents come in the order that was asked for */
    bool test_filter; /* the filter must be looked at for each document */
    bool multikey;    /* one record may stand under several keys of the bounds */
    struct bval id;   /* PLAN_ID; borrowed from the filter */
    uint32_t index_id;
    const char *index_name; /* PLAN_INDEX, for explain and the slow log; NULL otherwise */
    struct bdoc key_pattern;
    struct bounds bounds;
};

/* Errors: 2 BadValue for a hint that names no index. */
bool plan_make(struct arena *arena, const struct collection *coll, const struct plan_request *request,
               struct plan **out, struct err *err) ERR_WARN_UNUSED;
/* The plan without help of an index. */
struct plan *plan_records(struct arena *arena, const struct filter *filter);
/* "IDHACK", "IXSCAN { a: 1 }"-like text for logs, in the arena. */
const char *plan_summary(const struct plan *plan, struct arena *arena);

#endif
