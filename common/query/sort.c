#include "query/sort.h"

#include "bson/keyenc.h"
#include "bson/keygen.h"

#include <string.h>

enum {
    ERR_SORT_DIRECTION = 15975,
    ERR_SORT_TYPE = 15974,
    ERR_SORT_META = 31138,
    ERR_SORT_EMPTY_PART = 15998,
    ERR_SORT_EMPTY_PATH = 40352,
    ERR_SORT_DOLLAR = 16410,
};

int sort_spec_natural(struct bdoc spec)
{
    struct biter iter;
    struct belem elem;
    int64_t direction;
    biter_init(&iter, spec);
    if (!biter_next(&iter, &elem) || strcmp(elem.key, "$natural") != 0 || bdoc_count(spec) != 1)
        return 0;
    if (!bval_is_number(&elem.val) || !bval_to_i64(&elem.val, &direction) || (direction != 1 && direction != -1))
        return 0;
    return (int)direction;
}

static bool check_path(const char *path, struct err *err)
{
    size_t len = strlen(path);
    if (len == 0)
        return err_set(err, ERR_SORT_EMPTY_PATH, "FieldPath cannot be constructed with empty string");
    if (path[0] == '$')
        return err_set(err, ERR_SORT_DOLLAR,
                       "FieldPath field names may not start with '$'. Consider using $getField or "
                       "$setField.");
    if (path[0] == '.' || path[len - 1] == '.' || strstr(path, "..") != NULL)
        return err_set(err, ERR_SORT_EMPTY_PART, "FieldPath field names may not be empty strings.");
    return true;
}

static bool read_field(const struct belem *elem, struct sort_field *out, struct err *err)
{
    int64_t direction;
    if (elem->val.type == BT_DOCUMENT)
        return err_set(err, ERR_SORT_META, "Illegal $meta sort: sorting by metadata is not supported");
    if (!bval_is_number(&elem->val))
        return err_set(err, ERR_SORT_TYPE, "Illegal key in $sort specification: %s: %s", elem->key,
                       bval_type_name(elem->val.type));
    double number;
    bool whole = bval_to_i64(&elem->val, &direction);
    if (!whole && bval_to_f64(&elem->val, &number))
        direction = number > -2 && number < 2 ? (int64_t)number : 0;
    if (direction != 1 && direction != -1)
        return err_set(err, ERR_SORT_DIRECTION, "$sort key ordering must be 1 (for ascending) or -1 (for descending)");
    *out = (struct sort_field){.path = elem->key, .descending = direction < 0};
    return check_path(elem->key, err);
}

/* The paths' memory moves into the arena: a sort_spec needs no release. */
static struct keygen *copy_keygen(struct arena *arena, const struct keygen *gen)
{
    struct keygen *copy = arena_copy(arena, gen, sizeof *gen);
    for (uint32_t i = 0; i < gen->count; i++) {
        const struct path *from = &gen->paths[i];
        struct path *to = &copy->paths[i];
        to->text = arena_copy_str(arena, from->text, from->len);
        to->parts = arena_copy(arena, from->parts, from->count * sizeof *from->parts);
        for (uint32_t j = 0; j < from->count; j++)
            to->parts[j].name = to->text + (from->parts[j].name - from->text);
    }
    return copy;
}

bool sort_spec_compile(struct arena *arena, struct bdoc spec, const struct bval_order *order, struct sort_spec **out,
                       struct err *err)
{
    uint32_t count = bdoc_count(spec);
    if (count > SORT_MAX_FIELDS)
        return err_set(err, ERR_BadValue, "too many compound keys: a sort has at most %d fields", SORT_MAX_FIELDS);
    struct sort_spec *sort = arena_alloc(arena, sizeof *sort);
    sort->source = spec;
    sort->order = order;
    sort->fields = arena_alloc(arena, (count + 1) * sizeof *sort->fields);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, spec);
    while (biter_next(&iter, &elem)) {
        if (!read_field(&elem, &sort->fields[sort->field_count], err))
            return false;
        for (uint32_t i = 0; i < sort->field_count; i++)
            if (strcmp(sort->fields[i].path, elem.key) == 0)
                return err_set(err, 7472500, "$sort key must not contain duplicate keys (field: '%s')", elem.key);
        sort->field_count++;
    }
    *out = sort;
    if (count == 0)
        return true;
    struct keygen gen;
    if (!keygen_init(&gen, spec, order, err))
        return false;
    sort->keys = copy_keygen(arena, &gen);
    keygen_deinit(&gen);
    return true;
}

/* The smallest key seen so far stands at the end of `key`; `start` is where it begins. */
struct smallest {
    const struct sort_spec *spec;
    struct buf *key;
    size_t start;
    uint32_t tuples;
};

static void encode_tuple(const struct sort_spec *spec, const struct keygen_tuple *tuple, struct buf *to)
{
    for (uint32_t i = 0; i < tuple->count; i++)
        keyenc_append_ordered(to, &tuple->values[i], spec->fields[i].descending, spec->order);
}

static bool take_smaller(void *arg, const struct keygen_tuple *tuple)
{
    struct smallest *best = arg;
    size_t next = best->key->len;
    encode_tuple(best->spec, tuple, best->key);
    if (best->tuples++ == 0)
        return true;
    size_t old_len = next - best->start;
    size_t new_len = best->key->len - next;
    uint8_t *bytes = best->key->data;
    if (keyenc_compare(bytes + next, new_len, bytes + best->start, old_len) < 0) {
        memmove(bytes + best->start, bytes + next, new_len);
        best->key->len = best->start + new_len;
    } else {
        best->key->len = next;
    }
    return best->tuples < SORT_MAX_KEYS_PER_DOC;
}

/* Documents without arrays on the fields' paths, the common case: no tuples. */
static bool append_plain(const struct sort_spec *spec, struct bdoc doc, struct buf *key)
{
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct path *path = &spec->keys->paths[i];
        struct bdoc at = doc;
        struct bval val = BVAL_MISSING;
        for (uint32_t j = 0; j < path->count; j++) {
            if (!bdoc_find_n(at, path->parts[j].name, path->parts[j].len, &val))
                break;
            if (val.type == BT_ARRAY)
                return false;
            if (j + 1 == path->count)
                break;
            if (val.type != BT_DOCUMENT) {
                val = BVAL_MISSING;
                break;
            }
            at = bval_doc(&val);
        }
        keyenc_append_ordered(key, &val, spec->fields[i].descending, spec->order);
    }
    return true;
}

bool sort_key_append(const struct sort_spec *spec, struct bdoc doc, struct buf *key, struct err *err)
{
    size_t start = key->len;
    if (spec->field_count == 0 || append_plain(spec, doc, key))
        return true;
    key->len = start;
    struct smallest best = {.spec = spec, .key = key, .start = start};
    if (keygen_each(spec->keys, doc, take_smaller, &best, err))
        return true;
    key->len = start;
    if (err != NULL && err->code == 171)
        err->code = ERR_BadValue; /* what a sort says of parallel arrays; 171 is an index's word */
    return false;
}

/* The values of the smallest tuple seen so far. */
struct smallest_values {
    struct smallest best;
    bson_t values;
};

static bool take_smaller_values(void *arg, const struct keygen_tuple *tuple)
{
    struct smallest_values *kept = arg;
    struct buf before = BUF_INIT;
    struct buf *key = kept->best.key;
    buf_append(&before, key->data, key->len);
    bool go_on = take_smaller(&kept->best, tuple);
    bool changed = before.len != key->len || memcmp(before.data, key->data, key->len) != 0;
    buf_deinit(&before);
    if (!changed)
        return go_on;
    bson_reinit(&kept->values);
    for (uint32_t i = 0; i < tuple->count; i++) {
        const char *name;
        char digits[16];
        bson_uint32_to_string(i, &name, digits, sizeof digits);
        bval_append(&kept->values, name, -1, tuple->values[i].type == BT_EOO ? &BVAL_NULL : &tuple->values[i]);
    }
    return go_on;
}

bool sort_key_values(const struct sort_spec *spec, struct bdoc doc, bson_t *out, struct err *err)
{
    struct buf key = BUF_INIT;
    struct smallest_values kept = {.best = {.spec = spec, .key = &key}};
    bson_init(&kept.values);
    bool ok = spec->field_count == 0 || keygen_each(spec->keys, doc, take_smaller_values, &kept, err);
    if (ok)
        bson_concat(out, &kept.values);
    bson_destroy(&kept.values);
    buf_deinit(&key);
    return ok;
}
