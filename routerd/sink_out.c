/* $out: a temporary collection with the target's options and indexes is filled, then takes the target's name. */
#include "base/random.h"
#include "command/fields.h"
#include "routerd/ddl.h"
#include "routerd/request.h"
#include "routerd/sink.h"
#include "routerd/sub_command.h"

#include <stdio.h>
#include <string.h>

enum {
    OUT_CAPPED = 17152,
    OUT_SPECIAL_COLLECTION = 17385,
    OUT_WRONG_TYPE = 16990,
    OUT_SHARDED = 28769,
    OUT_INTERNAL_DATABASE = 31321,
};

/* What the target is before. */
struct out {
    struct ns temp;
    struct ddl_collection target;
};

static bool out_parse(struct sink *sink, struct err *err)
{
    static const char *const known[] = {"db", "coll", "timeseries", NULL};
    const struct bval *spec = &sink->spec;
    if (spec->type != BT_STRING && spec->type != BT_DOCUMENT)
        return err_set(err, OUT_WRONG_TYPE, "$out only supports a string or object argument, but found %s",
                       bval_type_name(spec->type));
    if (spec->type == BT_DOCUMENT &&
        (!fields_check_known(bval_doc(spec), "$out", known, err) || !field_require(bval_doc(spec), "db", err)))
        return false;
    if (spec->type == BT_DOCUMENT && bdoc_has(bval_doc(spec), "timeseries"))
        return err_set(err, ERR_NotImplemented, "$out into a time series collection is not supported");
    if (!sink_target(sink, spec, err))
        return false;
    if (ns_is_reserved_db(sink->to.db))
        return err_set(err, OUT_INTERNAL_DATABASE, "Can't $out to internal database: %s", sink->to.db);
    if (strncmp(sink->to.coll, "system.", strlen("system.")) == 0)
        return err_set(err, OUT_SPECIAL_COLLECTION, "Can't $out to special collection: %s", sink->to.coll);
    return true;
}

/* Reads what the target is now. */
static bool look(struct sink *sink, struct out *out, struct err *err)
{
    struct route route;
    struct bval value;
    route_init(&route, sink->ctx, sink->to.full);
    bool ok = route_next(&route, err);
    if (ok && route.routing->table)
        ok = err_set(err, OUT_SHARDED, "%s is sharded so it can't be used for $out", sink->to.full);
    if (ok && route.routing->exists)
        ok = ddl_describe_options(&route, &sink->to, &out->target, err);
    if (ok && out->target.exists && bdoc_has(out->target.options, "viewOn"))
        ok = err_set(err, ERR_CommandNotSupportedOnView, "%s is a view and can't be used for $out", sink->to.full);
    if (ok && out->target.exists && bdoc_find(out->target.options, "capped", &value) && bval_truthy(&value))
        ok = err_set(err, OUT_CAPPED, "namespace '%s' is capped so it can't be used for $out", sink->to.full);
    if (ok && out->target.exists)
        ok = ddl_describe(&route, &sink->to, &out->target, err);
    route_deinit(&route);
    return ok;
}

static bool create_temp(struct sink *sink, const struct out *out, struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    BSON_APPEND_UTF8(&body, "create", out->temp.coll);
    if (out->target.options.data)
        for (biter_init(&iter, out->target.options); biter_next(&iter, &elem);)
            bval_append(&body, elem.key, (int)elem.key_len, &elem.val);
    bool ok = sub_command_do(sink->ctx, out->temp.db, bdoc_of(&body), err);
    bson_destroy(&body);
    return ok;
}

/* The target's indexes but the one on _id. */
static bool create_indexes(struct sink *sink, const struct out *out, struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    bson_t indexes;
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    BSON_APPEND_UTF8(&body, "createIndexes", out->temp.coll);
    BSON_APPEND_ARRAY_BEGIN(&body, "indexes", &indexes);
    if (out->target.indexes.data)
        for (biter_init(&iter, out->target.indexes); biter_next(&iter, &elem);) {
            struct bval name;
            if (elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "name", &name) &&
                !bval_is_str(&name, "_id_"))
                request_append_at(&indexes, count++, &elem.val);
        }
    bson_append_array_end(&body, &indexes);
    bool ok = count == 0 || sub_command_do(sink->ctx, out->temp.db, bdoc_of(&body), err);
    bson_destroy(&body);
    return ok;
}

static bool flush(struct sink *sink, struct err *err)
{
    const struct out *out = sink->state;
    struct sink_batch batch = {&out->temp, WRITE_INSERT, &sink->docs, sink->count, 0};
    return sink_write(sink, &batch, err);
}

static bool take_name(struct sink *sink, const struct out *out, struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "renameCollection", out->temp.full);
    BSON_APPEND_UTF8(&body, "to", sink->to.full);
    BSON_APPEND_BOOL(&body, "dropTarget", true);
    bool ok = sub_command_do(sink->ctx, "admin", bdoc_of(&body), err);
    bson_destroy(&body);
    return ok;
}

static void drop_temp(struct sink *sink, const struct out *out)
{
    struct err ignored;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "drop", out->temp.coll);
    (void)!sub_command_do(sink->ctx, out->temp.db, bdoc_of(&body), &ignored);
    bson_destroy(&body);
}

bool sink_out_run(struct sink *sink, struct err *err)
{
    struct out out = {0};
    char name[64];
    if (!out_parse(sink, err) || !look(sink, &out, err))
        return false;
    snprintf(name, sizeof name, "tmp.agg_out.%016llx%016llx", (unsigned long long)random_u64(),
             (unsigned long long)random_u64());
    if (!ns_make(&out.temp, sink->to.db, name, err))
        return false;
    sink->state = &out;
    bool ok = create_temp(sink, &out, err) && create_indexes(sink, &out, err) && sink_feed(sink, flush, err) &&
              take_name(sink, &out, err);
    sink->state = NULL;
    if (!ok)
        drop_temp(sink, &out);
    return ok;
}
