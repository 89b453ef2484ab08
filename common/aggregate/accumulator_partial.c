/* Partial states: what a shard sends of a group, and how a router joins them. */
#include "aggregate/accumulator_impl.h"

#include "bson/decimal.h"

#include <math.h>
#include <string.h>

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
        if (!accumulator_add_value(acc, field, &item.val, err))
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
        accumulator_add_to_list(acc, field, &bytes, &val);
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
        return accumulator_merge_object(acc, partial, err);
    default:
        bdoc_find(doc, "v", &val);
        return accumulator_add_value(acc, field, &val, err);
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
        accumulator_write_kept(acc, "v", &missing, out);
        break;
    }
    }
    write_end(out, start);
}
