/* $group, and the two halves of a $group over shards: each shard makes partial states, the router merges them. Groups
 * that don't fit into memory go to the disk as partial states too, in the order of their keys, and are merged at the
 * end. */
#include "aggregate/accumulator.h"
#include "aggregate/stage.h"
#include "base/mem.h"
#include "bson/keyenc.h"

#include <string.h>

enum group_mode {
    GROUP_WHOLE,
    GROUP_PARTIAL, /* documents in, states out */
    GROUP_MERGE,   /* states in, results out */
};

enum {
    GROUP_ENTRY_BYTES = 128,                     /* of one group beside key, _id and accumulators */
    GROUP_SPILL_BUFFER_BYTES = 16 * 1024 * 1024, /* of states on their way to the disk */
};

struct group_spec {
    enum group_mode mode;
    struct expr *id;
    const char *only_id_name; /* of {_id: {name: expression}}: a missing value becomes null here; else NULL */
    struct accumulator_field *fields;
    uint32_t field_count;
};

struct group {
    uint8_t id_type;
    struct buf id;
    struct accumulator accumulators[];
};

struct group_state {
    struct map by_key;     /* encoded _id -> struct group */
    struct group **groups; /* in order of arrival */
    size_t count;
    size_t capacity;
    size_t next;
    struct buf key;
    size_t held_bytes; /* by the groups, as told to stage_try_hold */

    struct sorter *spilled; /* partial states by key; NULL: all groups are in memory */
    struct sort_item item;  /* the next of them; valid with has_item */
    bool has_item;
};

static const char *only_name(const struct bval *id)
{
    struct biter iter;
    struct belem elem;
    if (id->type != BT_DOCUMENT || bdoc_count(bval_doc(id)) != 1)
        return NULL;
    biter_init(&iter, bval_doc(id));
    return biter_next(&iter, &elem) && elem.key[0] != '$' ? elem.key : NULL;
}

static bool compile_group(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 15947, "a group's fields must be specified in an object");
    struct bdoc doc = bval_doc(operand);
    struct group_spec *spec = arena_alloc(c->arena, sizeof *spec);
    spec->mode = stage->type == &stage_group           ? GROUP_WHOLE
                 : stage->type == &stage_group_partial ? GROUP_PARTIAL
                                                       : GROUP_MERGE;
    spec->fields = arena_alloc(c->arena, (bdoc_count(doc) + 1) * sizeof *spec->fields);
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "_id") == 0) {
            if (spec->id != NULL)
                return err_set(c->err, 15948, "a group's _id may only be specified once");
            spec->only_id_name = only_name(&elem.val);
            if (!expr_compile(c->arena, &elem.val, c->env, &spec->id, c->err))
                return false;
        } else if (!accumulator_field_compile(c->arena, &elem, c->env, &spec->fields[spec->field_count++], c->err)) {
            return false;
        }
    }
    if (spec->id == NULL)
        return err_set(c->err, 15955, "a group specification must include an _id");
    stage->group = spec;
    return true;
}

static struct group *add_group(struct group_state *state, const struct group_spec *spec, const struct bval *id)
{
    struct group *group = mem_alloc(sizeof *group + spec->field_count * sizeof *group->accumulators);
    group->id_type = id->type;
    if (id->len > 0)
        buf_append(&group->id, id->data, id->len);
    if (state->count == state->capacity) {
        state->capacity = state->capacity == 0 ? 16 : state->capacity * 2;
        state->groups = mem_realloc(state->groups, state->capacity * sizeof(struct group *));
    }
    state->groups[state->count++] = group;
    map_put(&state->by_key, state->key.data, state->key.len, group);
    return group;
}

static bool begin_group(struct stage_run *run, struct group *group, const struct bval *id, struct err *err)
{
    const struct group_spec *spec = run->stage->group;
    for (uint32_t i = 0; i < spec->field_count; i++)
        if (!accumulator_begin(&group->accumulators[i], &spec->fields[i], id, &run->run->scratch, err))
            return false;
    return true;
}

static size_t group_bytes(const struct group *group, const struct group_spec *spec)
{
    size_t bytes = GROUP_ENTRY_BYTES + group->id.cap;
    for (uint32_t i = 0; i < spec->field_count; i++)
        bytes += accumulator_bytes(&group->accumulators[i]);
    return bytes;
}

static bool group_id(struct stage_run *run, struct bdoc doc, struct bval *id, struct err *err)
{
    if (run->stage->group->mode == GROUP_MERGE)
        bdoc_find(doc, "_id", id);
    else if (!expr_eval(run->stage->group->id, doc, &run->run->scratch, id, err))
        return false;
    const char *only = run->stage->group->only_id_name;
    if (only != NULL && id->type == BT_DOCUMENT && bdoc_is_empty(bval_doc(id))) {
        struct bdoc with_null = stage_wrap(&run->run->scratch, only, &BVAL_NULL);
        *id = bval_from_doc(with_null);
    }
    if (id->type == BT_EOO || id->type == BT_UNDEFINED)
        *id = BVAL_NULL;
    return true;
}

/* Counts what the groups hold; beyond the limit they go to the disk. */
static bool hold(struct stage_run *run, struct group_state *state, int64_t bytes, bool *full, struct err *err)
{
    state->held_bytes = (size_t)((int64_t)state->held_bytes + bytes);
    if (stage_try_hold(run, bytes))
        return true;
    *full = run->run->space != NULL;
    return *full || stage_hold(run, 0, err);
}

/* *full: the groups have to go to the disk before more documents come. */
static bool add_document(struct stage_run *run, struct group_state *state, struct bdoc doc, bool *full, struct err *err)
{
    const struct group_spec *spec = run->stage->group;
    struct bval id;
    arena_reset(&run->run->scratch);
    if (!group_id(run, doc, &id, err))
        return false;
    buf_clear(&state->key);
    keyenc_append_ordered(&state->key, &id, false, run->stage->order);
    struct group *group = map_get(&state->by_key, state->key.data, state->key.len);
    size_t before = group != NULL ? group_bytes(group, spec) : 0;
    if (group == NULL) {
        group = add_group(state, spec, &id);
        before = 0;
        if (!hold(run, state, (int64_t)state->key.len, full, err) || !begin_group(run, group, &id, err))
            return false;
    }
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct accumulator_field *field = &spec->fields[i];
        struct accumulator *acc = &group->accumulators[i];
        struct bval val;
        if (spec->mode == GROUP_MERGE) {
            bdoc_find(doc, field->name, &val);
            if (!accumulator_merge(acc, field, &val, err))
                return false;
        } else if (!accumulator_add(acc, field, doc, &run->run->scratch, err)) {
            return false;
        }
    }
    return hold(run, state, (int64_t)group_bytes(group, spec) - (int64_t)before, full, err);
}

static bool write_group(struct stage_run *run, struct group *group, bool partial, struct bdoc *out, struct err *err)
{
    const struct group_spec *spec = run->stage->group;
    struct bval id = {.type = group->id_type, .len = (uint32_t)group->id.len, .data = group->id.data};
    buf_clear(&run->out);
    size_t start = write_begin(&run->out);
    write_value(&run->out, "_id", 3, &id);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct accumulator_field *field = &spec->fields[i];
        if (partial)
            accumulator_write_partial(&group->accumulators[i], field, &run->out);
        else
            accumulator_write(&group->accumulators[i], field, &run->out);
    }
    write_end(&run->out, start);
    if (run->out.len > BDOC_MAX_INTERNAL_BYTES)
        return err_set(err, ERR_BSONObjectTooLarge, "a result of $group of %zu bytes is larger than %d", run->out.len,
                       BDOC_MAX_INTERNAL_BYTES);
    *out = write_view(&run->out, start);
    return true;
}

static void free_group(const struct group_spec *spec, struct group *group)
{
    if (group == NULL)
        return;
    for (uint32_t i = 0; i < spec->field_count; i++)
        accumulator_deinit(&group->accumulators[i]);
    buf_deinit(&group->id);
    mem_free(group);
}

static void drop_groups(struct stage_run *run, struct group_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        free_group(run->stage->group, state->groups[i]);
    map_deinit(&state->by_key);
    state->by_key = MAP_INIT;
    state->count = 0;
    (void)stage_try_hold(run, -(int64_t)state->held_bytes);
    state->held_bytes = 0;
}

/* ---- on the disk ---- */

/* Writes the states of all groups out. */
static bool spill(struct stage_run *run, struct group_state *state, struct err *err)
{
    struct bdoc doc;
    if (state->spilled == NULL)
        state->spilled = sorter_new(
            &(struct sorter_options){.memory_limit_bytes = GROUP_SPILL_BUFFER_BYTES, .space = run->run->space});
    for (struct map_entry *entry = map_next(&state->by_key, NULL); entry != NULL;
         entry = map_next(&state->by_key, entry)) {
        if (!write_group(run, entry->value, true, &doc, err) ||
            !sorter_add(state->spilled, entry->key, entry->key_len, doc, 0, err))
            return false;
    }
    drop_groups(run, state);
    return true;
}

static bool merge_item(struct group *group, const struct group_spec *spec, struct bdoc doc, struct err *err)
{
    for (uint32_t i = 0; i < spec->field_count; i++) {
        struct bval val;
        bdoc_find(doc, spec->fields[i].name, &val);
        if (!accumulator_merge(&group->accumulators[i], &spec->fields[i], &val, err))
            return false;
    }
    return true;
}

/* One group alone must fit into memory. */
static bool check_size(const struct stage_run *run, const struct group *group, struct err *err)
{
    if (group_bytes(group, run->stage->group) <= run->run->memory_limit_bytes)
        return true;
    return err_set(err, ERR_ExceededMemoryLimit, "one group of $group takes more than %zu bytes",
                   run->run->memory_limit_bytes);
}

/* All states of the next key, in the order in which they were made. */
static bool merge_next(struct stage_run *run, struct group_state *state, struct group *group, struct err *err)
{
    const struct group_spec *spec = run->stage->group;
    struct bval id;
    bdoc_find(state->item.doc, "_id", &id);
    group->id_type = id.type;
    buf_append(&group->id, id.data, id.len);
    buf_clear(&state->key);
    buf_append(&state->key, state->item.key, state->item.key_len);
    arena_reset(&run->run->scratch);
    if (!begin_group(run, group, &id, err))
        return false;
    do {
        if (!merge_item(group, spec, state->item.doc, err) || !check_size(run, group, err) ||
            !sorter_next(state->spilled, &state->item, &state->has_item, err))
            return false;
    } while (state->has_item && state->item.key_len == state->key.len &&
             memcmp(state->item.key, state->key.data, state->key.len) == 0);
    return true;
}

static bool next_spilled(struct stage_run *run, struct group_state *state, struct bdoc *out, struct err *err)
{
    const struct group_spec *spec = run->stage->group;
    if (!state->has_item)
        return true;
    struct group *group = mem_alloc(sizeof *group + spec->field_count * sizeof *group->accumulators);
    bool ok = merge_next(run, state, group, err) && write_group(run, group, spec->mode == GROUP_PARTIAL, out, err);
    free_group(spec, group);
    return ok;
}

static bool fill(struct stage_run *run, struct group_state *state, struct err *err)
{
    for (;;) {
        struct bdoc doc;
        bool full = false;
        if (!stage_input(run, &doc, err))
            return false;
        if (doc.data == NULL)
            break;
        if (!add_document(run, state, doc, &full, err) || (full && !spill(run, state, err)))
            return false;
    }
    if (state->spilled == NULL)
        return true;
    if (!spill(run, state, err) || !sorter_finish(state->spilled, err))
        return false;
    (void)stage_try_hold(run, (int64_t)sorter_memory_bytes(state->spilled));
    return sorter_next(state->spilled, &state->item, &state->has_item, err);
}

/* ---- the stage ---- */

static bool next_group(struct stage_run *run, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    if (run->state == NULL) {
        run->state = mem_alloc(sizeof(struct group_state));
        if (!fill(run, run->state, err))
            return false;
    }
    struct group_state *state = run->state;
    if (state->spilled != NULL)
        return next_spilled(run, state, out, err);
    if (state->next == state->count)
        return true;
    return write_group(run, state->groups[state->next++], run->stage->group->mode == GROUP_PARTIAL, out, err);
}

static void close_group(struct stage_run *run)
{
    struct group_state *state = run->state;
    if (state == NULL)
        return;
    drop_groups(run, state);
    sorter_free(state->spilled);
    mem_free(state->groups);
    buf_deinit(&state->key);
    mem_free(state);
}

#define GROUP_STAGE(variable, stage_name, how)                                                                         \
    const struct stage_type variable = {                                                                               \
        .name = (stage_name), .compile = compile_group, .next = next_group, .close = close_group, .spread = (how)}

GROUP_STAGE(stage_group, "$group", SPREAD_GROUP);
GROUP_STAGE(stage_group_partial, "$_internalGroupPartial", SPREAD_MERGE);
GROUP_STAGE(stage_group_merge, "$_internalGroupMerge", SPREAD_MERGE);
