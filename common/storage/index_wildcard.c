#include "storage/index_wildcard.h"

#include <string.h>

static const char SUFFIX[] = ".$**";
enum { SUFFIX_LEN = 4, WILDCARD_LEN = 3 };

bool wildcard_is_field(const char *path, uint32_t len)
{
    return (len == WILDCARD_LEN && memcmp(path, "$**", WILDCARD_LEN) == 0) ||
           (len > SUFFIX_LEN && memcmp(path + len - SUFFIX_LEN, SUFFIX, SUFFIX_LEN) == 0);
}

/* ---- parsing ---- */

static void add_path(struct wildcard *wildcard, const char *text, uint32_t len)
{
    if (wildcard->count < WILDCARD_PATHS_MAX)
        wildcard->paths[wildcard->count++] = (struct wildcard_path){text, len};
}

/* {a: {b: 1}} is {"a.b": 1}. */
static void add_projection(struct arena *arena, struct wildcard *wildcard, const char *prefix, struct bdoc projection,
                           bool wanted)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, projection);
    while (biter_next(&iter, &elem)) {
        const char *text = elem.key;
        if (*prefix != 0)
            text = arena_printf(arena, "%s.%s", prefix, elem.key);
        if (elem.val.type == BT_DOCUMENT)
            add_projection(arena, wildcard, text, bval_doc(&elem.val), wanted);
        else if (bval_truthy(&elem.val) == wanted)
            add_path(wildcard, text, (uint32_t)strlen(text));
    }
}

/* True when some path other than _id is wanted; _id alone decides nothing unless it stands alone. */
static bool is_inclusive(struct bdoc projection)
{
    struct biter iter;
    struct belem elem;
    bool wanted = false;
    biter_init(&iter, projection);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type == BT_DOCUMENT)
            return is_inclusive(bval_doc(&elem.val));
        wanted = bval_truthy(&elem.val);
        if (strcmp(elem.key, "_id") != 0)
            return wanted;
    }
    return wanted;
}

void wildcard_parse(struct arena *arena, const char *field, uint32_t field_len, struct bdoc projection,
                    struct wildcard *out)
{
    struct bval id;
    *out = (struct wildcard){.paths = arena_alloc(arena, WILDCARD_PATHS_MAX * sizeof *out->paths)};
    if (field_len > WILDCARD_LEN) {
        out->inclusive = true;
        add_path(out, field, field_len - SUFFIX_LEN);
        return;
    }
    if (projection.data == NULL)
        return;
    out->inclusive = is_inclusive(projection);
    out->with_id = bdoc_find(projection, "_id", &id) && bval_truthy(&id);
    add_projection(arena, out, "", projection, out->inclusive);
}

/* ---- asking ---- */

/* `prefix` is `path` or contains it. */
static bool contains(const char *prefix, uint32_t prefix_len, const char *path, uint32_t len)
{
    return len >= prefix_len && memcmp(prefix, path, prefix_len) == 0 && (len == prefix_len || path[prefix_len] == '.');
}

enum wildcard_state wildcard_state_of(const struct wildcard *wildcard, const char *path, uint32_t len)
{
    bool is_id = contains("_id", 3, path, len);
    bool above = false;
    if (!wildcard->inclusive && is_id && !wildcard->with_id)
        return WILDCARD_OUT;
    for (uint32_t i = 0; i < wildcard->count; i++) {
        const struct wildcard_path *listed = &wildcard->paths[i];
        if (contains(listed->text, listed->len, path, len))
            return wildcard->inclusive ? WILDCARD_INSIDE : WILDCARD_OUT;
        above |= contains(path, len, listed->text, listed->len);
    }
    if (wildcard->inclusive)
        return above ? WILDCARD_ON_WAY : WILDCARD_OUT;
    return above ? WILDCARD_PARTLY : WILDCARD_INSIDE;
}

/* ---- checking a specification ---- */

bool wildcard_check_key(struct bdoc key, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct belem wildcard = {0};
    biter_init(&iter, key);
    while (biter_next(&iter, &elem)) {
        if (!wildcard_is_field(elem.key, elem.key_len))
            continue;
        if (wildcard.key != NULL)
            return err_set(err, 7246201, "A wildcard index has exactly one wildcard field");
        wildcard = elem;
    }
    if (wildcard.key == NULL || wildcard.key_len == WILDCARD_LEN)
        return true;
    biter_init(&iter, key);
    while (biter_next(&iter, &elem)) {
        if (elem.key != wildcard.key && contains(wildcard.key, wildcard.key_len - SUFFIX_LEN, elem.key, elem.key_len))
            return err_set(err, 7246204, "The wildcard field '%.100s' overlaps with the field '%.100s'", wildcard.key,
                           elem.key);
    }
    return true;
}

static bool check_values(struct bdoc projection, bool nested_allowed, int depth, uint32_t *count, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, projection);
    if (bdoc_is_empty(projection) || depth == 0)
        return err_set(err, ERR_FailedToParse,
                       "A part of 'wildcardProjection' can't be an empty object, or is too deep");
    while (biter_next(&iter, &elem)) {
        if (++*count > WILDCARD_PATHS_MAX)
            return err_set(err, ERR_CannotCreateIndex, "'wildcardProjection' has more than %d paths",
                           WILDCARD_PATHS_MAX);
        if (elem.key_len == 0 || elem.key[0] == '$' || elem.key[0] == '.' || elem.key[elem.key_len - 1] == '.' ||
            strstr(elem.key, "..") != NULL)
            return err_set(err, ERR_FailedToParse, "'%.100s' is not a path that 'wildcardProjection' can name",
                           elem.key);
        if (elem.val.type == BT_DOCUMENT && nested_allowed) {
            if (!check_values(bval_doc(&elem.val), true, depth - 1, count, err))
                return false;
        } else if (elem.val.type != BT_BOOL && !bval_is_number(&elem.val)) {
            return nested_allowed ? err_set(err, 51271, "'wildcardProjection' can't compute fields: '%.100s'", elem.key)
                                  : err_set(err, 7246207,
                                            "The values of 'wildcardProjection' are numbers or booleans, but '%.100s' "
                                            "is a %s",
                                            elem.key, bval_type_name(elem.val.type));
        }
    }
    return true;
}

/* Inclusion and exclusion don't go together, but for _id. 31253: an inclusion in an exclusion, 31254 the reverse. */
static bool check_mixture(struct bdoc projection, bool compound, int *kind, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, projection);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type == BT_DOCUMENT) {
            if (!check_mixture(bval_doc(&elem.val), compound, kind, err))
                return false;
            continue;
        }
        if (strcmp(elem.key, "_id") == 0)
            continue;
        int this_kind = bval_truthy(&elem.val) ? 1 : -1;
        if (*kind == 0)
            *kind = this_kind;
        if (*kind != this_kind)
            return err_set(err,
                           compound    ? 7246211
                           : *kind > 0 ? 31254
                                       : 31253,
                           "'wildcardProjection' either names what is in or what is out, not both: '%.100s'", elem.key);
    }
    return true;
}

static bool check_overlaps(struct bdoc projection, struct err *err)
{
    struct biter outer;
    struct belem a;
    biter_init(&outer, projection);
    while (biter_next(&outer, &a)) {
        struct biter inner = outer;
        struct belem b;
        while (biter_next(&inner, &b)) {
            if (bval_truthy(&a.val) == bval_truthy(&b.val) &&
                (contains(a.key, a.key_len, b.key, b.key_len) || contains(b.key, b.key_len, a.key, a.key_len)))
                return err_set(err, 7246200, "The paths '%.100s' and '%.100s' of 'wildcardProjection' overlap", a.key,
                               b.key);
        }
    }
    return true;
}

/* The other fields of a compound wildcard index must not be in the wildcard's part, too. */
static bool check_against_fields(struct bdoc key, struct bdoc projection, struct err *err)
{
    struct biter fields;
    struct belem field;
    biter_init(&fields, key);
    while (biter_next(&fields, &field)) {
        if (wildcard_is_field(field.key, field.key_len))
            continue;
        struct biter iter;
        struct belem elem;
        bool excluded = false;
        bool excludes = false;
        biter_init(&iter, projection);
        while (biter_next(&iter, &elem)) {
            bool holds = contains(elem.key, elem.key_len, field.key, field.key_len);
            if (bval_truthy(&elem.val) && holds)
                return err_set(err, 7246208, "The field '%.100s' and the path '%.100s' of 'wildcardProjection' overlap",
                               field.key, elem.key);
            excludes |= !bval_truthy(&elem.val);
            excluded |= !bval_truthy(&elem.val) && holds;
        }
        if (excludes && !excluded)
            return err_set(err, 7246209, "'wildcardProjection' must leave out the index's other field '%.100s'",
                           field.key);
    }
    return true;
}

bool wildcard_check_projection(struct bdoc key, const struct bval *projection, struct err *err)
{
    bool is_wildcard = false;
    bool whole = bdoc_has(key, "$**");
    bool compound = bdoc_count(key) > 1;
    int kind = 0;
    uint32_t count = 0;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, key);
    while (biter_next(&iter, &elem))
        is_wildcard |= wildcard_is_field(elem.key, elem.key_len) && bval_is_number(&elem.val);
    if (!is_wildcard)
        return err_set(err, ERR_BadValue, "The field 'wildcardProjection' is only allowed in a wildcard index");
    if (projection->type != BT_DOCUMENT)
        return err_set(err, ERR_TypeMismatch, "The field 'wildcardProjection' must be a non-empty object, but got %s",
                       bval_type_name(projection->type));
    if (!whole)
        return err_set(err, ERR_FailedToParse,
                       "The field 'wildcardProjection' is only allowed when the wildcard field is \"$**\"");
    struct bdoc doc = bval_doc(projection);
    if (!check_values(doc, !compound, BDOC_MAX_DEPTH, &count, err))
        return false;
    if (compound && (!check_overlaps(doc, err) || !check_against_fields(key, doc, err)))
        return false;
    return check_mixture(doc, compound, &kind, err);
}
