/* Stages that look at one document at a time: $match, $project, $addFields, $set, $unset, $limit, $skip, $count,
 * $replaceRoot, $replaceWith, $redact. */
#include "aggregate/stage.h"

#include <string.h>

static bool compile_match(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 15959, "the match filter must be an expression in an object");
    return filter_compile(c->arena, bval_doc(operand), c->env, &stage->filter, c->err);
}

static bool next_match(struct stage_run *run, struct bdoc *out, struct err *err)
{
    for (;;) {
        bool matched;
        if (!stage_input(run, out, err))
            return false;
        if (out->data == NULL)
            return true;
        if (!filter_eval(run->stage->filter, *out, NULL, &matched, err))
            return false;
        if (matched)
            return true;
    }
}

static bool compile_project(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 15969, "$project specification must be an object");
    if (bdoc_is_empty(bval_doc(operand)))
        return err_set(c->err, 51272,
                       "Invalid $project :: caused by :: projection specification must have at least one field");
    return projection_compile(c->arena, bval_doc(operand),
                              &(struct projection_options){.kind = PROJECTION_STAGE, .env = c->env}, &stage->projection,
                              c->err);
}

static bool compile_add_fields(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 40272, "%s specification stage must be an object, got %s", stage->type->name,
                       bval_type_name(operand->type));
    if (bdoc_is_empty(bval_doc(operand)))
        return err_set(c->err, 40177, "Invalid %s :: caused by :: specification must have at least one field",
                       stage->type->name);
    return projection_compile(c->arena, bval_doc(operand),
                              &(struct projection_options){.kind = PROJECTION_ADD_FIELDS, .env = c->env},
                              &stage->projection, c->err);
}

static bool unset_name(struct stage_compiler *c, struct buf *spec, const struct bval *name)
{
    uint32_t len;
    if (name->type != BT_STRING)
        return err_set(c->err, 31120,
                       "$unset specification must be a string or an array containing only string values");
    const char *text = bval_str(name, &len);
    if (strlen(text) != len)
        return err_set(c->err, 16411, "FieldPath field names may not contain '\\0'.");
    write_i32(spec, text, 0);
    return true;
}

static bool compile_unset(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct buf spec = BUF_INIT;
    size_t start = write_begin(&spec);
    bool ok;
    if (operand->type == BT_ARRAY) {
        struct biter iter;
        struct belem item;
        ok = !bdoc_is_empty(bval_doc(operand));
        if (!ok)
            err_set(c->err, 31119, "$unset specification must be a string or an array with at least one field");
        biter_init(&iter, bval_doc(operand));
        while (ok && biter_next(&iter, &item))
            ok = unset_name(c, &spec, &item.val);
    } else {
        ok = unset_name(c, &spec, operand);
    }
    write_end(&spec, start);
    struct bval doc = make_doc(c->arena, &spec, BT_DOCUMENT);
    return ok && projection_compile(c->arena, bval_doc(&doc),
                                    &(struct projection_options){.kind = PROJECTION_STAGE, .env = c->env},
                                    &stage->projection, c->err);
}

static bool next_projection(struct stage_run *run, struct bdoc *out, struct err *err)
{
    if (!stage_input(run, out, err))
        return false;
    if (out->data == NULL)
        return true;
    buf_clear(&run->out);
    if (!projection_apply(run->stage->projection, *out, NULL, &run->out, err))
        return false;
    *out = write_view(&run->out, 0);
    return true;
}

/* A whole number; doubles and decimals that stand for one are fine. */
static bool compile_number(struct stage_compiler *c, struct stage *stage, const struct bval *operand, int type_code)
{
    if (!bval_is_number(operand))
        return err_set(c->err, type_code, "invalid argument to %s stage: Expected a number in: %s: %s",
                       stage->type->name, stage->type->name, bval_type_name(operand->type));
    if (!bval_to_i64(operand, &stage->count))
        return err_set(c->err, type_code, "invalid argument to %s stage: Expected an integer", stage->type->name);
    return true;
}

static bool compile_limit(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (!compile_number(c, stage, operand, 5107201))
        return false;
    if (stage->count <= 0)
        return err_set(c->err, 15958, "the limit must be positive");
    return true;
}

static bool compile_skip(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (!compile_number(c, stage, operand, 5107200))
        return false;
    if (stage->count < 0)
        return err_set(c->err, 5107200,
                       "invalid argument to $skip stage: Expected a non-negative number in: $skip: %lld",
                       (long long)stage->count);
    return true;
}

static bool next_limit(struct stage_run *run, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    if (run->seen >= (uint64_t)run->stage->count)
        return true;
    run->seen++;
    return stage_input(run, out, err);
}

static bool next_skip(struct stage_run *run, struct bdoc *out, struct err *err)
{
    for (; run->seen < (uint64_t)run->stage->count; run->seen++) {
        if (!stage_input(run, out, err))
            return false;
        if (out->data == NULL)
            return true;
    }
    return stage_input(run, out, err);
}

static bool compile_count(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    uint32_t len;
    if (operand->type != BT_STRING)
        return err_set(c->err, 40156, "the count field must be a non-empty string");
    stage->path = bval_str(operand, &len);
    if (len == 0)
        return err_set(c->err, 40157, "the count field must be a non-empty string");
    if (stage->path[0] == '$')
        return err_set(c->err, 40158, "the count field cannot be a $-prefixed path");
    if (strlen(stage->path) != len)
        return err_set(c->err, 40159, "the count field cannot contain a null byte");
    if (strchr(stage->path, '.') != NULL)
        return err_set(c->err, 40160, "the count field cannot contain '.'");
    return true;
}

static bool next_count(struct stage_run *run, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    if (run->done)
        return true;
    struct bdoc doc;
    for (;;) {
        if (!stage_input(run, &doc, err))
            return false;
        if (doc.data == NULL)
            break;
        run->seen++;
    }
    run->done = true;
    if (run->seen == 0)
        return true;
    size_t start = write_begin(&run->out);
    if (run->seen <= INT32_MAX)
        write_i32(&run->out, run->stage->path, (int32_t)run->seen);
    else
        write_i64(&run->out, run->stage->path, (int64_t)run->seen);
    write_end(&run->out, start);
    *out = write_view(&run->out, start);
    return true;
}

static bool compile_replace_root(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    struct bval root = BVAL_MISSING;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 40229, "expected an object as specification for $replaceRoot stage, got %s",
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "newRoot") != 0)
            return err_set(c->err, 40415, "BSON field '$replaceRoot.%s' is an unknown field.", elem.key);
        root = elem.val;
    }
    if (root.type == BT_EOO)
        return err_set(c->err, 40414, "BSON field '$replaceRoot.newRoot' is missing but a required field");
    return expr_compile(c->arena, &root, c->env, &stage->expr, c->err);
}

static bool compile_replace_with(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    return expr_compile(c->arena, operand, c->env, &stage->expr, c->err);
}

static bool next_replace(struct stage_run *run, struct bdoc *out, struct err *err)
{
    struct bval value;
    if (!stage_input(run, out, err))
        return false;
    if (out->data == NULL)
        return true;
    arena_reset(&run->run->scratch);
    if (!expr_eval(run->stage->expr, *out, &run->run->scratch, &value, err))
        return false;
    if (value.type != BT_DOCUMENT)
        return err_set(err, 40228,
                       "'newRoot' expression must evaluate to an object, but resulting value was of type: %s",
                       bval_type_name(value.type));
    /* The input's bytes may go with the next call below; a copy of our own lives until the next call to us. */
    buf_clear(&run->out);
    buf_append(&run->out, value.data, value.len);
    *out = write_view(&run->out, 0);
    return true;
}

#define STAGE(variable, stage_name, compiler, runner, how)                                                             \
    const struct stage_type variable = {.name = (stage_name), .compile = (compiler), .next = (runner), .spread = (how)}

STAGE(stage_match, "$match", compile_match, next_match, SPREAD_LOCAL);
STAGE(stage_project, "$project", compile_project, next_projection, SPREAD_LOCAL);
STAGE(stage_add_fields, "$addFields", compile_add_fields, next_projection, SPREAD_LOCAL);
STAGE(stage_set, "$set", compile_add_fields, next_projection, SPREAD_LOCAL);
STAGE(stage_unset, "$unset", compile_unset, next_projection, SPREAD_LOCAL);
STAGE(stage_limit, "$limit", compile_limit, next_limit, SPREAD_LIMIT);
STAGE(stage_skip, "$skip", compile_skip, next_skip, SPREAD_SKIP);
STAGE(stage_count, "$count", compile_count, next_count, SPREAD_COUNT);
STAGE(stage_replace_root, "$replaceRoot", compile_replace_root, next_replace, SPREAD_LOCAL);
STAGE(stage_replace_with, "$replaceWith", compile_replace_with, next_replace, SPREAD_LOCAL);
