/* explain: the shards that the command would go to explain their parts of it. */
#include "aggregate/pipeline.h"
#include "base/clock.h"
#include "command/fields.h"
#include "command/namespace.h"
#include "query/sort.h"
#include "routerd/aggregate_open.h"
#include "routerd/command_env.h"
#include "routerd/commands.h"
#include "routerd/explain_command.h"
#include "routerd/explain_reply.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/sub_command.h"
#include "routerd/view.h"

#include <string.h>

enum {
    EXPLAIN_SINK = 51029, /* MongoDB's number */
    EXPLAIN_MAX_TIME_MS = INT32_MAX,
};

/* One explain under way. */
struct explaining {
    struct command_ctx *ctx;   /* the explain command */
    struct command_ctx *inner; /* the command that is explained */
    const char *verbosity;
    struct ns ns;
    struct bdoc filter; /* that decides where the command goes; data NULL: none */
    struct expr_env env;
    bool writes;
    bool aggregates;
    struct pipeline *pipeline;   /* aggregate */
    struct pipeline_split split; /* aggregate over several shards */
    struct target target;
    struct explain_targeting targeting;
};

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* ---- reading the command ---- */

static bool parse_verbosity(struct command_ctx *ctx, const char **out, struct err *err)
{
    static const char *const known[] = {"queryPlanner", "executionStats", "allPlansExecution", NULL};
    *out = "allPlansExecution";
    if (!field_get_str(ctx->body, "verbosity", out, err))
        return false;
    return is_one_of(*out, known) ||
           err_set(err, ERR_BadValue, "Enumeration value '%s' for field 'explain.verbosity' is not a valid value.",
                   *out);
}

/* {updates: [{q: ...}]}: exactly one statement. */
static bool write_filter(struct explaining *e, const char *list_name, struct err *err)
{
    struct bdoc list = {0};
    struct bval first;
    if (!field_require(e->inner->body, list_name, err) || !field_get_array(e->inner->body, list_name, &list, err))
        return false;
    if (bdoc_count(list) != 1 || !bdoc_find(list, "0", &first) || first.type != BT_DOCUMENT)
        return err_set(err, ERR_InvalidLength, "explained write batches must be of size 1");
    return field_get_doc(bval_doc(&first), "q", &e->filter, err);
}

/* What the command filters by. ERR_IllegalOperation for one that can't be explained. */
static bool find_filter(struct explaining *e, struct err *err)
{
    static const char *const by_query[] = {"count", "distinct", "findAndModify", "findandmodify", NULL};
    const char *name = e->inner->name;
    if (!e->inner->command)
        return err_set(err, ERR_CommandNotFound, "Explain failed due to unknown command: %s", name);
    e->writes = e->inner->command->flags & COMMAND_WRITE;
    e->aggregates = strcmp(name, "aggregate") == 0;
    if (strcmp(name, "find") == 0)
        return field_get_doc(e->inner->body, "filter", &e->filter, err);
    if (is_one_of(name, by_query))
        return field_get_doc(e->inner->body, "query", &e->filter, err);
    if (strcmp(name, "update") == 0)
        return write_filter(e, "updates", err);
    if (strcmp(name, "delete") == 0)
        return write_filter(e, "deletes", err);
    return e->aggregates || err_set(err, ERR_IllegalOperation, "Cannot explain cmd: %s", name);
}

/* ---- targeting ---- */

static const char *reason_of(struct explaining *e, const struct filter *filter, struct bdoc key)
{
    struct arena *arena = &e->ctx->arena;
    const char *text = "";
    struct biter iter;
    struct belem elem;
    if (e->target.why == TARGET_NOTHING)
        return "no document can match the filter";
    for (biter_init(&iter, key); biter_next(&iter, &elem);) {
        struct bval value;
        const char *how = filter_equality(filter, elem.key, &value) ? "equality on"
                          : filter_mentions(filter, elem.key)       ? "a predicate on"
                                                                    : "no predicate on";
        text = arena_printf(arena, "%s%s%s %s", text, *text ? ", " : "", how, elem.key);
    }
    if (e->target.why == TARGET_COLLATION)
        text = arena_printf(arena, "%s, but the collation isn't that of the shard key", text);
    return text;
}

/* Which shards, and why. */
static bool find_target(struct explaining *e, const struct route *route, struct err *err)
{
    const struct routing_table *table = route->routing->table;
    struct target all;
    struct key_range whole = routing_all_keys();
    struct filter *filter;
    struct target_query query = {e->filter, &e->env};
    struct bdoc conditions = e->filter.data ? e->filter : bdoc_empty();
    if (!target_filter(&e->ctx->arena, table, &query, &e->target, err) ||
        !filter_compile(&e->ctx->arena, conditions, &e->env, &filter, err))
        return false;
    target_ranges(&e->ctx->arena, table, &whole, 1, &all);
    bool narrows = e->target.why != TARGET_NO_PREDICATE && e->target.why != TARGET_COLLATION;
    e->targeting.key = shardkey_pattern(routing_table_key(table));
    e->targeting.kind = narrows ? "targeted" : "broadcast";
    e->targeting.reason = reason_of(e, filter, e->targeting.key);
    e->targeting.of = all.count;
    filter_release(filter);
    if (e->target.count == 0 && all.count > 0) {
        /* One of them has to explain that it finds nothing. */
        e->target = all;
        e->target.count = 1;
    }
    e->targeting.shards = e->target.count;
    return true;
}

/* ---- what goes to the shards ---- */

/* skip and limit are the router's when several shards answer. */
static bool append_counted(const struct explaining *e, bson_t *out, struct err *err)
{
    static const char *const own[] = {"skip", "limit", NULL};
    int64_t skip = 0;
    int64_t limit = 0;
    if (!field_get_i64_in(e->inner->body, "skip", 0, INT64_MAX, &skip, err) ||
        !field_get_i64(e->inner->body, "limit", &limit, err))
        return false;
    if (limit < 0)
        limit = limit == INT64_MIN ? INT64_MAX : -limit;
    request_append_body(out, e->inner->body, own);
    if (limit > 0 && limit <= INT64_MAX - skip)
        BSON_APPEND_INT64(out, "limit", limit + skip);
    return true;
}

static bool append_stages(struct explaining *e, bson_t *out, struct err *err)
{
    static const char *const own[] = {"pipeline", NULL};
    if (!pipeline_split(e->pipeline, &e->ctx->arena, &e->split, err))
        return false;
    struct bval stages = {.type = BT_ARRAY, .data = e->split.shard.data, .len = e->split.shard.len};
    request_append_body(out, e->inner->body, own);
    bval_append(out, "pipeline", -1, &stages);
    return true;
}

static bool append_inner(struct explaining *e, bson_t *out, struct err *err)
{
    static const char *const limited[] = {"find", "count", NULL};
    if (e->target.count > 1 && is_one_of(e->inner->name, limited))
        return append_counted(e, out, err);
    if (e->target.count > 1 && e->aggregates)
        return append_stages(e, out, err);
    request_append_body(out, e->inner->body, NULL);
    return true;
}

static bool make_body(struct explaining *e, bson_t *body, struct err *err)
{
    bson_t inner = BSON_INITIALIZER;
    bool ok = append_inner(e, &inner, err);
    if (ok) {
        BSON_APPEND_DOCUMENT(body, "explain", &inner);
        BSON_APPEND_UTF8(body, "verbosity", e->verbosity);
        BSON_APPEND_UTF8(body, "$db", e->ns.db);
    }
    bson_destroy(&inner);
    return ok;
}

/* ---- the answer ---- */

static const char *stage_name(const struct explaining *e, const struct scatter *scatter)
{
    static const char *const statements[] = {"update", "delete", NULL};
    struct bval sort;
    if (is_one_of(e->inner->name, statements))
        return "SHARD_WRITE";
    if (scatter->count == 1)
        return "SINGLE_SHARD";
    bool sorted = bdoc_find(e->inner->body, "sort", &sort) && sort.type == BT_DOCUMENT &&
                  !bdoc_is_empty(bval_doc(&sort)) && !sort_spec_natural(bval_doc(&sort));
    return sorted ? "SHARD_MERGE_SORT" : "SHARD_MERGE";
}

static void make_reply(const struct explaining *e, const struct scatter *scatter)
{
    struct explain_reply reply = {
        .ctx = e->ctx,
        .inner = e->inner,
        .stage = stage_name(e, scatter),
        .scatter = scatter,
        .targeting = e->targeting,
        .stats = strcmp(e->verbosity, "queryPlanner") != 0,
        .all_plans = strcmp(e->verbosity, "allPlansExecution") == 0,
    };
    if (e->aggregates && e->target.count > 1) {
        reply.shards_part = e->split.shard;
        reply.merger_part = e->split.merge;
        reply.merge_sort = e->split.merge_sort;
        reply.ns = e->ns.full;
    }
    if (e->aggregates && !e->targeting.key.data)
        explain_reply_whole(&reply);
    else if (e->aggregates)
        explain_reply_aggregate(&reply);
    else
        explain_reply_plan(&reply);
}

/* A database that doesn't exist has nothing to ask. */
static void reply_nothing(struct explaining *e)
{
    static const struct scatter none = {0};
    e->targeting = (struct explain_targeting){.kind = "unsharded", .reason = "the database does not exist"};
    struct explain_reply reply = {
        .ctx = e->ctx,
        .inner = e->inner,
        .stage = "EOF",
        .scatter = &none,
        .targeting = e->targeting,
        .stats = strcmp(e->verbosity, "queryPlanner") != 0,
    };
    explain_reply_plan(&reply);
}

static bool compile(struct explaining *e, const struct route *route, struct err *err)
{
    struct pipeline_lead lead;
    struct bdoc stages = {0};
    if (!command_env_init(&e->ctx->arena, e->inner->body, route->routing, &e->env, err))
        return false;
    if (!e->aggregates)
        return true;
    if (!field_require(e->inner->body, "pipeline", err) || !field_get_array(e->inner->body, "pipeline", &stages, err) ||
        !pipeline_compile(&e->ctx->arena, stages, &e->env, &e->pipeline, err))
        return false;
    struct bval spec;
    if (strcmp(e->verbosity, "queryPlanner") != 0 && pipeline_sink_stage(e->pipeline, &spec))
        return err_set(err, EXPLAIN_SINK, "explain of $out and $merge takes the verbosity queryPlanner only");
    pipeline_lead(e->pipeline, &e->ctx->arena, &lead);
    e->filter = lead.match;
    return true;
}

static bool explain_round(struct explaining *e, struct route *route, bool *again, struct err *err)
{
    struct scatter scatter = {0};
    struct scatter_command command = {.repeatable = true};
    *again = false;
    e->target = (struct target){0};
    if (!compile(e, route, err))
        return false;
    if (!route->routing->exists) {
        reply_nothing(e);
        return true;
    }
    bool sharded = route->routing->table;
    if (!sharded)
        e->targeting = (struct explain_targeting){
            .kind = "unsharded", .reason = "the collection is not sharded", .shards = 1, .of = 1};
    else if (!find_target(e, route, err))
        return false;
    bson_init(&command.body);
    bool ok = make_body(e, &command.body, err);
    if (ok) {
        enum scatter_outcome outcome = sharded ? scatter_targets(route, &e->target, &command, &scatter, err)
                                               : scatter_primary(route, &command, &scatter, err);
        *again = outcome == SCATTER_STALE;
        ok = outcome == SCATTER_DONE;
    }
    if (ok)
        make_reply(e, &scatter);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return ok;
}

static bool explain_routed(struct explaining *e, struct err *err)
{
    struct route route;
    bool again = false;
    bool ok;
    route_init(&route, e->ctx, e->ns.full);
    do {
        ok = route_next(&route, err) && explain_round(e, &route, &again, err);
        pipeline_release(e->pipeline);
        e->pipeline = NULL;
    } while (again);
    route_deinit(&route);
    return ok;
}

/* The command on a view is an aggregate on the collection below. */
static bool explain_view(struct explaining *e, const struct err *refused, struct err *err)
{
    struct view view;
    struct explaining below = {.ctx = e->ctx, .verbosity = e->verbosity, .aggregates = true};
    bson_t body = BSON_INITIALIZER;
    bool ok = view_resolve(e->ctx, &e->ns, refused, &view, err) &&
              view_aggregate_body(&e->ctx->arena, &view, e->inner->body, &body, err) &&
              sub_command_new(e->ctx, view.on.db, bdoc_of(&body), &below.inner, err) &&
              ns_make(&below.ns, view.on.db, view.on.coll, err) && explain_routed(&below, err);
    sub_command_free(below.inner);
    bson_destroy(&body);
    return ok;
}

/* Collections of the config service are explained by it. */
static bool explain_config(struct explaining *e, struct err *err)
{
    struct remote_request request;
    bool ok = forward_config(e->ctx, true, &request, err);
    if (ok)
        (void)forward_reply(e->ctx, &request);
    remote_request_deinit(&request);
    return ok;
}

/* Pipelines without a collection have no plan. */
static bool explain_sources(struct explaining *e, struct err *err)
{
    struct bdoc stages = {0};
    struct pipeline *pipeline;
    if (!field_require(e->inner->body, "pipeline", err) || !field_get_array(e->inner->body, "pipeline", &stages, err) ||
        !pipeline_compile(&e->ctx->arena, stages, &e->env, &pipeline, err))
        return false;
    pipeline_release(pipeline);
    struct bval list = {.type = BT_ARRAY, .data = stages.data, .len = stages.len};
    bval_append(&e->ctx->reply, "stages", -1, &list);
    static const struct scatter none = {0};
    struct explain_reply reply = {
        .ctx = e->ctx,
        .inner = e->inner,
        .scatter = &none,
        .targeting = {.kind = "unsharded", .reason = "the pipeline reads no collection"},
    };
    explain_reply_end(&reply);
    return true;
}

static bool explain_inner(struct explaining *e, struct err *err)
{
    if (!find_filter(e, err))
        return false;
    bool named = e->aggregates ? command_ns_or_db(e->inner, &e->ns, err) : command_ns(e->inner, &e->ns, err);
    if (!named)
        return false;
    if (!e->ns.coll[0])
        return explain_sources(e, err);
    if (forward_is_config_db(e->ns.db))
        return explain_config(e, err);
    if (explain_routed(e, err))
        return true;
    if (e->writes || !view_is_refusal(err))
        return false;
    struct err refused = *err;
    return explain_view(e, &refused, err);
}

enum command_status explain_command(struct command_ctx *ctx, struct bdoc command, const char *verbosity,
                                    struct err *err)
{
    struct explaining e = {.ctx = ctx, .verbosity = verbosity};
    int64_t max_time_ms = 0;
    if (!field_get_i64_in(command, "maxTimeMS", 0, EXPLAIN_MAX_TIME_MS, &max_time_ms, err))
        return COMMAND_ERROR;
    if (max_time_ms > 0 && deadline_after_ms(max_time_ms) < ctx->deadline_ms) {
        ctx->max_time_ms = max_time_ms;
        command_ctx_set_deadline(ctx, deadline_after_ms(max_time_ms));
    }
    if (!sub_command_new(ctx, ctx->db, command, &e.inner, err))
        return COMMAND_ERROR;
    bool ok = explain_inner(&e, err);
    sub_command_free(e.inner);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_explain(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"verbosity", NULL};
    const char *verbosity;
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    if (ctx->value.type != BT_DOCUMENT) {
        err_set(err, ERR_TypeMismatch, "BSON field 'explain.explain' is the wrong type '%s', expected type 'object'",
                bval_type_name(ctx->value.type));
        return COMMAND_ERROR;
    }
    struct bdoc command = bval_doc(&ctx->value);
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !parse_verbosity(ctx, &verbosity, err))
        return COMMAND_ERROR;
    if (bdoc_is_empty(command)) {
        err_set(err, ERR_FailedToParse, "explain command requires a nested object");
        return COMMAND_ERROR;
    }
    struct bval db;
    if (bdoc_find(command, "$db", &db) && !bval_is_str(&db, ctx->db)) {
        err_set(err, ERR_InvalidNamespace, "Mismatched $db in explain command. Expected %s", ctx->db);
        return COMMAND_ERROR;
    }
    return explain_command(ctx, command, verbosity, err);
}

static const struct command commands[] = {
    {"explain", NULL, 0, run_explain},
};

const struct command_family commands_explain = COMMAND_FAMILY(commands);
