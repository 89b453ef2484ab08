/* $unionWith: the documents of another collection behind those of this one. */
#include "aggregate/lookup_spec.h"
#include "base/mem.h"

static bool compile_union_with(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    struct lookup *spec = arena_alloc(c->arena, sizeof *spec);
    uint32_t len;
    if (operand->type != BT_DOCUMENT && operand->type != BT_STRING)
        return err_set(c->err, ERR_FailedToParse, "the $unionWith stage specification must be an object or string");
    if (c->env != NULL)
        spec->env = *c->env;
    if (operand->type == BT_STRING) {
        spec->from = bval_str(operand, &len);
    } else {
        biter_init(&iter, bval_doc(operand));
        while (biter_next(&iter, &elem))
            if (!lookup_option(c, spec, &elem))
                return false;
    }
    if (spec->from == NULL && spec->stages.data == NULL)
        return err_set(c->err, 40414, "BSON field '$unionWith.coll' is missing but a required field");
    stage->extra = spec;
    stage->path = spec->from;
    return lookup_check(c, spec, "$unionWith");
}

static bool next_union_with(struct stage_run *run, struct bdoc *out, struct err *err)
{
    struct foreign_run *f = run->state;
    if (!run->done) {
        if (!stage_input(run, out, err))
            return false;
        if (out->data != NULL)
            return true;
        run->done = true;
        f = mem_alloc(sizeof *f);
        run->state = f;
        if (!lookup_begin(run, f, bdoc_empty(), (struct bdoc){0}, err))
            return false;
    }
    return lookup_next(f, out, err);
}

static void close_union_with(struct stage_run *run)
{
    if (run->state == NULL)
        return;
    lookup_end(run, run->state);
    mem_free(run->state);
}

const struct stage_type stage_union_with = {.name = "$unionWith",
                                            .compile = compile_union_with,
                                            .next = next_union_with,
                                            .close = close_union_with,
                                            .spread = SPREAD_MERGE};
