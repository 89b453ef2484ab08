/* $sort, and $sortByCount, which is a $group and a $sort. */
#include "aggregate/stage.h"

enum {
    SORT_SHARE = 8, /* 1/n of the run's memory is left to each sort that may go to the disk */
};

static bool compile_sort(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 15973, "the $sort key specification must be an object");
    if (bdoc_is_empty(bval_doc(operand)))
        return err_set(c->err, 15976, "$sort stage must have at least one sort key");
    return sort_spec_compile(c->arena, bval_doc(operand), c->env != NULL ? c->env->order : NULL, &stage->sort, c->err);
}

static bool fill_sorter(struct stage_run *run, struct sorter *sorter, struct err *err)
{
    struct buf key = BUF_INIT;
    struct bdoc doc;
    bool ok;
    for (;;) {
        ok = stage_input(run, &doc, err);
        if (!ok || doc.data == NULL)
            break;
        buf_clear(&key);
        ok = sort_key_append(run->stage->sort, doc, &key, err) && sorter_add(sorter, key.data, key.len, doc, 0, err);
        if (!ok)
            break;
    }
    buf_deinit(&key);
    return ok && sorter_finish(sorter, err);
}

/* What the stages before have left of the run's memory; one that may go to the disk gets a share in any case. */
static size_t sort_room(const struct pipeline_run *run)
{
    size_t left = run->memory_limit_bytes > run->memory_bytes ? run->memory_limit_bytes - run->memory_bytes : 0;
    size_t share = run->space == NULL ? 0 : run->memory_limit_bytes / SORT_SHARE;
    return left > share ? left : share;
}

/* Read buffers of runs on the disk are few: they end nothing. */
static bool hold_sorter(struct stage_run *run, const struct sorter *sorter, struct err *err)
{
    int64_t bytes = (int64_t)sorter_memory_bytes(sorter);
    return stage_try_hold(run, bytes) || run->run->space != NULL || stage_hold(run, 0, err);
}

static bool next_sort(struct stage_run *run, struct bdoc *out, struct err *err)
{
    struct sort_item item;
    bool found;
    *out = (struct bdoc){0};
    if (run->state == NULL) {
        struct sorter *sorter = sorter_new(&(struct sorter_options){
            .limit = (uint64_t)run->stage->count,
            .memory_limit_bytes = sort_room(run->run),
            .space = run->run->space,
        });
        run->state = sorter;
        if (!fill_sorter(run, sorter, err) || !hold_sorter(run, sorter, err))
            return false;
    }
    if (!sorter_next(run->state, &item, &found, err))
        return false;
    if (found)
        *out = item.doc;
    return true;
}

static void close_sort(struct stage_run *run)
{
    sorter_free(run->state);
}

/* {$group: {_id: operand, count: {$sum: 1}}}, {$sort: {count: -1}}. */
static bool compile_sort_by_count(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct buf buf = BUF_INIT;
    uint32_t len;
    if (operand->type == BT_DOCUMENT) {
        struct biter iter;
        struct belem first;
        biter_init(&iter, bval_doc(operand));
        if (!biter_next(&iter, &first) || first.key[0] != '$')
            return err_set(c->err, 40147,
                           "the sortByCount field must be defined as a $-prefixed path or an expression inside "
                           "an object");
    } else if (operand->type != BT_STRING || bval_str(operand, &len)[0] != '$') {
        return err_set(c->err, operand->type == BT_STRING ? 40148 : 40149,
                       "the sortByCount field must be specified as a string or as an object");
    }
    size_t start = write_begin(&buf);
    size_t group = write_begin_field(&buf, "$group", 6, BT_DOCUMENT);
    write_value(&buf, "_id", 3, operand);
    size_t count = write_begin_field(&buf, "count", 5, BT_DOCUMENT);
    write_i32(&buf, "$sum", 1);
    write_end(&buf, count);
    write_end(&buf, group);
    write_end(&buf, start);
    struct bval group_doc = make_doc(c->arena, &buf, BT_DOCUMENT);
    start = write_begin(&buf);
    size_t sort = write_begin_field(&buf, "$sort", 5, BT_DOCUMENT);
    write_i32(&buf, "count", -1);
    write_end(&buf, sort);
    write_end(&buf, start);
    struct bval sort_doc = make_doc(c->arena, &buf, BT_DOCUMENT);
    stage->type = NULL;
    return stage_add(c, bval_doc(&group_doc)) && stage_add(c, bval_doc(&sort_doc));
}

const struct stage_type stage_sort = {
    .name = "$sort", .compile = compile_sort, .next = next_sort, .close = close_sort, .spread = SPREAD_SORT};
const struct stage_type stage_sort_by_count = {
    .name = "$sortByCount", .compile = compile_sort_by_count, .spread = SPREAD_MERGE};
