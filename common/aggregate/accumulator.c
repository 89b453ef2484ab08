#include "aggregate/accumulator_impl.h"

#include "base/interrupt.h"
#include "bson/compare.h"
#include "bson/decimal.h"
#include "bson/keyenc.h"

#include <math.h>
#include <string.h>

enum {
    SET_ENTRY_BYTES = 64, /* of one map entry beside its key */
};

void accumulator_deinit(struct accumulator *acc)
{
    buf_deinit(&acc->bytes);
    map_deinit(&acc->set);
    value_list_deinit(&acc->list);
}

size_t accumulator_bytes(const struct accumulator *acc)
{
    return sizeof *acc + acc->bytes.cap + acc->set_bytes + value_list_bytes(&acc->list);
}

static void keep(struct accumulator *acc, const struct bval *val)
{
    buf_clear(&acc->bytes);
    if (val->len > 0)
        buf_append(&acc->bytes, val->data, val->len);
    acc->type = val->type;
    acc->any = true;
}

static struct bval kept(const struct accumulator *acc)
{
    return (struct bval){.type = acc->type, .len = (uint32_t)acc->bytes.len, .data = acc->bytes.data};
}

static bool nullish(const struct bval *val)
{
    return val->type == BT_EOO || val->type == BT_NULL || val->type == BT_UNDEFINED;
}

static void add_number(struct accumulator *acc, const struct bval *val)
{
    if (!bval_is_number(val))
        return;
    struct number number = number_of(val);
    number_sum_add(&acc->sum, &number);
    acc->count++;
}

static void add_extreme(struct accumulator *acc, const struct accumulator_field *field, const struct bval *val)
{
    if (nullish(val))
        return;
    struct bval old = kept(acc);
    int order = acc->any ? bval_compare_ordered(val, &old, field->order) : 0;
    if (!acc->any || (field->op == ACCUMULATOR_MAX ? order > 0 : order < 0))
        keep(acc, val);
}

static void push_item(struct accumulator *acc, const struct bval *val)
{
    if (acc->bytes.len == 0)
        write_begin(&acc->bytes);
    write_item(&acc->bytes, acc->items++, val);
}

static void add_to_set(struct accumulator *acc, const struct accumulator_field *field, const struct bval *val)
{
    struct buf key = BUF_INIT;
    keyenc_append_ordered(&key, val, false, field->order);
    if (map_get(&acc->set, key.data, key.len) == NULL) {
        map_put(&acc->set, key.data, key.len, acc);
        acc->set_bytes += key.len + SET_ENTRY_BYTES;
        push_item(acc, val);
    }
    buf_deinit(&key);
}

static void add_deviation(struct accumulator *acc, const struct bval *val)
{
    double number;
    if (!bval_is_number(val) || !bval_to_f64(val, &number))
        return;
    acc->count++;
    double delta = number - acc->mean;
    acc->mean += delta / (double)acc->count;
    acc->squares += delta * (number - acc->mean);
}

/* Later documents replace fields of earlier ones in place. */
bool accumulator_merge_object(struct accumulator *acc, const struct bval *val, struct err *err)
{
    struct biter iter;
    struct belem elem;
    if (nullish(val))
        return true;
    if (val->type != BT_DOCUMENT)
        return err_set(err, 40400, "$mergeObjects requires object inputs, but input is of type %s",
                       bval_type_name(val->type));
    struct bdoc add = bval_doc(val);
    struct bdoc old = acc->any ? (struct bdoc){acc->bytes.data, (uint32_t)acc->bytes.len} : bdoc_empty();
    struct buf merged = BUF_INIT;
    size_t start = write_begin(&merged);
    bool ok = true; /* each field looks for its like: long for large documents */
    biter_init(&iter, old);
    while (ok && biter_next(&iter, &elem)) {
        struct bval newer;
        ok = interrupt_step(err);
        if (bdoc_find_n(add, elem.key, elem.key_len, &newer))
            elem.val = newer;
        write_elem(&merged, &elem);
    }
    biter_init(&iter, add);
    while (ok && biter_next(&iter, &elem)) {
        struct bval older;
        ok = interrupt_step(err);
        if (!bdoc_find_n(old, elem.key, elem.key_len, &older))
            write_elem(&merged, &elem);
    }
    write_end(&merged, start);
    buf_deinit(&acc->bytes);
    acc->bytes = merged;
    acc->type = BT_DOCUMENT;
    acc->any = true;
    return ok;
}

/* What the lists keep: $minN and $maxN sort by the value itself, null and missing ones are left out. */
void accumulator_add_to_list(struct accumulator *acc, const struct accumulator_field *field, const struct buf *key,
                             const struct bval *val)
{
    struct buf own = BUF_INIT;
    bool extreme = field->op == ACCUMULATOR_MIN_N || field->op == ACCUMULATOR_MAX_N;
    if (extreme && nullish(val))
        return;
    if (extreme)
        keyenc_append_ordered(&own, val, field->op == ACCUMULATOR_MAX_N, field->order);
    value_list_add(&acc->list, extreme ? &own : key, val->type == BT_EOO ? &BVAL_NULL : val);
    buf_deinit(&own);
}

bool accumulator_add_value(struct accumulator *acc, const struct accumulator_field *field, const struct bval *val,
                           struct err *err)
{
    static const int32_t one = 1;
    const struct bval one_val = {.type = BT_INT32, .len = sizeof one, .data = (const uint8_t *)&one};
    switch (field->op) {
    case ACCUMULATOR_SUM:
    case ACCUMULATOR_AVG:
        add_number(acc, val);
        break;
    case ACCUMULATOR_COUNT:
        add_number(acc, &one_val);
        break;
    case ACCUMULATOR_MIN:
    case ACCUMULATOR_MAX:
        add_extreme(acc, field, val);
        break;
    case ACCUMULATOR_FIRST:
        if (!acc->any)
            keep(acc, val);
        break;
    case ACCUMULATOR_LAST:
        keep(acc, val);
        break;
    case ACCUMULATOR_PUSH:
        if (val->type != BT_EOO)
            push_item(acc, val);
        break;
    case ACCUMULATOR_ADD_TO_SET:
        if (val->type != BT_EOO)
            add_to_set(acc, field, val);
        break;
    case ACCUMULATOR_DEV_POP:
    case ACCUMULATOR_DEV_SAMP:
        add_deviation(acc, val);
        break;
    case ACCUMULATOR_MERGE_OBJECTS:
        return accumulator_merge_object(acc, val, err);
    case ACCUMULATOR_MEDIAN:
    case ACCUMULATOR_PERCENTILE:
        percentiles_add(&acc->bytes, val);
        break;
    default:
        accumulator_add_to_list(acc, field, NULL, val);
        break;
    }
    return true;
}

bool accumulator_is_list(enum accumulator_op op)
{
    return op >= ACCUMULATOR_FIRST_N && op <= ACCUMULATOR_BOTTOM_N;
}

bool accumulator_begin(struct accumulator *acc, const struct accumulator_field *field, const struct bval *id,
                       struct arena *scratch, struct err *err)
{
    int64_t n = 1;
    if (!accumulator_is_list(field->op))
        return true;
    if (field->n != NULL) {
        struct bval val;
        struct bdoc root = id->type == BT_DOCUMENT ? bval_doc(id) : bdoc_empty();
        if (!expr_eval(field->n, root, scratch, &val, err) || !expr_read_n(&val, &n, err))
            return false;
    }
    bool last = field->op == ACCUMULATOR_LAST_N || field->op == ACCUMULATOR_BOTTOM || field->op == ACCUMULATOR_BOTTOM_N;
    bool by_key = field->op != ACCUMULATOR_FIRST_N && field->op != ACCUMULATOR_LAST_N;
    value_list_init(&acc->list, n, by_key, last ? VALUE_LIST_LAST : VALUE_LIST_FIRST);
    return true;
}

bool accumulator_add(struct accumulator *acc, const struct accumulator_field *field, struct bdoc doc,
                     struct arena *scratch, struct err *err)
{
    struct bval val;
    if (!expr_eval(field->expr, doc, scratch, &val, err))
        return false;
    if (field->sort == NULL)
        return accumulator_add_value(acc, field, &val, err);
    struct buf key = BUF_INIT;
    bool ok = sort_key_append(field->sort, doc, &key, err);
    if (ok)
        accumulator_add_to_list(acc, field, &key, &val);
    buf_deinit(&key);
    return ok;
}

static void write_sum(const struct accumulator *acc, enum accumulator_op op, const char *name, struct buf *out)
{
    struct arena scratch;
    struct bval val = BVAL_NULL;
    arena_init(&scratch);
    if (op != ACCUMULATOR_AVG) {
        struct number number = number_sum_result(&acc->sum);
        val = number_value(&scratch, &number);
    } else if (acc->count > 0 && acc->sum.widest == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_div(number_sum_decimal(&acc->sum), decimal_from_i64(acc->count));
        val = make_decimal(&scratch, &dec);
    } else if (acc->count > 0) {
        val = make_f64(&scratch, number_sum_f64(&acc->sum) / (double)acc->count);
    }
    write_value(out, name, strlen(name), &val);
    arena_deinit(&scratch);
}

static void write_deviation(const struct accumulator *acc, enum accumulator_op op, const char *name, struct buf *out)
{
    int64_t divisor = op == ACCUMULATOR_DEV_POP ? acc->count : acc->count - 1;
    if (divisor > 0)
        write_f64(out, name, sqrt(acc->squares / (double)divisor));
    else
        write_value(out, name, strlen(name), &BVAL_NULL);
}

static void write_items(const struct accumulator *acc, const char *name, struct buf *out)
{
    size_t start = write_begin_field(out, name, strlen(name), BT_ARRAY);
    if (acc->bytes.len > 4)
        buf_append(out, acc->bytes.data + 4, acc->bytes.len - 4);
    write_end(out, start);
}

void accumulator_write_kept(const struct accumulator *acc, const char *name, const struct bval *otherwise,
                            struct buf *out)
{
    struct bval val = kept(acc);
    write_value(out, name, strlen(name), acc->any && val.type != BT_EOO ? &val : otherwise);
}

static void write_list(struct accumulator *acc, const struct accumulator_field *field, struct buf *out)
{
    struct value_list *list = &acc->list;
    value_list_settle(list);
    if (field->op == ACCUMULATOR_TOP || field->op == ACCUMULATOR_BOTTOM) {
        struct bval val = list->count > 0 ? value_item_get(list->items[0]) : BVAL_NULL;
        write_value(out, field->name, strlen(field->name), &val);
        return;
    }
    size_t start = write_begin_field(out, field->name, strlen(field->name), BT_ARRAY);
    for (size_t i = 0; i < list->count; i++) {
        struct bval val = value_item_get(list->items[i]);
        write_item(out, (uint32_t)i, &val);
    }
    write_end(out, start);
}

static void write_percentiles(struct accumulator *acc, const struct accumulator_field *field, struct buf *out)
{
    struct arena scratch;
    arena_init(&scratch);
    size_t count = acc->bytes.len / sizeof(double);
    double *numbers = arena_copy(&scratch, acc->bytes.data, acc->bytes.len);
    struct bval val = percentiles_result(&field->percentiles, numbers, count, &scratch);
    write_value(out, field->name, strlen(field->name), &val);
    arena_deinit(&scratch);
}

void accumulator_write(struct accumulator *acc, const struct accumulator_field *field, struct buf *out)
{
    const char *name = field->name;
    switch (field->op) {
    case ACCUMULATOR_SUM:
    case ACCUMULATOR_COUNT:
    case ACCUMULATOR_AVG:
        write_sum(acc, field->op, name, out);
        break;
    case ACCUMULATOR_PUSH:
    case ACCUMULATOR_ADD_TO_SET:
        write_items(acc, name, out);
        break;
    case ACCUMULATOR_DEV_POP:
    case ACCUMULATOR_DEV_SAMP:
        write_deviation(acc, field->op, name, out);
        break;
    case ACCUMULATOR_MERGE_OBJECTS: {
        struct bval empty = bval_from_doc(bdoc_empty());
        accumulator_write_kept(acc, name, &empty, out);
        break;
    }
    case ACCUMULATOR_MEDIAN:
    case ACCUMULATOR_PERCENTILE:
        write_percentiles(acc, field, out);
        break;
    default:
        if (accumulator_is_list(field->op))
            write_list(acc, field, out);
        else
            accumulator_write_kept(acc, name, &BVAL_NULL, out);
        break;
    }
}
