#include "bson/keygen.h"

#include "base/check.h"
#include "base/mem.h"
#include "bson/keyenc.h"

#include <stdlib.h>
#include <string.h>

enum { ERR_CODE_PARALLEL_ARRAYS = 171, ERR_CODE_AMBIGUOUS_NAME = 16746 };

/* How far one document's walk has come: for each field the components already used and, once all are, the value. */
struct progress {
    uint32_t at[KEYGEN_MAX_FIELDS];
    struct bval values[KEYGEN_MAX_FIELDS];
};

/* What a numeric component of a field selects in the array that is being expanded. */
struct position {
    bool found;
    bool in_array;     /* the selected element is an array itself */
    uint32_t rest;     /* components used once the value below is taken */
    struct bval value; /* at the end of the path, or an array on it, or missing */
};

struct run {
    const struct keygen *gen;
    bool (*fn)(void *arg, const struct keygen_tuple *tuple);
    void *arg;
    struct err *err;
    bool multikey;
    bool stopped;                      /* by fn */
    uint64_t paths[KEYGEN_MAX_FIELDS]; /* see struct keygen_tuple */
};

/* The one array that the fields of a step lead to. */
struct expansion {
    struct bval array; /* BT_EOO: none */
    uint64_t fields;   /* those that lead to it */
    bool whole;        /* it was selected by position from another array: indexed as one value */
};

bool keygen_init(struct keygen *gen, struct bdoc pattern, const struct bval_order *order, struct err *err)
{
    *gen = (struct keygen){.descending = keyenc_descending(pattern), .order = order};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, pattern);
    while (biter_next(&iter, &elem)) {
        if (gen->count == KEYGEN_MAX_FIELDS) {
            err_set(err, ERR_CannotCreateIndex, "a key pattern has at most %d fields", KEYGEN_MAX_FIELDS);
            goto fail;
        }
        if (!path_init(&gen->paths[gen->count], elem.key, elem.key_len, err))
            goto fail;
        gen->count++;
    }
    if (gen->count > 0)
        return true;
    err_set(err, ERR_CannotCreateIndex, "a key pattern needs at least one field");
fail:
    keygen_deinit(gen);
    return false;
}

void keygen_deinit(struct keygen *gen)
{
    for (uint32_t i = 0; i < gen->count; i++)
        path_deinit(&gen->paths[i]);
    *gen = (struct keygen){0};
}

/* Follows `path` from component *at through documents up to its end or to the first array; *at moves behind what was
 * used. */
static struct bval descend(const struct path *path, uint32_t *at, struct bdoc doc)
{
    for (;;) {
        struct bval val;
        if (!bdoc_find_n(doc, path->parts[*at].name, path->parts[*at].len, &val))
            return BVAL_MISSING;
        ++*at;
        if (*at == path->count || val.type == BT_ARRAY)
            return val;
        if (val.type != BT_DOCUMENT)
            return BVAL_MISSING;
        doc = bval_doc(&val);
    }
}

/* The value of field i in this step, or BT_ARRAY with components left. False on an error. */
static bool take_field(struct run *run, uint32_t i, struct bdoc doc, const struct position *position, uint32_t *at,
                       struct bval *out)
{
    const struct path *path = &run->gen->paths[i];
    bool here = bdoc_find_n(doc, path->parts[*at].name, path->parts[*at].len, out);
    if (here && position->found)
        return err_set(run->err, ERR_CODE_AMBIGUOUS_NAME,
                       "Ambiguous field name found in array (do not use numeric field names in "
                       "embedded elements in an array), field: '%.*s'",
                       (int)path->parts[*at].len, path->parts[*at].name);
    if (here) {
        *out = descend(path, at, doc);
    } else if (position->found) {
        *at = position->rest;
        *out = position->value;
    }
    return true;
}

/* Takes every unfinished field one step further. */
static bool take_fields(struct run *run, struct bdoc doc, const struct position *positions, struct progress *progress,
                        struct expansion *expansion)
{
    for (uint32_t i = 0; i < run->gen->count; i++) {
        const struct path *path = &run->gen->paths[i];
        if (progress->at[i] == path->count)
            continue;
        struct bval val;
        if (!take_field(run, i, doc, &positions[i], &progress->at[i], &val))
            return false;
        if (val.type != BT_ARRAY) {
            progress->values[i] = val;
            progress->at[i] = path->count;
            continue;
        }
        if (expansion->array.type != BT_EOO && expansion->array.data != val.data)
            return err_set(run->err, ERR_CODE_PARALLEL_ARRAYS, "cannot index parallel arrays: [%s] and another field",
                           path->text);
        expansion->array = val;
        expansion->fields |= UINT64_C(1) << i;
        expansion->whole |= positions[i].found && positions[i].in_array;
    }
    return true;
}

static void find_positions(const struct run *run, const struct expansion *expansion, const struct progress *progress,
                           struct position *positions)
{
    struct bdoc array = bval_doc(&expansion->array);
    for (uint32_t i = 0; i < run->gen->count; i++) {
        const struct path *path = &run->gen->paths[i];
        uint32_t at = progress->at[i];
        if ((expansion->fields >> i & 1) == 0 || at == path->count || path->parts[at].index < 0)
            continue;
        struct bval element;
        if (!bdoc_find_n(array, path->parts[at].name, path->parts[at].len, &element))
            continue;
        positions[i].found = true;
        positions[i].in_array = element.type == BT_ARRAY;
        positions[i].value = descend(path, &at, array);
        positions[i].rest = positions[i].value.type == BT_EOO ? path->count : at;
    }
}

static bool step(struct run *run, struct bdoc doc, const struct position *positions, const struct progress *from);

/* One step for an element of the array (undefined stands for the element that an empty one lacks). */
static bool step_element(struct run *run, const struct bval *element, const struct expansion *expansion,
                         const struct position *positions, const struct progress *from)
{
    struct progress progress = *from;
    for (uint32_t i = 0; i < run->gen->count; i++) {
        if ((expansion->fields >> i & 1) != 0 && progress.at[i] == run->gen->paths[i].count)
            progress.values[i] = expansion->whole ? expansion->array : *element;
    }
    struct bdoc doc = element->type == BT_DOCUMENT ? bval_doc(element) : bdoc_empty();
    return step(run, doc, positions, &progress);
}

static void note_arrays(struct run *run, const struct expansion *expansion, const struct progress *progress)
{
    run->multikey = true;
    for (uint32_t i = 0; i < run->gen->count; i++) {
        if ((expansion->fields >> i & 1) != 0)
            run->paths[i] |= UINT64_C(1) << (progress->at[i] < 64 ? progress->at[i] - 1 : 63);
    }
}

static bool expand(struct run *run, struct expansion *expansion, const struct progress *progress)
{
    struct position positions[KEYGEN_MAX_FIELDS] = {{0}};
    struct biter iter;
    struct belem elem;
    note_arrays(run, expansion, progress);
    biter_init(&iter, bval_doc(&expansion->array));
    if (bdoc_is_empty(bval_doc(&expansion->array))) {
        const struct bval undefined = {.type = BT_UNDEFINED};
        expansion->whole = false;
        return step_element(run, &undefined, expansion, positions, progress);
    }
    find_positions(run, expansion, progress, positions);
    while (!run->stopped && biter_next(&iter, &elem)) {
        if (!step_element(run, &elem.val, expansion, positions, progress))
            return false;
    }
    return true;
}

/* Each level uses up at least one component, so paths bound the depth. */
static bool step(struct run *run, struct bdoc doc, const struct position *positions, const struct progress *from)
{
    struct progress progress = *from;
    struct expansion expansion = {0};
    if (!take_fields(run, doc, positions, &progress, &expansion))
        return false;
    if (expansion.array.type != BT_EOO)
        return expand(run, &expansion, &progress);
    struct keygen_tuple tuple = {
        .values = progress.values, .count = run->gen->count, .multikey = run->multikey, .paths = run->paths};
    run->stopped = !run->fn(run->arg, &tuple);
    return true;
}

bool keygen_each(const struct keygen *gen, struct bdoc doc, bool (*fn)(void *arg, const struct keygen_tuple *tuple),
                 void *arg, struct err *err)
{
    static const struct position none[KEYGEN_MAX_FIELDS];
    struct run run = {.gen = gen, .fn = fn, .arg = arg, .err = err};
    struct progress start = {0};
    return step(&run, doc, none, &start);
}

/* --- encoded ---------------------------------------------------------------------------------------------------- */

struct encoded_keys {
    const struct keygen *gen;
    struct buf bytes; /* be32 length and key, one after the other */
    size_t count;
    bool multikey;
};

struct encoded_key {
    const uint8_t *data;
    uint32_t len;
};

static bool add_encoded(void *arg, const struct keygen_tuple *tuple)
{
    struct encoded_keys *keys = arg;
    size_t start = keys->bytes.len;
    buf_append_le32(&keys->bytes, 0);
    for (uint32_t i = 0; i < tuple->count; i++)
        keyenc_append_ordered(&keys->bytes, &tuple->values[i], (keys->gen->descending >> i & 1) != 0, keys->gen->order);
    store_le32(keys->bytes.data + start, (uint32_t)(keys->bytes.len - start - 4));
    keys->count++;
    keys->multikey = tuple->multikey;
    return true;
}

static int compare_encoded(const void *a, const void *b)
{
    const struct encoded_key *left = a;
    const struct encoded_key *right = b;
    return keyenc_compare(left->data, left->len, right->data, right->len);
}

static void visit_sorted(const struct encoded_keys *keys, bool (*fn)(void *arg, const uint8_t *key, size_t len),
                         void *arg)
{
    struct encoded_key *list = mem_alloc_array(keys->count, sizeof *list);
    const uint8_t *from = keys->bytes.data;
    for (size_t i = 0; i < keys->count; i++) {
        list[i] = (struct encoded_key){.data = from + 4, .len = load_le32(from)};
        from += 4 + list[i].len;
    }
    qsort(list, keys->count, sizeof *list, compare_encoded);
    for (size_t i = 0; i < keys->count; i++) {
        if (i > 0 && compare_encoded(&list[i - 1], &list[i]) == 0)
            continue;
        if (!fn(arg, list[i].data, list[i].len))
            break;
    }
    mem_free(list);
}

bool keygen_each_encoded(const struct keygen *gen, struct bdoc doc,
                         bool (*fn)(void *arg, const uint8_t *key, size_t len), void *arg, bool *multikey,
                         struct err *err)
{
    struct encoded_keys keys = {.gen = gen};
    bool ok = keygen_each(gen, doc, add_encoded, &keys, err);
    if (ok) {
        *multikey = keys.multikey;
        if (keys.count == 1)
            (void)fn(arg, keys.bytes.data + 4, keys.bytes.len - 4);
        else if (keys.count > 1)
            visit_sorted(&keys, fn, arg);
    }
    buf_deinit(&keys.bytes);
    return ok;
}
