#include "bson/path.h"

#include "base/mem.h"

#include <string.h>

/* What is left of a walk: components from `at` on. */
struct walk {
    const struct path *path;
    enum path_leaf leaf;
    bool (*fn)(void *arg, const struct path_hit *hit);
    void *arg;
};

static bool walk_document(const struct walk *walk, uint32_t at, struct bdoc doc, int32_t outer_index);

static int32_t index_of_name(const char *name, size_t len)
{
    if (len == 0 || len > 9 || (name[0] == '0' && len > 1))
        return -1;
    int32_t index = 0;
    for (size_t i = 0; i < len; i++) {
        if (name[i] < '0' || name[i] > '9')
            return -1;
        index = index * 10 + (name[i] - '0');
    }
    return index;
}

static uint32_t count_parts(const char *text, size_t len)
{
    uint32_t count = 1;
    for (size_t i = 0; i < len; i++)
        count += text[i] == '.';
    return count;
}

bool path_init(struct path *path, const char *text, size_t len, struct err *err)
{
    uint32_t count = count_parts(text, len);
    if (count > PATH_MAX_PARTS)
        return err_set(err, ERR_Overflow, "a path of %u components is too deep (at most %d)", count, PATH_MAX_PARTS);
    path->text = mem_copy_strn(text, len);
    path->len = (uint32_t)len;
    path->count = count;
    path->parts = mem_alloc_array(count, sizeof *path->parts);
    const char *from = path->text;
    const char *end = path->text + len;
    for (uint32_t i = 0; i < count; i++) {
        const char *dot = memchr(from, '.', (size_t)(end - from));
        const char *stop = dot != NULL ? dot : end;
        path->parts[i].name = from;
        path->parts[i].len = (uint32_t)(stop - from);
        path->parts[i].index = index_of_name(from, (size_t)(stop - from));
        from = stop + 1;
    }
    return true;
}

void path_deinit(struct path *path)
{
    mem_free(path->text);
    mem_free(path->parts);
    *path = (struct path){0};
}

bool path_is_prefix(const struct path *prefix, const struct path *path)
{
    if (prefix->len > path->len || memcmp(prefix->text, path->text, prefix->len) != 0)
        return false;
    return prefix->len == path->len || path->text[prefix->len] == '.';
}

bool path_get(const struct path *path, struct bdoc doc, struct bval *out)
{
    for (uint32_t i = 0; i < path->count; i++) {
        if (!bdoc_find_n(doc, path->parts[i].name, path->parts[i].len, out))
            return false;
        if (i + 1 == path->count)
            return true;
        if (out->type != BT_DOCUMENT)
            break;
        doc = bval_doc(out);
    }
    *out = BVAL_MISSING;
    return false;
}

bool path_get_str(struct bdoc doc, const char *text, struct bval *out)
{
    for (;;) {
        const char *stop = strchrnul(text, '.');
        if (!bdoc_find_n(doc, text, (size_t)(stop - text), out))
            return false;
        if (*stop == 0)
            return true;
        if (out->type != BT_DOCUMENT)
            break;
        doc = bval_doc(out);
        text = stop + 1;
    }
    *out = BVAL_MISSING;
    return false;
}

static bool visit(const struct walk *walk, const struct bval *val, int32_t index)
{
    struct path_hit hit = {.val = *val, .array_index = index};
    return walk->fn(walk->arg, &hit);
}

/* An array where the path ends. */
static bool walk_leaf_array(const struct walk *walk, const struct bval *array, int32_t outer_index)
{
    if (walk->leaf != PATH_LEAF_ARRAY) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bval_doc(array));
        for (int32_t i = 0; biter_next(&iter, &elem); i++) {
            if (!visit(walk, &elem.val, outer_index >= 0 ? outer_index : i))
                return false;
        }
    }
    return walk->leaf == PATH_LEAF_ELEMENTS || visit(walk, array, outer_index);
}

/* An array with the components from `at` on still to go. */
static bool walk_array(const struct walk *walk, uint32_t at, struct bdoc array, int32_t outer_index)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, array);
    for (int32_t i = 0; biter_next(&iter, &elem); i++) {
        bool is_document = elem.val.type == BT_DOCUMENT;
        if (is_document && !walk_document(walk, at, bval_doc(&elem.val), outer_index >= 0 ? outer_index : i))
            return false;
        if (walk->path->parts[at].index != i)
            continue;
        /* The component names this position: no implicit expansion of this array. An array that is found here at the
         * path's end is one value to a filter, but elements to distinct. */
        bool go_on = true;
        bool last = at + 1 == walk->path->count;
        if (last && walk->leaf == PATH_LEAF_ELEMENTS && elem.val.type == BT_ARRAY)
            go_on = walk_leaf_array(walk, &elem.val, outer_index);
        else if (last)
            go_on = visit(walk, &elem.val, outer_index);
        else if (is_document)
            go_on = walk_document(walk, at + 1, bval_doc(&elem.val), outer_index);
        else if (elem.val.type == BT_ARRAY)
            go_on = walk_array(walk, at + 1, bval_doc(&elem.val), outer_index);
        if (!go_on)
            return false;
    }
    return true;
}

static bool walk_document(const struct walk *walk, uint32_t at, struct bdoc doc, int32_t outer_index)
{
    const struct path *path = walk->path;
    for (;; at++) {
        struct bval val;
        bdoc_find_n(doc, path->parts[at].name, path->parts[at].len, &val);
        bool last = at + 1 == path->count;
        if (val.type == BT_ARRAY)
            return last ? walk_leaf_array(walk, &val, outer_index)
                        : walk_array(walk, at + 1, bval_doc(&val), outer_index);
        if (last)
            return visit(walk, &val, outer_index);
        if (val.type != BT_DOCUMENT)
            return visit(walk, &BVAL_MISSING, outer_index);
        doc = bval_doc(&val);
    }
}

bool path_each(const struct path *path, struct bdoc doc, enum path_leaf leaf,
               bool (*fn)(void *, const struct path_hit *), void *arg)
{
    struct walk walk = {.path = path, .leaf = leaf, .fn = fn, .arg = arg};
    return walk_document(&walk, 0, doc, -1);
}
