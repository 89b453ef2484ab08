#include "command/table.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "command/fields.h"
#include "command/namespace.h"

#include <ctype.h>
#include <string.h>

enum {
    TABLE_MAX = 512, /* commands of one daemon */
    NAME_MAX_BYTES = 64,
    MAX_TIME_LIMIT_MS = INT32_MAX, /* as MongoDB limits maxTimeMS */
};

struct entry {
    const struct command *command; /* borrowed from the array that was added */
};

struct command_table {
    struct map by_name;              /* every spelling -> struct entry */
    struct entry entries[TABLE_MAX]; /* the first `count` are in use, in the order of adding */
    unsigned count;
    bool test_enabled; /* COMMAND_TEST commands are found */
};

struct command_table *command_table_new(void)
{
    return mem_alloc(sizeof(struct command_table));
}

void command_table_free(struct command_table *table)
{
    if (table == NULL)
        return;
    map_deinit(&table->by_name);
    mem_free(table);
}

static void table_put(struct command_table *table, const char *name, struct entry *entry, bool override)
{
    size_t len = strlen(name);
    if (override || map_get(&table->by_name, name, len) == NULL)
        map_put(&table->by_name, name, len, entry);
}

static void table_add_one(struct command_table *table, const struct command *command)
{
    size_t len = strlen(command->name);
    CHECK(len < NAME_MAX_BYTES);
    struct entry *entry = map_get(&table->by_name, command->name, len);
    if (entry == NULL || strcmp(entry->command->name, command->name) != 0) {
        CHECK(table->count < TABLE_MAX);
        entry = &table->entries[table->count++];
    }
    entry->command = command;
    table_put(table, command->name, entry, true);
    if (command->alias != NULL)
        table_put(table, command->alias, entry, true);
    char lower[NAME_MAX_BYTES] = {0};
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)tolower((unsigned char)command->name[i]);
    table_put(table, lower, entry, false);
}

void command_table_add(struct command_table *table, const struct command *commands, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        table_add_one(table, &commands[i]);
}

void command_table_enable_test(struct command_table *table, bool enabled)
{
    table->test_enabled = enabled;
}

static bool table_offers(const struct command_table *table, const struct command *command)
{
    return (command->flags & COMMAND_TEST) == 0 || table->test_enabled;
}

const struct command *command_table_find(const struct command_table *table, const char *name)
{
    const struct entry *entry = map_get(&table->by_name, name, strlen(name));
    return entry != NULL && table_offers(table, entry->command) ? entry->command : NULL;
}

const struct command *command_table_next(const struct command_table *table, unsigned *position)
{
    while (*position < table->count) {
        const struct command *command = table->entries[(*position)++].command;
        if (table_offers(table, command))
            return command;
    }
    return NULL;
}

/* OP_QUERY may wrap its command as {$query: {...}, $readPreference: ...}. */
static void unwrap_query(struct command_ctx *ctx)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, ctx->msg.body);
    if (ctx->msg.query_ns != NULL && biter_next(&iter, &elem) && elem.val.type == BT_DOCUMENT &&
        (strcmp(elem.key, "$query") == 0 || strcmp(elem.key, "query") == 0))
        ctx->body = bval_doc(&elem.val);
}

static bool parse_db(struct command_ctx *ctx, const struct bval *db, struct err *err)
{
    if (ctx->msg.query_ns != NULL && db->type == BT_EOO) {
        size_t len = strlen(ctx->msg.query_ns) - strlen(".$cmd");
        ctx->db = arena_copy_str(&ctx->arena, ctx->msg.query_ns, len);
    } else if (db->type == BT_EOO) {
        return err_set(err, COMMAND_ERR_DB_MISSING, "OP_MSG requests require a $db argument");
    } else if (!field_get_str(ctx->body, "$db", &ctx->db, err)) {
        return false;
    }
    if (ctx->db == NULL) /* $db: null */
        return err_set(err, ERR_TypeMismatch, "$db must be a string");
    return ns_check_db(ctx->db, err);
}

static void limit_deadline(struct command_ctx *ctx, int64_t left_ms)
{
    int64_t deadline_ms = deadline_after_ms(left_ms);
    if (deadline_ms < ctx->deadline_ms)
        command_ctx_set_deadline(ctx, deadline_ms);
}

static bool parse_times(struct command_ctx *ctx, bool has_max_time, bool has_deadline, struct err *err)
{
    if (has_max_time) {
        if (!field_get_i64_in(ctx->body, "maxTimeMS", 0, MAX_TIME_LIMIT_MS, &ctx->max_time_ms, err))
            return false;
        if (ctx->max_time_ms > 0)
            limit_deadline(ctx, ctx->max_time_ms);
    }
    if (has_deadline) {
        int64_t left_ms = 0;
        if (!field_get_i64_in(ctx->body, "$sherdDeadlineMs", 0, INT64_MAX / 2, &left_ms, err))
            return false;
        limit_deadline(ctx, left_ms);
    }
    return true;
}

bool command_parse(struct command_ctx *ctx, struct err *err)
{
    static const char internal_prefix[] = "$sherd";
    unwrap_query(ctx);
    struct biter iter;
    struct belem elem;
    struct bval db = {0};
    bool has_max_time = false;
    bool has_deadline = false;
    for (biter_init(&iter, ctx->body); biter_next(&iter, &elem);) {
        if (ctx->name == NULL) {
            ctx->name = elem.key;
            ctx->value = elem.val;
        }
        if (elem.key[0] == '$' && strcmp(elem.key, "$db") == 0)
            db = elem.val;
        else if (strncmp(elem.key, internal_prefix, sizeof internal_prefix - 1) == 0 && !ctx->internal)
            return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s' is an unknown field.", elem.key);
        else if (strcmp(elem.key, "$sherdDeadlineMs") == 0)
            has_deadline = true;
        else if (strcmp(elem.key, "$sherdOp") == 0 && elem.val.type == BT_INT64)
            ctx->op.router_key = bval_i64(&elem.val);
        else if (strcmp(elem.key, "maxTimeMS") == 0)
            has_max_time = true;
    }
    if (ctx->name == NULL)
        return err_set(err, ERR_CommandNotFound, "no such command: ''");
    return parse_db(ctx, &db, err) && parse_times(ctx, has_max_time, has_deadline, err);
}

static bool command_allowed(const struct command_ctx *ctx, const struct command *command, struct err *err)
{
    if (command == NULL || ((command->flags & COMMAND_INTERNAL_ONLY) != 0 && !ctx->internal))
        return err_set(err, ERR_CommandNotFound, "no such command: '%s'", ctx->name);
    if ((command->flags & COMMAND_ADMIN_ONLY) != 0 && strcmp(ctx->db, "admin") != 0)
        return err_set(err, ERR_Unauthorized, "%s may only be run against the admin database.", command->name);
    if ((command->flags & COMMAND_SEQUENCES) == 0 && ctx->msg.sequence_count > 0)
        return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s.%s' is an unknown field.", command->name,
                       ctx->msg.sequences[0].name);
    if ((command->flags & COMMAND_COLLECTION) != 0) {
        struct ns ns;
        bool writes = (command->flags & COMMAND_WRITE) != 0 && !ctx->internal;
        return command_ns(ctx, &ns, err) && (!writes || ns_check_write(&ns, err));
    }
    return true;
}

void command_run(const struct command_table *table, struct command_ctx *ctx)
{
    struct err err;
    bool parsed = ctx->db != NULL || command_parse(ctx, &err);
    if (!parsed) {
        command_finish(ctx, &err);
        return;
    }
    const struct command *command = command_table_find(table, ctx->name);
    if (!command_allowed(ctx, command, &err)) {
        command_finish(ctx, &err);
        return;
    }
    ctx->command = command;
    if (ctx->ops != NULL)
        op_begin(ctx->ops, ctx);
    struct interrupt *before = command_ctx_enter(ctx);
    enum command_status status = command->run(ctx, &err);
    command_ctx_leave(before);
    switch (status) {
    case COMMAND_OK:
        command_finish(ctx, NULL);
        break;
    case COMMAND_ERROR:
        command_finish(ctx, &err);
        break;
    case COMMAND_PARKED:
        break;
    default:
        UNREACHABLE();
    }
}
