/* $graphLookup: documents of another collection that can be reached from a value, level by level. */
#include "aggregate/stage.h"
#include "base/map.h"
#include "bson/keyenc.h"
#include "bson/path.h"

#include <string.h>

struct graph_lookup {
    const char *from;
    const char *as;
    const char *connect_to;
    const char *connect_from; /* for error texts */
    struct path from_path;    /* lies in the arena */
    struct expr *start_with;
    const char *depth_field; /* NULL: none */
    int64_t max_depth;       /* INT64_MAX: none */
    struct bdoc restriction; /* data NULL: none */
};

static bool depth_option(struct stage_compiler *c, struct graph_lookup *spec, const struct bval *val)
{
    if (!bval_is_number(val))
        return err_set(c->err, 40100, "maxDepth must be numeric, found type: %s", bval_type_name(val->type));
    if (!bval_to_i64(val, &spec->max_depth))
        return err_set(c->err, 40102, "maxDepth could not be represented as a long long");
    if (spec->max_depth < 0)
        return err_set(c->err, 40101, "maxDepth requires a nonnegative argument, found: %lld",
                       (long long)spec->max_depth);
    return true;
}

static bool graph_option(struct stage_compiler *c, struct graph_lookup *spec, const struct belem *elem)
{
    uint32_t len;
    const char **text = strcmp(elem->key, "from") == 0               ? &spec->from
                        : strcmp(elem->key, "as") == 0               ? &spec->as
                        : strcmp(elem->key, "connectFromField") == 0 ? &spec->connect_from
                        : strcmp(elem->key, "connectToField") == 0   ? &spec->connect_to
                        : strcmp(elem->key, "depthField") == 0       ? &spec->depth_field
                                                                     : NULL;
    if (strcmp(elem->key, "startWith") == 0)
        return expr_compile(c->arena, &elem->val, c->env, &spec->start_with, c->err);
    if (strcmp(elem->key, "maxDepth") == 0)
        return depth_option(c, spec, &elem->val);
    if (strcmp(elem->key, "restrictSearchWithMatch") == 0) {
        struct filter *checked;
        if (elem->val.type != BT_DOCUMENT)
            return err_set(c->err, 40185, "restrictSearchWithMatch must be an object, found %s",
                           bval_type_name(elem->val.type));
        spec->restriction = bval_doc(&elem->val);
        return filter_compile(c->arena, spec->restriction, c->env, &checked, c->err);
    }
    if (text == NULL)
        return err_set(c->err, 40104, "Unknown argument to $graphLookup: %s", elem->key);
    if (elem->val.type != BT_STRING)
        return err_set(c->err, 40103, "expected string as argument for %s, found: %s", elem->key,
                       bval_type_name(elem->val.type));
    *text = bval_str(&elem->val, &len);
    if (**text == '$')
        return err_set(c->err, 16410,
                       "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    return true;
}

static bool compile_graph_lookup(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    struct graph_lookup *spec = arena_alloc(c->arena, sizeof *spec);
    spec->max_depth = INT64_MAX;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, ERR_FailedToParse,
                       "the $graphLookup stage specification must be an object, but found %s",
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem))
        if (!graph_option(c, spec, &elem))
            return false;
    if (spec->from == NULL || spec->as == NULL || spec->connect_to == NULL || spec->connect_from == NULL ||
        spec->start_with == NULL)
        return err_set(c->err, 40105,
                       "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and "
                       "'connectToField' to be specified.");
    stage->extra = spec;
    stage->path = spec->from;
    return stage_compile_path(c, spec->connect_from, &spec->from_path);
}

/* One search. Values wait in `frontier` as an unfinished BSON array. */
struct search {
    struct stage_run *run;
    const struct graph_lookup *spec;
    struct map tried;   /* encoded values that were looked for */
    struct map visited; /* encoded _ids of the documents found */
    struct buf frontier;
    uint32_t waiting;
    struct buf found; /* unfinished array of documents */
    uint32_t count;
    struct arena arena;
};

static void add_value(struct search *s, const struct bval *val)
{
    struct buf key = BUF_INIT;
    const struct bval *wanted = val->type == BT_EOO || val->type == BT_UNDEFINED ? &BVAL_NULL : val;
    keyenc_append_ordered(&key, wanted, false, s->run->stage->order);
    if (map_get(&s->tried, key.data, key.len) == NULL) {
        map_put(&s->tried, key.data, key.len, s);
        write_item(&s->frontier, s->waiting++, wanted);
    }
    buf_deinit(&key);
}

static bool add_hit(void *arg, const struct path_hit *hit)
{
    if (hit->val.type != BT_EOO && hit->val.type != BT_ARRAY)
        add_value(arg, &hit->val);
    return true;
}

static bool keep_document(struct search *s, struct bdoc doc, int64_t depth, struct err *err)
{
    struct buf key = BUF_INIT;
    struct bval id;
    bdoc_find(doc, "_id", &id);
    keyenc_append(&key, &id, false);
    bool fresh = map_get(&s->visited, key.data, key.len) == NULL;
    if (fresh)
        map_put(&s->visited, key.data, key.len, s);
    buf_deinit(&key);
    if (!fresh)
        return true;
    char name[WRITER_INDEX_BYTES];
    size_t len = write_index_name(name, s->count++);
    size_t start = write_begin_field(&s->found, name, len, BT_DOCUMENT);
    struct bval number = {.type = BT_INT64, .len = sizeof depth, .data = (const uint8_t *)&depth};
    if (s->spec->depth_field != NULL)
        stage_write_replaced(doc, s->spec->depth_field, &number, &s->found);
    else
        buf_append(&s->found, doc.data + 4, doc.len - 5);
    write_end(&s->found, start);
    path_each(&s->spec->from_path, doc, PATH_LEAF_ELEMENTS, add_hit, s);
    if (s->found.len + s->frontier.len > s->run->run->memory_limit_bytes)
        return err_set(err, 40099, "$graphLookup reached maximum memory consumption");
    return true;
}

/* {$and: [{connectToField: {$in: [frontier]}}, restriction]}. */
static struct bdoc frontier_filter(struct search *s)
{
    struct buf buf = BUF_INIT;
    write_end(&s->frontier, 0);
    struct bval values = make_doc(&s->arena, &s->frontier, BT_ARRAY);
    struct bdoc in = stage_wrap(&s->arena, "$in", &values);
    struct bval condition = bval_from_doc(in);
    struct bdoc reach = stage_wrap(&s->arena, s->spec->connect_to, &condition);
    struct bval first = bval_from_doc(reach);
    if (s->spec->restriction.data == NULL)
        return reach;
    struct bval second = bval_from_doc(s->spec->restriction);
    size_t start = write_begin(&buf);
    size_t both = write_begin_field(&buf, "$and", 4, BT_ARRAY);
    write_item(&buf, 0, &first);
    write_item(&buf, 1, &second);
    write_end(&buf, both);
    write_end(&buf, start);
    struct bval filter = make_doc(&s->arena, &buf, BT_DOCUMENT);
    return bval_doc(&filter);
}

static bool search_level(struct search *s, int64_t depth, struct err *err)
{
    const struct pipeline_foreign *foreign = s->run->run->foreign;
    struct doc_source source;
    struct bdoc doc;
    bool ok;
    struct pipeline_foreign_query query = {.coll = s->spec->from, .filter = frontier_filter(s)};
    s->waiting = 0;
    write_begin(&s->frontier);
    if (!foreign->open(foreign->arg, &query, &source, err))
        return false;
    for (;;) {
        ok = source.next(source.arg, &doc, err);
        if (!ok || doc.data == NULL)
            break;
        ok = keep_document(s, doc, depth, err);
        if (!ok)
            break;
    }
    foreign->close(foreign->arg, &source);
    return ok;
}

static bool search_all(struct search *s, struct bdoc doc, struct err *err)
{
    struct bval start;
    struct biter iter;
    struct belem item;
    if (!expr_eval(s->spec->start_with, doc, &s->arena, &start, err))
        return false;
    write_begin(&s->frontier);
    write_begin(&s->found);
    if (start.type == BT_ARRAY) {
        biter_init(&iter, bval_doc(&start));
        while (biter_next(&iter, &item))
            add_value(s, &item.val);
    } else if (start.type != BT_EOO) {
        add_value(s, &start);
    }
    for (int64_t depth = 0; s->waiting > 0 && depth <= s->spec->max_depth; depth++)
        if (!search_level(s, depth, err))
            return false;
    write_end(&s->found, 0);
    return true;
}

static bool next_graph_lookup(struct stage_run *run, struct bdoc *out, struct err *err)
{
    struct search s = {.run = run, .spec = run->stage->extra};
    if (!stage_input(run, out, err))
        return false;
    if (out->data == NULL)
        return true;
    if (run->run->foreign == NULL)
        return err_set(err, ERR_NotImplemented, "$graphLookup is not supported here");
    struct bdoc doc = *out;
    arena_init(&s.arena);
    bool ok = search_all(&s, doc, err);
    if (ok) {
        struct bval found = {.type = BT_ARRAY, .len = (uint32_t)s.found.len, .data = s.found.data};
        buf_clear(&run->out);
        size_t start = write_begin(&run->out);
        stage_write_replaced(doc, s.spec->as, &found, &run->out);
        write_end(&run->out, start);
        *out = write_view(&run->out, start);
    }
    buf_deinit(&s.frontier);
    buf_deinit(&s.found);
    map_deinit(&s.tried);
    map_deinit(&s.visited);
    arena_deinit(&s.arena);
    return ok;
}

const struct stage_type stage_graph_lookup = {
    .name = "$graphLookup", .compile = compile_graph_lookup, .next = next_graph_lookup, .spread = SPREAD_MERGE};
