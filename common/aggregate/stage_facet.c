/* $facet: several pipelines over the same documents, one document with an array for each. */
#include "aggregate/stage.h"
#include "base/mem.h"

#include <string.h>

struct facet {
    const char *name;
    struct pipeline *pipeline;
};

struct facet_list {
    struct facet *items;
    uint32_t count;
};

/* The documents of the input, one after the other. */
struct facet_input {
    struct buf docs;
    size_t at;
};

static bool compile_facet(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    if (operand->type != BT_DOCUMENT || bdoc_is_empty(bval_doc(operand)))
        return err_set(c->err, 40169, "the $facet specification must be a non-empty object");
    if (c->depth >= STAGE_MAX_DEPTH)
        return err_set(c->err, ERR_ExceededMemoryLimit, "pipelines are nested more than %d levels deep",
                       STAGE_MAX_DEPTH);
    struct facet_list *list = arena_alloc(c->arena, sizeof *list);
    list->items = arena_alloc(c->arena, bdoc_count(bval_doc(operand)) * sizeof *list->items);
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        struct facet *facet = &list->items[list->count++];
        if (elem.key_len == 0 || elem.key[0] == '$' || strchr(elem.key, '.') != NULL)
            return err_set(c->err, 40170, "'%s' is not a valid name of a facet", elem.key);
        if (elem.val.type != BT_ARRAY)
            return err_set(c->err, 40170, "arguments to $facet must be arrays, %s is type %s", elem.key,
                           bval_type_name(elem.val.type));
        facet->name = elem.key;
        struct stage_compiler inner = {.arena = c->arena, .env = c->env, .err = c->err, .depth = c->depth + 1};
        inner.pipeline = arena_alloc(c->arena, sizeof *inner.pipeline);
        inner.pipeline->arena = c->arena;
        struct biter stages;
        struct belem item;
        biter_init(&stages, bval_doc(&elem.val));
        while (biter_next(&stages, &item)) {
            if (item.val.type != BT_DOCUMENT)
                return err_set(c->err, 40171, "elements of arrays in $facet spec must be non-empty objects");
            if (!stage_add(&inner, bval_doc(&item.val)))
                return false;
        }
        for (uint32_t i = 0; i < inner.pipeline->count; i++)
            if (inner.pipeline->stages[i].type == &stage_facet)
                return err_set(c->err, 40600, "$facet is not allowed to be used within a $facet stage");
        if (inner.pipeline->count > 0 && inner.pipeline->stages[0].type->spread == SPREAD_SOURCE)
            return err_set(c->err, 40600, "%s is not allowed to be used within a $facet stage",
                           inner.pipeline->stages[0].type->name);
        facet->pipeline = inner.pipeline;
    }
    stage->extra = list;
    return true;
}

static bool next_document(void *arg, struct bdoc *out, struct err *err)
{
    struct facet_input *input = arg;
    (void)err;
    *out = (struct bdoc){0};
    if (input->at == input->docs.len)
        return true;
    *out = write_view(&input->docs, input->at);
    input->at += out->len;
    return true;
}

static bool read_input(struct stage_run *run, struct facet_input *input, struct err *err)
{
    struct bdoc doc;
    for (;;) {
        if (!stage_input(run, &doc, err))
            return false;
        if (doc.data == NULL)
            return true;
        if (!stage_hold(run, doc.len, err))
            return false;
        buf_append(&input->docs, doc.data, doc.len);
    }
}

static bool run_facet(struct stage_run *run, const struct facet *facet, struct facet_input *input, struct err *err)
{
    struct doc_source source = {.next = next_document, .arg = input};
    size_t held = run->run->memory_bytes;
    size_t limit = run->run->memory_limit_bytes;
    struct pipeline_run *inner = pipeline_run_new(facet->pipeline, 0, source, limit > held ? limit - held : 0);
    pipeline_run_set_foreign(inner, run->run->foreign);
    size_t start = write_begin_field(&run->out, facet->name, strlen(facet->name), BT_ARRAY);
    uint32_t index = 0;
    bool ok;
    struct bdoc doc;
    input->at = 0;
    for (;;) {
        ok = pipeline_run_next(inner, &doc, err);
        if (!ok || doc.data == NULL)
            break;
        struct bval val = bval_from_doc(doc);
        write_item(&run->out, index++, &val);
        if (run->out.len > BDOC_MAX_INTERNAL_BYTES) {
            ok = err_set(err, ERR_BSONObjectTooLarge, "the result of $facet is larger than %d bytes",
                         BDOC_MAX_INTERNAL_BYTES);
            break;
        }
    }
    write_end(&run->out, start);
    pipeline_run_free(inner);
    return ok;
}

static bool next_facet(struct stage_run *run, struct bdoc *out, struct err *err)
{
    const struct facet_list *list = run->stage->extra;
    struct facet_input input = {0};
    *out = (struct bdoc){0};
    if (run->done)
        return true;
    run->done = true;
    bool ok = read_input(run, &input, err);
    size_t start = write_begin(&run->out);
    for (uint32_t i = 0; ok && i < list->count; i++)
        ok = run_facet(run, &list->items[i], &input, err);
    write_end(&run->out, start);
    buf_deinit(&input.docs);
    if (ok)
        *out = write_view(&run->out, start);
    return ok;
}

const struct stage_type stage_facet = {
    .name = "$facet", .compile = compile_facet, .next = next_facet, .spread = SPREAD_MERGE};
