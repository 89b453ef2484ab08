/* Stages as the files of this folder see them: the compiled form, shared by all runs, and what one run keeps. */
#ifndef SHERD_AGGREGATE_STAGE_H
#define SHERD_AGGREGATE_STAGE_H

#include "aggregate/pipeline.h"
#include "bson/path.h"
#include "expr/expr.h"
#include "expr/writer.h"
#include "query/projection.h"

struct stage;
struct stage_run;
struct group_spec;

struct stage_compiler {
    struct arena *arena;
    const struct expr_env *env;
    struct err *err;
    struct pipeline *pipeline;
    int depth; /* of nested pipelines */
};

/* How a stage may be spread over shards. */
enum stage_spread {
    SPREAD_LOCAL, /* looks at one document at a time: runs on each shard */
    SPREAD_MERGE, /* needs the whole stream */
    SPREAD_LIMIT,
    SPREAD_SKIP,
    SPREAD_SORT,
    SPREAD_GROUP,
    SPREAD_COUNT,
    SPREAD_SOURCE, /* makes documents itself */
    SPREAD_SINK,   /* writes the result: the daemon's business */
};

enum {
    STAGE_MAX_DEPTH = 20, /* of pipelines in $lookup, $unionWith and $facet */
};

struct stage_type {
    const char *name;
    /* Fills `stage` from its operand, or adds other stages in its place (stage_add) and sets stage->type to NULL. */
    bool (*compile)(struct stage_compiler *c, struct stage *stage, const struct bval *operand);
    /* The next document; data NULL at the end. */
    bool (*next)(struct stage_run *run, struct bdoc *out, struct err *err);
    /* Frees run->state; NULL: there is none. */
    void (*close)(struct stage_run *run);
    enum stage_spread spread;
};

struct stage {
    const struct stage_type *type;
    struct bdoc source; /* {$name: operand}, as given or made */
    struct bval operand;
    struct filter *filter;         /* $match */
    struct projection *projection; /* $project, $addFields, $unset */
    struct expr *expr;             /* $replaceRoot, $redact */
    struct sort_spec *sort;        /* $sort */
    int64_t count;                 /* $limit, $skip; of $sort: how many are wanted (0: all) */
    const char *path;              /* $unwind: field; $count: name */
    const char *index_path;        /* $unwind: includeArrayIndex; NULL: none */
    bool preserve;                 /* $unwind: preserveNullAndEmptyArrays */
    struct group_spec *group;
    const struct bval_order *order; /* how strings compare; NULL: by bytes */
    void *extra;                    /* of the stage's own file */
};

struct pipeline {
    struct arena *arena;
    struct stage *stages;
    uint32_t count;
    uint32_t capacity;
};

/* One stage of one run. */
struct stage_run {
    const struct stage *stage;
    struct pipeline_run *run;
    struct stage_run *input; /* NULL: the run's source */
    uint64_t seen;           /* documents passed so far */
    uint64_t given;          /* documents handed out */
    bool done;               /* the input is exhausted or not wanted any more */
    struct buf out;          /* the document handed out */
    void *state;             /* of the stage's own file */
};

struct pipeline_run {
    const struct pipeline *pipeline;
    struct doc_source source;
    struct stage_run *stages; /* [0, count): those from first_stage on */
    uint32_t count;
    size_t memory_bytes;
    size_t memory_limit_bytes;
    struct temp_space *space;               /* where $sort and $group go beyond the limit; NULL: nowhere (292) */
    const struct pipeline_foreign *foreign; /* NULL: other collections cannot be read */
    struct arena scratch;                   /* of one document; reset before each evaluation */
};

extern const struct stage_type stage_match, stage_project, stage_add_fields, stage_set, stage_unset, stage_limit,
    stage_skip, stage_sort, stage_count, stage_unwind, stage_replace_root, stage_replace_with, stage_group,
    stage_group_partial, stage_group_merge, stage_sort_by_count, stage_facet, stage_bucket, stage_bucket_auto,
    stage_redact, stage_lookup, stage_union_with, stage_graph_lookup, stage_sample;

bool stage_input(struct stage_run *run, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
/* Adds bytes held by a stage (negative: given back); 292 beyond the limit. `name` is the stage's. */
bool stage_hold(struct stage_run *run, int64_t bytes, struct err *err) ERR_WARN_UNUSED;
/* The same without an error: false beyond the limit, for a stage that can go on in run->run->space. */
bool stage_try_hold(struct stage_run *run, int64_t bytes);
/* Compiles {$name: operand} and appends it to the pipeline. */
bool stage_add(struct stage_compiler *c, struct bdoc spec) ERR_WARN_UNUSED;
/* Writes the fields of `doc` with the one at `path` replaced (added when missing; `val` of type BT_EOO: removed). The
 * caller opened the document. Whatever is no document on the way is replaced by one. */
void stage_write_replaced(struct bdoc doc, const char *path, const struct bval *val, struct buf *out);
/* The value at `path`; documents only on the way: an array in between is no path. BT_EOO: missing. */
struct bval stage_find_path(struct bdoc doc, const char *path);
/* A compiled path that lies in the compiler's arena. */
bool stage_compile_path(struct stage_compiler *c, const char *text, struct path *out) ERR_WARN_UNUSED;
/* {name: value} as a document in the arena. */
struct bdoc stage_wrap(struct arena *arena, const char *name, const struct bval *value);

#endif
