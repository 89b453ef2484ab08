/* currentOp and killOp of one member, as routers ask for them. */
#include "command/context.h"
#include "command/fields.h"
#include "document/engine.h"
#include "document/index_builder.h"
#include "node/node_internal.h"

struct op_array {
    bson_t list;
    uint32_t count;
};

struct build_list {
    struct op_array *ops;
    const char *host;
};

static void add_op(void *arg, const bson_t *op)
{
    struct op_array *array = arg;
    char digits[16];
    const char *key;
    size_t len = bson_uint32_to_string(array->count++, &key, digits, sizeof digits);
    bson_append_document(&array->list, key, (int)len, op);
}

/* A build has no client: whoever asked for it may have gone, or waits in an operation of his own. */
static void add_build(void *arg, struct bdoc build)
{
    struct build_list *list = arg;
    struct biter iter;
    struct belem elem;
    bson_t op = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&op, "type", "op");
    BSON_APPEND_UTF8(&op, "host", list->host);
    BSON_APPEND_UTF8(&op, "desc", "IndexBuild");
    BSON_APPEND_BOOL(&op, "active", true);
    BSON_APPEND_UTF8(&op, "op", "command");
    biter_init(&iter, build);
    while (biter_next(&iter, &elem))
        bval_append(&op, elem.key, (int)elem.key_len, &elem.val);
    BSON_APPEND_INT32(&op, "numYields", 0);
    BSON_APPEND_BOOL(&op, "waitingForLock", false);
    add_op(list->ops, &op);
    bson_destroy(&op);
}

/* {inprog: [...]}. Who is idle, or whose operation it is, makes no difference between daemons: options are the
 * router's to heed. */
static enum command_status current_op_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    struct op_array array = {.count = 0};
    struct op_list_options options = {.host = node->address, .client_is_router = true};
    (void)err;
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "inprog", &array.list);
    op_list(node->ops, &options, add_op, &array);
    struct build_list builds = {.ops = &array, .host = node->address};
    index_builder_each(document_engine_builder(document_engine_of(ctx)), add_build, &builds);
    bson_append_array_end(&ctx->reply, &array.list);
    return COMMAND_OK;
}

static enum command_status kill_op_run(struct command_ctx *ctx, struct err *err)
{
    int64_t id = 0;
    if (!field_require(ctx->body, "op", err) || !field_get_i64(ctx->body, "op", &id, err))
        return COMMAND_ERROR;
    (void)op_kill(node_of(ctx)->ops, id);
    BSON_APPEND_UTF8(&ctx->reply, "info", "attempting to kill op");
    return COMMAND_OK;
}

/* The parts that this member does of a router's operation. */
static enum command_status kill_part_run(struct command_ctx *ctx, struct err *err)
{
    if (ctx->value.type != BT_INT64) {
        err_set(err, ERR_TypeMismatch, "%s takes the key of a router's operation", ctx->name);
        return COMMAND_ERROR;
    }
    BSON_APPEND_INT32(&ctx->reply, "killed", (int32_t)op_kill_router_key(node_of(ctx)->ops, bval_i64(&ctx->value)));
    return COMMAND_OK;
}

const struct command node_op_commands[] = {
    {"currentOp", NULL, COMMAND_ADMIN_ONLY | COMMAND_ANY_ROLE, current_op_run},
    {"killOp", NULL, COMMAND_ADMIN_ONLY | COMMAND_ANY_ROLE, kill_op_run},
    {"_sherdKillOp", NULL, COMMAND_INTERNAL_ONLY | COMMAND_ANY_ROLE, kill_part_run},
};

const unsigned node_op_command_count = sizeof node_op_commands / sizeof node_op_commands[0];
