/* $unwind: one document for each element of an array. */
#include "aggregate/stage.h"
#include "base/mem.h"

#include <string.h>

struct unwind_state {
    struct buf doc;    /* the document being unwound */
    struct biter iter; /* over its array */
    bool active;
    int64_t index;
};

static bool check_path(struct stage_compiler *c, const struct bval *path, const char **out)
{
    uint32_t len;
    if (path->type != BT_STRING)
        return err_set(c->err, 28808, "expected a string as the path for $unwind stage, got %s",
                       bval_type_name(path->type));
    const char *text = bval_str(path, &len);
    if (len == 0)
        return err_set(c->err, 28812, "no path specified to $unwind stage");
    if (text[0] != '$')
        return err_set(c->err, 28818, "path option to $unwind stage should be prefixed with a '$': %s", text);
    *out = text + 1;
    if (len == 1 || text[len - 1] == '.' || strstr(text, "..") != NULL || text[1] == '.')
        return err_set(c->err, 15998, "FieldPath field names may not be empty strings.");
    if (text[1] == '$')
        return err_set(c->err, 16410,
                       "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    return true;
}

static bool unwind_option(struct stage_compiler *c, struct stage *stage, const struct belem *elem)
{
    uint32_t len;
    if (strcmp(elem->key, "path") == 0)
        return check_path(c, &elem->val, &stage->path);
    if (strcmp(elem->key, "preserveNullAndEmptyArrays") == 0) {
        if (elem->val.type != BT_BOOL)
            return err_set(c->err, 28809,
                           "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage");
        stage->preserve = bval_bool(&elem->val);
        return true;
    }
    if (strcmp(elem->key, "includeArrayIndex") == 0) {
        if (elem->val.type != BT_STRING || elem->val.len <= 5)
            return err_set(c->err, 28810,
                           "expected a non-empty string for the includeArrayIndex option to $unwind stage");
        stage->index_path = bval_str(&elem->val, &len);
        if (stage->index_path[0] == '$')
            return err_set(c->err, 28822,
                           "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s",
                           stage->index_path);
        return true;
    }
    return err_set(c->err, 28811, "unrecognized option to $unwind stage: %s", elem->key);
}

static bool compile_unwind(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    if (operand->type == BT_STRING)
        return check_path(c, operand, &stage->path);
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 15981,
                       "expected either a string or an object as specification for $unwind stage, got %s",
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem))
        if (!unwind_option(c, stage, &elem))
            return false;
    if (stage->path == NULL)
        return err_set(c->err, 28812, "no path specified to $unwind stage");
    return true;
}

/* `val` NULL: the document as it is; of type BT_EOO: without the field. `index` below 0: null. */
static struct bdoc emit(struct stage_run *run, struct bdoc doc, const struct bval *val, int64_t index)
{
    struct buf *out = &run->out;
    buf_clear(out);
    size_t start = write_begin(out);
    if (val == NULL) {
        buf_clear(out);
        buf_append(out, doc.data, doc.len);
    } else {
        stage_write_replaced(doc, run->stage->path, val, out);
        write_end(out, start);
    }
    if (run->stage->index_path == NULL)
        return write_view(out, 0);
    struct bval number = {.type = BT_INT64, .len = sizeof index, .data = (const uint8_t *)&index};
    struct buf next = BUF_INIT;
    start = write_begin(&next);
    stage_write_replaced(write_view(out, 0), run->stage->index_path, index < 0 ? &BVAL_NULL : &number, &next);
    write_end(&next, start);
    buf_deinit(out);
    *out = next;
    return write_view(out, 0);
}

/* True: *out is the result for this document; false: nothing comes of it, or its elements follow. */
static bool begin_document(struct stage_run *run, struct bdoc doc, struct bdoc *out)
{
    struct unwind_state *state = run->state;
    struct bval val = stage_find_path(doc, run->stage->path);
    bool nullish = val.type == BT_EOO || val.type == BT_NULL || val.type == BT_UNDEFINED;
    bool empty = val.type == BT_ARRAY && bdoc_is_empty(bval_doc(&val));
    if (nullish || empty) {
        if (!run->stage->preserve)
            return false;
        if (empty)
            val = BVAL_MISSING;
        *out = emit(run, doc, empty ? &val : NULL, -1);
        return true;
    }
    if (val.type != BT_ARRAY) {
        *out = emit(run, doc, &val, -1);
        return true;
    }
    buf_clear(&state->doc);
    buf_append(&state->doc, doc.data, doc.len);
    val = stage_find_path(write_view(&state->doc, 0), run->stage->path);
    biter_init(&state->iter, bval_doc(&val));
    state->index = 0;
    state->active = true;
    return false;
}

static bool next_unwind(struct stage_run *run, struct bdoc *out, struct err *err)
{
    if (run->state == NULL)
        run->state = mem_alloc(sizeof(struct unwind_state));
    struct unwind_state *state = run->state;
    for (;;) {
        struct belem item;
        if (state->active && biter_next(&state->iter, &item)) {
            *out = emit(run, write_view(&state->doc, 0), &item.val, state->index++);
            return true;
        }
        state->active = false;
        if (!stage_input(run, out, err))
            return false;
        if (out->data == NULL || begin_document(run, *out, out))
            return true;
    }
}

static void close_unwind(struct stage_run *run)
{
    struct unwind_state *state = run->state;
    if (state == NULL)
        return;
    buf_deinit(&state->doc);
    mem_free(state);
}

const struct stage_type stage_unwind = {
    .name = "$unwind", .compile = compile_unwind, .next = next_unwind, .close = close_unwind, .spread = SPREAD_LOCAL};
