/* $bucketAuto: documents sorted by an expression and dealt into buckets of about the same size. */
#include "aggregate/accumulator.h"
#include "aggregate/granularity.h"
#include "aggregate/stage.h"
#include "base/mem.h"
#include "bson/compare.h"
#include "bson/decimal.h"
#include "bson/keyenc.h"

#include <math.h>
#include <string.h>

struct bucket_auto {
    struct expr *group_by;
    int64_t buckets;
    const struct granularity *granularity; /* NULL: boundaries are values of documents */
    struct accumulator_field *fields;
    uint32_t field_count;
};

struct bucket_auto_state {
    struct sorter *sorter; /* documents in the order of the groupBy value */
    uint64_t bucket_size;
    int64_t made;
    bool has_low;    /* with a granularity: `low` is the next bucket's lower end */
    struct bval low; /* in `ends` */
    struct arena ends;
    bool has_next; /* `next` is the first document of the next bucket */
    struct sort_item next;
};

static bool default_output(struct stage_compiler *c, struct bucket_auto *spec)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_i32(&buf, "$sum", 1);
    write_end(&buf, start);
    struct belem elem = {.key = "count", .key_len = 5, .val = make_doc(c->arena, &buf, BT_DOCUMENT)};
    spec->field_count = 1;
    spec->fields = arena_alloc(c->arena, sizeof *spec->fields);
    return accumulator_field_compile(c->arena, &elem, c->env, spec->fields, c->err);
}

static bool read_output(struct stage_compiler *c, struct bucket_auto *spec, const struct bval *output)
{
    struct biter iter;
    struct belem elem;
    if (output->type != BT_DOCUMENT)
        return err_set(c->err, 40244, "The $bucketAuto 'output' field must be an object, but found type: %s",
                       bval_type_name(output->type));
    spec->field_count = 0; /* `output` may be given twice: the last one counts */
    spec->fields = arena_alloc(c->arena, (bdoc_count(bval_doc(output)) + 1) * sizeof *spec->fields);
    biter_init(&iter, bval_doc(output));
    while (biter_next(&iter, &elem))
        if (!accumulator_field_compile(c->arena, &elem, c->env, &spec->fields[spec->field_count++], c->err))
            return false;
    return true;
}

static bool read_option(struct stage_compiler *c, struct bucket_auto *spec, const struct belem *elem)
{
    uint32_t len;
    if (strcmp(elem->key, "groupBy") == 0) {
        bool expression =
            elem->val.type == BT_DOCUMENT || (elem->val.type == BT_STRING && bval_str(&elem->val, &len)[0] == '$');
        if (!expression)
            return err_set(c->err, 40239,
                           "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression "
                           "object");
        return expr_compile(c->arena, &elem->val, c->env, &spec->group_by, c->err);
    }
    if (strcmp(elem->key, "buckets") == 0) {
        if (!bval_is_number(&elem->val))
            return err_set(c->err, 40241, "The $bucketAuto 'buckets' field must be a numeric value");
        if (!bval_to_i64(&elem->val, &spec->buckets) || spec->buckets > INT32_MAX)
            return err_set(c->err, 40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer");
        if (spec->buckets <= 0)
            return err_set(c->err, 40243, "The $bucketAuto 'buckets' field must be greater than 0");
        return true;
    }
    if (strcmp(elem->key, "output") == 0)
        return read_output(c, spec, &elem->val);
    if (strcmp(elem->key, "granularity") == 0) {
        if (elem->val.type != BT_STRING)
            return err_set(c->err, 40261, "The $bucketAuto 'granularity' field must be a string, but found type: %s",
                           bval_type_name(elem->val.type));
        spec->granularity = granularity_find(bval_str(&elem->val, &len));
        if (spec->granularity == NULL)
            return err_set(c->err, 40257, "Unknown rounding granularity '%s'", bval_str(&elem->val, &len));
        return true;
    }
    return err_set(c->err, 40245, "Unrecognized option to $bucketAuto: %s.", elem->key);
}

static bool compile_bucket_auto(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 40240, "The argument to $bucketAuto must be an object, but found type: %s",
                       bval_type_name(operand->type));
    struct bucket_auto *spec = arena_alloc(c->arena, sizeof *spec);
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem))
        if (!read_option(c, spec, &elem))
            return false;
    if (spec->group_by == NULL || spec->buckets == 0)
        return err_set(c->err, 40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified");
    stage->extra = spec;
    return spec->fields != NULL || default_output(c, spec);
}

static bool group_value(struct stage_run *run, struct bdoc doc, struct bval *out, struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    if (!expr_eval(spec->group_by, doc, &run->run->scratch, out, err))
        return false;
    if (out->type == BT_EOO)
        *out = BVAL_NULL;
    if (spec->granularity == NULL)
        return true;
    double number;
    if (!bval_is_number(out) || !bval_to_f64(out, &number))
        return err_set(err, 40258,
                       "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value "
                       "with type: %s",
                       bval_type_name(out->type));
    if (isnan(number))
        return err_set(err, 40259,
                       "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN");
    if (number < 0)
        return err_set(err, 40260,
                       "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a "
                       "negative number: %g",
                       number);
    return true;
}

static bool fill(struct stage_run *run, struct bucket_auto_state *state, struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    struct buf key = BUF_INIT;
    struct bdoc doc;
    bool ok;
    for (;;) {
        struct bval val;
        ok = stage_input(run, &doc, err);
        if (!ok || doc.data == NULL)
            break;
        arena_reset(&run->run->scratch);
        buf_clear(&key);
        ok = group_value(run, doc, &val, err);
        if (!ok)
            break;
        keyenc_append_ordered(&key, &val, false, run->stage->order);
        ok = sorter_add(state->sorter, key.data, key.len, doc, 0, err);
        if (!ok)
            break;
    }
    buf_deinit(&key);
    if (!ok || !sorter_finish(state->sorter, err))
        return false;
    uint64_t count = sorter_count(state->sorter);
    state->bucket_size = (count + (uint64_t)spec->buckets / 2) / (uint64_t)spec->buckets;
    if (state->bucket_size == 0)
        state->bucket_size = 1;
    return sorter_next(state->sorter, &state->next, &state->has_next, err) &&
           stage_hold(run, (int64_t)sorter_memory_bytes(state->sorter), err);
}

static bool take(struct stage_run *run, struct bucket_auto_state *state, struct accumulator *accs, struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    arena_reset(&run->run->scratch);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        if (!accumulator_add(&accs[i], &spec->fields[i], state->next.doc, &run->run->scratch, err))
            return false;
    }
    return sorter_next(state->sorter, &state->next, &state->has_next, err);
}

static bool same_key(const struct sort_item *a, const struct sort_item *b)
{
    return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

/* A number of the series as a value: a decimal for a decimal, an integer for a power of two from 1 on, else a double; 0
 * stays as it was. */
static struct bval boundary(const struct bucket_auto *spec, struct arena *arena, const struct bval *val, bool up)
{
    double number = 0;
    bval_to_f64(val, &number);
    double rounded =
        up ? granularity_round_up(spec->granularity, number) : granularity_round_down(spec->granularity, number);
    if (rounded == 0)
        return make_copy(arena, val);
    if (val->type == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_from_f64(rounded, false);
        return make_decimal(arena, &dec);
    }
    if (spec->granularity->series == NULL && rounded >= 1 && rounded < 9e18) {
        struct number whole = number_narrow((int64_t)rounded, BT_INT32);
        return number_value(arena, &whole);
    }
    return make_f64(arena, rounded);
}

/* With a granularity: documents below the rounded upper end still belong to the bucket. */
static bool absorb(struct stage_run *run, struct bucket_auto_state *state, struct accumulator *accs, struct bdoc *last,
                   struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    struct bval val;
    if (!group_value(run, *last, &val, err))
        return false;
    struct bval end = boundary(spec, &run->run->scratch, &val, true);
    while (state->has_next) {
        if (!group_value(run, state->next.doc, &val, err))
            return false;
        if (bval_compare(&end, &val) <= 0)
            break;
        if (!take(run, state, accs, err))
            return false;
    }
    return true;
}

/* Documents whose value equals the last one's come along: no value is in two buckets. */
static bool collect(struct stage_run *run, struct bucket_auto_state *state, struct accumulator *accs, struct bdoc *last,
                    struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    bool last_bucket = ++state->made == spec->buckets;
    struct sort_item previous = state->next;
    for (uint64_t i = 0; state->has_next; i++) {
        bool equal = spec->granularity == NULL && same_key(&previous, &state->next);
        if (i >= state->bucket_size && !last_bucket && !equal)
            break;
        previous = state->next;
        *last = state->next.doc;
        if (!take(run, state, accs, err))
            return false;
    }
    return spec->granularity == NULL || absorb(run, state, accs, last, err);
}

/* Where the bucket begins and ends. Without a granularity the upper end is the next bucket's first value, of the last
 * bucket its own greatest. */
static bool bucket_ends(struct stage_run *run, struct bucket_auto_state *state, struct bdoc first, struct bdoc last,
                        struct bval *ends, struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    struct arena *scratch = &run->run->scratch;
    struct bval next = BVAL_MISSING;
    bool plain = spec->granularity == NULL;
    if (!group_value(run, first, &ends[0], err) ||
        !group_value(run, plain && state->has_next ? state->next.doc : last, &ends[1], err))
        return false;
    if (plain)
        return true;
    if (state->has_next && !group_value(run, state->next.doc, &next, err))
        return false;
    ends[0] = state->has_low ? state->low : boundary(spec, scratch, &ends[0], false);
    ends[1] = boundary(spec, scratch, &ends[1], true);
    struct number high = number_of(&ends[1]);
    /* A bucket of zeros ends where the next one, rounded down, begins. */
    if (number_is_zero(&high) && state->has_next)
        ends[1] = boundary(spec, scratch, &next, false);
    state->low = make_copy(&state->ends, &ends[1]);
    state->has_low = true;
    return true;
}

static void write_bucket(struct stage_run *run, const struct bval *ends, struct accumulator *accs)
{
    const struct bucket_auto *spec = run->stage->extra;
    buf_clear(&run->out);
    size_t start = write_begin(&run->out);
    size_t id = write_begin_field(&run->out, "_id", 3, BT_DOCUMENT);
    write_value(&run->out, "min", 3, &ends[0]);
    write_value(&run->out, "max", 3, &ends[1]);
    write_end(&run->out, id);
    for (uint32_t i = 0; i < spec->field_count; i++)
        accumulator_write(&accs[i], &spec->fields[i], &run->out);
    write_end(&run->out, start);
}

static bool next_bucket_auto(struct stage_run *run, struct bdoc *out, struct err *err)
{
    const struct bucket_auto *spec = run->stage->extra;
    *out = (struct bdoc){0};
    if (run->state == NULL) {
        struct bucket_auto_state *fresh = mem_alloc(sizeof *fresh);
        run->state = fresh;
        arena_init(&fresh->ends);
        fresh->sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = run->run->memory_limit_bytes});
        if (!fill(run, fresh, err))
            return false;
    }
    struct bucket_auto_state *state = run->state;
    if (!state->has_next)
        return true;
    arena_reset(&run->run->scratch);
    struct accumulator *accs = mem_alloc_array(spec->field_count + 1, sizeof *accs);
    struct bdoc first = state->next.doc;
    struct bdoc last = first;
    bool ok = true;
    for (uint32_t i = 0; ok && i < spec->field_count; i++)
        ok = accumulator_begin(&accs[i], &spec->fields[i], &BVAL_NULL, &run->run->scratch, err);
    ok = ok && collect(run, state, accs, &last, err);
    struct bval ends[2];
    ok = ok && bucket_ends(run, state, first, last, ends, err);
    if (ok)
        write_bucket(run, ends, accs);
    for (uint32_t i = 0; i < spec->field_count; i++)
        accumulator_deinit(&accs[i]);
    mem_free(accs);
    if (ok)
        *out = write_view(&run->out, 0);
    return ok;
}

static void close_bucket_auto(struct stage_run *run)
{
    struct bucket_auto_state *state = run->state;
    if (state == NULL)
        return;
    sorter_free(state->sorter);
    arena_deinit(&state->ends);
    mem_free(state);
}

const struct stage_type stage_bucket_auto = {.name = "$bucketAuto",
                                             .compile = compile_bucket_auto,
                                             .next = next_bucket_auto,
                                             .close = close_bucket_auto,
                                             .spread = SPREAD_MERGE};
