/* currentOp, killOp, and ending the operations and cursors of sessions. */
#include "base/clock.h"
#include "command/fields.h"
#include "query/filter.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/current_op.h"
#include "routerd/cursors.h"
#include "routerd/registry.h"
#include "routerd/remote.h"
#include "routerd/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- currentOp ---- */

/* The fields of the command that are conditions on the operations. */
static void current_op_filter(struct bdoc body, bson_t *out)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, body);
    (void)biter_next(&iter, &elem);
    while (biter_next(&iter, &elem))
        if (elem.key[0] != '$' && !field_is_generic(elem.key))
            bval_append(out, elem.key, (int)elem.key_len, &elem.val);
}

static bool current_op_append(struct command_ctx *ctx, struct bdoc ops, const struct filter *filter, struct err *err)
{
    bson_t list;
    uint32_t n = 0;
    bool ok = true;
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "inprog", &list);
    for (uint32_t at = 0; ok && at < ops.len;) {
        struct bdoc op = {.data = ops.data + at, .len = load_le32(ops.data + at)};
        bool matched = false;
        at += op.len;
        ok = filter_eval(filter, op, NULL, &matched, err);
        struct bval value = bval_from_doc(op);
        if (ok && matched)
            request_append_at(&list, n++, &value);
    }
    bson_append_array_end(&ctx->reply, &list);
    return ok;
}

static enum command_status run_current_op(struct command_ctx *ctx, struct err *err)
{
    struct current_op_options options = {.local_ops = false};
    struct expr_env env = {.now_ms = clock_wall_ms()};
    struct buf ops = BUF_INIT;
    struct filter *filter;
    bson_t conditions = BSON_INITIALIZER;
    current_op_filter(ctx->body, &conditions);
    bool ok = filter_compile(&ctx->arena, bdoc_of(&conditions), &env, &filter, err) &&
              field_get_bool(ctx->body, "$local", &options.local_ops, err) &&
              current_op_collect(ctx, &options, &ops, err) &&
              current_op_append(ctx, (struct bdoc){.data = ops.data, .len = (uint32_t)ops.len}, filter, err);
    buf_deinit(&ops);
    bson_destroy(&conditions);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

/* ---- killOp ---- */

/* "shard:123" taken apart; false when it is none such. */
static bool parse_shard_op(const char *text, char shard[CLUSTER_SHARD_NAME_MAX + 1], int64_t *id)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon == text || !colon[1] || (size_t)(colon - text) > CLUSTER_SHARD_NAME_MAX)
        return false;
    memcpy(shard, text, (size_t)(colon - text));
    shard[colon - text] = 0;
    errno = 0;
    *id = strtoll(colon + 1, &end, 10);
    return errno == 0 && *end == 0 && *id >= 0;
}

static enum command_status kill_on_shard(struct command_ctx *ctx, const char *text, struct err *err)
{
    enum { BAD_SHARD_OP = 28625 };
    struct router *router = router_of(ctx);
    char shard[CLUSTER_SHARD_NAME_MAX + 1];
    struct remote_set *set;
    struct remote_request request;
    int64_t id;
    if (!parse_shard_op(text, shard, &id)) {
        err_set(err, BAD_SHARD_OP, "The op argument to killOp must be of the format shardid:opid but found \"%s\"",
                text);
        return COMMAND_ERROR;
    }
    if (!registry_shard(router->registry, shard, ctx->deadline_ms, &set, err)) {
        client_error_make(ctx, false, err);
        return COMMAND_ERROR;
    }
    remote_request_init(&request, set, true);
    remote_set_unref(set);
    BSON_APPEND_INT32(&request.body, "killOp", 1);
    BSON_APPEND_INT64(&request.body, "op", id);
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(router, &request, ctx->deadline_ms, NULL) || client_error_from(ctx, &request, err);
    remote_request_deinit(&request);
    if (!ok)
        return COMMAND_ERROR;
    BSON_APPEND_UTF8(&ctx->reply, "shard", shard);
    BSON_APPEND_INT64(&ctx->reply, "shardid", id);
    return COMMAND_OK;
}

static enum command_status run_kill_op(struct command_ctx *ctx, struct err *err)
{
    enum { NO_OP_FIELD = 50759 };
    static const char *const known[] = {"op", NULL};
    struct bval op;
    int64_t id = 0;
    uint32_t len;
    if (!fields_check_arguments(ctx->body, ctx->name, known, err))
        return COMMAND_ERROR;
    if (!bdoc_find(ctx->body, "op", &op)) {
        err_set(err, NO_OP_FIELD, "Did not provide \"op\" field");
        return COMMAND_ERROR;
    }
    if (op.type == BT_STRING)
        return kill_on_shard(ctx, bval_str(&op, &len), err);
    if (!field_get_i64(ctx->body, "op", &id, err))
        return COMMAND_ERROR;
    /* Whether it was there or has just ended makes no difference to who asks. */
    (void)op_kill(router_of(ctx)->ops, id);
    BSON_APPEND_UTF8(&ctx->reply, "info", "attempting to kill op");
    return COMMAND_OK;
}

/* ---- sessions ---- */

static void kill_session(struct command_ctx *ctx, const uint8_t *lsid)
{
    (void)op_kill_session(router_of(ctx)->ops, lsid, ctx);
    cursor_table_kill_session(router_of(ctx)->cursors, lsid);
}

static bool check_list(const struct command_ctx *ctx, struct err *err)
{
    if (ctx->value.type == BT_ARRAY)
        return true;
    return err_set(err, ERR_TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type 'array'", ctx->name,
                   ctx->name, bval_type_name(ctx->value.type));
}

static enum command_status run_kill_sessions(struct command_ctx *ctx, struct err *err)
{
    struct biter iter;
    struct belem elem;
    const uint8_t *id = NULL;
    if (!check_list(ctx, err))
        return COMMAND_ERROR;
    for (biter_init(&iter, bval_doc(&ctx->value)); biter_next(&iter, &elem);) {
        if (elem.val.type != BT_DOCUMENT) {
            err_set(err, ERR_TypeMismatch, "BSON field '%s.%s.%s' is the wrong type '%s', expected type 'object'",
                    ctx->name, ctx->name, elem.key, bval_type_name(elem.val.type));
            return COMMAND_ERROR;
        }
        if (!field_require(bval_doc(&elem.val), "id", err) || !field_get_uuid(bval_doc(&elem.val), "id", &id, err))
            return COMMAND_ERROR;
    }
    for (biter_init(&iter, bval_doc(&ctx->value)); biter_next(&iter, &elem);)
        if (field_get_uuid(bval_doc(&elem.val), "id", &id, NULL))
            kill_session(ctx, id);
    /* An empty list means all of the user's own. */
    if (bdoc_is_empty(bval_doc(&ctx->value)))
        kill_session(ctx, NULL);
    return COMMAND_OK;
}

/* There are no users yet: whoever's sessions are meant, and whatever the pattern, only a named lsid says less than
 * "all". */
static enum command_status run_kill_all_sessions(struct command_ctx *ctx, struct err *err)
{
    if (!check_list(ctx, err))
        return COMMAND_ERROR;
    kill_session(ctx, NULL);
    return COMMAND_OK;
}

static enum command_status run_kill_by_pattern(struct command_ctx *ctx, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct bdoc lsid = {0};
    const uint8_t *id = NULL;
    if (!check_list(ctx, err))
        return COMMAND_ERROR;
    if (bdoc_is_empty(bval_doc(&ctx->value)))
        kill_session(ctx, NULL);
    for (biter_init(&iter, bval_doc(&ctx->value)); biter_next(&iter, &elem);) {
        lsid = (struct bdoc){0};
        id = NULL;
        if (elem.val.type != BT_DOCUMENT || !field_get_doc(bval_doc(&elem.val), "lsid", &lsid, err) ||
            (lsid.data && !field_get_uuid(lsid, "id", &id, err))) {
            err_set(err, ERR_TypeMismatch, "%s takes a list of {lsid: {id: UUID}}", ctx->name);
            return COMMAND_ERROR;
        }
        kill_session(ctx, id);
    }
    return COMMAND_OK;
}

static const struct command commands[] = {
    {"currentOp", NULL, COMMAND_ADMIN_ONLY, run_current_op},
    {"killOp", NULL, COMMAND_ADMIN_ONLY, run_kill_op},
    {"killSessions", NULL, 0, run_kill_sessions},
    {"killAllSessions", NULL, 0, run_kill_all_sessions},
    {"killAllSessionsByPattern", NULL, 0, run_kill_by_pattern},
};

const struct command_family commands_ops = COMMAND_FAMILY(commands);
