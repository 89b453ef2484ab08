/* $lookup and $unionWith: documents of another collection, found by equality of two fields or by a pipeline of their
 * own. */
#include "aggregate/stage.h"
#include "base/mem.h"

#include <string.h>

struct lookup {
    const char *from;
    const char *local_field; /* NULL: no equality */
    struct path local_path;
    const char *foreign_field;
    const char *as;
    struct bdoc stages; /* data NULL: no pipeline */
    const char **let_names;
    struct expr **let_values;
    uint32_t let_count;
    struct expr_env env; /* of the outer command, for the pipeline */
};

static bool text_option(struct stage_compiler *c, const struct belem *elem, const char **out)
{
    uint32_t len;
    if (elem->val.type != BT_STRING)
        return err_set(c->err, ERR_FailedToParse, "argument '%s' must be a string, is type %s", elem->key,
                       bval_type_name(elem->val.type));
    *out = bval_str(&elem->val, &len);
    return true;
}

static bool let_option(struct stage_compiler *c, struct lookup *spec, const struct bval *arg)
{
    struct biter iter;
    struct belem elem;
    if (arg->type != BT_DOCUMENT)
        return err_set(c->err, ERR_FailedToParse, "$lookup argument 'let' must be an object");
    uint32_t count = bdoc_count(bval_doc(arg));
    spec->let_names = arena_alloc(c->arena, (count + 1) * sizeof(char *));
    spec->let_values = arena_alloc(c->arena, (count + 1) * sizeof(struct expr *));
    biter_init(&iter, bval_doc(arg));
    while (biter_next(&iter, &elem)) {
        spec->let_names[spec->let_count] = elem.key;
        if (!expr_compile(c->arena, &elem.val, c->env, &spec->let_values[spec->let_count], c->err))
            return false;
        spec->let_count++;
    }
    return true;
}

static bool lookup_option(struct stage_compiler *c, struct lookup *spec, const struct belem *elem)
{
    if (strcmp(elem->key, "from") == 0)
        return text_option(c, elem, &spec->from);
    if (strcmp(elem->key, "localField") == 0)
        return text_option(c, elem, &spec->local_field);
    if (strcmp(elem->key, "foreignField") == 0)
        return text_option(c, elem, &spec->foreign_field);
    if (strcmp(elem->key, "as") == 0)
        return text_option(c, elem, &spec->as);
    if (strcmp(elem->key, "let") == 0)
        return let_option(c, spec, &elem->val);
    if (strcmp(elem->key, "pipeline") != 0 && strcmp(elem->key, "coll") != 0)
        return err_set(c->err, ERR_FailedToParse, "unknown argument to $lookup: %s", elem->key);
    if (elem->key[0] == 'c')
        return text_option(c, elem, &spec->from);
    if (elem->val.type != BT_ARRAY)
        return err_set(c->err, ERR_TypeMismatch, "'pipeline' option must be specified as an array");
    spec->stages = bval_doc(&elem->val);
    return true;
}

/* The variables that the pipeline sees: those of the command and its own. `doc` data NULL: nulls, for a trial. */
static bool make_let(const struct lookup *spec, struct bdoc doc, struct arena *arena, struct bdoc *out, struct err *err)
{
    struct buf buf = BUF_INIT;
    struct biter iter;
    struct belem elem;
    bool ok = true;
    size_t start = write_begin(&buf);
    for (uint32_t i = 0; ok && i < spec->let_count; i++) {
        struct bval val = BVAL_NULL;
        ok = doc.data == NULL || expr_eval(spec->let_values[i], doc, arena, &val, err);
        if (val.type == BT_EOO) {
            write_str(&buf, spec->let_names[i], "$$REMOVE", strlen("$$REMOVE"));
            continue;
        }
        size_t literal = write_begin_field(&buf, spec->let_names[i], strlen(spec->let_names[i]), BT_DOCUMENT);
        write_value(&buf, "$literal", 8, &val);
        write_end(&buf, literal);
    }
    if (spec->env.let.data != NULL) {
        biter_init(&iter, spec->env.let);
        while (biter_next(&iter, &elem))
            write_elem(&buf, &elem);
    }
    write_end(&buf, start);
    struct bval let = make_doc(arena, &buf, BT_DOCUMENT);
    *out = bval_doc(&let);
    return ok;
}

static bool compile_inner(const struct lookup *spec, struct bdoc let, struct arena *arena, struct pipeline **out,
                          struct err *err)
{
    struct expr_env *env = arena_copy(arena, &spec->env, sizeof spec->env);
    env->let = let;
    return pipeline_compile(arena, spec->stages, env, out, err);
}

/* Errors of the pipeline are told before any document is read. */
static bool try_inner(struct stage_compiler *c, const struct lookup *spec)
{
    struct bdoc let;
    struct pipeline *inner;
    struct bval unused;
    if (spec->stages.data == NULL)
        return true;
    if (!make_let(spec, (struct bdoc){0}, c->arena, &let, c->err) ||
        !compile_inner(spec, let, c->arena, &inner, c->err))
        return false;
    if (pipeline_sink_stage(inner, &unused) != NULL)
        return err_set(c->err, 51047, "%s is not allowed within a $lookup's sub-pipeline",
                       pipeline_sink_stage(inner, &unused));
    return true;
}

static bool compile_lookup(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    struct lookup *spec = arena_alloc(c->arena, sizeof *spec);
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, ERR_FailedToParse, "the $lookup stage specification must be an object, but found %s",
                       bval_type_name(operand->type));
    if (c->env != NULL)
        spec->env = *c->env;
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem))
        if (!lookup_option(c, spec, &elem))
            return false;
    if (spec->from == NULL || spec->as == NULL)
        return err_set(c->err, ERR_FailedToParse, "must specify '%s' field for a $lookup",
                       spec->from == NULL ? "from" : "as");
    if ((spec->local_field == NULL) != (spec->foreign_field == NULL))
        return err_set(c->err, ERR_FailedToParse,
                       "$lookup requires both or neither of 'localField' and 'foreignField' to be "
                       "specified");
    if (spec->local_field == NULL && spec->stages.data == NULL)
        return err_set(c->err, ERR_FailedToParse,
                       "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' "
                       "to be specified");
    stage->extra = spec;
    stage->path = spec->from;
    if (spec->local_field != NULL && !stage_compile_path(c, spec->local_field, &spec->local_path))
        return false;
    return try_inner(c, spec);
}

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
    if (spec->from == NULL)
        return err_set(c->err, 40414, "BSON field '$unionWith.coll' is missing but a required field");
    stage->extra = spec;
    stage->path = spec->from;
    return try_inner(c, spec);
}

/* {$or: [{foreignField: {$eq: value}}, ...]} under construction. */
struct equalities {
    const struct lookup *spec;
    struct arena *arena;
    struct buf buf;
    uint32_t count;
};

static void add_equality(struct equalities *e, const struct bval *val)
{
    struct bdoc equal = stage_wrap(e->arena, "$eq", val);
    struct bval condition = bval_from_doc(equal);
    struct bdoc one = stage_wrap(e->arena, e->spec->foreign_field, &condition);
    struct bval entry = bval_from_doc(one);
    write_item(&e->buf, e->count++, &entry);
}

static bool add_local_value(void *arg, const struct path_hit *hit)
{
    if (hit->val.type != BT_EOO && hit->val.type != BT_UNDEFINED)
        add_equality(arg, &hit->val);
    return true;
}

/* Any of the values at the local path, arrays expanded; without one it looks for null. */
static struct bdoc equality_filter(const struct lookup *spec, struct bdoc doc, struct arena *arena)
{
    struct equalities e = {.spec = spec, .arena = arena};
    if (spec->local_field == NULL)
        return bdoc_empty();
    size_t start = write_begin(&e.buf);
    size_t list = write_begin_field(&e.buf, "$or", 3, BT_ARRAY);
    path_each(&spec->local_path, doc, PATH_LEAF_ELEMENTS, add_local_value, &e);
    if (e.count == 0)
        add_equality(&e, &BVAL_NULL);
    write_end(&e.buf, list);
    write_end(&e.buf, start);
    struct bval filter = make_doc(arena, &e.buf, BT_DOCUMENT);
    return bval_doc(&filter);
}

/* Another collection being read, through the stage's own pipeline if it has one. */
struct foreign_run {
    struct doc_source source;
    struct pipeline_run *inner; /* NULL: no pipeline */
    struct arena arena;
    bool open;
};

static bool foreign_begin(struct stage_run *run, struct foreign_run *f, struct bdoc doc, struct err *err)
{
    const struct lookup *spec = run->stage->extra;
    const struct pipeline_foreign *foreign = run->run->foreign;
    struct pipeline *inner = NULL;
    struct pipeline_foreign_query query = {.coll = spec->from};
    arena_init(&f->arena);
    if (foreign == NULL)
        return err_set(err, ERR_NotImplemented, "%s is not supported here", run->stage->type->name);
    if (spec->stages.data != NULL && !make_let(spec, doc, &f->arena, &query.let, err))
        return false;
    if (foreign->runs_stages)
        query.stages = spec->stages;
    else if (spec->stages.data != NULL && !compile_inner(spec, query.let, &f->arena, &inner, err))
        return false;
    query.filter = equality_filter(spec, doc, &f->arena);
    if (!foreign->open(foreign->arg, &query, &f->source, err))
        return false;
    f->open = true;
    if (inner == NULL)
        return true;
    size_t held = run->run->memory_bytes;
    size_t limit = run->run->memory_limit_bytes;
    f->inner = pipeline_run_new(inner, 0, f->source, limit > held ? limit - held : 0);
    pipeline_run_set_foreign(f->inner, foreign);
    return true;
}

static bool foreign_next(struct foreign_run *f, struct bdoc *out, struct err *err)
{
    return f->inner != NULL ? pipeline_run_next(f->inner, out, err) : f->source.next(f->source.arg, out, err);
}

static void foreign_end(struct stage_run *run, struct foreign_run *f)
{
    pipeline_run_free(f->inner);
    if (f->open)
        run->run->foreign->close(run->run->foreign->arg, &f->source);
    arena_deinit(&f->arena);
    *f = (struct foreign_run){0};
}

static bool collect(struct foreign_run *f, struct buf *array, struct err *err)
{
    struct bdoc doc;
    size_t start = write_begin(array);
    for (uint32_t i = 0;; i++) {
        if (!foreign_next(f, &doc, err))
            return false;
        if (doc.data == NULL)
            break;
        struct bval val = bval_from_doc(doc);
        write_item(array, i, &val);
        if (array->len > BDOC_MAX_INTERNAL_BYTES)
            return err_set(err, 4568, "Total size of documents matching in $lookup exceeds maximum document size");
    }
    write_end(array, start);
    return true;
}

static bool next_lookup(struct stage_run *run, struct bdoc *out, struct err *err)
{
    const struct lookup *spec = run->stage->extra;
    struct foreign_run f = {0};
    struct buf array = BUF_INIT;
    struct bdoc doc;
    if (!stage_input(run, out, err))
        return false;
    if (out->data == NULL)
        return true;
    doc = *out;
    bool ok = foreign_begin(run, &f, doc, err) && collect(&f, &array, err);
    foreign_end(run, &f);
    if (ok) {
        struct bval joined = {.type = BT_ARRAY, .len = (uint32_t)array.len, .data = array.data};
        buf_clear(&run->out);
        size_t start = write_begin(&run->out);
        stage_write_replaced(doc, spec->as, &joined, &run->out);
        write_end(&run->out, start);
        *out = write_view(&run->out, start);
    }
    buf_deinit(&array);
    return ok;
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
        if (!foreign_begin(run, f, bdoc_empty(), err))
            return false;
    }
    return foreign_next(f, out, err);
}

static void close_union_with(struct stage_run *run)
{
    if (run->state == NULL)
        return;
    foreign_end(run, run->state);
    mem_free(run->state);
}

const struct stage_type stage_lookup = {
    .name = "$lookup", .compile = compile_lookup, .next = next_lookup, .spread = SPREAD_MERGE};
const struct stage_type stage_union_with = {.name = "$unionWith",
                                            .compile = compile_union_with,
                                            .next = next_union_with,
                                            .close = close_union_with,
                                            .spread = SPREAD_MERGE};
