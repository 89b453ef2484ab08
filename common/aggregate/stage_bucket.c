/* $bucket: a $group whose _id is the lower boundary that a $switch finds, and a $sort by it. */
#include "aggregate/stage.h"
#include "bson/compare.h"

#include <string.h>

struct bucket_operand {
    struct bval group_by;
    struct bval boundaries;
    struct bval otherwise; /* default */
    struct bval output;
};

static bool read_operand(struct stage_compiler *c, const struct bval *operand, struct bucket_operand *out)
{
    struct biter iter;
    struct belem elem;
    *out = (struct bucket_operand){BVAL_MISSING, BVAL_MISSING, BVAL_MISSING, BVAL_MISSING};
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 40201, "Argument to $bucket stage must be an object, but found type: %s",
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "groupBy") == 0)
            out->group_by = elem.val;
        else if (strcmp(elem.key, "boundaries") == 0)
            out->boundaries = elem.val;
        else if (strcmp(elem.key, "default") == 0)
            out->otherwise = elem.val;
        else if (strcmp(elem.key, "output") == 0)
            out->output = elem.val;
        else
            return err_set(c->err, 40197, "Unrecognized option to $bucket: %s.", elem.key);
    }
    uint32_t len;
    bool expression = out->group_by.type == BT_DOCUMENT ||
                      (out->group_by.type == BT_STRING && bval_str(&out->group_by, &len)[0] == '$');
    if (out->group_by.type != BT_EOO && !expression)
        return err_set(c->err, 40202,
                       "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression");
    if (out->group_by.type == BT_EOO || out->boundaries.type == BT_EOO)
        return err_set(c->err, 40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
    if (out->output.type != BT_EOO && out->output.type != BT_DOCUMENT)
        return err_set(c->err, 40196, "The $bucket 'output' field must be an object, but found type: %s",
                       bval_type_name(out->output.type));
    return true;
}

/* The constant behind {$literal: x} or a plain value. */
static bool constant_of(struct stage_compiler *c, const struct bval *val, struct bval *out)
{
    struct expr *expr;
    if (!expr_compile(c->arena, val, c->env, &expr, c->err))
        return false;
    if (!expr_is_constant(expr))
        return err_set(c->err, 40191, "The $bucket 'boundaries' field must be an array of constant values");
    return expr_eval(expr, bdoc_empty(), c->arena, out, c->err);
}

static bool read_boundaries(struct stage_compiler *c, const struct bucket_operand *o, struct bval **out,
                            uint32_t *count)
{
    const struct bval_order *order = c->env != NULL ? c->env->order : NULL;
    struct biter iter;
    struct belem item;
    if (o->boundaries.type != BT_ARRAY)
        return err_set(c->err, 40200, "The $bucket 'boundaries' field must be an array, but found type: %s",
                       bval_type_name(o->boundaries.type));
    struct bval *vals = arena_alloc(c->arena, (bdoc_count(bval_doc(&o->boundaries)) + 1) * sizeof *vals);
    *count = 0;
    biter_init(&iter, bval_doc(&o->boundaries));
    while (biter_next(&iter, &item)) {
        if (!constant_of(c, &item.val, &vals[*count]))
            return false;
        if (*count > 0 && bval_class(vals[*count].type) != bval_class(vals[0].type))
            return err_set(c->err, 40193,
                           "All values in the the 'boundaries' option to $bucket must have the same type");
        if (*count > 0 && bval_compare_ordered(&vals[*count - 1], &vals[*count], order) >= 0)
            return err_set(c->err, 40194, "The 'boundaries' option to $bucket must be sorted in ascending order");
        (*count)++;
    }
    if (*count < 2)
        return err_set(c->err, 40192, "The $bucket 'boundaries' field must have at least 2 values");
    *out = vals;
    return true;
}

/* {name: [group_by, {$literal: boundary}]}. */
static void write_comparison(struct buf *buf, uint32_t index, const char *name, const struct bval *group_by,
                             const struct bval *boundary)
{
    char key[WRITER_INDEX_BYTES];
    size_t key_len = write_index_name(key, index);
    size_t doc = write_begin_field(buf, key, key_len, BT_DOCUMENT);
    size_t args = write_begin_field(buf, name, strlen(name), BT_ARRAY);
    write_item(buf, 0, group_by);
    size_t literal = write_begin_field(buf, "1", 1, BT_DOCUMENT);
    write_value(buf, "$literal", 8, boundary);
    write_end(buf, literal);
    write_end(buf, args);
    write_end(buf, doc);
}

static void write_literal(struct buf *buf, const char *name, const struct bval *val)
{
    size_t doc = write_begin_field(buf, name, strlen(name), BT_DOCUMENT);
    write_value(buf, "$literal", 8, val);
    write_end(buf, doc);
}

static void write_switch(struct buf *buf, const struct bucket_operand *o, const struct bval *bounds, uint32_t count)
{
    size_t id = write_begin_field(buf, "_id", 3, BT_DOCUMENT);
    size_t choice = write_begin_field(buf, "$switch", 7, BT_DOCUMENT);
    size_t branches = write_begin_field(buf, "branches", 8, BT_ARRAY);
    for (uint32_t i = 0; i + 1 < count; i++) {
        char key[WRITER_INDEX_BYTES];
        size_t key_len = write_index_name(key, i);
        size_t branch = write_begin_field(buf, key, key_len, BT_DOCUMENT);
        size_t condition = write_begin_field(buf, "case", 4, BT_DOCUMENT);
        size_t both = write_begin_field(buf, "$and", 4, BT_ARRAY);
        write_comparison(buf, 0, "$gte", &o->group_by, &bounds[i]);
        write_comparison(buf, 1, "$lt", &o->group_by, &bounds[i + 1]);
        write_end(buf, both);
        write_end(buf, condition);
        write_literal(buf, "then", &bounds[i]);
        write_end(buf, branch);
    }
    write_end(buf, branches);
    if (o->otherwise.type != BT_EOO)
        write_literal(buf, "default", &o->otherwise);
    write_end(buf, choice);
    write_end(buf, id);
}

static struct bdoc make_group(struct stage_compiler *c, const struct bucket_operand *o, const struct bval *bounds,
                              uint32_t count)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    size_t group = write_begin_field(&buf, "$group", 6, BT_DOCUMENT);
    write_switch(&buf, o, bounds, count);
    if (o->output.type == BT_DOCUMENT) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bval_doc(&o->output));
        while (biter_next(&iter, &elem))
            write_elem(&buf, &elem);
    } else {
        size_t counter = write_begin_field(&buf, "count", 5, BT_DOCUMENT);
        write_i32(&buf, "$sum", 1);
        write_end(&buf, counter);
    }
    write_end(&buf, group);
    write_end(&buf, start);
    struct bval doc = make_doc(c->arena, &buf, BT_DOCUMENT);
    return bval_doc(&doc);
}

static bool compile_bucket(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    static const int32_t ascending = 1;
    struct bucket_operand o;
    struct bval *bounds;
    uint32_t count;
    if (!read_operand(c, operand, &o) || !read_boundaries(c, &o, &bounds, &count))
        return false;
    if (o.otherwise.type != BT_EOO) {
        if (!constant_of(c, &o.otherwise, &o.otherwise))
            return false;
        bool inside = bval_class(o.otherwise.type) == bval_class(bounds[0].type) &&
                      bval_compare_ordered(&o.otherwise, &bounds[0], stage->order) >= 0 &&
                      bval_compare_ordered(&o.otherwise, &bounds[count - 1], stage->order) < 0;
        if (inside)
            return err_set(c->err, 40199,
                           "The $bucket 'default' field must be less than the lowest boundary or greater than or "
                           "equal to the highest boundary.");
    }
    struct bval one = {.type = BT_INT32, .len = sizeof ascending, .data = (const uint8_t *)&ascending};
    struct bdoc by_id = stage_wrap(c->arena, "_id", &one);
    struct bval sort = bval_from_doc(by_id);
    stage->type = NULL;
    return stage_add(c, make_group(c, &o, bounds, count)) && stage_add(c, stage_wrap(c->arena, "$sort", &sort));
}

const struct stage_type stage_bucket = {.name = "$bucket", .compile = compile_bucket, .spread = SPREAD_MERGE};
