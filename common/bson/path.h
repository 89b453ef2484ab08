/* Dotted paths ("a.b.0.c") through documents, with MongoDB's rules about arrays. A path is compiled once and then read
 * by any number of threads. Nothing here copies values: what a visitor gets are views of the document. */
#ifndef SHERD_BSON_PATH_H
#define SHERD_BSON_PATH_H

#include "bson/value.h"

enum { PATH_MAX_PARTS = 100 };

/* One component. */
struct path_part {
    const char *name; /* inside the path's own text, not ended by a NUL */
    uint32_t len;
    int32_t
        index; /* the array position that a component of digits without leading zeros stands for; -1: a plain name */
};

struct path {
    char *text;              /* the whole path, the struct's own, ended by a NUL */
    uint32_t len;            /* of text */
    uint32_t count;          /* components */
    struct path_part *parts; /* the struct's own */
};

/* Splits `text`. Empty components are kept ("a..b" has three): the field with the empty name. ERR_Overflow for more
 * than PATH_MAX_PARTS components. On success the caller owns `path` and calls path_deinit. */
bool path_init(struct path *path, const char *text, size_t len, struct err *err) ERR_WARN_UNUSED;
/* Accepts a zeroed struct. */
void path_deinit(struct path *path);
/* True when `prefix` names the same field as `path` or one that contains it. */
bool path_is_prefix(const struct path *prefix, const struct path *path);

/* Descends through documents only; an array on the way (with components left) or a missing field: false, BVAL_MISSING.
 * What shard keys and _id look-ups use. */
bool path_get(const struct path *path, struct bdoc doc, struct bval *out);
/* The same for a path that is not compiled. */
bool path_get_str(struct bdoc doc, const char *text, struct bval *out);

/* What to do with an array at the path's end. */
enum path_leaf {
    PATH_LEAF_ELEMENTS_AND_ARRAY, /* each element, then the array itself: filters such as {a: 5} */
    PATH_LEAF_ARRAY,              /* the array only: $size, $elemMatch, $type: "array" */
    PATH_LEAF_ELEMENTS,           /* each element only: distinct */
};

struct path_hit {
    struct bval val;     /* BT_EOO: the field is missing in this branch */
    int32_t array_index; /* place in the outermost array that was expanded implicitly (what `$` stands for); -1: none */
};

/* Every value that a filter on this path looks at. An array on the way is expanded: each of its elements that is a
 * document is walked with the rest of the path, and a numeric component also selects the element at that place. A
 * document without the field gives one missing hit; elements of an array that are no documents give none. Depth is
 * bounded by the number of components. False when a visitor stopped the walk. */
bool path_each(const struct path *path, struct bdoc doc, enum path_leaf leaf,
               bool (*fn)(void *, const struct path_hit *), void *arg);

#endif
