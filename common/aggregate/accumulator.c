#include "aggregate/accumulator.h"

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
static bool merge_object(struct accumulator *acc, const struct bval *val, struct err *err)
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
    biter_init(&iter, old);
    while (biter_next(&iter, &elem)) {
        struct bval newer;
        if (bdoc_find_n(add, elem.key, elem.key_len, &newer))
            elem.val = newer;
        write_elem(&merged, &elem);
    }
    biter_init(&iter, add);
    while (biter_next(&iter, &elem)) {
        struct bval older;
        if (!bdoc_find_n(old, elem.key, elem.key_len, &older))
            write_elem(&merged, &elem);
    }
    write_end(&merged, start);
    buf_deinit(&acc->bytes);
    acc->bytes = merged;
    acc->type = BT_DOCUMENT;
    acc->any = true;
    return true;
}

/* What the lists keep: $minN and $maxN sort by the value itself, null and missing ones are left out. */
static void add_to_list(struct accumulator *acc, const struct accumulator_field *field, const struct buf *key,
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

static bool add_value(struct accumulator *acc, const struct accumulator_field *field, const struct bval *val,
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
        return merge_object(acc, val, err);
    case ACCUMULATOR_MEDIAN:
    case ACCUMULATOR_PERCENTILE:
        percentiles_add(&acc->bytes, val);
        break;
    default:
        add_to_list(acc, field, NULL, val);
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
        return add_value(acc, field, &val, err);
    struct buf key = BUF_INIT;
    bool ok = sort_key_append(field->sort, doc, &key, err);
    if (ok)
        add_to_list(acc, field, &key, &val);
    buf_deinit(&key);
    return ok;
}

static bool bad_partial(struct err *err)
{
    return err_set(err, ERR_FailedToParse, "a partial state of $group is malformed");
}

static bool partial_f64(struct bdoc doc, const char *name, double *out)
{
    struct bval val;
    return bdoc_find(doc, name, &val) && bval_is_number(&val) && bval_to_f64(&val, out);
}

static bool partial_i64(struct bdoc doc, const char *name, int64_t *out)
{
    struct bval val;
    return bdoc_find(doc, name, &val) && bval_is_number(&val) && bval_to_i64(&val, out);
}

static bool merge_sum(struct accumulator *acc, struct bdoc doc, struct err *err)
{
    struct number_sum *sum = &acc->sum;
    int64_t widest;
    int64_t integers;
    int64_t count;
    double high;
    double low;
    struct bval dec;
    if (!partial_i64(doc, "t", &widest) || !partial_i64(doc, "i", &integers) || !partial_i64(doc, "n", &count) ||
        !partial_f64(doc, "h", &high) || !partial_f64(doc, "l", &low))
        return bad_partial(err);
    if (widest == BT_EOO)
        return true;
    bool known = widest == BT_INT32 || widest == BT_INT64 || widest == BT_DOUBLE || widest == BT_DECIMAL128;
    if (!known)
        return bad_partial(err);
    struct number parts[3] = {{.type = BT_INT64, .i64 = integers}, number_f64(high), number_f64(low)};
    uint8_t type = sum->widest == BT_EOO ? (uint8_t)widest : number_wider(sum->widest, (uint8_t)widest);
    bool has_double = bdoc_has(doc, "f");
    bool overflowed = bdoc_has(doc, "o");
    number_sum_add(sum, &parts[0]);
    if (has_double || overflowed) {
        bool was_double = sum->has_double;
        number_sum_add(sum, &parts[1]);
        if (isfinite(high))
            number_sum_add(sum, &parts[2]);
        sum->has_double = was_double || has_double;
    }
    if (bdoc_find(doc, "d", &dec) && dec.type == BT_DECIMAL128) {
        struct number number = number_of(&dec);
        number_sum_add(sum, &number);
    }
    sum->overflowed = sum->overflowed || overflowed;
    sum->widest = type;
    acc->count += count;
    return true;
}

/* Chan's way to join two running variances. */
static bool merge_deviation(struct accumulator *acc, struct bdoc doc, struct err *err)
{
    int64_t count;
    double mean;
    double squares;
    if (!partial_i64(doc, "n", &count) || !partial_f64(doc, "m", &mean) || !partial_f64(doc, "q", &squares) ||
        count < 0)
        return bad_partial(err);
    if (count == 0)
        return true;
    double total = (double)acc->count + (double)count;
    double delta = mean - acc->mean;
    acc->squares += squares + delta * delta * (double)acc->count * (double)count / total;
    acc->mean += delta * (double)count / total;
    acc->count += count;
    return true;
}

static bool merge_items(struct accumulator *acc, const struct accumulator_field *field, const struct bval *partial,
                        struct err *err)
{
    struct biter iter;
    struct belem item;
    if (partial->type != BT_ARRAY)
        return bad_partial(err);
    biter_init(&iter, bval_doc(partial));
    while (biter_next(&iter, &item))
        if (!add_value(acc, field, &item.val, err))
            return false;
    return true;
}

/* [{k: sort key, v: value}, ...]. */
static bool merge_sorted(struct accumulator *acc, const struct accumulator_field *field, const struct bval *partial,
                         struct err *err)
{
    struct biter iter;
    struct belem item;
    if (partial->type != BT_ARRAY)
        return bad_partial(err);
    biter_init(&iter, bval_doc(partial));
    while (biter_next(&iter, &item)) {
        struct bval key;
        struct bval val;
        uint8_t subtype;
        uint32_t len;
        if (item.val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&item.val), "k", &key) || key.type != BT_BINARY)
            return bad_partial(err);
        const uint8_t *data = bval_binary(&key, &subtype, &len);
        struct buf bytes = BUF_INIT;
        buf_append(&bytes, data, len);
        bdoc_find(bval_doc(&item.val), "v", &val);
        add_to_list(acc, field, &bytes, &val);
        buf_deinit(&bytes);
    }
    return true;
}

/* The doubles as they lie in memory. */
static bool merge_numbers(struct accumulator *acc, const struct bval *partial, struct err *err)
{
    uint8_t subtype;
    uint32_t len;
    if (partial->type != BT_BINARY)
        return bad_partial(err);
    const uint8_t *data = bval_binary(partial, &subtype, &len);
    if (len % sizeof(double) != 0)
        return bad_partial(err);
    buf_append(&acc->bytes, data, len);
    return true;
}

bool accumulator_merge(struct accumulator *acc, const struct accumulator_field *field, const struct bval *partial,
                       struct err *err)
{
    struct bval val;
    enum accumulator_op op = field->op;
    if (op == ACCUMULATOR_MEDIAN || op == ACCUMULATOR_PERCENTILE)
        return merge_numbers(acc, partial, err);
    if (field->sort != NULL)
        return merge_sorted(acc, field, partial, err);
    if (op == ACCUMULATOR_PUSH || op == ACCUMULATOR_ADD_TO_SET || accumulator_is_list(op))
        return merge_items(acc, field, partial, err);
    if (partial->type != BT_DOCUMENT)
        return bad_partial(err);
    struct bdoc doc = bval_doc(partial);
    switch (op) {
    case ACCUMULATOR_SUM:
    case ACCUMULATOR_COUNT:
    case ACCUMULATOR_AVG:
        return merge_sum(acc, doc, err);
    case ACCUMULATOR_DEV_POP:
    case ACCUMULATOR_DEV_SAMP:
        return merge_deviation(acc, doc, err);
    case ACCUMULATOR_MERGE_OBJECTS:
        return merge_object(acc, partial, err);
    default:
        bdoc_find(doc, "v", &val);
        return add_value(acc, field, &val, err);
    }
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

static void write_kept(const struct accumulator *acc, const char *name, const struct bval *otherwise, struct buf *out)
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
        write_kept(acc, name, &empty, out);
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
            write_kept(acc, name, &BVAL_NULL, out);
        break;
    }
}

/* t: widest type, i: integers, h and l: doubles, d: decimals, n: count, f: doubles were seen, o: int64 overflowed. */
static void write_partial_sum(const struct accumulator *acc, struct buf *out)
{
    const struct number_sum *sum = &acc->sum;
    write_i32(out, "t", sum->widest);
    write_i64(out, "i", sum->integers);
    write_i64(out, "n", acc->count);
    write_f64(out, "h", sum->high);
    write_f64(out, "l", sum->low);
    if (sum->has_decimal) {
        uint8_t storage[16];
        struct bval dec = decimal_to_bval(sum->dec, storage);
        write_value(out, "d", 1, &dec);
    }
    if (sum->has_double)
        write_i32(out, "f", 1);
    if (sum->overflowed)
        write_i32(out, "o", 1);
}

static void write_binary(struct buf *out, const char *name, const void *data, size_t len)
{
    struct buf payload = BUF_INIT;
    buf_append_le32(&payload, (uint32_t)len);
    buf_append_u8(&payload, 0);
    buf_append(&payload, data, len);
    struct bval val = {.type = BT_BINARY, .len = (uint32_t)payload.len, .data = payload.data};
    write_value(out, name, strlen(name), &val);
    buf_deinit(&payload);
}

static void write_sorted(struct accumulator *acc, const char *name, struct buf *out)
{
    struct value_list *list = &acc->list;
    value_list_settle(list);
    size_t array = write_begin_field(out, name, strlen(name), BT_ARRAY);
    for (size_t i = 0; i < list->count; i++) {
        char index[WRITER_INDEX_BYTES];
        size_t len = write_index_name(index, (uint32_t)i);
        size_t start = write_begin_field(out, index, len, BT_DOCUMENT);
        struct bval val = value_item_get(list->items[i]);
        write_binary(out, "k", list->items[i]->bytes, list->items[i]->key_len);
        write_value(out, "v", 1, &val);
        write_end(out, start);
    }
    write_end(out, array);
}

void accumulator_write_partial(struct accumulator *acc, const struct accumulator_field *field, struct buf *out)
{
    const char *name = field->name;
    enum accumulator_op op = field->op;
    if (op == ACCUMULATOR_MEDIAN || op == ACCUMULATOR_PERCENTILE) {
        write_binary(out, name, acc->bytes.data, acc->bytes.len);
        return;
    }
    if (field->sort != NULL) {
        write_sorted(acc, name, out);
        return;
    }
    if (op == ACCUMULATOR_PUSH || op == ACCUMULATOR_ADD_TO_SET || op == ACCUMULATOR_MERGE_OBJECTS ||
        accumulator_is_list(op)) {
        accumulator_write(acc, field, out);
        return;
    }
    size_t start = write_begin_field(out, name, strlen(name), BT_DOCUMENT);
    switch (op) {
    case ACCUMULATOR_SUM:
    case ACCUMULATOR_COUNT:
    case ACCUMULATOR_AVG:
        write_partial_sum(acc, out);
        break;
    case ACCUMULATOR_DEV_POP:
    case ACCUMULATOR_DEV_SAMP:
        write_i64(out, "n", acc->count);
        write_f64(out, "m", acc->mean);
        write_f64(out, "q", acc->squares);
        break;
    default: {
        struct bval missing = BVAL_MISSING;
        write_kept(acc, "v", &missing, out);
        break;
    }
    }
    write_end(out, start);
}
