/* Index specifications: checked, brought into one form, compared. Codes and rules as in
 * https://www.mongodb.com/docs/manual/reference/command/createIndexes/ */
#include "bson/compare.h"
#include "storage/catalog.h"
#include "storage/env.h"

#include <math.h>

enum { TTL_SECONDS_MAX = INT32_MAX };

/* The options of a specification, found and checked one by one. */
struct spec {
    const struct store *store;
    struct bdoc key;
    struct bval name;
    struct bval partial;
    struct bval expire;
    bool unique;
    bool sparse;
    bool hidden;
    bool is_id;
    bool hashed;
    uint32_t field_count;
    int32_t version;
};

static bool bad_key(struct err *err, const char *why)
{
    return err_set(err, ERR_CannotCreateIndex, "%s", why);
}

static bool check_path_parts(const struct belem *field, struct err *err)
{
    const char *part = field->key;
    for (;;) {
        size_t len = strcspn(part, ".");
        if (len == 0)
            return bad_key(err, "Index keys cannot contain an empty field.");
        bool reference =
            strncmp(part, "$id", len) == 0 || strncmp(part, "$ref", len) == 0 || strncmp(part, "$db", len) == 0;
        if (part[0] == '$' && !(reference && part != field->key))
            return bad_key(err, strcmp(part, "$**") == 0
                                    ? "wildcard indexes are not supported"
                                    : "Index key contains an illegal field name: field name starts with '$'.");
        if (part[len] == 0)
            return true;
        part += len + 1;
    }
}

static bool check_key_value(struct spec *spec, const struct belem *field, struct err *err)
{
    double number;
    if (bval_to_f64(&field->val, &number)) {
        if (isnan(number))
            return bad_key(err, "Values in the index key pattern cannot be NaN.");
        return number != 0 || bad_key(err, "Values in the index key pattern cannot be 0.");
    }
    if (field->val.type != BT_STRING)
        return err_set(err, ERR_CannotCreateIndex,
                       "Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and "
                       "strings are allowed.",
                       bval_type_name(field->val.type));
    uint32_t len;
    const char *plugin = bval_str(&field->val, &len);
    if (len == 0)
        return bad_key(err, "Values in the index key pattern cannot be empty strings.");
    if (strcmp(plugin, "hashed") != 0) {
        static const char *const known[] = {"text", "2d", "2dsphere", "geoHaystack", "wildcard"};
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strcmp(plugin, known[i]) == 0)
                return err_set(err, ERR_CannotCreateIndex, "Index type '%s' is not supported", plugin);
        return err_set(err, ERR_CannotCreateIndex, "Unknown index plugin '%.100s'", plugin);
    }
    if (spec->hashed)
        return err_set(err, 31303, "A maximum of one index field is allowed to be hashed");
    spec->hashed = true;
    return true;
}

static bool appears_twice(struct bdoc key, const struct belem *field)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, key);
    while (biter_next(&iter, &elem) && elem.key != field->key)
        if (strcmp(elem.key, field->key) == 0)
            return true;
    return false;
}

static bool check_key(struct spec *spec, const struct bval *val, struct err *err)
{
    if (val->type != BT_DOCUMENT)
        return err_set(err, ERR_TypeMismatch, "The field 'key' must be an object, but got %s",
                       bval_type_name(val->type));
    spec->key = bval_doc(val);
    struct biter iter;
    struct belem field;
    biter_init(&iter, spec->key);
    while (biter_next(&iter, &field)) {
        if (++spec->field_count > CATALOG_INDEX_FIELDS_MAX)
            return err_set(err, 13103, "too many compound keys (limit %d)", CATALOG_INDEX_FIELDS_MAX);
        if (field.key_len == 0)
            return bad_key(err, "Index keys cannot be an empty field.");
        if (strlen(field.key) != field.key_len)
            return bad_key(err, "Index keys cannot contain a NUL.");
        if (appears_twice(spec->key, &field))
            return err_set(err, ERR_CannotCreateIndex,
                           "The field '%.100s' appears multiple times in the index key pattern", field.key);
        if (!check_path_parts(&field, err) || !check_key_value(spec, &field, err))
            return false;
    }
    if (spec->field_count == 0)
        return bad_key(err, "Index keys cannot be empty.");
    spec->is_id = spec->field_count == 1 && strcmp(field.key, "_id") == 0 && !spec->hashed;
    double direction = 1;
    if (spec->is_id && bval_to_f64(&field.val, &direction) && direction != 1)
        return err_set(err, ERR_BadValue, "The field 'key' for an _id index must be {_id: 1}");
    return true;
}

static bool read_name(struct spec *spec, const struct belem *field, struct err *err)
{
    if (field->val.type != BT_STRING)
        return err_set(err, ERR_TypeMismatch, "The field 'name' must be a string, but got %s",
                       bval_type_name(field->val.type));
    uint32_t len;
    const char *name = bval_str(&field->val, &len);
    if (len == 0)
        return bad_key(err, "index names cannot be empty");
    if (strlen(name) != len)
        return bad_key(err, "index names cannot contain NUL bytes");
    if (strcmp(name, "*") == 0)
        return err_set(err, ERR_BadValue, "The index name '*' is not valid.");
    spec->name = field->val;
    return true;
}

static bool read_flag(const struct belem *field, bool *out, struct err *err)
{
    if (field->val.type != BT_BOOL && !bval_is_number(&field->val))
        return err_set(err, ERR_TypeMismatch, "The field '%s' has a value of type %s, which is not convertible to bool",
                       field->key, bval_type_name(field->val.type));
    *out = bval_truthy(&field->val);
    return true;
}

static bool read_unique(struct spec *spec, const struct belem *field, struct err *err)
{
    return read_flag(field, &spec->unique, err);
}

static bool read_sparse(struct spec *spec, const struct belem *field, struct err *err)
{
    return read_flag(field, &spec->sparse, err);
}

static bool read_hidden(struct spec *spec, const struct belem *field, struct err *err)
{
    return read_flag(field, &spec->hidden, err);
}

static bool read_ignored(struct spec *spec, const struct belem *field, struct err *err)
{
    (void)spec;
    (void)field;
    (void)err;
    return true;
}

static bool read_version(struct spec *spec, const struct belem *field, struct err *err)
{
    int64_t version;
    if (!bval_is_number(&field->val))
        return err_set(err, ERR_TypeMismatch, "The field 'v' must be a number, but got %s",
                       bval_type_name(field->val.type));
    if (!bval_to_i64(&field->val, &version) || version < 0 || version > 2)
        return err_set(err, ERR_BadValue, "Index version must be representable as a 32-bit integer of 1 or 2");
    if (version == 0)
        return bad_key(err, "Cannot create an index with v=0");
    spec->version = (int32_t)version;
    return true;
}

static bool read_expire(struct spec *spec, const struct belem *field, struct err *err)
{
    double seconds;
    if (!bval_to_f64(&field->val, &seconds))
        return bad_key(err, "TTL index 'expireAfterSeconds' option must be numeric");
    if (isnan(seconds) || seconds < 0 || seconds > TTL_SECONDS_MAX)
        return bad_key(err, "TTL index 'expireAfterSeconds' option must be within an acceptable range");
    spec->expire = field->val;
    return true;
}

static bool read_partial(struct spec *spec, const struct belem *field, struct err *err)
{
    if (field->val.type != BT_DOCUMENT)
        return err_set(err, ERR_TypeMismatch, "The field 'partialFilterExpression' must be an object, but got %s",
                       bval_type_name(field->val.type));
    if (spec->store->hooks.compile == NULL)
        return bad_key(err, "partial indexes are not supported here");
    void *filter = spec->store->hooks.compile(bval_doc(&field->val), err);
    if (filter == NULL)
        return false;
    spec->store->hooks.free(filter);
    spec->partial = field->val;
    return true;
}

static bool read_collation(struct spec *spec, const struct belem *field, struct err *err)
{
    (void)spec;
    if (field->val.type != BT_DOCUMENT)
        return err_set(err, ERR_TypeMismatch, "The field 'collation' must be an object, but got %s",
                       bval_type_name(field->val.type));
    struct bval locale;
    if (bdoc_find(bval_doc(&field->val), "locale", &locale) && bval_is_str(&locale, "simple"))
        return true;
    return bad_key(err, "an index with a collation is not supported");
}

static const struct {
    const char *name;
    bool (*read)(struct spec *spec, const struct belem *field, struct err *err);
    bool for_id; /* may stand in the specification of the _id index */
} options[] = {
    {"name", read_name, true},
    {"v", read_version, true},
    {"ns", read_ignored, true},
    {"collation", read_collation, true},
    {"unique", read_unique, false},
    {"sparse", read_sparse, false},
    {"hidden", read_hidden, false},
    {"background", read_ignored, false},
    {"dropDups", read_ignored, false},
    {"expireAfterSeconds", read_expire, false},
    {"partialFilterExpression", read_partial, false},
};

static bool read_option(struct spec *spec, const struct belem *field, struct err *err)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(options[i].name, field->key) != 0)
            continue;
        if (spec->is_id && !options[i].for_id)
            return err_set(err, ERR_InvalidIndexSpecificationOption,
                           "The field '%s' is not valid for an _id index specification.", field->key);
        return options[i].read(spec, field, err);
    }
    return err_set(err, ERR_InvalidIndexSpecificationOption,
                   "The field '%.100s' is not valid for an index specification.", field->key);
}

static bool check_together(const struct spec *spec, struct err *err)
{
    if (spec->unique && spec->hashed)
        return err_set(err, 16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.");
    if (spec->sparse && spec->partial.type != BT_EOO)
        return bad_key(err, "cannot mix \"partialFilterExpression\" and \"sparse\" options");
    if (spec->expire.type != BT_EOO && spec->field_count > 1)
        return bad_key(err, "TTL indexes are single-field indexes, compound indexes do not support TTL");
    return true;
}

/* "a_1_b_-1" */
static void default_name(struct bdoc key, struct buf *out)
{
    struct biter iter;
    struct belem field;
    biter_init(&iter, key);
    while (biter_next(&iter, &field)) {
        if (out->len > 0)
            buf_append_u8(out, '_');
        buf_append(out, field.key, field.key_len);
        buf_append_u8(out, '_');
        int64_t whole;
        double number;
        char text[40];
        if (bval_to_i64(&field.val, &whole))
            buf_append(out, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)whole));
        else if (bval_to_f64(&field.val, &number))
            buf_append(out, text, (size_t)snprintf(text, sizeof text, "%g", number));
        else
            buf_append(out, "hashed", 6);
    }
    buf_append_u8(out, 0);
}

static void write_normal(const struct spec *spec, bson_t *out)
{
    bson_t key;
    bdoc_to_bson(spec->key, &key);
    BSON_APPEND_INT32(out, "v", spec->version);
    struct buf name = BUF_INIT;
    if (spec->is_id) {
        bson_t id;
        BSON_APPEND_DOCUMENT_BEGIN(out, "key", &id);
        BSON_APPEND_INT32(&id, "_id", 1);
        bson_append_document_end(out, &id);
        BSON_APPEND_UTF8(out, "name", "_id_");
    } else {
        BSON_APPEND_DOCUMENT(out, "key", &key);
        if (spec->name.type == BT_EOO) {
            default_name(spec->key, &name);
            BSON_APPEND_UTF8(out, "name", (const char *)name.data);
        } else {
            bval_append(out, "name", 4, &spec->name);
        }
    }
    buf_deinit(&name);
    if (spec->unique)
        BSON_APPEND_BOOL(out, "unique", true);
    if (spec->sparse)
        BSON_APPEND_BOOL(out, "sparse", true);
    if (spec->partial.type != BT_EOO)
        bval_append(out, "partialFilterExpression", -1, &spec->partial);
    if (spec->expire.type != BT_EOO)
        bval_append(out, "expireAfterSeconds", -1, &spec->expire);
    if (spec->hidden)
        BSON_APPEND_BOOL(out, "hidden", true);
}

bool index_spec_normalise(const struct store *store, struct bdoc given, bson_t *out, struct err *err)
{
    struct spec spec = {.store = store, .version = 2};
    struct bval key;
    if (!bdoc_find(given, "key", &key))
        return err_set(err, ERR_FailedToParse, "The 'key' field is a required property of an index specification");
    if (!check_key(&spec, &key, err)) /* before all others: what is allowed depends on it */
        return false;
    struct biter iter;
    struct belem field;
    biter_init(&iter, given);
    while (biter_next(&iter, &field)) {
        if (strcmp(field.key, "key") != 0 && !read_option(&spec, &field, err))
            return false;
    }
    if (!check_together(&spec, err))
        return false;
    write_normal(&spec, out);
    return true;
}

/* ---- comparing ---- */

static struct bval option(struct bdoc spec, const char *name)
{
    struct bval val;
    bdoc_find(spec, name, &val);
    return val;
}

static bool same_option(struct bdoc a, struct bdoc b, const char *name)
{
    struct bval left = option(a, name);
    struct bval right = option(b, name);
    return (left.type == BT_EOO) == (right.type == BT_EOO) && (left.type == BT_EOO || bval_equal(&left, &right));
}

/* What makes two indexes on the same fields different indexes. */
static bool same_signature(struct bdoc a, struct bdoc b)
{
    return same_option(a, b, "key") && same_option(a, b, "partialFilterExpression") && same_option(a, b, "unique") &&
           same_option(a, b, "sparse");
}

static bool same_options(struct bdoc a, struct bdoc b)
{
    return same_option(a, b, "expireAfterSeconds") && same_option(a, b, "hidden");
}

enum index_compare collection_compare_index(const struct collection *coll, struct bdoc normal_spec,
                                            const struct index_def **existing, struct err *err)
{
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        bool same_name = same_option(index->spec, normal_spec, "name");
        bool signature = same_signature(index->spec, normal_spec);
        if (same_name && signature && same_options(index->spec, normal_spec)) {
            if (existing != NULL)
                *existing = index;
            return INDEX_EXISTS;
        }
        if (same_name && !signature)
            err_set(err, ERR_IndexKeySpecsConflict,
                    "An existing index has the same name as the requested index. When index names are not specified, "
                    "they are auto generated and can cause conflicts. Please refer to our documentation. Name: %s",
                    index->name);
        else if (signature && same_options(index->spec, normal_spec))
            err_set(err, ERR_IndexOptionsConflict, "Index already exists with a different name: %s", index->name);
        else if (signature)
            err_set(err, ERR_IndexOptionsConflict,
                    "An equivalent index already exists with %s name %s and different options",
                    same_name ? "the same" : "a different", index->name);
        else
            continue;
        return INDEX_CONFLICT;
    }
    return INDEX_IS_NEW;
}

const struct index_def *collection_find_index_key(const struct collection *coll, struct bdoc key_pattern)
{
    struct bval wanted = bval_from_doc(key_pattern);
    for (uint32_t i = 0; i < coll->index_count; i++) {
        struct bval key = bval_from_doc(coll->indexes[i]->key_pattern);
        if (bval_equal(&key, &wanted))
            return coll->indexes[i];
    }
    return NULL;
}
