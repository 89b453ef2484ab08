#include "document/create_options.h"

#include "collation/collation.h"
#include "command/field_spec.h"
#include "command/fields.h"
#include "document/views.h"

#include <stddef.h>
#include <string.h>

enum {
    ERR_CAPPED_CLUSTERED = 6127800,
    ERR_CLUSTERED_WITH_SIZE = 6049200,
    ERR_CLUSTERED_WITH_MAX = 6049204,
    EXPIRE_MAX_SECS = 2147483647,
};

/* The command's fields as they came. */
struct fields {
    bool capped;
    bool auto_index_id;
    bool temp;
    int64_t size;
    int64_t max;
    int64_t expire;
    struct bdoc id_index;
    struct bdoc storage_engine;
    struct bdoc index_defaults;
    struct bdoc validator;
    const char *level;
    const char *action;
    const char *view_on;
    struct bdoc pipeline;
    struct bdoc collation;
    struct bdoc images;
    struct bdoc timeseries;
    struct bval clustered;
    struct bval encrypted;
};

struct parse {
    struct arena *arena;
    const struct ns *ns;
    struct fields in;
    struct create_timeseries ts;
    const char *clustered_name;
    struct collation *collation;
    struct err *err;
};

static bool read_fields(struct parse *p, struct bdoc body)
{
    static const struct field_spec specs[] = {
        {"capped", FIELD_FLAG, offsetof(struct fields, capped), false},
        {"autoIndexId", FIELD_FLAG, offsetof(struct fields, auto_index_id), false},
        {"temp", FIELD_FLAG, offsetof(struct fields, temp), false},
        {"size", FIELD_INT, offsetof(struct fields, size), false},
        {"max", FIELD_INT, offsetof(struct fields, max), false},
        {"expireAfterSeconds", FIELD_INT, offsetof(struct fields, expire), false},
        {"idIndex", FIELD_DOC, offsetof(struct fields, id_index), false},
        {"storageEngine", FIELD_DOC, offsetof(struct fields, storage_engine), false},
        {"indexOptionDefaults", FIELD_DOC, offsetof(struct fields, index_defaults), false},
        {"validator", FIELD_DOC, offsetof(struct fields, validator), false},
        {"validationLevel", FIELD_STR, offsetof(struct fields, level), false},
        {"validationAction", FIELD_STR, offsetof(struct fields, action), false},
        {"viewOn", FIELD_STR, offsetof(struct fields, view_on), false},
        {"pipeline", FIELD_DOC_ARRAY, offsetof(struct fields, pipeline), false},
        {"collation", FIELD_DOC, offsetof(struct fields, collation), false},
        {"changeStreamPreAndPostImages", FIELD_DOC, offsetof(struct fields, images), false},
        {"timeseries", FIELD_DOC, offsetof(struct fields, timeseries), false},
        {"clusteredIndex", FIELD_ANY, offsetof(struct fields, clustered), false},
        {"encryptedFields", FIELD_ANY, offsetof(struct fields, encrypted), false},
    };
    p->in = (struct fields){.auto_index_id = true,
                            .size = CREATE_NOT_GIVEN,
                            .max = CREATE_NOT_GIVEN,
                            .expire = CREATE_NOT_GIVEN,
                            .clustered = BVAL_MISSING,
                            .encrypted = BVAL_MISSING};
    return fields_read(body, "create", &(struct field_specs){specs, sizeof specs / sizeof specs[0], true}, &p->in,
                       p->err);
}

static bool invalid(struct parse *p, const char *why)
{
    return err_set(p->err, ERR_InvalidOptions, "%s", why);
}

/* ---- words and numbers ---- */

static bool bad_word(const char *command, const char *name, const char *text, struct err *err)
{
    return err_set(err, ERR_BadValue, "Enumeration value '%s' for field '%s.%s' is not a valid value.", text, command,
                   name);
}

bool create_check_level(const char *command, const char *text, struct err *err)
{
    enum validator_level level;
    return text == NULL || validator_level_parse(text, &level) || bad_word(command, "validationLevel", text, err);
}

bool create_check_action(const char *command, const char *text, struct err *err)
{
    enum validator_action action;
    return text == NULL || validator_action_parse(text, &action) || bad_word(command, "validationAction", text, err);
}

int64_t create_round_size(int64_t bytes)
{
    return (bytes + 0xff) & ~INT64_C(0xff);
}

bool create_check_expire(int64_t secs, struct err *err)
{
    if (secs < 0)
        return err_set(err, ERR_InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0");
    return secs <= EXPIRE_MAX_SECS ||
           err_set(err, ERR_InvalidOptions, "TTL index 'expireAfterSeconds' option must be within an acceptable range");
}

static bool in_range(struct parse *p, const char *name, int64_t value, int64_t min, int64_t max)
{
    if (value < min)
        return err_set(p->err, COMMAND_ERR_OUT_OF_RANGE, "BSON field '%s' value must be >= %lld, actual value '%lld'",
                       name, (long long)min, (long long)value);
    return value <= max ||
           err_set(p->err, COMMAND_ERR_OUT_OF_RANGE, "BSON field '%s' value must be <= %lld, actual value '%lld'", name,
                   (long long)max, (long long)value);
}

/* ---- capped, clustered ---- */

static bool check_capped(struct parse *p)
{
    const struct fields *in = &p->in;
    bool has_size = in->size != CREATE_NOT_GIVEN;
    bool has_max = in->max != CREATE_NOT_GIVEN;
    if ((has_size && !in_range(p, "size", in->size, 1, CREATE_CAPPED_MAX_BYTES)) ||
        (has_max && !in_range(p, "max", in->max, INT64_MIN + 1, CREATE_CAPPED_MAX_DOCS)))
        return false;
    if (in->clustered.type != BT_EOO)
        return true;
    if (in->capped && !has_size)
        return invalid(p, "the 'size' field is required when 'capped' is true");
    return in->capped || (!has_size && !has_max) ||
           invalid(p, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present");
}

static bool is_id_key(struct bdoc key)
{
    struct bval direction;
    int64_t number;
    return bdoc_count(key) == 1 && bdoc_find(key, "_id", &direction) && bval_to_i64(&direction, &number) && number == 1;
}

struct clustered_fields {
    struct bdoc key;
    bool unique;
    const char *name;
    int64_t version;
};

static bool read_clustered(struct parse *p, struct bdoc doc)
{
    static const struct field_spec specs[] = {
        {"key", FIELD_DOC, offsetof(struct clustered_fields, key), true},
        {"unique", FIELD_FLAG, offsetof(struct clustered_fields, unique), true},
        {"name", FIELD_STR, offsetof(struct clustered_fields, name), false},
        {"v", FIELD_INT, offsetof(struct clustered_fields, version), false},
    };
    struct clustered_fields in = {.name = "_id_", .version = 2};
    if (!fields_read(doc, "create.clusteredIndex", &(struct field_specs){specs, sizeof specs / sizeof specs[0], false},
                     &in, p->err))
        return false;
    if (in.version != 2)
        return err_set(p->err, ERR_InvalidIndexSpecificationOption, "The field 'v' for clusteredIndex must be 2");
    if (!is_id_key(in.key))
        return err_set(p->err, ERR_InvalidIndexSpecificationOption,
                       "The clusteredIndex option is only supported on the key {_id: 1}");
    if (!in.unique)
        return err_set(p->err, ERR_InvalidIndexSpecificationOption,
                       "The clusteredIndex option requires unique: true to be specified");
    p->clustered_name = in.name;
    return in.name[0] != '\0' || err_set(p->err, ERR_BadValue, "an index name must not be empty");
}

static bool check_clustered(struct parse *p)
{
    const struct fields *in = &p->in;
    if (in->clustered.type == BT_EOO || in->clustered.type == BT_NULL)
        return true;
    if (in->clustered.type == BT_BOOL)
        return err_set(p->err, ERR_InvalidOptions, "The 'clusteredIndex' option takes a document");
    if (in->clustered.type != BT_DOCUMENT)
        return err_set(p->err, ERR_TypeMismatch,
                       "BSON field 'create.clusteredIndex' is the wrong type '%s', expected types '[bool, object]'",
                       bval_type_name(in->clustered.type));
    if (in->capped)
        return err_set(p->err, ERR_CAPPED_CLUSTERED, "a clustered collection can't be capped");
    if (in->size != CREATE_NOT_GIVEN)
        return err_set(p->err, ERR_CLUSTERED_WITH_SIZE,
                       "the 'size' field of capped collections is not allowed on clustered collections");
    if (in->max != CREATE_NOT_GIVEN)
        return err_set(p->err, ERR_CLUSTERED_WITH_MAX,
                       "the 'max' field of capped collections is not allowed on clustered collections");
    return read_clustered(p, bval_doc(&in->clustered));
}

/* ---- time series ---- */

static int64_t granularity_span_secs(const char *granularity)
{
    static const struct {
        const char *name;
        int64_t span_secs;
    } known[] = {{"seconds", 3600}, {"minutes", 24 * 3600}, {"hours", 30 * 24 * 3600}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(granularity, known[i].name) == 0)
            return known[i].span_secs;
    }
    return 0;
}

bool create_timeseries_complete(struct create_timeseries *ts, struct err *err)
{
    bool custom = ts->max_span_secs != CREATE_NOT_GIVEN || ts->rounding_secs != CREATE_NOT_GIVEN;
    if (ts->granularity != NULL && granularity_span_secs(ts->granularity) == 0)
        return bad_word("create.timeseries", "granularity", ts->granularity, err);
    if (!custom && ts->granularity == NULL)
        ts->granularity = "seconds";
    if (ts->granularity != NULL) {
        int64_t span_secs = granularity_span_secs(ts->granularity);
        bool fits = ts->rounding_secs == CREATE_NOT_GIVEN &&
                    (ts->max_span_secs == CREATE_NOT_GIVEN || ts->max_span_secs == span_secs);
        ts->max_span_secs = span_secs;
        return fits || err_set(err, ERR_InvalidOptions,
                               "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' cannot be set with "
                               "'granularity'");
    }
    return ts->max_span_secs == ts->rounding_secs ||
           err_set(err, ERR_InvalidOptions,
                   "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set to the same value");
}

static bool check_field_name(struct parse *p, const char *option, const char *name)
{
    return (name[0] != '\0' && strchr(name, '.') == NULL && name[0] != '$') ||
           err_set(p->err, ERR_InvalidOptions, "'%s' must be a top-level field and not contain a '.'", option);
}

static bool check_timeseries_names(struct parse *p)
{
    const struct create_timeseries *ts = &p->ts;
    if (!check_field_name(p, "timeField", ts->time_field))
        return false;
    if (strcmp(ts->time_field, "_id") == 0)
        return invalid(p, "'timeField' cannot be \"_id\"");
    if (ts->meta_field == NULL)
        return true;
    if (strcmp(ts->meta_field, "_id") == 0)
        return invalid(p, "'metaField' cannot be \"_id\"");
    if (strcmp(ts->meta_field, ts->time_field) == 0)
        return invalid(p, "'metaField' cannot be the same as 'timeField'");
    return check_field_name(p, "metaField", ts->meta_field);
}

/* What a time series can't have beside its own options. */
static bool check_timeseries_alone(struct parse *p)
{
    const struct fields *in = &p->in;
    const char *other = in->capped                     ? "capped"
                        : in->clustered.type != BT_EOO ? "clusteredIndex"
                        : in->size != CREATE_NOT_GIVEN ? "size"
                        : in->max != CREATE_NOT_GIVEN  ? "max"
                        : in->validator.data != NULL   ? "validator"
                        : in->level != NULL            ? "validationLevel"
                        : in->action != NULL           ? "validationAction"
                        : in->view_on != NULL          ? "viewOn"
                        : in->pipeline.data != NULL    ? "pipeline"
                        : in->id_index.data != NULL    ? "idIndex"
                        : in->images.data != NULL      ? "changeStreamPreAndPostImages"
                                                       : NULL;
    return other == NULL ||
           err_set(p->err, ERR_InvalidOptions, "%s: 'timeseries' is not allowed with '%s'", p->ns->full, other);
}

static bool check_timeseries(struct parse *p)
{
    static const struct field_spec specs[] = {
        {"timeField", FIELD_STR, offsetof(struct create_timeseries, time_field), true},
        {"metaField", FIELD_STR, offsetof(struct create_timeseries, meta_field), false},
        {"granularity", FIELD_STR, offsetof(struct create_timeseries, granularity), false},
        {"bucketMaxSpanSeconds", FIELD_INT, offsetof(struct create_timeseries, max_span_secs), false},
        {"bucketRoundingSeconds", FIELD_INT, offsetof(struct create_timeseries, rounding_secs), false},
    };
    p->ts = (struct create_timeseries){.max_span_secs = CREATE_NOT_GIVEN, .rounding_secs = CREATE_NOT_GIVEN};
    if (p->in.timeseries.data == NULL)
        return true;
    if (!fields_read(p->in.timeseries, "create.timeseries",
                     &(struct field_specs){specs, sizeof specs / sizeof specs[0], false}, &p->ts, p->err) ||
        !check_timeseries_alone(p) || !check_timeseries_names(p))
        return false;
    if (p->ts.max_span_secs != CREATE_NOT_GIVEN &&
        !in_range(p, "create.timeseries.bucketMaxSpanSeconds", p->ts.max_span_secs, 1, CREATE_BUCKET_MAX_SECS))
        return false;
    if (p->ts.rounding_secs != CREATE_NOT_GIVEN &&
        !in_range(p, "create.timeseries.bucketRoundingSeconds", p->ts.rounding_secs, 1, CREATE_BUCKET_MAX_SECS))
        return false;
    return create_timeseries_complete(&p->ts, p->err);
}

/* ---- views ---- */

static bool check_view(struct parse *p)
{
    const struct fields *in = &p->in;
    if (in->view_on == NULL)
        return in->pipeline.data == NULL || invalid(p, "'pipeline' requires 'viewOn' to also be specified");
    const char *other = in->capped                        ? "capped"
                        : in->size != CREATE_NOT_GIVEN    ? "size"
                        : in->max != CREATE_NOT_GIVEN     ? "max"
                        : in->clustered.type != BT_EOO    ? "clusteredIndex"
                        : in->validator.data != NULL      ? "validator"
                        : in->level != NULL               ? "validationLevel"
                        : in->action != NULL              ? "validationAction"
                        : in->id_index.data != NULL       ? "idIndex"
                        : in->storage_engine.data != NULL ? "storageEngine"
                        : in->index_defaults.data != NULL ? "indexOptionDefaults"
                        : in->images.data != NULL         ? "changeStreamPreAndPostImages"
                                                          : NULL;
    if (other != NULL)
        return err_set(p->err, ERR_InvalidOptions, "option not supported on a view: %s", other);
    if (in->view_on[0] == '\0')
        return err_set(p->err, ERR_BadValue, "'viewOn' cannot be empty");
    return ns_check_coll(p->ns->db, in->view_on, p->err) && views_check_pipeline(p->arena, in->pipeline, p->err);
}

/* ---- the rest ---- */

bool create_check_validator(struct arena *arena, const struct ns *ns, struct bdoc validator, struct err *err)
{
    struct filter *filter;
    if (validator.data == NULL || bdoc_is_empty(validator))
        return true;
    if (ns_is_system(ns))
        return err_set(err, ERR_InvalidOptions, "Document validators are not allowed on the collection %s", ns->full);
    return filter_compile(arena, validator, NULL, &filter, err);
}

bool create_read_images(struct bdoc images, bool *enabled, struct err *err)
{
    static const struct field_spec specs[] = {{"enabled", FIELD_FLAG, 0, true}};
    return images.data == NULL ||
           fields_read(images, "changeStreamPreAndPostImages", &(struct field_specs){specs, 1, false}, enabled, err);
}

static bool check_storage_engine(struct parse *p, struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(p->err, ERR_BadValue, "storageEngine.%s has to be an embedded document.", elem.key);
        if (strcmp(elem.key, "wiredTiger") != 0)
            return err_set(p->err, ERR_InvalidOptions, "%s is not a registered storage engine for this server",
                           elem.key);
    }
    return true;
}

static bool check_index_defaults(struct parse *p)
{
    static const struct field_spec specs[] = {{"storageEngine", FIELD_DOC, 0, false}};
    struct bdoc engine = {0};
    return p->in.index_defaults.data == NULL || (fields_read(p->in.index_defaults, "create.indexOptionDefaults",
                                                             &(struct field_specs){specs, 1, false}, &engine, p->err) &&
                                                 check_storage_engine(p, engine));
}

static bool check_id_index(struct parse *p)
{
    struct bval key;
    if (p->in.id_index.data == NULL)
        return true;
    if (bdoc_is_empty(p->in.id_index))
        return err_set(p->err, ERR_FailedToParse, "idIndex cannot be empty");
    return (bdoc_find(p->in.id_index, "key", &key) && key.type == BT_DOCUMENT && is_id_key(bval_doc(&key))) ||
           err_set(p->err, ERR_BadValue, "The field 'key' for an _id index must be {_id: 1}");
}

static bool check_others(struct parse *p)
{
    const struct fields *in = &p->in;
    bool enabled;
    if (in->encrypted.type != BT_EOO && in->encrypted.type != BT_NULL)
        return err_set(p->err, ERR_NotImplemented, "create doesn't support the option 'encryptedFields'");
    if (in->temp)
        return invalid(p, "the 'temp' field is an invalid option");
    if (!in->auto_index_id)
        return invalid(p, "autoIndexId:false is not allowed for collections in a replicated set");
    if (in->expire != CREATE_NOT_GIVEN && in->timeseries.data == NULL && p->clustered_name == NULL)
        return invalid(p, "'expireAfterSeconds' is only supported on time-series collections or when the "
                          "'clusteredIndex' option is specified");
    if (in->expire != CREATE_NOT_GIVEN && !create_check_expire(in->expire, p->err))
        return false;
    if (in->collation.data != NULL && bdoc_is_empty(in->collation))
        return err_set(p->err, COMMAND_ERR_FIELD_MISSING,
                       "BSON field 'collation.locale' is missing but a required field");
    return check_index_defaults(p) && check_storage_engine(p, in->storage_engine) && check_id_index(p) &&
           create_read_images(in->images, &enabled, p->err) && create_check_level("create", in->level, p->err) &&
           create_check_action("create", in->action, p->err) &&
           create_check_validator(p->arena, p->ns, in->validator, p->err) &&
           (in->collation.data == NULL || collation_open(in->collation, &p->collation, p->err));
}

/* ---- the stored form ---- */

static void append_number(bson_t *to, const char *name, int64_t number)
{
    if (number >= INT32_MIN && number <= INT32_MAX)
        bson_append_int32(to, name, -1, (int32_t)number);
    else
        bson_append_int64(to, name, -1, number);
}

static void append_doc(bson_t *to, const char *name, struct bdoc doc)
{
    struct bval val = bval_from_doc(doc);
    if (doc.data != NULL && !bdoc_is_empty(doc))
        bval_append(to, name, -1, &val);
}

static void append_str(bson_t *to, const char *name, const char *text)
{
    if (text != NULL)
        bson_append_utf8(to, name, -1, text, -1);
}

static void append_clustered(const struct parse *p, bson_t *to)
{
    bson_t spec;
    bson_t key;
    BSON_APPEND_DOCUMENT_BEGIN(to, "clusteredIndex", &spec);
    BSON_APPEND_INT32(&spec, "v", 2);
    BSON_APPEND_DOCUMENT_BEGIN(&spec, "key", &key);
    BSON_APPEND_INT32(&key, "_id", 1);
    bson_append_document_end(&spec, &key);
    BSON_APPEND_UTF8(&spec, "name", p->clustered_name);
    BSON_APPEND_BOOL(&spec, "unique", true);
    bson_append_document_end(to, &spec);
}

void create_timeseries_append(const struct create_timeseries *ts, bson_t *to)
{
    append_str(to, "timeField", ts->time_field);
    append_str(to, "metaField", ts->meta_field);
    append_str(to, "granularity", ts->granularity);
    append_number(to, "bucketMaxSpanSeconds", ts->max_span_secs);
    if (ts->granularity == NULL)
        append_number(to, "bucketRoundingSeconds", ts->rounding_secs);
}

static void append_kind(const struct parse *p, bson_t *to)
{
    const struct fields *in = &p->in;
    append_str(to, "viewOn", in->view_on);
    if (in->view_on != NULL) {
        struct bval pipeline = bval_from_doc(in->pipeline.data == NULL ? bdoc_empty() : in->pipeline);
        pipeline.type = BT_ARRAY;
        bval_append(to, "pipeline", -1, &pipeline);
    }
    if (p->collation != NULL) {
        bson_t collation = BSON_INITIALIZER;
        collation_normal_spec(p->collation, &collation);
        BSON_APPEND_DOCUMENT(to, "collation", &collation);
        bson_destroy(&collation);
    }
    if (in->expire != CREATE_NOT_GIVEN)
        BSON_APPEND_INT64(to, "expireAfterSeconds", in->expire);
    if (in->timeseries.data != NULL) {
        bson_t timeseries;
        BSON_APPEND_DOCUMENT_BEGIN(to, "timeseries", &timeseries);
        create_timeseries_append(&p->ts, &timeseries);
        bson_append_document_end(to, &timeseries);
    }
    if (p->clustered_name != NULL)
        append_clustered(p, to);
}

static void append_images(struct bdoc images, bson_t *to)
{
    bool enabled = false;
    struct err ignored;
    bson_t doc;
    if (!create_read_images(images, &enabled, &ignored) || !enabled)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(to, "changeStreamPreAndPostImages", &doc);
    BSON_APPEND_BOOL(&doc, "enabled", true);
    bson_append_document_end(to, &doc);
}

static void append_options(const struct parse *p, bson_t *to)
{
    const struct fields *in = &p->in;
    if (in->capped) {
        BSON_APPEND_BOOL(to, "capped", true);
        append_number(to, "size", create_round_size(in->size));
        if (in->max > 0)
            append_number(to, "max", in->max);
    }
    append_images(in->images, to);
    append_doc(to, "storageEngine", in->storage_engine);
    append_doc(to, "indexOptionDefaults", in->index_defaults);
    append_doc(to, "validator", in->validator);
    append_str(to, "validationLevel", in->level);
    append_str(to, "validationAction", in->action);
    append_kind(p, to);
}

static struct bdoc keep(struct arena *arena, const bson_t *doc)
{
    return (struct bdoc){.data = arena_copy(arena, bson_get_data(doc), doc->len), .len = doc->len};
}

/* A time series is looked at by time: its expiry walks this index. */
static struct bdoc time_index(const struct parse *p)
{
    bson_t list = BSON_INITIALIZER;
    bson_t spec;
    bson_t key;
    size_t name_len = strlen(p->ts.time_field) + sizeof "_1";
    char *name = arena_alloc(p->arena, name_len);
    snprintf(name, name_len, "%s_1", p->ts.time_field);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &spec);
    BSON_APPEND_INT32(&spec, "v", 2);
    BSON_APPEND_DOCUMENT_BEGIN(&spec, "key", &key);
    bson_append_int32(&key, p->ts.time_field, -1, 1);
    bson_append_document_end(&spec, &key);
    BSON_APPEND_UTF8(&spec, "name", name);
    bson_append_document_end(&list, &spec);
    struct bdoc kept = keep(p->arena, &list);
    bson_destroy(&list);
    return kept;
}

bool create_request_parse(struct arena *arena, const struct ns *ns, struct bdoc body, struct create_request *out,
                          struct err *err)
{
    struct parse p = {.arena = arena, .ns = ns, .err = err};
    *out = (struct create_request){0};
    if (!read_fields(&p, body) || !check_capped(&p) || !check_clustered(&p) || !check_timeseries(&p) ||
        !check_view(&p) || !check_others(&p))
        return false;
    bson_t options = BSON_INITIALIZER;
    append_options(&p, &options);
    out->options = keep(arena, &options);
    out->is_view = p.in.view_on != NULL;
    if (p.in.timeseries.data != NULL)
        out->indexes = time_index(&p);
    bson_destroy(&options);
    collation_unref(p.collation);
    return true;
}
