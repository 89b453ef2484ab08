#include "document/coll_mod.h"

#include "command/field_spec.h"
#include "command/fields.h"
#include "document/coll_mod_index.h"
#include "document/views.h"

#include <stddef.h>
#include <string.h>

/* The command's fields as they came. */
struct fields {
    struct bdoc index;
    struct bdoc validator;
    const char *level;
    const char *action;
    const char *view_on;
    struct bdoc pipeline;
    struct bdoc images;
    struct bval expire;
    struct bdoc timeseries;
    int64_t capped_size;
    int64_t capped_max;
    bool dry_run;
};

static bool read_fields(struct bdoc body, struct fields *out, struct err *err)
{
    static const struct field_spec specs[] = {
        {"index", FIELD_DOC, offsetof(struct fields, index), false},
        {"validator", FIELD_DOC, offsetof(struct fields, validator), false},
        {"validationLevel", FIELD_STR, offsetof(struct fields, level), false},
        {"validationAction", FIELD_STR, offsetof(struct fields, action), false},
        {"viewOn", FIELD_STR, offsetof(struct fields, view_on), false},
        {"pipeline", FIELD_DOC_ARRAY, offsetof(struct fields, pipeline), false},
        {"changeStreamPreAndPostImages", FIELD_DOC, offsetof(struct fields, images), false},
        {"expireAfterSeconds", FIELD_ANY, offsetof(struct fields, expire), false},
        {"timeseries", FIELD_DOC, offsetof(struct fields, timeseries), false},
        {"cappedSize", FIELD_INT, offsetof(struct fields, capped_size), false},
        {"cappedMax", FIELD_INT, offsetof(struct fields, capped_max), false},
        {"dryRun", FIELD_FLAG, offsetof(struct fields, dry_run), false},
    };
    *out = (struct fields){.expire = BVAL_MISSING, .capped_size = CREATE_NOT_GIVEN, .capped_max = CREATE_NOT_GIVEN};
    return fields_read(body, "collMod", &(struct field_specs){specs, sizeof specs / sizeof specs[0], true}, out, err);
}

/* ---- reading ---- */

static bool check_expire(const struct bval *expire, struct err *err)
{
    int64_t secs;
    if (expire->type == BT_EOO || bval_is_str(expire, "off"))
        return true;
    if (expire->type == BT_STRING)
        return err_set(err, ERR_InvalidOptions, "Cannot change expireAfterSeconds to a string other than 'off'");
    if (!bval_is_number(expire))
        return err_set(err, ERR_TypeMismatch,
                       "BSON field 'collMod.expireAfterSeconds' is the wrong type '%s', expected types '[string, long, "
                       "int, decimal, double]'",
                       bval_type_name(expire->type));
    return bval_to_i64(expire, &secs) ? create_check_expire(secs, err)
                                      : err_set(err, ERR_InvalidOptions, "expireAfterSeconds is not a whole number");
}

static bool read_timeseries(struct bdoc doc, struct create_timeseries *out, struct err *err)
{
    static const struct field_spec specs[] = {
        {"granularity", FIELD_STR, offsetof(struct create_timeseries, granularity), false},
        {"bucketMaxSpanSeconds", FIELD_INT, offsetof(struct create_timeseries, max_span_secs), false},
        {"bucketRoundingSeconds", FIELD_INT, offsetof(struct create_timeseries, rounding_secs), false},
    };
    *out = (struct create_timeseries){.max_span_secs = CREATE_NOT_GIVEN, .rounding_secs = CREATE_NOT_GIVEN};
    return fields_read(doc, "collMod.timeseries", &(struct field_specs){specs, sizeof specs / sizeof specs[0], false},
                       out, err) &&
           create_timeseries_complete(out, err);
}

static bool check_number(const char *name, int64_t number, int64_t min, int64_t max, struct err *err)
{
    return number == CREATE_NOT_GIVEN || (number >= min && number <= max) ||
           err_set(err, COMMAND_ERR_OUT_OF_RANGE, "BSON field 'collMod.%s' value must be >= %lld and <= %lld", name,
                   (long long)min, (long long)max);
}

static bool check_fields(struct arena *arena, const struct ns *ns, const struct fields *in, struct err *err)
{
    struct create_timeseries ignored;
    bool enabled;
    if (in->view_on != NULL && (in->view_on[0] == '\0' || !ns_check_coll(ns->db, in->view_on, err)))
        return in->view_on[0] != '\0' || err_set(err, ERR_BadValue, "'viewOn' cannot be empty");
    return create_check_validator(arena, ns, in->validator, err) && create_check_level("collMod", in->level, err) &&
           create_check_action("collMod", in->action, err) && views_check_pipeline(arena, in->pipeline, err) &&
           create_read_images(in->images, &enabled, err) && check_expire(&in->expire, err) &&
           check_number("cappedSize", in->capped_size, 1, CREATE_CAPPED_MAX_BYTES, err) &&
           check_number("cappedMax", in->capped_max, INT64_MIN + 1, CREATE_CAPPED_MAX_DOCS, err) &&
           (in->timeseries.data == NULL || read_timeseries(in->timeseries, &ignored, err));
}

static void append_doc(bson_t *to, const char *name, struct bdoc doc, uint8_t type)
{
    struct bval val = bval_from_doc(doc);
    val.type = type;
    if (doc.data != NULL)
        bval_append(to, name, -1, &val);
}

static void append_changes(const struct fields *in, bson_t *to)
{
    append_doc(to, "index", in->index, BT_DOCUMENT);
    append_doc(to, "validator", in->validator, BT_DOCUMENT);
    if (in->level != NULL)
        BSON_APPEND_UTF8(to, "validationLevel", in->level);
    if (in->action != NULL)
        BSON_APPEND_UTF8(to, "validationAction", in->action);
    if (in->view_on != NULL)
        BSON_APPEND_UTF8(to, "viewOn", in->view_on);
    append_doc(to, "pipeline", in->pipeline, BT_ARRAY);
    append_doc(to, "changeStreamPreAndPostImages", in->images, BT_DOCUMENT);
    if (in->expire.type != BT_EOO)
        bval_append(to, "expireAfterSeconds", -1, &in->expire);
    append_doc(to, "timeseries", in->timeseries, BT_DOCUMENT);
    if (in->capped_size != CREATE_NOT_GIVEN)
        BSON_APPEND_INT64(to, "cappedSize", in->capped_size);
    if (in->capped_max != CREATE_NOT_GIVEN)
        BSON_APPEND_INT64(to, "cappedMax", in->capped_max);
    if (in->dry_run)
        BSON_APPEND_BOOL(to, "dryRun", true);
}

bool coll_mod_parse(struct arena *arena, const struct ns *ns, struct bdoc body, struct bdoc *changes, struct err *err)
{
    struct fields in;
    struct bval unique;
    if (!read_fields(body, &in, err) || !check_fields(arena, ns, &in, err))
        return false;
    bool converts = in.index.data != NULL && bdoc_find(in.index, "unique", &unique) && bval_truthy(&unique);
    if (in.dry_run && !converts)
        return err_set(err, ERR_InvalidOptions, "dry run mode requires index.unique: true");
    bson_t doc = BSON_INITIALIZER;
    append_changes(&in, &doc);
    *changes = (struct bdoc){.data = arena_copy(arena, bson_get_data(&doc), doc.len), .len = doc.len};
    bson_destroy(&doc);
    return true;
}

/* ---- against the collection ---- */

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

/* Every change has to be one that this kind of collection has. */
static bool check_kind(const struct collection *coll, struct bdoc changes, struct err *err)
{
    static const char *const of_view[] = {"viewOn", "pipeline", NULL};
    static const char *const not_timeseries[] = {"validator", "validationLevel", "validationAction",
                                                 "changeStreamPreAndPostImages", NULL};
    const struct collection_traits *traits = collection_traits(coll);
    bool is_view = traits->kind == COLLECTION_VIEW;
    bool is_timeseries = traits->kind == COLLECTION_TIMESERIES;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, changes);
    while (biter_next(&iter, &elem)) {
        bool views_own = is_one_of(elem.key, of_view);
        if (is_view != views_own)
            return is_view ? err_set(err, ERR_InvalidOptions, "option not supported on a view: %s", elem.key)
                           : err_set(err, ERR_InvalidOptions, "'%s' option only supported on a view", elem.key);
        if (is_timeseries && is_one_of(elem.key, not_timeseries))
            return err_set(err, ERR_InvalidOptions, "option not supported on a time-series collection: %s", elem.key);
        if (strcmp(elem.key, "timeseries") == 0 && !is_timeseries)
            return err_set(err, ERR_InvalidOptions, "option only supported on a time-series collection: timeseries");
        if (strncmp(elem.key, "capped", 6) == 0 && !traits->capped)
            return err_set(err, ERR_InvalidOptions, "option only supported on a capped collection: %s", elem.key);
        if (strcmp(elem.key, "expireAfterSeconds") == 0 && !is_timeseries && !traits->clustered)
            return err_set(err, ERR_InvalidOptions,
                           "'expireAfterSeconds' option is only supported on collections clustered by _id");
    }
    return true;
}

static struct bdoc find_doc(struct bdoc doc, const char *name)
{
    struct bval val;
    return bdoc_find(doc, name, &val) && val.type == BT_DOCUMENT ? bval_doc(&val) : (struct bdoc){0};
}

/* Buckets may only become longer. */
static bool check_timeseries(const struct collection *coll, struct bdoc change, struct err *err)
{
    struct create_timeseries ts;
    struct bval val;
    int64_t before;
    if (change.data == NULL)
        return true;
    if (!read_timeseries(change, &ts, err))
        return false;
    bool known =
        bdoc_find(find_doc(coll->options, "timeseries"), "bucketMaxSpanSeconds", &val) && bval_to_i64(&val, &before);
    return !known || ts.max_span_secs >= before ||
           err_set(err, ERR_InvalidOptions, "Invalid transition for timeseries.granularity: buckets can't get shorter");
}

bool coll_mod_check(const struct collection *coll, struct bdoc changes, struct err *err)
{
    struct bdoc index = find_doc(changes, "index");
    return check_kind(coll, changes, err) && check_timeseries(coll, find_doc(changes, "timeseries"), err) &&
           (index.data == NULL || coll_mod_index_check(coll, index, err));
}

/* ---- the new options ---- */

static void append_number(bson_t *to, const char *name, int64_t number)
{
    if (number >= INT32_MIN && number <= INT32_MAX)
        bson_append_int32(to, name, -1, (int32_t)number);
    else
        bson_append_int64(to, name, -1, number);
}

static bool append_timeseries(struct bdoc before, struct bdoc change, bson_t *to, struct err *err)
{
    struct create_timeseries ts;
    bson_t doc;
    uint32_t len;
    struct bval val;
    if (!read_timeseries(change, &ts, err))
        return false;
    if (bdoc_find(before, "timeField", &val) && val.type == BT_STRING)
        ts.time_field = bval_str(&val, &len);
    if (bdoc_find(before, "metaField", &val) && val.type == BT_STRING)
        ts.meta_field = bval_str(&val, &len);
    BSON_APPEND_DOCUMENT_BEGIN(to, "timeseries", &doc);
    create_timeseries_append(&ts, &doc);
    bson_append_document_end(to, &doc);
    return true;
}

/* One option's new value; nothing is appended for an option that goes away. */
static bool append_changed(const char *name, const struct bval *before, const struct bval *change, bson_t *to,
                           struct err *err)
{
    int64_t number;
    bool enabled;
    if (strcmp(name, "size") == 0 && bval_to_i64(change, &number)) {
        append_number(to, name, create_round_size(number));
    } else if (strcmp(name, "max") == 0 && bval_to_i64(change, &number)) {
        if (number > 0)
            append_number(to, name, number);
    } else if (strcmp(name, "validator") == 0) {
        if (!bdoc_is_empty(bval_doc(change)))
            bval_append(to, name, -1, change);
    } else if (strcmp(name, "changeStreamPreAndPostImages") == 0) {
        if (!create_read_images(bval_doc(change), &enabled, err))
            return false;
        if (enabled)
            bval_append(to, name, -1, change);
    } else if (strcmp(name, "expireAfterSeconds") == 0) {
        if (bval_to_i64(change, &number))
            BSON_APPEND_INT64(to, name, number);
    } else if (strcmp(name, "timeseries") == 0) {
        return append_timeseries(bval_doc(before), bval_doc(change), to, err);
    } else {
        bval_append(to, name, -1, change);
    }
    return true;
}

bool coll_mod_options(const struct collection *coll, struct bdoc changes, bson_t *out, bool *same, struct err *err)
{
    /* The order in which they are listed, and the change that each has. */
    static const struct {
        const char *name;
        const char *change;
    } options[] = {{"capped", NULL},
                   {"size", "cappedSize"},
                   {"max", "cappedMax"},
                   {"changeStreamPreAndPostImages", "changeStreamPreAndPostImages"},
                   {"storageEngine", NULL},
                   {"indexOptionDefaults", NULL},
                   {"validator", "validator"},
                   {"validationLevel", "validationLevel"},
                   {"validationAction", "validationAction"},
                   {"viewOn", "viewOn"},
                   {"pipeline", "pipeline"},
                   {"collation", NULL},
                   {"expireAfterSeconds", "expireAfterSeconds"},
                   {"timeseries", "timeseries"},
                   {"clusteredIndex", NULL}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct bval before;
        struct bval change = BVAL_MISSING;
        bdoc_find(coll->options, options[i].name, &before);
        bool changed = options[i].change != NULL && bdoc_find(changes, options[i].change, &change);
        if (changed && !append_changed(options[i].name, &before, &change, out, err))
            return false;
        if (!changed && before.type != BT_EOO)
            bval_append(out, options[i].name, -1, &before);
    }
    *same = bdoc_same(bdoc_of(out), coll->options);
    return true;
}
