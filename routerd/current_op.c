#include "routerd/current_op.h"

#include "base/clock.h"
#include "base/mem.h"
#include "routerd/client_error.h"
#include "routerd/registry.h"
#include "routerd/remote.h"
#include "routerd/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool current_op_parse(const struct bval *spec, struct current_op_options *out, struct err *err)
{
    static const char *const known[] = {"allUsers", "idleConnections", "idleCursors",    "idleSessions",
                                        "localOps", "truncateOps",     "targetAllNodes", "backtrace"};
    struct biter iter;
    struct belem elem;
    *out = (struct current_op_options){.local_ops = false};
    if (spec->type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "$currentOp options must be specified in an object, but found: %s",
                       bval_type_name(spec->type));
    for (biter_init(&iter, bval_doc(spec)); biter_next(&iter, &elem);) {
        size_t i = 0;
        while (i < sizeof known / sizeof known[0] && strcmp(elem.key, known[i]) != 0)
            i++;
        if (i == sizeof known / sizeof known[0])
            return err_set(err, ERR_FailedToParse, "Unrecognized option '%s' in $currentOp stage.", elem.key);
        if (elem.val.type != BT_BOOL)
            return err_set(err, ERR_FailedToParse,
                           "The '%s' parameter of the $currentOp stage must be a boolean value, but found: %s",
                           elem.key, bval_type_name(elem.val.type));
        if (strcmp(elem.key, "localOps") == 0)
            out->local_ops = bval_truthy(&elem.val);
    }
    return true;
}

static void add_doc(void *arg, const bson_t *op)
{
    buf_append(arg, bson_get_data(op), op->len);
}

/* {shard: name, ...} with the operation's id as killOp takes it. */
static void append_shard_op(const char *shard, struct bdoc op, struct buf *out)
{
    bson_t doc = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    BSON_APPEND_UTF8(&doc, "shard", shard);
    for (biter_init(&iter, op); biter_next(&iter, &elem);) {
        int64_t id;
        char text[CLUSTER_SHARD_NAME_MAX + 32];
        if (strcmp(elem.key, "opid") == 0 && bval_to_i64(&elem.val, &id)) {
            snprintf(text, sizeof text, "%s:%" PRId64, shard, id);
            BSON_APPEND_UTF8(&doc, "opid", text);
        } else {
            bval_append(&doc, elem.key, (int)elem.key_len, &elem.val);
        }
    }
    add_doc(out, &doc);
    bson_destroy(&doc);
}

static void append_reply(const struct remote_request *request, struct buf *out)
{
    struct bval list;
    struct biter iter;
    struct belem elem;
    if (!request->ok || !bdoc_find(request->reply, "inprog", &list) || list.type != BT_ARRAY)
        return;
    for (biter_init(&iter, bval_doc(&list)); biter_next(&iter, &elem);)
        if (elem.val.type == BT_DOCUMENT)
            append_shard_op(request->set->name, bval_doc(&elem.val), out);
}

static bool collect_shards(struct command_ctx *ctx, struct buf *out, struct err *err)
{
    struct router *router = router_of(ctx);
    struct set_list sets;
    if (!registry_all(router->registry, ctx->deadline_ms, &sets, err)) {
        client_error_make(ctx, false, err);
        return false;
    }
    int64_t limit_ms = deadline_after_ms(CURRENT_OP_TIMEOUT_MS);
    struct remote_request *requests = remote_requests_new(sets.count + 1);
    for (size_t i = 0; i < sets.count; i++) {
        remote_request_init(&requests[i], sets.sets[i], true);
        BSON_APPEND_INT32(&requests[i].body, "currentOp", 1);
        BSON_APPEND_UTF8(&requests[i].body, "$db", "admin");
    }
    remote_run(router, requests, sets.count, ctx->deadline_ms < limit_ms ? ctx->deadline_ms : limit_ms);
    for (size_t i = 0; i < sets.count; i++) {
        append_reply(&requests[i], out);
        remote_request_deinit(&requests[i]);
    }
    mem_free(requests);
    set_list_deinit(&sets);
    return command_ctx_check_deadline(ctx, err);
}

bool current_op_collect(struct command_ctx *ctx, const struct current_op_options *options, struct buf *out,
                        struct err *err)
{
    struct router *router = router_of(ctx);
    struct op_list_options local = {.host = router->address};
    if (!options->local_ops)
        return collect_shards(ctx, out, err);
    op_list(router->ops, &local, add_doc, out);
    return true;
}
