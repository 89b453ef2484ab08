/* Updates written as a pipeline: $addFields/$set, $project, $unset, $replaceRoot/$replaceWith. */
#include "update/update_tree.h"

#include <string.h>

/* {$unset: "a"} or {$unset: ["a", "b"]} as an exclusion. */
static bool unset_spec(struct update_compiler *c, const struct bval *arg, struct bdoc *out)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    bool ok = true;
    uint32_t len;
    if (arg->type == BT_STRING) {
        write_i32(&buf, bval_str(arg, &len), 0);
    } else if (arg->type == BT_ARRAY && !bdoc_is_empty(bval_doc(arg))) {
        struct biter iter;
        struct belem item;
        biter_init(&iter, bval_doc(arg));
        while (ok && biter_next(&iter, &item)) {
            ok = item.val.type == BT_STRING;
            if (ok)
                write_i32(&buf, bval_str(&item.val, &len), 0);
        }
    } else {
        ok = false;
    }
    write_end(&buf, start);
    if (!ok) {
        buf_deinit(&buf);
        return err_set(c->err, 31002,
                       "$unset specification must be a string or an array containing only string values");
    }
    struct bval doc = make_doc(c->arena, &buf, BT_DOCUMENT);
    *out = bval_doc(&doc);
    return true;
}

static bool compile_projection(struct update_compiler *c, const struct belem *elem, struct update_stage *stage)
{
    struct bdoc spec;
    enum projection_kind kind = PROJECTION_ADD_FIELDS;
    if (strcmp(elem->key, "$unset") == 0) {
        kind = PROJECTION_STAGE;
        if (!unset_spec(c, &elem->val, &spec))
            return false;
    } else {
        if (elem->val.type != BT_DOCUMENT)
            return err_set(c->err, 40272, "%s specification stage must be an object, got %s", elem->key,
                           bval_type_name(elem->val.type));
        spec = bval_doc(&elem->val);
        if (strcmp(elem->key, "$project") == 0) {
            kind = PROJECTION_STAGE;
            if (bdoc_is_empty(spec))
                return err_set(c->err, 51272,
                               "Invalid $project :: caused by :: projection specification must have at least "
                               "one field");
        }
    }
    stage->kind = STAGE_PROJECTION;
    return projection_compile(c->arena, spec, &(struct projection_options){.kind = kind, .env = c->options->env},
                              &stage->projection, c->err);
}

static bool compile_replace(struct update_compiler *c, const struct belem *elem, struct update_stage *stage)
{
    struct bval value = elem->val;
    stage->kind = STAGE_REPLACE;
    if (strcmp(elem->key, "$replaceRoot") == 0 &&
        (elem->val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&elem->val), "newRoot", &value)))
        return err_set(c->err, 40231, "no newRoot specified for the $replaceRoot stage");
    return expr_compile(c->arena, &value, c->options->env, &stage->expr, c->err);
}

static bool compile_stage(struct update_compiler *c, struct bdoc doc, struct update_stage *stage)
{
    static const char *const projections[] = {"$addFields", "$set", "$project", "$unset"};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    if (bdoc_count(doc) != 1 || !biter_next(&iter, &elem))
        return err_set(c->err, 40323, "A pipeline stage specification object must contain exactly one field.");
    for (size_t i = 0; i < sizeof projections / sizeof *projections; i++)
        if (strcmp(elem.key, projections[i]) == 0)
            return compile_projection(c, &elem, stage);
    if (strcmp(elem.key, "$replaceRoot") == 0 || strcmp(elem.key, "$replaceWith") == 0)
        return compile_replace(c, &elem, stage);
    return err_set(c->err, ERR_InvalidOptions, "%s is not allowed to be used within an update", elem.key);
}

bool update_compile_pipeline(struct update_compiler *c, struct bdoc stages)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = bdoc_count(stages);
    c->update->kind = UPDATE_PIPELINE;
    c->update->stages = arena_alloc(c->arena, (count + 1) * sizeof *c->update->stages);
    if (c->options->array_filters.data != NULL && !bdoc_is_empty(c->options->array_filters))
        return err_set(c->err, ERR_FailedToParse, "arrayFilters may not be specified for pipeline-syle updates");
    biter_init(&iter, stages);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(c->err, ERR_TypeMismatch, "Each element of the 'pipeline' array must be an object");
        if (!compile_stage(c, bval_doc(&elem.val), &c->update->stages[c->update->stage_count]))
            return false;
        c->update->stage_count++;
    }
    return true;
}

static bool run_stage(struct applier *a, const struct update_stage *stage, struct bdoc doc, struct buf *out)
{
    struct bval value;
    if (stage->kind == STAGE_PROJECTION)
        return projection_apply(stage->projection, doc, NULL, out, a->err);
    if (!expr_eval(stage->expr, doc, &a->scratch, &value, a->err))
        return false;
    if (value.type != BT_DOCUMENT)
        return err_set(a->err, 40228,
                       "'newRoot' expression must evaluate to an object, but resulting value was of type: %s",
                       bval_type_name(value.type));
    buf_append(out, value.data, value.len);
    return true;
}

bool update_apply_pipeline(struct applier *a, struct buf *out)
{
    struct buf current = BUF_INIT;
    bool ok = true;
    struct bval old_id;
    struct bval new_id;
    buf_append(&current, a->doc.data, a->doc.len);
    for (uint32_t i = 0; ok && i < a->update->stage_count; i++) {
        struct buf next = BUF_INIT;
        ok = run_stage(a, &a->update->stages[i], write_view(&current, 0), &next);
        buf_deinit(&current);
        current = next;
    }
    if (ok) {
        /* A result that dropped _id gets it back in front. */
        struct bdoc result = write_view(&current, 0);
        bool lost = bdoc_find(a->doc, "_id", &old_id) && !bdoc_find(result, "_id", &new_id);
        size_t start = write_begin(out);
        if (lost)
            write_value(out, "_id", 3, &old_id);
        struct biter iter;
        struct belem elem;
        biter_init(&iter, result);
        while (biter_next(&iter, &elem))
            write_elem(out, &elem);
        write_end(out, start);
    }
    buf_deinit(&current);
    return ok;
}
