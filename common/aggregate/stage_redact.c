/* $redact: an expression decides for each level of a document whether it stays, goes or is looked into. */
#include "aggregate/stage.h"

static bool compile_redact(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    return expr_compile(c->arena, operand, c->env, &stage->expr, c->err);
}

static bool redact_document(struct stage_run *run, struct bdoc doc, struct buf *out, bool *kept, struct err *err);

/* Elements of an array: documents may vanish, other values stay. */
static bool redact_array(struct stage_run *run, struct bdoc array, struct buf *out, struct err *err)
{
    struct biter iter;
    struct belem item;
    uint32_t index = 0;
    biter_init(&iter, array);
    while (biter_next(&iter, &item)) {
        char name[WRITER_INDEX_BYTES];
        size_t len = write_index_name(name, index);
        size_t before = out->len;
        bool kept = true;
        if (item.val.type == BT_DOCUMENT || item.val.type == BT_ARRAY) {
            size_t start = write_begin_field(out, name, len, item.val.type);
            bool ok = item.val.type == BT_ARRAY ? redact_array(run, bval_doc(&item.val), out, err)
                                                : redact_document(run, bval_doc(&item.val), out, &kept, err);
            if (!ok)
                return false;
            write_end(out, start);
        } else {
            write_value(out, name, len, &item.val);
        }
        if (!kept)
            out->len = before;
        index += kept ? 1 : 0;
    }
    return true;
}

static bool redact_fields(struct stage_run *run, struct bdoc doc, struct buf *out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        size_t before = out->len;
        bool kept = true;
        if (elem.val.type != BT_DOCUMENT && elem.val.type != BT_ARRAY) {
            write_elem(out, &elem);
            continue;
        }
        size_t start = write_begin_field(out, elem.key, elem.key_len, elem.val.type);
        bool ok = elem.val.type == BT_ARRAY ? redact_array(run, bval_doc(&elem.val), out, err)
                                            : redact_document(run, bval_doc(&elem.val), out, &kept, err);
        if (!ok)
            return false;
        write_end(out, start);
        if (!kept)
            out->len = before;
    }
    return true;
}

/* Writes the fields that stay; the caller opened the document. */
static bool redact_document(struct stage_run *run, struct bdoc doc, struct buf *out, bool *kept, struct err *err)
{
    struct bval verdict;
    if (!expr_eval(run->stage->expr, doc, &run->run->scratch, &verdict, err))
        return false;
    *kept = true;
    if (bval_is_str(&verdict, "descend"))
        return redact_fields(run, doc, out, err);
    if (bval_is_str(&verdict, "prune")) {
        *kept = false;
        return true;
    }
    if (!bval_is_str(&verdict, "keep"))
        return err_set(err, 17053,
                       "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, "
                       "and $$PRUNE, but returned a value of type %s",
                       bval_type_name(verdict.type));
    buf_append(out, doc.data + 4, doc.len - 5);
    return true;
}

static bool next_redact(struct stage_run *run, struct bdoc *out, struct err *err)
{
    for (;;) {
        bool kept;
        if (!stage_input(run, out, err))
            return false;
        if (out->data == NULL)
            return true;
        arena_reset(&run->run->scratch);
        buf_clear(&run->out);
        size_t start = write_begin(&run->out);
        if (!redact_document(run, *out, &run->out, &kept, err))
            return false;
        write_end(&run->out, start);
        *out = write_view(&run->out, 0);
        if (kept)
            return true;
    }
}

const struct stage_type stage_redact = {
    .name = "$redact", .compile = compile_redact, .next = next_redact, .spread = SPREAD_LOCAL};
