/* Index specifications: checked, brought into one form, compared. Codes and rules as in
 * https://www.mongodb.com/docs/manual/reference/command/createIndexes/ */
#include "collation/collation.h"
#include "storage/catalog.h"
#include "storage/env.h"
#include "storage/index_partial.h"
#include "storage/index_wildcard.h"

#include <math.h>

enum {
    TTL_SECONDS_MAX = INT32_MAX,
    KEY_PATTERN_MAX_BYTES = 2048,
    INDEX_VERSION = 2,
};

/* The options of a specification, found and checked one by one. */
struct spec {
    const struct store *store;
    struct bdoc key;
    struct bdoc default_collation; /* of the collection */
    struct bval name;
    struct bval partial;
    struct bval expire;
    struct bval projection;
    struct collation *collation; /* a reference; NULL: simple */
    bool own_collation;          /* the specification says which one */
    bool unique;
    bool sparse;
    bool hidden;
    bool prepare_unique;
    bool clustered;
    bool is_id;
    bool hashed;
    bool wildcard;
    bool text_option; /* one that only a text index has */
    uint32_t field_count;
    int32_t version;
};

static bool bad_key(struct err *err, const char *why)
{
    return err_set(err, ERR_CannotCreateIndex, "%s", why);
}

static bool check_path_parts(const struct belem *field, bool numeric, struct err *err)
{
    const char *part = field->key;
    for (;;) {
        size_t len = strcspn(part, ".");
        if (len == 0)
            return bad_key(err, "Index keys cannot contain an empty field.");
        bool reference = (len == 3 && memcmp(part, "$id", 3) == 0) || (len == 4 && memcmp(part, "$ref", 4) == 0) ||
                         (len == 3 && memcmp(part, "$db", 3) == 0);
        bool wildcard = numeric && strcmp(part, "$**") == 0;
        if (part[0] == '$' && !wildcard && !(reference && part != field->key))
            return bad_key(err, "Index key contains an illegal field name: field name starts with '$'.");
        if (part[len] == 0)
            return true;
        part += len + 1;
    }
}

static bool check_plugin(struct spec *spec, const struct belem *field, struct err *err)
{
    static const char *const missing[] = {"text", "2d", "2dsphere", "geoHaystack"};
    uint32_t len;
    const char *plugin = bval_str(&field->val, &len);
    if (len == 0)
        return bad_key(err, "Values in the index key pattern cannot be empty strings.");
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        if (strcmp(plugin, missing[i]) == 0)
            return err_set(err, ERR_CannotCreateIndex, "Index type '%s' is not supported here", plugin);
    }
    if (strcmp(plugin, "wildcard") == 0)
        return bad_key(err, "A wildcard index is asked for by a field \"$**\" with a number, not by a string");
    if (strcmp(plugin, "hashed") != 0)
        return err_set(err, ERR_CannotCreateIndex, "Unknown index plugin '%.100s'", plugin);
    if (spec->hashed)
        return err_set(err, 31303, "A maximum of one index field is allowed to be hashed");
    spec->hashed = true;
    return true;
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
    return check_plugin(spec, field, err);
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
    if (spec->key.len > KEY_PATTERN_MAX_BYTES)
        return bad_key(err, "Index key pattern too large.");
    if (!wildcard_check_key(spec->key, err))
        return false;
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
            return err_set(err, ERR_BadValue, "The field '%.100s' appears multiple times in the index key pattern",
                           field.key);
        if (!check_key_value(spec, &field, err) || !check_path_parts(&field, bval_is_number(&field.val), err))
            return false;
        spec->wildcard |= wildcard_is_field(field.key, field.key_len);
    }
    if (spec->field_count == 0)
        return bad_key(err, "Index keys cannot be empty.");
    if (spec->hashed && spec->wildcard)
        return bad_key(err, "A wildcard index can't have a hashed field");
    /* As MongoDB has it: {_id: 2} is an index like any other. */
    double direction = 0;
    spec->is_id = spec->field_count == 1 && strcmp(field.key, "_id") == 0 && bval_to_f64(&field.val, &direction) &&
                  (trunc(direction) == 1 || trunc(direction) == -1);
    if (spec->is_id && direction != 1)
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
    if (!spec->is_id && strcmp(name, "_id_") == 0)
        return err_set(err, ERR_BadValue, "The index name '_id_' is reserved for the index on _id");
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
    if (field->val.type != BT_BOOL)
        return err_set(err, ERR_TypeMismatch, "The field 'hidden' must be a bool, but got %s",
                       bval_type_name(field->val.type));
    if (spec->is_id)
        return err_set(err, ERR_BadValue, "can't hide _id index");
    spec->hidden = bval_bool(&field->val);
    return true;
}

static bool read_prepare_unique(struct spec *spec, const struct belem *field, struct err *err)
{
    return read_flag(field, &spec->prepare_unique, err);
}

static bool read_clustered(struct spec *spec, const struct belem *field, struct err *err)
{
    if (!read_flag(field, &spec->clustered, err))
        return false;
    if (!spec->clustered)
        return err_set(err, 6492800, "Value 'false' for field 'clustered' is invalid");
    return spec->is_id ||
           err_set(err, ERR_InvalidIndexSpecificationOption, "Only an index on {_id: 1} can be clustered");
}

static bool read_dropped(struct spec *spec, const struct belem *field, struct err *err)
{
    bool ignored;
    (void)spec;
    return read_flag(field, &ignored, err);
}

static bool read_projection(struct spec *spec, const struct belem *field, struct err *err)
{
    spec->projection = field->val;
    return wildcard_check_projection(spec->key, &field->val, err);
}

static bool read_storage_engine(struct spec *spec, const struct belem *field, struct err *err)
{
    (void)spec;
    return field->val.type == BT_DOCUMENT ||
           err_set(err, ERR_TypeMismatch, "The field 'storageEngine' must be an object, but got %s",
                   bval_type_name(field->val.type));
}

/* Options of text and geo indexes: allowed names, but without meaning on any other index. */
static bool read_foreign(struct spec *spec, const struct belem *field, struct err *err)
{
    if (strcmp(field->key, "weights") == 0) {
        spec->text_option = true;
        return true;
    }
    bool language = strcmp(field->key, "default_language") == 0 || strcmp(field->key, "language_override") == 0;
    if (language ? field->val.type == BT_STRING : bval_is_number(&field->val))
        return true;
    return err_set(err, ERR_TypeMismatch, "The field '%s' must be a %s, but got %s", field->key,
                   language ? "string" : "number", bval_type_name(field->val.type));
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
    if (!bval_to_i64(&field->val, &version) || version < INT32_MIN || version > INT32_MAX)
        return err_set(err, ERR_BadValue, "Index version must be representable as a 32-bit integer");
    if (version != 1 && version != INDEX_VERSION)
        return err_set(err, ERR_CannotCreateIndex, "Invalid index specification; cannot create an index with v=%lld",
                       (long long)version);
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
    void *filter = spec->store->hooks.compile(bval_doc(&field->val), NULL, err);
    if (filter == NULL)
        return false;
    spec->store->hooks.free(filter);
    spec->partial = field->val;
    return partial_check(bval_doc(&field->val), err);
}

static bool read_collation(struct spec *spec, const struct belem *field, struct err *err)
{
    if (field->val.type != BT_DOCUMENT)
        return err_set(err, ERR_TypeMismatch, "The field 'collation' must be an object, but got %s",
                       bval_type_name(field->val.type));
    if (bdoc_is_empty(bval_doc(&field->val)))
        return err_set(err, ERR_BadValue, "The field 'collation' cannot be an empty object.");
    spec->own_collation = true;
    return collation_open(bval_doc(&field->val), &spec->collation, err);
}

static const struct {
    const char *name;
    bool (*read)(struct spec *spec, const struct belem *field, struct err *err);
    bool for_id;   /* may stand in the specification of the _id index */
    bool as_it_is; /* goes into the normal form unchanged */
} options[] = {
    {"name", read_name, true, false},
    {"v", read_version, true, false},
    {"ns", read_ignored, true, false},
    {"collation", read_collation, true, false},
    {"hidden", read_hidden, true, false},
    {"clustered", read_clustered, true, false},
    {"unique", read_unique, false, false},
    {"sparse", read_sparse, false, false},
    {"prepareUnique", read_prepare_unique, false, false},
    {"background", read_dropped, false, false},
    {"dropDups", read_dropped, false, false},
    {"expireAfterSeconds", read_expire, false, true},
    {"partialFilterExpression", read_partial, false, true},
    {"wildcardProjection", read_projection, false, true},
    {"storageEngine", read_storage_engine, false, true},
    {"weights", read_foreign, false, false},
    {"default_language", read_foreign, false, true},
    {"language_override", read_foreign, false, true},
    {"textIndexVersion", read_foreign, false, true},
    {"2dsphereIndexVersion", read_foreign, false, true},
    {"bits", read_foreign, false, true},
    {"min", read_foreign, false, true},
    {"max", read_foreign, false, true},
    {"bucketSize", read_foreign, false, true},
};
enum { OPTION_COUNT = sizeof options / sizeof options[0] };

/* OPTION_COUNT: there is none of that name. */
static size_t option_of(const char *name)
{
    size_t i = 0;
    while (i < OPTION_COUNT && strcmp(options[i].name, name) != 0)
        i++;
    return i;
}

void index_spec_copy_known(struct bdoc spec, bson_t *out)
{
    struct biter iter;
    struct belem field;
    biter_init(&iter, spec);
    while (biter_next(&iter, &field)) {
        if (strcmp(field.key, "key") == 0 || option_of(field.key) < OPTION_COUNT)
            bval_append(out, field.key, (int)field.key_len, &field.val);
    }
}

static bool check_names(struct bdoc given, struct err *err)
{
    struct biter iter;
    struct belem field;
    biter_init(&iter, given);
    while (biter_next(&iter, &field)) {
        if (strcmp(field.key, "key") != 0 && option_of(field.key) == OPTION_COUNT)
            return err_set(err, ERR_InvalidIndexSpecificationOption,
                           "The field '%.100s' is not valid for an index specification.", field.key);
    }
    return true;
}

static bool read_options(struct spec *spec, struct bdoc given, struct err *err)
{
    bool clustered = bdoc_has(given, "clustered");
    struct biter iter;
    struct belem field;
    biter_init(&iter, given);
    while (biter_next(&iter, &field)) {
        if (strcmp(field.key, "key") == 0)
            continue;
        size_t i = option_of(field.key);
        bool of_clustered = clustered && strcmp(field.key, "unique") == 0;
        if (spec->is_id && !options[i].for_id && !of_clustered)
            return err_set(err, ERR_InvalidIndexSpecificationOption,
                           "The field '%s' is not valid for an _id index specification.", field.key);
        if (!options[i].read(spec, &field, err))
            return false;
    }
    return true;
}

static bool check_wildcard(const struct spec *spec, struct err *err)
{
    if (spec->unique || spec->prepare_unique)
        return bad_key(err, "Index type 'wildcard' does not support the unique option");
    if (spec->sparse)
        return bad_key(err, "Index type 'wildcard' does not support the sparse option");
    if (spec->expire.type != BT_EOO)
        return bad_key(err, "Index type 'wildcard' cannot be a TTL index");
    if (spec->version < INDEX_VERSION)
        return bad_key(err, "Index type 'wildcard' needs v: 2");
    if (spec->field_count > 1 && bdoc_has(spec->key, "$**") && spec->projection.type == BT_EOO)
        return bad_key(err, "Compound wildcard indexes on all fields must also specify 'wildcardProjection' option");
    return true;
}

static bool check_together(const struct spec *spec, struct err *err)
{
    if (spec->clustered && !spec->unique)
        return bad_key(err, "The 'unique' field is required when 'clustered' is specified");
    if (spec->own_collation && spec->version < INDEX_VERSION)
        return bad_key(err, "cannot create an index with the 'collation' option and v=1");
    if (spec->text_option)
        return bad_key(err, "the field 'weights' can only be specified with text indexes");
    if (spec->unique && spec->prepare_unique)
        return bad_key(err, "cannot create an index with the 'unique' option and the 'prepareUnique' option");
    if ((spec->unique || spec->prepare_unique) && spec->hashed)
        return err_set(err, 16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.");
    if (spec->sparse && spec->partial.type != BT_EOO)
        return bad_key(err, "cannot mix \"partialFilterExpression\" and \"sparse\" options");
    if (spec->expire.type != BT_EOO && spec->field_count > 1)
        return bad_key(err, "TTL indexes are single-field indexes, compound indexes do not support TTL");
    return !spec->wildcard || check_wildcard(spec, err);
}

/* ---- the normal form ---- */

/* "a_1_b_-1", as drivers make names. */
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

static void write_name(const struct spec *spec, bson_t *out)
{
    if (spec->name.type != BT_EOO) {
        bval_append(out, "name", 4, &spec->name);
        return;
    }
    struct buf name = BUF_INIT;
    default_name(spec->key, &name);
    BSON_APPEND_UTF8(out, "name", (const char *)name.data);
    buf_deinit(&name);
}

/* The collection's, unless the index has its own. One of version 1 never has one. */
static bool take_default_collation(struct spec *spec, struct err *err)
{
    if (spec->own_collation || spec->default_collation.data == NULL || spec->version < INDEX_VERSION)
        return true;
    return collation_open(spec->default_collation, &spec->collation, err);
}

static void write_id(const struct spec *spec, bson_t *out)
{
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(out, "key", &id);
    BSON_APPEND_INT32(&id, "_id", 1);
    bson_append_document_end(out, &id);
    if (spec->clustered)
        write_name(spec, out);
    else
        BSON_APPEND_UTF8(out, "name", "_id_");
}

static void write_normal(const struct spec *spec, struct bdoc given, bson_t *out)
{
    bson_t key;
    struct biter iter;
    struct belem field;
    bdoc_to_bson(spec->key, &key);
    BSON_APPEND_INT32(out, "v", spec->version);
    if (spec->is_id) {
        write_id(spec, out);
    } else {
        BSON_APPEND_DOCUMENT(out, "key", &key);
        write_name(spec, out);
    }
    if (spec->unique)
        BSON_APPEND_BOOL(out, "unique", true);
    if (spec->clustered)
        BSON_APPEND_BOOL(out, "clustered", true);
    if (spec->sparse)
        BSON_APPEND_BOOL(out, "sparse", true);
    if (spec->prepare_unique)
        BSON_APPEND_BOOL(out, "prepareUnique", true);
    biter_init(&iter, given);
    while (biter_next(&iter, &field)) {
        size_t i = option_of(field.key);
        if (i < OPTION_COUNT && options[i].as_it_is)
            bval_append(out, field.key, (int)field.key_len, &field.val);
    }
    if (spec->hidden)
        BSON_APPEND_BOOL(out, "hidden", true);
    if (spec->collation != NULL) {
        bson_t collation;
        BSON_APPEND_DOCUMENT_BEGIN(out, "collation", &collation);
        collation_normal_spec(spec->collation, &collation);
        bson_append_document_end(out, &collation);
    }
}

bool index_spec_normalise(const struct store *store, struct bdoc given, struct bdoc default_collation, bson_t *out,
                          struct err *err)
{
    struct spec spec = {.store = store, .version = INDEX_VERSION, .default_collation = default_collation};
    struct bval key;
    if (!check_names(given, err))
        return false;
    if (!bdoc_find(given, "key", &key))
        return err_set(err, ERR_FailedToParse, "The 'key' field is a required property of an index specification");
    /* The key before all others: what is allowed depends on it. */
    bool ok = check_key(&spec, &key, err) && read_options(&spec, given, err) && check_together(&spec, err) &&
              take_default_collation(&spec, err);
    if (ok)
        write_normal(&spec, given, out);
    collation_unref(spec.collation);
    return ok;
}
