#include "aggregate/lookup_spec.h"

#include "base/mem.h"

#include <string.h>

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
    spec->let_count = 0; /* `let` may be given twice: the last one counts */
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

bool lookup_option(struct stage_compiler *c, struct lookup *spec, const struct belem *elem)
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

bool lookup_check(struct stage_compiler *c, const struct lookup *spec, const char *stage)
{
    struct bdoc let;
    struct pipeline *inner;
    struct bval unused;
    struct bval source;
    if (spec->stages.data == NULL)
        return true;
    if (!make_let(spec, (struct bdoc){0}, c->arena, &let, c->err) ||
        !compile_inner(spec, let, c->arena, &inner, c->err))
        return false;
    if (pipeline_sink_stage(inner, &unused) != NULL)
        return err_set(c->err, 51047, "%s is not allowed within a %s's sub-pipeline",
                       pipeline_sink_stage(inner, &unused), stage);
    const char *first = pipeline_source_stage(inner, &source);
    if (spec->from == NULL && (first == NULL || strcmp(first, "$documents") != 0))
        return err_set(c->err, ERR_FailedToParse, "%s needs a collection, or a pipeline that begins with $documents",
                       stage);
    return true;
}

/* Hands each value of a path on. */
struct value_sink {
    void (*add)(void *arg, const struct bval *val);
    void *arg;
    uint32_t count;
};

static bool add_hit(void *arg, const struct path_hit *hit)
{
    struct value_sink *sink = arg;
    if (hit->val.type != BT_EOO && hit->val.type != BT_UNDEFINED) {
        sink->add(sink->arg, &hit->val);
        sink->count++;
    }
    return true;
}

void lookup_local_values(const struct lookup *spec, struct bdoc doc, void (*add)(void *arg, const struct bval *val),
                         void *arg)
{
    struct value_sink sink = {.add = add, .arg = arg};
    path_each(&spec->local_path, doc, PATH_LEAF_ELEMENTS, add_hit, &sink);
    if (sink.count == 0)
        add(arg, &BVAL_NULL);
}

/* {$or: [{foreignField: {$eq: value}}, ...]} under construction. */
struct equalities {
    const struct lookup *spec;
    struct arena *arena;
    struct buf buf;
    uint32_t count;
};

static void add_equality(void *arg, const struct bval *val)
{
    struct equalities *e = arg;
    struct bdoc equal = stage_wrap(e->arena, "$eq", val);
    struct bval condition = bval_from_doc(equal);
    struct bdoc one = stage_wrap(e->arena, e->spec->foreign_field, &condition);
    struct bval entry = bval_from_doc(one);
    write_item(&e->buf, e->count++, &entry);
}

static struct bdoc equality_filter(const struct lookup *spec, struct bdoc doc, struct arena *arena)
{
    struct equalities e = {.spec = spec, .arena = arena};
    if (spec->local_field == NULL)
        return bdoc_empty();
    size_t start = write_begin(&e.buf);
    size_t list = write_begin_field(&e.buf, "$or", 3, BT_ARRAY);
    lookup_local_values(spec, doc, add_equality, &e);
    write_end(&e.buf, list);
    write_end(&e.buf, start);
    struct bval filter = make_doc(arena, &e.buf, BT_DOCUMENT);
    return bval_doc(&filter);
}

bool lookup_begin(struct stage_run *run, struct foreign_run *f, struct bdoc doc, struct bdoc filter, struct err *err)
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
    else if (spec->from == NULL)
        return err_set(err, ERR_NotImplemented, "%s without a collection is not supported here",
                       run->stage->type->name);
    else if (spec->stages.data != NULL && !compile_inner(spec, query.let, &f->arena, &inner, err))
        return false;
    query.filter = filter.data != NULL ? filter : equality_filter(spec, doc, &f->arena);
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

bool lookup_next(struct foreign_run *f, struct bdoc *out, struct err *err)
{
    return f->inner != NULL ? pipeline_run_next(f->inner, out, err) : f->source.next(f->source.arg, out, err);
}

void lookup_end(struct stage_run *run, struct foreign_run *f)
{
    pipeline_run_free(f->inner);
    if (f->open)
        run->run->foreign->close(run->run->foreign->arg, &f->source);
    arena_deinit(&f->arena);
    *f = (struct foreign_run){0};
}
