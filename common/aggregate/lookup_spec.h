/* What $lookup and $unionWith have in common: their options, and one read of the other collection. */
#ifndef SHERD_AGGREGATE_LOOKUP_SPEC_H
#define SHERD_AGGREGATE_LOOKUP_SPEC_H

#include "aggregate/stage.h"

struct lookup {
    const char *from;        /* NULL: the pipeline makes its documents itself */
    const char *local_field; /* NULL: no equality */
    struct path local_path;  /* lies in the arena, like foreign_path */
    const char *foreign_field;
    struct path foreign_path;
    const char *as;
    struct bdoc stages; /* data NULL: no pipeline */
    const char **let_names;
    struct expr **let_values;
    uint32_t let_count;
    struct expr_env env; /* of the outer command, for the pipeline */
};

/* One option of either stage into the spec. */
bool lookup_option(struct stage_compiler *c, struct lookup *spec, const struct belem *elem);
/* Errors of the pipeline are told before any document is read; also that there is one to make documents where no
 * collection is named. */
bool lookup_check(struct stage_compiler *c, const struct lookup *spec, const char *stage);

/* The values that the local field of `doc` looks for, one after the other: arrays expanded, null for none. */
void lookup_local_values(const struct lookup *spec, struct bdoc doc, void (*add)(void *arg, const struct bval *val),
                         void *arg);

/* Another collection being read, through the stage's own pipeline if it has one. Zeroed before lookup_begin, ended with
 * lookup_end in every case. */
struct foreign_run {
    struct doc_source source;
    struct pipeline_run *inner; /* NULL: no pipeline, or the reader runs it */
    struct arena arena;
    bool open;
};
/* For `doc`, or with `filter` (data not NULL) for whatever matches that. */
bool lookup_begin(struct stage_run *run, struct foreign_run *f, struct bdoc doc, struct bdoc filter, struct err *err);
bool lookup_next(struct foreign_run *f, struct bdoc *out, struct err *err);
void lookup_end(struct stage_run *run, struct foreign_run *f);

#endif
