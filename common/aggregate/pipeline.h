/* Aggregation pipelines over an abstract source of documents, so that the same stages run on a shard and on a router.
 * Called on worker threads; a compiled pipeline is read-only, a run has one user at a time. Pure: documents come from
 * the source, time from the environment.
 * Semantics: https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/ */
#ifndef SHERD_AGGREGATE_PIPELINE_H
#define SHERD_AGGREGATE_PIPELINE_H

#include "query/filter.h"
#include "query/sort.h"
#include "query/sorter.h"

enum {
    PIPELINE_MAX_STAGES = 1000,
    PIPELINE_MEMORY_LIMIT_BYTES = 100 * 1024 * 1024, /* of each $group, $sort ... of one run */
};

/* Where documents come from. */
struct doc_source {
    /* The next document, borrowed until the next call; data NULL at the end. False: an error. */
    bool (*next)(void *arg, struct bdoc *out, struct err *err);
    void *arg;
};

struct pipeline;

/* `stages` is the command's BSON array, borrowed with `env` (NULL allowed) while the pipeline or a run is used. Errors:
 * 40324 unknown stage, 40323 not one field, and each stage's own. */
bool pipeline_compile(struct arena *arena, struct bdoc stages, const struct expr_env *env, struct pipeline **out,
                      struct err *err) ERR_WARN_UNUSED;
/* Frees early what goes with the arena otherwise. Accepts NULL; not needed. */
void pipeline_release(struct pipeline *pipeline);
uint32_t pipeline_stage_count(const struct pipeline *pipeline);
/* {$name: operand} of one stage, as given or as it was made of another one. */
struct bdoc pipeline_stage_source(const struct pipeline *pipeline, uint32_t index);
/* Name and operand of a first stage that makes documents itself ($collStats, $indexStats, $currentOp, $documents,
 * $listSessions, $changeStream ...), else NULL: the daemon produces these documents and runs the stages from 1 on over
 * them. */
const char *pipeline_source_stage(const struct pipeline *pipeline, struct bval *spec);

/* A final $out or $merge: its name and operand, else NULL. The daemon runs the stages before it and writes their
 * documents; a run that comes to it is refused (238). pipeline_split leaves it out of both parts. */
const char *pipeline_sink_stage(const struct pipeline *pipeline, struct bval *spec);

/* What a stage wants of another collection. */
struct pipeline_foreign_query {
    const char *coll;   /* NULL: none, the stages make their documents themselves ($documents) */
    struct bdoc filter; /* the documents that match it, in any order */
    struct bdoc stages; /* array: a pipeline that these pass through; data NULL: none. Only if `runs_stages` */
    struct bdoc let;    /* the variables that the stages see, as a command's `let`; data NULL: none */
};

/* Other collections of the same database, for $lookup, $graphLookup and $unionWith. A collection that doesn't exist has
 * no documents. */
struct pipeline_foreign {
    /* `out` works until close; the query is borrowed for the call. */
    bool (*open)(void *arg, const struct pipeline_foreign_query *query, struct doc_source *out, struct err *err);
    void (*close)(void *arg, struct doc_source *source);
    void *arg;
    bool runs_stages; /* false: pipelines over another collection are run by the stages themselves */
};
/* Calls `add` with the name of each other collection that the pipeline reads. */
void pipeline_foreign_names(const struct pipeline *pipeline, void (*add)(void *arg, const char *coll), void *arg);

/* What the planner may take over from the front of a pipeline: the stages [0, stage_count) do exactly this. */
struct pipeline_lead {
    struct bdoc match;    /* all leading $match as one filter; data NULL: none */
    struct bdoc sort;     /* data NULL: none */
    int64_t skip;         /* after the sort */
    int64_t limit;        /* after the skip; 0: none */
    uint32_t stage_count; /* give this to pipeline_run_new as `first_stage` */
};
/* match lies in `arena`. */
void pipeline_lead(const struct pipeline *pipeline, struct arena *arena, struct pipeline_lead *out);

/* How a router gets the result out of shards. Both parts are BSON arrays of stages for pipeline_compile. */
struct pipeline_split {
    struct bdoc shard;      /* runs on each shard */
    struct bdoc merge;      /* runs on the router over the merged streams; empty: pass through */
    struct bdoc merge_sort; /* the shards' streams are sorted by this: merge by sort keys (query/sort.h); data NULL: any
                               order */
    bool single_document;   /* the shard part yields at most one document each ($count) */
};
/* Pushes $match, $sort + $limit and a partial $group down; everything in `arena`. */
bool pipeline_split(const struct pipeline *pipeline, struct arena *arena, struct pipeline_split *out,
                    struct err *err) ERR_WARN_UNUSED;

/* The same for one shard that has all documents but not the other collections: what stands before the first stage that
 * reads one is the shard's. */
bool pipeline_split_others(const struct pipeline *pipeline, struct arena *arena, struct pipeline_split *out,
                           struct err *err) ERR_WARN_UNUSED;

struct pipeline_run;

/* Runs stages [first_stage, end) over `source`; both borrowed until pipeline_run_free. May be kept from one batch to
 * the next: it holds no lock and no transaction itself. */
struct pipeline_run *pipeline_run_new(const struct pipeline *pipeline, uint32_t first_stage, struct doc_source source,
                                      size_t memory_limit_bytes);
/* Borrowed until pipeline_run_free; without it a stage that reads another collection is refused (238). */
void pipeline_run_set_foreign(struct pipeline_run *run, const struct pipeline_foreign *foreign);
/* Lets $sort and $group go on in temporary files beyond the memory limit (allowDiskUse). Borrowed likewise; without it
 * they end with 292. */
void pipeline_run_set_space(struct pipeline_run *run, struct temp_space *space);
void pipeline_run_free(struct pipeline_run *run);
/* The next result, borrowed until the next call; data NULL at the end. Error 292 beyond the memory limit. */
bool pipeline_run_next(struct pipeline_run *run, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
/* Documents that the stage `index` of the run (0: its first_stage) has handed out. */
uint64_t pipeline_run_stage_given(const struct pipeline_run *run, uint32_t index);
/* What $group, $sort and the like hold now. */
size_t pipeline_run_memory_bytes(const struct pipeline_run *run);

#endif
