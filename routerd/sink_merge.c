/* $merge: each document becomes an insert, or an update by its `on` fields. */
#include "bson/path.h"
#include "command/fields.h"
#include "routerd/command_env.h"
#include "routerd/request.h"
#include "routerd/sink.h"
#include "routerd/sub_command.h"

#include <string.h>

enum {
    MERGE_ON_MAX = 32,
    MERGE_INTERNAL_DATABASE = 31320,
    MERGE_SPECIAL_COLLECTION = 31319,
    MERGE_ON_DUPLICATE = 31465,
    MERGE_ON_VALUE = 51132,
    MERGE_ON_ELEMENT_TYPE = 51134,
    MERGE_INTO_TYPE = 51178,
    MERGE_MODES = 51181,
    MERGE_NO_INDEX = 51183,
    MERGE_ON_TYPE = 51186,
    MERGE_ON_EMPTY = 51187,
    MERGE_WHEN_MATCHED_TYPE = 51191,
    MERGE_LET_WITHOUT_PIPELINE = 51199,
    MERGE_LET_NEW = 51273,
};

enum when_matched {
    MATCHED_REPLACE,
    MATCHED_KEEP,
    MATCHED_MERGE,
    MATCHED_FAIL,
    MATCHED_PIPELINE,
};

enum when_not_matched {
    NOT_MATCHED_INSERT,
    NOT_MATCHED_DISCARD,
    NOT_MATCHED_FAIL,
};

static const char *const matched_names[] = {"replace", "keepExisting", "merge", "fail", NULL};
static const char *const not_matched_names[] = {"insert", "discard", "fail", NULL};

struct merge_state {
    const char *on[MERGE_ON_MAX];
    uint32_t on_count;
    enum when_matched matched;
    enum when_not_matched not_matched;
    struct bval pipeline;
    struct bdoc let; /* data NULL: none */
    struct expr **let_values;
    struct expr_env env;
};

static bool read_name(const struct bval *value, const char *field, const char *const *names, int *out, struct err *err)
{
    if (value->type != BT_STRING)
        return err_set(err, ERR_TypeMismatch, "BSON field '$merge.%s' is the wrong type '%s', expected type 'string'",
                       field, bval_type_name(value->type));
    for (*out = 0; names[*out]; (*out)++)
        if (bval_is_str(value, names[*out]))
            return true;
    uint32_t len;
    return err_set(err, ERR_BadValue, "Enumeration value '%s' for field '$merge.%s' is not a valid value.",
                   bval_str(value, &len), field);
}

static bool read_modes(struct bdoc spec, struct merge_state *state, struct err *err)
{
    struct bval value;
    int found = 0;
    state->matched = MATCHED_MERGE;
    state->not_matched = NOT_MATCHED_INSERT;
    if (bdoc_find(spec, "whenMatched", &value)) {
        if (value.type != BT_STRING && value.type != BT_ARRAY)
            return err_set(err, MERGE_WHEN_MATCHED_TYPE,
                           "$merge 'whenMatched' field  must be either a string or an array, but found %s",
                           bval_type_name(value.type));
        if (value.type == BT_STRING && !read_name(&value, "whenMatched", matched_names, &found, err))
            return false;
        state->pipeline = value;
        state->matched = value.type == BT_ARRAY ? MATCHED_PIPELINE : (enum when_matched)found;
    }
    if (bdoc_find(spec, "whenNotMatched", &value)) {
        if (!read_name(&value, "whenNotMatched", not_matched_names, &found, err))
            return false;
        state->not_matched = (enum when_not_matched)found;
    }
    bool only_insert = state->matched == MATCHED_KEEP || state->matched == MATCHED_FAIL;
    if (only_insert && state->not_matched != NOT_MATCHED_INSERT)
        return err_set(err, MERGE_MODES,
                       "Combination of $merge modes 'whenMatched: %s' and 'whenNotMatched: %s' is not supported",
                       matched_names[state->matched], not_matched_names[state->not_matched]);
    return true;
}

static bool add_on(struct merge_state *state, const struct bval *value, struct err *err)
{
    uint32_t len;
    if (value->type != BT_STRING)
        return err_set(err, MERGE_ON_ELEMENT_TYPE, "$merge 'on' array elements must be strings, but found %s",
                       bval_type_name(value->type));
    const char *name = bval_str(value, &len);
    for (uint32_t i = 0; i < state->on_count; i++)
        if (strcmp(state->on[i], name) == 0)
            return err_set(err, MERGE_ON_DUPLICATE, "Found a duplicate field '%s'", name);
    if (state->on_count == MERGE_ON_MAX)
        return err_set(err, ERR_BadValue, "$merge 'on' has more than %d fields", MERGE_ON_MAX);
    state->on[state->on_count++] = name;
    return true;
}

static bool read_on(struct bdoc spec, struct merge_state *state, struct err *err)
{
    struct bval value;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(spec, "on", &value))
        return true;
    if (value.type == BT_STRING)
        return add_on(state, &value, err);
    if (value.type != BT_ARRAY)
        return err_set(err, MERGE_ON_TYPE,
                       "$merge 'on' field  must be either a string or an array of strings, but found %s",
                       bval_type_name(value.type));
    for (biter_init(&iter, bval_doc(&value)); biter_next(&iter, &elem);)
        if (!add_on(state, &elem.val, err))
            return false;
    return state->on_count > 0 ||
           err_set(err, MERGE_ON_EMPTY, "If explicitly specifying $merge 'on', must include at least one field");
}

static bool read_let(struct sink *sink, struct bdoc spec, struct merge_state *state, struct err *err)
{
    struct bval value;
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    if (!field_get_doc(spec, "let", &state->let, err) ||
        !command_env_init(&sink->ctx->arena, sink->request->body, NULL, &state->env, err))
        return false;
    if (!state->let.data)
        return true;
    if (state->matched != MATCHED_PIPELINE)
        return err_set(err, MERGE_LET_WITHOUT_PIPELINE, "Cannot use 'let' variables with 'whenMatched: %s' mode",
                       matched_names[state->matched]);
    if (bdoc_find(state->let, "new", &value) && !bval_is_str(&value, "$$ROOT"))
        return err_set(err, MERGE_LET_NEW,
                       "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'");
    state->let_values = arena_alloc(&sink->ctx->arena, (bdoc_count(state->let) + 1) * sizeof(struct expr *));
    for (biter_init(&iter, state->let); biter_next(&iter, &elem);)
        if (!expr_compile(&sink->ctx->arena, &elem.val, &state->env, &state->let_values[count++], err))
            return false;
    return true;
}

static bool merge_parse(struct sink *sink, struct merge_state *state, struct err *err)
{
    static const char *const known[] = {"into", "on", "let", "whenMatched", "whenNotMatched", "targetCollectionVersion",
                                        NULL};
    struct bval into = sink->spec;
    if (into.type != BT_STRING && into.type != BT_DOCUMENT)
        return err_set(err, ERR_TypeMismatch, "$merge requires a string or object argument, but found %s",
                       bval_type_name(into.type));
    struct bdoc spec = into.type == BT_STRING ? bdoc_empty() : bval_doc(&into);
    if (sink->spec.type == BT_DOCUMENT) {
        if (!fields_check_known(spec, "$merge", known, err) || !field_require(spec, "into", err))
            return false;
        bdoc_find(spec, "into", &into);
        if (into.type != BT_STRING && into.type != BT_DOCUMENT)
            return err_set(err, MERGE_INTO_TYPE,
                           "$merge 'into' field  must be either a string or an object, but found %s",
                           bval_type_name(into.type));
    }
    if (!read_on(spec, state, err) || !read_modes(spec, state, err) || !read_let(sink, spec, state, err) ||
        !sink_target(sink, &into, err))
        return false;
    if (ns_is_reserved_db(sink->to.db))
        return err_set(err, MERGE_INTERNAL_DATABASE, "Cannot $merge to internal database: %s", sink->to.db);
    if (strncmp(sink->to.coll, "system.", strlen("system.")) == 0)
        return err_set(err, MERGE_SPECIAL_COLLECTION, "Cannot $merge to special collection: %s", sink->to.coll);
    return true;
}

/* The index is unique over exactly the `on` fields. */
static bool index_fits(const struct sink *sink, const struct merge_state *state, struct bdoc spec, bool *fits,
                       struct err *err)
{
    struct bval key, unique;
    struct bdoc collation = {0};
    struct bdoc wanted = {0};
    bool same;
    *fits = false;
    if (!bdoc_find(spec, "key", &key) || key.type != BT_DOCUMENT || bdoc_count(bval_doc(&key)) != state->on_count ||
        bdoc_has(spec, "partialFilterExpression"))
        return true;
    bool is_id = state->on_count == 1 && bdoc_has(bval_doc(&key), "_id");
    if (!is_id && !(bdoc_find(spec, "unique", &unique) && bval_truthy(&unique)))
        return true;
    for (uint32_t i = 0; i < state->on_count; i++)
        if (!bdoc_has(bval_doc(&key), state->on[i]))
            return true;
    if (!field_get_doc(spec, "collation", &collation, err) ||
        !field_get_doc(sink->request->body, "collation", &wanted, err) ||
        !command_env_same_collation(collation, wanted, &same, err))
        return false;
    *fits = same;
    return true;
}

static bool find_index(const struct sink *sink, const struct merge_state *state, struct bdoc reply, bool *found,
                       struct err *err)
{
    struct cursor_reply cursor;
    struct biter iter;
    struct belem elem;
    if (!cursor_reply_parse(reply, &cursor, err))
        return false;
    for (biter_init(&iter, cursor.batch); !*found && biter_next(&iter, &elem);)
        if (elem.val.type == BT_DOCUMENT && !index_fits(sink, state, bval_doc(&elem.val), found, err))
            return false;
    return true;
}

/* The fields given by `on` identify one document at most. */
static bool check_on(struct sink *sink, const struct merge_state *state, struct err *err)
{
    struct command_ctx *ctx;
    bson_t body = BSON_INITIALIZER;
    bool found = state->on_count == 1 && strcmp(state->on[0], "_id") == 0;
    if (found) {
        bson_destroy(&body);
        return true;
    }
    BSON_APPEND_UTF8(&body, "listIndexes", sink->to.coll);
    bool ok = sub_command_new(sink->ctx, sink->to.db, bdoc_of(&body), &ctx, err);
    bson_destroy(&body);
    if (!ok)
        return false;
    ok = sub_command_run(ctx, err);
    if (ok)
        ok = find_index(sink, state, sub_command_reply(ctx), &found, err);
    else
        ok = err->code == ERR_NamespaceNotFound;
    sub_command_free(ctx);
    return ok && (found || err_set(err, MERGE_NO_INDEX, "Cannot find index to verify that join fields will be unique"));
}

/* Without `on`: _id, and on a sharded collection the shard key's fields before it. */
static bool default_on(struct sink *sink, struct merge_state *state, struct err *err)
{
    struct route route;
    route_init(&route, sink->ctx, sink->to.full);
    bool ok = route_next(&route, err);
    bool has_id = false;
    if (ok && route.routing->table) {
        const struct shardkey *key = routing_table_key(route.routing->table);
        for (size_t i = 0; i < shardkey_field_count(key) && state->on_count + 1 < MERGE_ON_MAX; i++) {
            const char *path = shardkey_field_path(key, i);
            has_id |= strcmp(path, "_id") == 0;
            state->on[state->on_count++] = arena_copy_str(&sink->ctx->arena, path, strlen(path));
        }
    }
    if (ok && !has_id)
        state->on[state->on_count++] = "_id";
    route_deinit(&route);
    return ok;
}

static bool append_query(const struct merge_state *state, struct bdoc doc, bson_t *statement, struct err *err)
{
    bson_t query, equality;
    bool ok = true;
    BSON_APPEND_DOCUMENT_BEGIN(statement, "q", &query);
    for (uint32_t i = 0; ok && i < state->on_count; i++) {
        struct bval value;
        bool found = path_get_str(doc, state->on[i], &value);
        ok =
            (found && value.type != BT_NULL && value.type != BT_UNDEFINED && value.type != BT_ARRAY) ||
            err_set(err, MERGE_ON_VALUE,
                    "$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", state->on[i]);
        if (!ok)
            break;
        /* What can't be taken for operators or a pattern needs no $eq. */
        if (value.type != BT_DOCUMENT && value.type != BT_REGEX) {
            bval_append(&query, state->on[i], -1, &value);
            continue;
        }
        bson_append_document_begin(&query, state->on[i], -1, &equality);
        bval_append(&equality, "$eq", -1, &value);
        bson_append_document_end(&query, &equality);
    }
    bson_append_document_end(statement, &query);
    return ok;
}

static void append_operator(bson_t *statement, const char *name, struct bdoc doc)
{
    bson_t update;
    struct bval value = bval_from_doc(doc);
    BSON_APPEND_DOCUMENT_BEGIN(statement, "u", &update);
    bval_append(&update, name, -1, &value);
    bson_append_document_end(statement, &update);
}

/* u: the pipeline, c: {new: the document, and the variables}. */
static bool append_pipeline(struct merge_state *state, struct bdoc doc, bson_t *statement, struct err *err)
{
    struct arena scratch;
    struct biter iter;
    struct belem elem;
    uint32_t at = 0;
    bool ok = true;
    bson_t constants;
    struct bval value = bval_from_doc(doc);
    arena_init(&scratch);
    bval_append(statement, "u", -1, &state->pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(statement, "c", &constants);
    bval_append(&constants, "new", -1, &value);
    if (state->let.data)
        for (biter_init(&iter, state->let); ok && biter_next(&iter, &elem); at++) {
            ok = expr_eval(state->let_values[at], doc, &scratch, &value, err);
            if (ok && value.type != BT_EOO && strcmp(elem.key, "new") != 0)
                bval_append(&constants, elem.key, (int)elem.key_len, &value);
        }
    bson_append_document_end(statement, &constants);
    arena_deinit(&scratch);
    return ok;
}

static bool append_update(struct merge_state *state, struct bdoc doc, bson_t *statement, struct err *err)
{
    struct bval value = bval_from_doc(doc);
    switch (state->matched) {
    case MATCHED_REPLACE:
    case MATCHED_FAIL:
        bval_append(statement, "u", -1, &value);
        return true;
    case MATCHED_MERGE:
        append_operator(statement, "$set", doc);
        return true;
    case MATCHED_KEEP:
        append_operator(statement, "$setOnInsert", doc);
        return true;
    case MATCHED_PIPELINE:
        return append_pipeline(state, doc, statement, err);
    }
    return true;
}

/* A document whose _id is to be made here, since it is one of the `on` fields. */
static void with_id(bson_t *out, struct bdoc doc)
{
    bson_oid_t oid;
    struct biter iter;
    struct belem elem;
    bson_oid_init(&oid, NULL);
    BSON_APPEND_OID(out, "_id", &oid);
    for (biter_init(&iter, doc); biter_next(&iter, &elem);)
        bval_append(out, elem.key, (int)elem.key_len, &elem.val);
}

static bool needs_id(const struct merge_state *state, struct bdoc doc)
{
    for (uint32_t i = 0; i < state->on_count; i++)
        if (strcmp(state->on[i], "_id") == 0)
            return !bdoc_has(doc, "_id");
    return false;
}

/* {q, u, upsert, ...} of one document, appended to `out`. */
static bool add_statement(const struct sink *sink, struct merge_state *state, struct bdoc doc, struct buf *out,
                          struct err *err)
{
    bson_t statement = BSON_INITIALIZER;
    bson_t made = BSON_INITIALIZER;
    struct bval collation;
    if (needs_id(state, doc)) {
        with_id(&made, doc);
        doc = bdoc_of(&made);
    }
    bool insert = state->not_matched == NOT_MATCHED_INSERT;
    bool ok = append_query(state, doc, &statement, err) && append_update(state, doc, &statement, err);
    BSON_APPEND_BOOL(&statement, "upsert", insert);
    if (insert && state->matched == MATCHED_PIPELINE)
        BSON_APPEND_BOOL(&statement, "upsertSupplied", true);
    if (bdoc_find(sink->request->body, "collation", &collation))
        bval_append(&statement, "collation", -1, &collation);
    if (ok)
        buf_append(out, bson_get_data(&statement), statement.len);
    bson_destroy(&statement);
    bson_destroy(&made);
    return ok;
}

static bool flush(struct sink *sink, struct err *err)
{
    struct merge_state *state = sink->state;
    struct buf statements = BUF_INIT;
    struct sink_batch inserts = {&sink->to, WRITE_INSERT, &sink->docs, sink->count, 0};
    struct sink_batch updates = {&sink->to, WRITE_UPDATE, &statements, sink->count, 0};
    if (state->matched == MATCHED_FAIL)
        return sink_write(sink, &inserts, err);
    const uint8_t *at = sink->docs.data;
    bool ok = true;
    for (uint32_t i = 0; ok && i < sink->count; i++) {
        struct bdoc doc = {at, load_le32(at)};
        ok = add_statement(sink, state, doc, &statements, err);
        at += doc.len;
    }
    ok = ok && sink_write(sink, &updates, err);
    buf_deinit(&statements);
    if (ok && state->not_matched == NOT_MATCHED_FAIL && updates.n < sink->count)
        return err_set(
            err, ERR_MergeStageNoMatchingDocument,
            "$merge could not find a matching document in the target collection for at least one document in "
            "the source collection");
    return ok;
}

bool sink_merge_run(struct sink *sink, struct err *err)
{
    struct merge_state state = {.on_count = 0};
    if (!merge_parse(sink, &state, err))
        return false;
    bool given = state.on_count > 0;
    if (given ? !check_on(sink, &state, err) : !default_on(sink, &state, err))
        return false;
    sink->state = &state;
    bool ok = sink_feed(sink, flush, err);
    sink->state = NULL;
    return ok;
}
