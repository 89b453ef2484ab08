/* Dotted paths as stages read and write them. */
#include "aggregate/stage.h"

#include <string.h>

void stage_write_replaced(struct bdoc doc, const char *path, const struct bval *val, struct buf *out)
{
    size_t len = strcspn(path, ".");
    const char *rest = path[len] == '.' ? path + len + 1 : NULL;
    struct biter iter;
    struct belem elem;
    bool found = false;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (found || elem.key_len != len || memcmp(elem.key, path, len) != 0) {
            write_elem(out, &elem);
            continue;
        }
        found = true;
        if (rest == NULL) {
            write_value(out, path, len, val);
            continue;
        }
        size_t start = write_begin_field(out, path, len, BT_DOCUMENT);
        stage_write_replaced(elem.val.type == BT_DOCUMENT ? bval_doc(&elem.val) : bdoc_empty(), rest, val, out);
        write_end(out, start);
    }
    if (found || val->type == BT_EOO)
        return;
    if (rest == NULL) {
        write_value(out, path, len, val);
        return;
    }
    size_t start = write_begin_field(out, path, len, BT_DOCUMENT);
    stage_write_replaced(bdoc_empty(), rest, val, out);
    write_end(out, start);
}

struct bval stage_find_path(struct bdoc doc, const char *path)
{
    struct bval val = BVAL_MISSING;
    for (;;) {
        size_t len = strcspn(path, ".");
        if (!bdoc_find_n(doc, path, len, &val) || path[len] == 0)
            return val;
        if (val.type != BT_DOCUMENT)
            return BVAL_MISSING;
        doc = bval_doc(&val);
        path += len + 1;
    }
}

bool stage_compile_path(struct stage_compiler *c, const char *text, struct path *out)
{
    struct path path = {0};
    if (!path_init(&path, text, strlen(text), c->err))
        return false;
    *out = path;
    out->text = arena_copy_str(c->arena, path.text, path.len);
    out->parts = arena_copy(c->arena, path.parts, path.count * sizeof *path.parts);
    for (uint32_t i = 0; i < path.count; i++)
        out->parts[i].name = out->text + (path.parts[i].name - path.text);
    path_deinit(&path);
    return true;
}
