#include "aggregate/stage.h"
#include "base/check.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "expr/expr.h"

#include <string.h>

struct pipeline_run *pipeline_run_new(const struct pipeline *pipeline, uint32_t first_stage, struct doc_source source,
                                      size_t memory_limit_bytes)
{
    CHECK(first_stage <= pipeline->count);
    struct pipeline_run *run = mem_alloc(sizeof *run);
    run->pipeline = pipeline;
    run->source = source;
    run->memory_limit_bytes = memory_limit_bytes;
    run->count = pipeline->count - first_stage;
    run->stages = mem_alloc_array(run->count + 1, sizeof *run->stages);
    arena_init(&run->scratch);
    for (uint32_t i = 0; i < run->count; i++) {
        struct stage_run *stage = &run->stages[i];
        stage->stage = &pipeline->stages[first_stage + i];
        stage->run = run;
        stage->input = i > 0 ? &run->stages[i - 1] : NULL;
    }
    return run;
}

void pipeline_run_set_foreign(struct pipeline_run *run, const struct pipeline_foreign *foreign)
{
    run->foreign = foreign;
}

void pipeline_run_set_space(struct pipeline_run *run, struct temp_space *space)
{
    run->space = space;
}

void pipeline_run_free(struct pipeline_run *run)
{
    if (run == NULL)
        return;
    for (uint32_t i = 0; i < run->count; i++) {
        struct stage_run *stage = &run->stages[i];
        if (stage->stage->type->close != NULL)
            stage->stage->type->close(stage);
        buf_deinit(&stage->out);
    }
    arena_deinit(&run->scratch);
    mem_free(run->stages);
    mem_free(run);
}

/* The next document of a stage. Each stage may wrap those of the one before. */
static bool stage_next(struct stage_run *run, struct bdoc *out, struct err *err)
{
    if (!interrupt_step(err) || !run->stage->type->next(run, out, err))
        return false;
    run->given += out->data != NULL;
    return out->data == NULL || expr_check_depth(*out, err);
}

bool stage_input(struct stage_run *run, struct bdoc *out, struct err *err)
{
    if (run->input != NULL)
        return stage_next(run->input, out, err);
    return run->run->source.next(run->run->source.arg, out, err);
}

bool stage_try_hold(struct stage_run *run, int64_t bytes)
{
    run->run->memory_bytes = (size_t)((int64_t)run->run->memory_bytes + bytes);
    return run->run->memory_bytes <= run->run->memory_limit_bytes;
}

bool stage_hold(struct stage_run *run, int64_t bytes, struct err *err)
{
    if (stage_try_hold(run, bytes))
        return true;
    /* The halves of a $group over shards are nothing that a client knows. */
    const char *name = run->stage->type->name;
    if (strncmp(name, "$_internalGroup", strlen("$_internalGroup")) == 0)
        name = "$group";
    return err_set(err, ERR_QueryExceededMemoryLimitNoDiskUseAllowed,
                   "Exceeded memory limit for %s, but didn't allow external spilling; pass allowDiskUse:true to opt in",
                   name);
}

bool pipeline_run_next(struct pipeline_run *run, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    if (run->count == 0)
        return run->source.next(run->source.arg, out, err);
    return stage_next(&run->stages[run->count - 1], out, err);
}

uint64_t pipeline_run_stage_given(const struct pipeline_run *run, uint32_t index)
{
    CHECK(index < run->count);
    return run->stages[index].given;
}

size_t pipeline_run_memory_bytes(const struct pipeline_run *run)
{
    return run->memory_bytes;
}
