/* $lookup. An equality of two fields asks for many documents' values at once, so that a join over a network is no
 * request a document:
 *
 *   input -> [documents waiting] --values--> {foreignField: {$in: values}} -> [documents found, by value] -> joined
 *
 * With a pipeline each document has a read of its own, unless the pipeline doesn't depend on the document. */
#include "aggregate/lookup_spec.h"
#include "base/interrupt.h"
#include "base/map.h"
#include "base/mem.h"
#include "bson/keyenc.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOKUP_BATCH_FIRST = 16, /* documents joined by the first read; four times as many by each further one */
    LOOKUP_BATCH_MAX = 1024,
    LOOKUP_INPUT_BYTES = 4 * 1024 * 1024,   /* of documents that wait */
    LOOKUP_FOUND_BYTES = 32 * 1024 * 1024,  /* of documents found for them; with more each has a read of its own */
    LOOKUP_JOINED_BYTES = 64 * 1024 * 1024, /* of one document after several joins in a row */
};

#define LOOKUP_NONE UINT32_MAX /* no entry */

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
    bool from_missing = spec->from == NULL && (spec->stages.data == NULL || spec->local_field != NULL);
    if (from_missing || spec->as == NULL)
        return err_set(c->err, ERR_FailedToParse, "must specify '%s' field for a $lookup",
                       from_missing ? "from" : "as");
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
    if (spec->local_field != NULL && (!stage_compile_path(c, spec->local_field, &spec->local_path) ||
                                      !stage_compile_path(c, spec->foreign_field, &spec->foreign_path)))
        return false;
    return lookup_check(c, spec, "$lookup");
}

/* A found document under one of its values. */
struct entry {
    uint32_t doc;
    uint32_t next; /* LOOKUP_NONE: the last */
};

struct lookup_state {
    struct buf inputs; /* documents end to end */
    uint32_t input_count;
    size_t input_at; /* the next to be joined */
    uint32_t batch_max;
    uint32_t single; /* so many of those waiting have a read of their own */
    struct buf found;
    size_t *found_at; /* where each document begins */
    uint32_t found_count;
    uint32_t found_room;
    struct map by_value; /* encoded value -> number of its newest entry, in the arena */
    struct entry *entries;
    uint32_t entry_count;
    uint32_t entry_room;
    struct arena arena;     /* of the batch */
    struct filter *is_null; /* {foreignField: null}; compiled when needed */
    struct buf key;
    uint32_t *hits; /* documents found for one input */
    uint32_t hit_count;
    uint32_t hit_room;
    size_t held_bytes; /* told to stage_hold */
    bool shared_done;  /* `shared` holds the array that all documents get */
    struct buf shared;
};

static void *grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room == 0 ? 64 : *room * 2;
    return mem_realloc(array, *room * size);
}

static void batch_clear(struct lookup_state *s)
{
    buf_clear(&s->inputs);
    buf_clear(&s->found);
    map_deinit(&s->by_value);
    s->by_value = MAP_INIT;
    s->input_count = s->found_count = s->entry_count = s->single = 0;
    s->input_at = 0;
    filter_release(s->is_null);
    s->is_null = NULL;
    arena_deinit(&s->arena);
    arena_init(&s->arena);
}

static bool hold(struct stage_run *run, struct lookup_state *s, struct err *err)
{
    size_t now = s->inputs.len + s->found.len + s->shared.len;
    int64_t change = (int64_t)now - (int64_t)s->held_bytes;
    s->held_bytes = now;
    return stage_hold(run, change, err);
}

static const struct bval_order *order_of(const struct stage_run *run)
{
    const struct lookup *spec = run->stage->extra;
    return spec->env.order;
}

/* The list of values under construction. */
struct wanted {
    struct lookup_state *state;
    const struct bval_order *order;
    struct map seen;
    struct buf values; /* unfinished array */
    uint32_t count;
    bool has_regex; /* $in would take it for a pattern */
};

static void want(void *arg, const struct bval *val)
{
    struct wanted *w = arg;
    struct buf *key = &w->state->key;
    w->has_regex |= val->type == BT_REGEX;
    buf_clear(key);
    keyenc_append_ordered(key, val, false, w->order);
    if (map_put(&w->seen, key->data, key->len, w) == NULL)
        write_item(&w->values, w->count++, val);
}

/* {foreignField: {$in: [...]}} for all documents that wait; data NULL: they need reads of their own. */
static struct bdoc batch_filter(const struct stage_run *run, struct lookup_state *s)
{
    const struct lookup *spec = run->stage->extra;
    struct wanted w = {.state = s, .order = order_of(run)};
    struct bdoc filter = {0};
    write_begin(&w.values);
    for (size_t at = 0; at < s->inputs.len;) {
        struct bdoc doc = write_view(&s->inputs, at);
        lookup_local_values(spec, doc, want, &w);
        at += doc.len;
    }
    write_end(&w.values, 0);
    if (!w.has_regex && w.values.len <= LOOKUP_INPUT_BYTES) {
        struct bval values = make_doc(&s->arena, &w.values, BT_ARRAY);
        struct bdoc in = stage_wrap(&s->arena, "$in", &values);
        struct bval condition = bval_from_doc(in);
        filter = stage_wrap(&s->arena, spec->foreign_field, &condition);
    }
    buf_deinit(&w.values);
    map_deinit(&w.seen);
    return filter;
}

/* One found document being filed. */
struct filing {
    struct lookup_state *state;
    const struct bval_order *order;
};

static bool file_value(void *arg, const struct path_hit *hit)
{
    struct filing *filing = arg;
    struct lookup_state *s = filing->state;
    if (hit->val.type == BT_EOO || hit->val.type == BT_NULL || hit->val.type == BT_UNDEFINED)
        return true;
    buf_clear(&s->key);
    keyenc_append_ordered(&s->key, &hit->val, false, filing->order);
    uint32_t *head = map_get(&s->by_value, s->key.data, s->key.len);
    if (head == NULL) {
        head = arena_alloc(&s->arena, sizeof *head);
        *head = LOOKUP_NONE;
        map_put(&s->by_value, s->key.data, s->key.len, head);
    }
    s->entries = grow(s->entries, s->entry_count, &s->entry_room, sizeof *s->entries);
    s->entries[s->entry_count] = (struct entry){.doc = s->found_count, .next = *head};
    *head = s->entry_count++;
    return true;
}

/* Reads all documents for those that wait. *too_many: there is no room for them. */
static bool batch_read(struct stage_run *run, struct lookup_state *s, struct bdoc filter, bool *too_many,
                       struct err *err)
{
    const struct lookup *spec = run->stage->extra;
    struct foreign_run f = {0};
    struct filing filing = {s, order_of(run)};
    struct bdoc doc = {0};
    *too_many = false;
    bool ok = lookup_begin(run, &f, bdoc_empty(), filter, err);
    while (ok && !*too_many) {
        ok = interrupt_step(err) && lookup_next(&f, &doc, err);
        if (!ok || doc.data == NULL)
            break;
        *too_many = s->found.len + doc.len > LOOKUP_FOUND_BYTES;
        s->found_at = grow(s->found_at, s->found_count, &s->found_room, sizeof *s->found_at);
        s->found_at[s->found_count] = s->found.len;
        buf_append(&s->found, doc.data, doc.len);
        path_each(&spec->foreign_path, doc, PATH_LEAF_ELEMENTS_AND_ARRAY, file_value, &filing);
        s->found_count++;
    }
    lookup_end(run, &f);
    return ok;
}

/* Takes the next documents of the input and reads what they are joined with. Afterwards none waits: the end. */
static bool batch_fill(struct stage_run *run, struct lookup_state *s, struct err *err)
{
    struct bdoc doc;
    bool too_many = false;
    batch_clear(s);
    s->batch_max = s->batch_max == 0 ? LOOKUP_BATCH_FIRST : s->batch_max * 4;
    if (s->batch_max > LOOKUP_BATCH_MAX)
        s->batch_max = LOOKUP_BATCH_MAX;
    while (!run->done && s->input_count < s->batch_max && s->inputs.len < LOOKUP_INPUT_BYTES) {
        if (!stage_input(run, &doc, err))
            return false;
        run->done = doc.data == NULL;
        if (run->done)
            break;
        buf_append(&s->inputs, doc.data, doc.len);
        s->input_count++;
    }
    if (s->input_count == 0)
        return hold(run, s, err);
    struct bdoc filter = s->input_count > 1 ? batch_filter(run, s) : (struct bdoc){0};
    if (filter.data != NULL && !batch_read(run, s, filter, &too_many, err))
        return false;
    if (filter.data == NULL || too_many) {
        s->single = s->input_count;
        buf_clear(&s->found);
    }
    return hold(run, s, err);
}

static struct bdoc found_doc(const struct lookup_state *s, uint32_t index)
{
    return write_view(&s->found, s->found_at[index]);
}

/* One input document looking for its own. */
struct matching {
    struct stage_run *run;
    struct lookup_state *state;
    struct err *err;
    bool ok;
};

static void add_hit(struct lookup_state *s, uint32_t doc)
{
    s->hits = grow(s->hits, s->hit_count, &s->hit_room, sizeof *s->hits);
    s->hits[s->hit_count++] = doc;
}

static void match_null(struct matching *m)
{
    const struct lookup *spec = m->run->stage->extra;
    struct lookup_state *s = m->state;
    if (s->is_null == NULL) {
        struct bdoc filter = stage_wrap(&s->arena, spec->foreign_field, &BVAL_NULL);
        m->ok = filter_compile(&s->arena, filter, &spec->env, &s->is_null, m->err);
    }
    for (uint32_t i = 0; m->ok && i < s->found_count; i++) {
        bool matched = false;
        m->ok = interrupt_step(m->err) && filter_eval(s->is_null, found_doc(s, i), NULL, &matched, m->err);
        if (m->ok && matched)
            add_hit(s, i);
    }
}

static void match_value(void *arg, const struct bval *val)
{
    struct matching *m = arg;
    struct lookup_state *s = m->state;
    if (!m->ok)
        return;
    if (val->type == BT_NULL) {
        match_null(m);
        return;
    }
    buf_clear(&s->key);
    keyenc_append_ordered(&s->key, val, false, order_of(m->run));
    const uint32_t *head = map_get(&s->by_value, s->key.data, s->key.len);
    for (uint32_t at = head == NULL ? LOOKUP_NONE : *head; at != LOOKUP_NONE; at = s->entries[at].next)
        add_hit(s, s->entries[at].doc);
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static bool too_large(const struct buf *array, struct err *err)
{
    return array->len > BDOC_MAX_INTERNAL_BYTES &&
           !err_set(err, 4568, "Total size of documents matching in $lookup exceeds maximum document size");
}

/* The array of found documents that belong to `doc`, in the order in which they were read. */
static bool match_found(struct stage_run *run, struct lookup_state *s, struct bdoc doc, struct buf *array,
                        struct err *err)
{
    struct matching m = {.run = run, .state = s, .err = err, .ok = true};
    s->hit_count = 0;
    lookup_local_values(run->stage->extra, doc, match_value, &m);
    if (!m.ok)
        return false;
    if (s->hit_count > 1)
        qsort(s->hits, s->hit_count, sizeof *s->hits, compare_u32);
    size_t start = write_begin(array);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->hit_count; i++) {
        if (i > 0 && s->hits[i] == s->hits[i - 1])
            continue;
        struct bval val = bval_from_doc(found_doc(s, s->hits[i]));
        write_item(array, count++, &val);
        if (too_large(array, err))
            return false;
    }
    write_end(array, start);
    return true;
}

static bool collect(struct foreign_run *f, struct buf *array, struct err *err)
{
    struct bdoc doc;
    size_t start = write_begin(array);
    for (uint32_t i = 0;; i++) {
        if (!lookup_next(f, &doc, err))
            return false;
        if (doc.data == NULL)
            break;
        struct bval val = bval_from_doc(doc);
        write_item(array, i, &val);
        if (too_large(array, err))
            return false;
    }
    write_end(array, start);
    return true;
}

/* A read for this document alone. */
static bool read_single(struct stage_run *run, struct bdoc doc, struct buf *array, struct err *err)
{
    struct foreign_run f = {0};
    bool ok = lookup_begin(run, &f, doc, (struct bdoc){0}, err) && collect(&f, array, err);
    lookup_end(run, &f);
    return ok;
}

static void join(struct stage_run *run, struct bdoc doc, const struct buf *array, struct bdoc *out)
{
    const struct lookup *spec = run->stage->extra;
    struct bval joined = {.type = BT_ARRAY, .len = (uint32_t)array->len, .data = array->data};
    buf_clear(&run->out);
    size_t start = write_begin(&run->out);
    stage_write_replaced(doc, spec->as, &joined, &run->out);
    write_end(&run->out, start);
    *out = write_view(&run->out, start);
}

/* By equality alone: many at once. */
static bool next_batched(struct stage_run *run, struct lookup_state *s, struct bdoc *out, struct err *err)
{
    struct buf array = BUF_INIT;
    *out = (struct bdoc){0};
    if (s->input_at == s->inputs.len && !batch_fill(run, s, err))
        return false;
    if (s->input_count == 0)
        return true;
    struct bdoc doc = write_view(&s->inputs, s->input_at);
    s->input_at += doc.len;
    bool ok;
    if (s->single > 0) {
        s->single--;
        ok = read_single(run, doc, &array, err);
    } else {
        ok = match_found(run, s, doc, &array, err);
    }
    if (ok)
        join(run, doc, &array, out);
    buf_deinit(&array);
    return ok;
}

/* By a pipeline: a read for each document, or one for all. */
static bool next_each(struct stage_run *run, struct lookup_state *s, struct bdoc *out, struct err *err)
{
    const struct lookup *spec = run->stage->extra;
    bool same = spec->let_count == 0 && spec->local_field == NULL;
    struct buf array = BUF_INIT;
    if (!stage_input(run, out, err))
        return false;
    if (out->data == NULL)
        return true;
    if (same && s->shared_done) {
        join(run, *out, &s->shared, out);
        return true;
    }
    bool ok = read_single(run, *out, &array, err);
    if (ok)
        join(run, *out, &array, out);
    if (ok && same) {
        s->shared = array;
        s->shared_done = true;
        return hold(run, s, err);
    }
    buf_deinit(&array);
    return ok;
}

static bool next_lookup(struct stage_run *run, struct bdoc *out, struct err *err)
{
    const struct lookup *spec = run->stage->extra;
    struct lookup_state *s = run->state;
    if (s == NULL) {
        s = mem_alloc(sizeof *s);
        arena_init(&s->arena);
        run->state = s;
    }
    if (!(spec->stages.data == NULL ? next_batched(run, s, out, err) : next_each(run, s, out, err)))
        return false;
    return out->data == NULL || out->len <= LOOKUP_JOINED_BYTES ||
           err_set(err, ERR_BSONObjectTooLarge, "a document after $lookup is larger than %d bytes",
                   LOOKUP_JOINED_BYTES);
}

static void close_lookup(struct stage_run *run)
{
    struct lookup_state *s = run->state;
    if (s == NULL)
        return;
    batch_clear(s);
    buf_deinit(&s->inputs);
    buf_deinit(&s->found);
    buf_deinit(&s->key);
    buf_deinit(&s->shared);
    arena_deinit(&s->arena);
    mem_free(s->found_at);
    mem_free(s->entries);
    mem_free(s->hits);
    mem_free(s);
}

const struct stage_type stage_lookup = {
    .name = "$lookup", .compile = compile_lookup, .next = next_lookup, .close = close_lookup, .spread = SPREAD_MERGE};
