#include "routerd/other_collections.h"

#include "aggregate/pipeline.h"
#include "base/clock.h"
#include "command/fields.h"

#include <string.h>

/* Whether such a stage stands anywhere among the stages, those inside $facet included. */
static bool names_others(struct bdoc doc, int depth)
{
    enum { DEPTH_MAX = 8 };
    static const char *const names[] = {"$lookup", "$graphLookup", "$unionWith", "$out", "$merge"};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (depth < DEPTH_MAX && biter_next(&iter, &elem)) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strcmp(elem.key, names[i]) == 0)
                return true;
        bool nested = elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY;
        if (nested && names_others(bval_doc(&elem.val), depth + 1))
            return true;
    }
    return false;
}

/* What a walk over the other collections finds. */
struct check {
    struct command_ctx *ctx;
    const char *db;
    bool ok;
    struct err *err;
};

static void check_collection(void *arg, const char *coll)
{
    struct check *check = arg;
    struct ns ns;
    struct route route;
    if (!check->ok)
        return;
    check->ok = ns_make(&ns, check->db, coll, check->err);
    if (!check->ok)
        return;
    route_init(&route, check->ctx, ns.full);
    check->ok = route_next(&route, check->err);
    if (check->ok && route.routing->table)
        check->ok =
            err_set(check->err, ERR_NotImplemented,
                    "%s is sharded: a stage of another collection's pipeline can't use it in this version", ns.full);
    route_deinit(&route);
}

/* {$out: "coll"}, {$out: {db, coll}}, {$merge: "coll"}, {$merge: {into: "coll" | {db, coll}}} */
static void check_sink(struct check *check, const struct bval *spec)
{
    struct bval into = *spec;
    const char *db = NULL;
    const char *coll = NULL;
    uint32_t len;
    if (into.type == BT_DOCUMENT && bdoc_has(bval_doc(&into), "into"))
        (void)bdoc_find(bval_doc(spec), "into", &into);
    if (into.type == BT_STRING) {
        check_collection(check, bval_str(&into, &len));
        return;
    }
    if (into.type != BT_DOCUMENT)
        return; /* the shard says what is wrong with it */
    check->ok = field_get_str(bval_doc(&into), "db", &db, check->err) &&
                field_get_str(bval_doc(&into), "coll", &coll, check->err);
    if (check->ok && db && strcmp(db, check->db) != 0)
        check->ok =
            err_set(check->err, ERR_NotImplemented, "a pipeline can't write to another database in this version");
    if (check->ok && coll)
        check_collection(check, coll);
}

bool other_collections_allowed(struct route *route, const struct ns *ns, struct bdoc stages, struct err *err)
{
    struct pipeline *pipeline;
    struct bval sink;
    struct check check = {.ctx = route->ctx, .db = ns->db, .ok = true, .err = err};
    struct expr_env env = {.now_ms = clock_wall_ms()};
    if (!stages.data || !names_others(stages, 0))
        return true;
    if (!route_next(route, err) || !field_get_doc(route->ctx->body, "let", &env.let, err))
        return false;
    if (route->routing->table)
        return err_set(err, ERR_NotImplemented,
                       "stages that use other collections are not supported on a sharded collection in this version");
    if (!pipeline_compile(&route->ctx->arena, stages, &env, &pipeline, err))
        return false;
    pipeline_foreign_names(pipeline, check_collection, &check);
    if (check.ok && pipeline_sink_stage(pipeline, &sink))
        check_sink(&check, &sink);
    pipeline_release(pipeline);
    return check.ok;
}
