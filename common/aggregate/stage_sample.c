/* $sample: each document gets a random number, and those with the smallest are taken. It becomes stages that a router
 * divides like any sort with a limit, so that documents of a large and of a small shard are as likely. */
#include "aggregate/stage.h"

#include <string.h>

enum {
    SAMPLE_NOT_AN_OBJECT = 28745,
    SAMPLE_SIZE_TYPE = 28746,
    SAMPLE_SIZE_RANGE = 28747,
    SAMPLE_UNKNOWN_OPTION = 28748,
    SAMPLE_NO_SIZE = 28749,
};

/* The field that holds the number between the stages. */
#define SAMPLE_FIELD "_sherdSample"

static bool read_size(struct stage_compiler *c, const struct bval *operand, int64_t *size)
{
    struct biter iter;
    struct belem elem;
    bool found = false;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, SAMPLE_NOT_AN_OBJECT, "the $sample stage specification must be an object");
    for (biter_init(&iter, bval_doc(operand)); biter_next(&iter, &elem);) {
        if (strcmp(elem.key, "size") != 0)
            return err_set(c->err, SAMPLE_UNKNOWN_OPTION, "unrecognized option to $sample: %s", elem.key);
        if (!bval_is_number(&elem.val))
            return err_set(c->err, SAMPLE_SIZE_TYPE, "size argument to $sample must be a number");
        double value;
        if (!bval_to_i64(&elem.val, size))
            *size = bval_to_f64(&elem.val, &value) && value >= 1 && value < 0x1p63 ? (int64_t)value : 0;
        if (*size <= 0)
            return err_set(c->err, SAMPLE_SIZE_RANGE, "size argument to $sample must be a positive integer");
        found = true;
    }
    return found || err_set(c->err, SAMPLE_NO_SIZE, "$sample stage must specify a size");
}

static bool add(struct stage_compiler *c, const char *name, const struct bval *operand)
{
    return stage_add(c, stage_wrap(c->arena, name, operand));
}

static bool compile_sample(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    int64_t size;
    if (!read_size(c, operand, &size))
        return false;
    stage->type = NULL;
    struct bval none = bval_from_doc(bdoc_empty());
    struct bval one = make_i64(c->arena, 1);
    struct bval number = make_i64(c->arena, size);
    struct bval path = make_str(c->arena, SAMPLE_FIELD, strlen(SAMPLE_FIELD));
    struct bval rand = bval_from_doc(stage_wrap(c->arena, "$rand", &none));
    struct bval fields = bval_from_doc(stage_wrap(c->arena, SAMPLE_FIELD, &rand));
    struct bval sort = bval_from_doc(stage_wrap(c->arena, SAMPLE_FIELD, &one));
    return add(c, "$addFields", &fields) && add(c, "$sort", &sort) && add(c, "$limit", &number) &&
           add(c, "$unset", &path);
}

const struct stage_type stage_sample = {.name = "$sample", .compile = compile_sample};
