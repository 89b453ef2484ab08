/* currentOp and killOp of one member, as routers ask for them. */
#include "command/context.h"
#include "command/fields.h"
#include "node/node_internal.h"

struct op_array {
    bson_t list;
    uint32_t count;
};

static void add_op(void *arg, const bson_t *op)
{
    struct op_array *array = arg;
    char digits[16];
    const char *key;
    size_t len = bson_uint32_to_string(array->count++, &key, digits, sizeof digits);
    bson_append_document(&array->list, key, (int)len, op);
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
