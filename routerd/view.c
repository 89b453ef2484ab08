#include "routerd/view.h"

#include "command/fields.h"
#include "routerd/command_env.h"
#include "routerd/ddl.h"
#include "routerd/request.h"

#include <string.h>

bool view_is_refusal(const struct err *refused)
{
    return refused->code == ERR_CommandOnShardedViewNotSupportedOnMongod;
}

static struct bdoc keep(struct arena *arena, struct bdoc doc)
{
    return doc.data ? (struct bdoc){arena_copy(arena, doc.data, doc.len), doc.len} : doc;
}

/* {ns, pipeline, collation?} */
static bool read_resolved(struct arena *arena, struct bdoc resolved, struct view *out, struct err *err)
{
    const char *on = NULL;
    struct bdoc pipeline = {0};
    struct bdoc collation = {0};
    if (!field_get_str(resolved, "ns", &on, err) || !field_get_array(resolved, "pipeline", &pipeline, err) ||
        !field_get_doc(resolved, "collation", &collation, err))
        return false;
    if (!on || !pipeline.data || !ns_parse(&out->on, on, err))
        return err_set(err, ERR_FailedToParse, "a shard's description of the view %s can't be read", out->view.full);
    out->pipeline = keep(arena, pipeline);
    out->collation = keep(arena, collation);
    return true;
}

static bool ask_primary(struct command_ctx *ctx, struct view *out, struct err *err)
{
    struct route route;
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    bool ok = false;
    route_init(&route, ctx, out->view.full);
    if (route_next(&route, err)) {
        ddl_internal_body(&body, "_shardsvrResolveView", out->view.full);
        ok = ddl_on_shard(ctx, route.routing->db.primary, &body, &request, err) &&
             read_resolved(&ctx->arena, request.reply, out, err);
        remote_request_deinit(&request);
    }
    route_deinit(&route);
    bson_destroy(&body);
    return ok;
}

bool view_resolve(struct command_ctx *ctx, const struct ns *ns, const struct err *refused, struct view *out,
                  struct err *err)
{
    struct bdoc details = {refused->details, refused->details_len};
    struct bdoc resolved = {0};
    *out = (struct view){0};
    if (!ns_make(&out->view, ns->db, ns->coll, err))
        return false;
    if (details.len > 0 && !field_get_doc(details, "resolvedView", &resolved, err))
        return false;
    return resolved.data ? read_resolved(&ctx->arena, resolved, out, err) : ask_primary(ctx, out, err);
}

/* A pipeline under construction. */
struct stages {
    bson_t array;
    uint32_t count;
};

static void add_stage(struct stages *stages, const char *name, const struct bval *operand)
{
    bson_t stage = BSON_INITIALIZER;
    bval_append(&stage, name, -1, operand);
    struct bval value = bval_from_doc(bdoc_of(&stage));
    request_append_at(&stages->array, stages->count++, &value);
    bson_destroy(&stage);
}

static void add_doc_stage(struct stages *stages, const char *name, struct bdoc operand)
{
    struct bval value = bval_from_doc(operand);
    if (operand.data && !bdoc_is_empty(operand))
        add_stage(stages, name, &value);
}

static void add_number_stage(struct stages *stages, const char *name, int64_t number)
{
    struct bval value = {.type = BT_INT64, .len = sizeof number, .data = (const uint8_t *)&number};
    if (number > 0)
        add_stage(stages, name, &value);
}

static void add_array(struct stages *stages, struct bdoc array)
{
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, array); biter_next(&iter, &elem);)
        request_append_at(&stages->array, stages->count++, &elem.val);
}

/* What find can do and an aggregate can't. */
static bool check_find(struct bdoc body, struct bdoc sort, struct err *err)
{
    static const char *const flags[] = {"returnKey", "showRecordId", "tailable", "awaitData", "allowPartialResults"};
    static const char *const docs[] = {"min", "max"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool set = false;
        if (!field_get_bool(body, flags[i], &set, err))
            return false;
        if (set)
            return err_set(err, ERR_InvalidPipelineOperator, "Option %s not supported in aggregation.", flags[i]);
    }
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++) {
        struct bdoc doc = bdoc_empty();
        if (!field_get_doc(body, docs[i], &doc, err))
            return false;
        if (!bdoc_is_empty(doc))
            return err_set(err, ERR_InvalidPipelineOperator, "Option %s not supported in aggregation.", docs[i]);
    }
    return !bdoc_has(sort, "$natural") ||
           err_set(err, ERR_InvalidPipelineOperator, "Sort option $natural not supported in aggregation");
}

static bool find_stages(struct stages *stages, struct bdoc body, struct err *err)
{
    struct bdoc filter = {0};
    struct bdoc sort = bdoc_empty();
    struct bdoc projection = {0};
    int64_t skip = 0;
    int64_t limit = 0;
    if (!field_get_doc(body, "filter", &filter, err) || !field_get_doc(body, "sort", &sort, err) ||
        !field_get_doc(body, "projection", &projection, err) ||
        !field_get_i64_in(body, "skip", 0, INT64_MAX, &skip, err) ||
        !field_get_i64_in(body, "limit", 0, INT64_MAX, &limit, err) || !check_find(body, sort, err))
        return false;
    add_doc_stage(stages, "$match", filter);
    add_doc_stage(stages, "$sort", sort);
    add_number_stage(stages, "$skip", skip);
    add_number_stage(stages, "$limit", limit);
    add_doc_stage(stages, "$project", projection);
    return true;
}

static bool count_stages(struct stages *stages, struct bdoc body, struct err *err)
{
    struct bdoc query = {0};
    int64_t skip = 0;
    int64_t limit = 0;
    if (!field_get_doc(body, "query", &query, err) || !field_get_i64_in(body, "skip", 0, INT64_MAX, &skip, err) ||
        !field_get_i64(body, "limit", &limit, err))
        return false;
    if (limit < 0)
        limit = limit == INT64_MIN ? INT64_MAX : -limit;
    add_doc_stage(stages, "$match", query);
    add_number_stage(stages, "$skip", skip);
    add_number_stage(stages, "$limit", limit);
    struct bval name = {.type = BT_STRING, .len = sizeof "\6\0\0\0count", .data = (const uint8_t *)"\6\0\0\0count"};
    add_stage(stages, "$count", &name);
    return true;
}

/* {$match: {f: {$exists: true}}}, {$group: {_id: "$f"}} with f the first name of the key: the values of the whole path
 * are taken from these here, as a shard takes them. */
static bool distinct_stages(struct stages *stages, struct bdoc body, struct err *err)
{
    struct bdoc query = {0};
    const char *key = NULL;
    if (!field_get_doc(body, "query", &query, err) || !field_require(body, "key", err) ||
        !field_get_str(body, "key", &key, err))
        return false;
    add_doc_stage(stages, "$match", query);
    int len = (int)strcspn(key, ".");
    if (len == 0 || key[0] == '$')
        return err_set(err, ERR_BadValue, "the key of distinct on a view must be a path of fields");
    bson_t match = BSON_INITIALIZER;
    bson_t group = BSON_INITIALIZER;
    bson_t exists;
    char path[COMMAND_NS_MAX + 2];
    if (snprintf(path, sizeof path, "$%.*s", len, key) >= (int)sizeof path) {
        bson_destroy(&match);
        bson_destroy(&group);
        return err_set(err, ERR_BadValue, "the key of distinct on a view is too long");
    }
    bson_append_document_begin(&match, path + 1, -1, &exists);
    BSON_APPEND_BOOL(&exists, "$exists", true);
    bson_append_document_end(&match, &exists);
    BSON_APPEND_UTF8(&group, "_id", path);
    add_doc_stage(stages, "$match", bdoc_of(&match));
    add_doc_stage(stages, "$group", bdoc_of(&group));
    bson_destroy(&match);
    bson_destroy(&group);
    return true;
}

static bool aggregate_stages(struct stages *stages, struct bdoc body, struct err *err)
{
    struct bdoc own = bdoc_empty();
    if (!field_get_array(body, "pipeline", &own, err))
        return false;
    add_array(stages, own);
    return true;
}

static const char *const find_fields[] = {
    "filter", "sort", "projection", "skip",         "limit",    "batchSize", "singleBatch",         "noCursorTimeout",
    "min",    "max",  "returnKey",  "showRecordId", "tailable", "awaitData", "allowPartialResults", "oplogReplay",
    "term",   NULL};
static const char *const count_fields[] = {"query", "skip", "limit", "fields", NULL};
static const char *const distinct_fields[] = {"query", "key", NULL};
static const char *const aggregate_fields[] = {NULL};

static const struct rewrite {
    const char *command;
    bool (*stages)(struct stages *stages, struct bdoc body, struct err *err);
    const char *const *own; /* fields that became stages */
} rewrites[] = {
    {"find", find_stages, find_fields},
    {"count", count_stages, count_fields},
    {"distinct", distinct_stages, distinct_fields},
    {"aggregate", aggregate_stages, aggregate_fields},
};

static bool name_in(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* The command's collation is the view's, or isn't given. */
static bool check_collation(const struct view *view, struct bdoc body, struct err *err)
{
    struct bdoc wanted = {0};
    if (!field_get_doc(body, "collation", &wanted, err))
        return false;
    bool same;
    if (!wanted.data)
        return true;
    if (!command_env_same_collation(wanted, view->collation, &same, err))
        return false;
    return same || err_set(err, ERR_OptionNotSupportedOnView,
                           "Cannot override a view's default collation: %s has another one", view->view.full);
}

static void append_common(struct bdoc body, const struct rewrite *rewrite, const struct view *view, bson_t *out)
{
    static const char *const replaced[] = {"pipeline", "collation", "cursor", "$db", NULL};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, body);
    (void)biter_next(&iter, &elem);
    while (biter_next(&iter, &elem))
        if (!name_in(elem.key, replaced) && !name_in(elem.key, rewrite->own))
            bval_append(out, elem.key, (int)elem.key_len, &elem.val);
    if (view->collation.data) {
        struct bval collation = bval_from_doc(view->collation);
        bval_append(out, "collation", -1, &collation);
    } else {
        BCON_APPEND(out, "collation", "{", "locale", BCON_UTF8("simple"), "}");
    }
}

static bool append_cursor(struct bdoc body, bool is_find, bson_t *out, struct err *err)
{
    struct bdoc given = bdoc_empty();
    int64_t batch_size = -1;
    bson_t cursor;
    if (!field_get_doc(is_find ? bdoc_empty() : body, "cursor", &given, err) ||
        !field_get_i64_in(is_find ? body : given, "batchSize", 0, INT64_MAX, &batch_size, err))
        return false;
    BSON_APPEND_DOCUMENT_BEGIN(out, "cursor", &cursor);
    if (batch_size >= 0)
        BSON_APPEND_INT64(&cursor, "batchSize", batch_size);
    bson_append_document_end(out, &cursor);
    return true;
}

bool view_aggregate_body(struct arena *arena, const struct view *view, struct bdoc body, bson_t *out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    const struct rewrite *rewrite = NULL;
    (void)arena;
    biter_init(&iter, body);
    if (!biter_next(&iter, &elem))
        return err_set(err, ERR_FailedToParse, "an empty command on a view");
    for (size_t i = 0; i < sizeof rewrites / sizeof rewrites[0]; i++)
        if (strcmp(elem.key, rewrites[i].command) == 0)
            rewrite = &rewrites[i];
    if (!rewrite)
        return err_set(err, ERR_CommandNotSupportedOnView, "%s is not supported on a view", elem.key);
    if (!check_collation(view, body, err))
        return false;
    struct stages stages = {.count = 0};
    bson_init(&stages.array);
    add_array(&stages, view->pipeline);
    bool ok = rewrite->stages(&stages, body, err);
    if (ok) {
        BSON_APPEND_UTF8(out, "aggregate", view->on.coll);
        BSON_APPEND_ARRAY(out, "pipeline", &stages.array);
        append_common(body, rewrite, view, out);
        ok = append_cursor(body, rewrite == &rewrites[0], out, err);
    }
    bson_destroy(&stages.array);
    return ok;
}
