#include "command/ops.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/table.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct op_registry {
    pthread_mutex_t mutex; /* guards the list and the marked fields of its operations */
    struct op *first;      /* newest */
    unsigned count;
    int64_t last_id;
    int64_t key_base; /* random: keys of different routers differ */
};

static struct command_ctx *ctx_of_op(struct op *op)
{
    return (struct command_ctx *)((char *)op - offsetof(struct command_ctx, op));
}

/* The command as it came in: ctx->body may be exchanged for another while somebody looks. */
static struct bdoc body_of(const struct command_ctx *ctx)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, ctx->msg.body);
    bool wrapped = ctx->msg.query_ns != NULL && biter_next(&iter, &elem) && elem.val.type == BT_DOCUMENT &&
                   (strcmp(elem.key, "$query") == 0 || strcmp(elem.key, "query") == 0);
    return wrapped ? bval_doc(&elem.val) : ctx->msg.body;
}

struct op_registry *op_registry_new(void)
{
    struct op_registry *registry = mem_alloc(sizeof *registry);
    pthread_mutex_init(&registry->mutex, NULL);
    registry->key_base = (int64_t)(random_u64() >> 2);
    return registry;
}

void op_registry_free(struct op_registry *registry)
{
    if (registry == NULL)
        return;
    pthread_mutex_destroy(&registry->mutex);
    mem_free(registry);
}

unsigned op_registry_count(struct op_registry *registry)
{
    pthread_mutex_lock(&registry->mutex);
    unsigned count = registry->count;
    pthread_mutex_unlock(&registry->mutex);
    return count;
}

void op_begin(struct op_registry *registry, struct command_ctx *ctx)
{
    struct op *op = &ctx->op;
    pthread_mutex_lock(&registry->mutex);
    op->registry = registry;
    op->id = ++registry->last_id;
    op->interrupt.key = registry->key_base + op->id;
    op->next = registry->first;
    if (op->next != NULL)
        op->next->prev = op;
    registry->first = op;
    registry->count++;
    pthread_mutex_unlock(&registry->mutex);
}

void op_end(struct command_ctx *ctx)
{
    struct op *op = &ctx->op;
    struct op_registry *registry = op->registry;
    if (registry == NULL)
        return;
    pthread_mutex_lock(&registry->mutex);
    if (op->prev != NULL)
        op->prev->next = op->next;
    else
        registry->first = op->next;
    if (op->next != NULL)
        op->next->prev = op->prev;
    registry->count--;
    op->registry = NULL;
    pthread_mutex_unlock(&registry->mutex);
}

void op_set_plan(struct command_ctx *ctx, const char *summary)
{
    struct op *op = &ctx->op;
    if (op->registry == NULL)
        return;
    pthread_mutex_lock(&op->registry->mutex);
    snprintf(op->plan_summary, sizeof op->plan_summary, "%s", summary);
    pthread_mutex_unlock(&op->registry->mutex);
}

bool op_set_waiting(struct command_ctx *ctx, const char *what, void (*wake)(void *arg), void *wake_arg)
{
    struct op *op = &ctx->op;
    if (op->registry == NULL)
        return true;
    pthread_mutex_lock(&op->registry->mutex);
    bool alive = what == NULL || atomic_load(&op->interrupt.killed) == 0;
    op->waiting_for = alive ? what : NULL;
    op->wake = alive ? wake : NULL;
    op->wake_arg = wake_arg;
    pthread_mutex_unlock(&op->registry->mutex);
    return alive;
}

static void kill_locked(struct op *op, int32_t code)
{
    interrupt_kill(&op->interrupt, code);
    if (op->wake != NULL)
        op->wake(op->wake_arg);
    op->wake = NULL;
}

bool op_kill_as(struct op_registry *registry, int64_t id, int32_t code)
{
    pthread_mutex_lock(&registry->mutex);
    struct op *op = registry->first;
    while (op != NULL && op->id != id)
        op = op->next;
    if (op != NULL)
        kill_locked(op, code);
    pthread_mutex_unlock(&registry->mutex);
    return op != NULL;
}

bool op_kill(struct op_registry *registry, int64_t id)
{
    return op_kill_as(registry, id, ERR_Interrupted);
}

void op_kill_all(struct op_registry *registry, int32_t code)
{
    pthread_mutex_lock(&registry->mutex);
    for (struct op *op = registry->first; op != NULL; op = op->next)
        kill_locked(op, code);
    pthread_mutex_unlock(&registry->mutex);
}

unsigned op_kill_router_key(struct op_registry *registry, int64_t router_key)
{
    unsigned count = 0;
    pthread_mutex_lock(&registry->mutex);
    for (struct op *op = registry->first; op != NULL && router_key != 0; op = op->next) {
        if (op->router_key != router_key)
            continue;
        kill_locked(op, ERR_Interrupted);
        count++;
    }
    pthread_mutex_unlock(&registry->mutex);
    return count;
}

/* With `lsid` NULL: of any session. */
static bool is_of_session(struct op *op, const uint8_t *lsid)
{
    struct bval val;
    struct bval id;
    uint8_t subtype;
    uint32_t len;
    if (!bdoc_find(body_of(ctx_of_op(op)), "lsid", &val) || val.type != BT_DOCUMENT ||
        !bdoc_find(bval_doc(&val), "id", &id) || id.type != BT_BINARY)
        return false;
    const uint8_t *bytes = bval_binary(&id, &subtype, &len);
    return lsid == NULL || (len == 16 && memcmp(bytes, lsid, len) == 0);
}

unsigned op_kill_session(struct op_registry *registry, const uint8_t *lsid, const struct command_ctx *except)
{
    unsigned count = 0;
    pthread_mutex_lock(&registry->mutex);
    for (struct op *op = registry->first; op != NULL; op = op->next) {
        if ((except != NULL && op == &except->op) || !is_of_session(op, lsid))
            continue;
        kill_locked(op, ERR_Interrupted);
        count++;
    }
    pthread_mutex_unlock(&registry->mutex);
    return count;
}

/* ---- what currentOp shows ---- */

static const char *type_of(const struct command_ctx *ctx)
{
    static const char *const types[][2] = {
        {"find", "query"}, {"getMore", "getmore"}, {"insert", "insert"}, {"update", "update"}, {"delete", "remove"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(ctx->command->name, types[i][0]) == 0)
            return types[i][1];
    }
    return "command";
}

static void append_ns(bson_t *out, const struct command_ctx *ctx)
{
    char ns[COMMAND_DB_MAX + COMMAND_NS_MAX + 2];
    struct bval coll = ctx->value;
    uint32_t len;
    if (coll.type != BT_STRING && (!bdoc_find(body_of(ctx), "collection", &coll) || coll.type != BT_STRING))
        snprintf(ns, sizeof ns, "%s.$cmd%s", ctx->db, strcmp(ctx->name, "aggregate") == 0 ? ".aggregate" : "");
    else
        snprintf(ns, sizeof ns, "%s.%s", ctx->db, bval_str(&coll, &len));
    size_t cut = strlen(ns);
    while (cut > 0 && !bson_utf8_validate(ns, cut, false))
        cut--;
    bson_append_utf8(out, "ns", -1, ns, (int)cut);
}

static bool is_shown(const char *name)
{
    return strncmp(name, "$sherd", 6) != 0 && strcmp(name, "$clusterTime") != 0;
}

/* The command, or the fields of it that fit as a text. */
static void append_command(bson_t *out, struct bdoc body)
{
    bson_t shown = BSON_INITIALIZER;
    bson_t cut;
    struct biter iter;
    struct belem elem;
    bool whole = true;
    biter_init(&iter, body);
    while (biter_next(&iter, &elem)) {
        if (!is_shown(elem.key))
            continue;
        if (shown.len + elem.key_len + elem.val.len > OP_COMMAND_SHOWN_BYTES)
            whole = false;
        else
            bval_append(&shown, elem.key, (int)elem.key_len, &elem.val);
    }
    if (whole) {
        BSON_APPEND_DOCUMENT(out, "command", &shown);
    } else {
        size_t len;
        char *text = bson_as_relaxed_extended_json(&shown, &len);
        BSON_APPEND_DOCUMENT_BEGIN(out, "command", &cut);
        bson_append_utf8(&cut, "$truncated", -1, text != NULL ? text : "", -1);
        bson_append_document_end(out, &cut);
        bson_free(text);
    }
    bson_destroy(&shown);
}

static void append_time(bson_t *out)
{
    char text[40];
    struct tm parts;
    int64_t now_ms = clock_wall_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    gmtime_r(&seconds, &parts);
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + len, sizeof text - len, ".%03d+00:00", (int)(now_ms % 1000));
    BSON_APPEND_UTF8(out, "currentOpTime", text);
}

static void append_client(bson_t *out, const struct op *op, const struct op_list_options *options)
{
    char desc[32];
    if (op->connection_id != 0) {
        snprintf(desc, sizeof desc, "conn%llu", (unsigned long long)op->connection_id);
        BSON_APPEND_UTF8(out, "desc", desc);
        BSON_APPEND_INT64(out, "connectionId", (int64_t)op->connection_id);
    }
    if (op->client != NULL)
        bson_append_utf8(out, options->client_is_router ? "client_s" : "client", -1, op->client, -1);
    if (op->app_name != NULL && op->app_name[0] != '\0')
        BSON_APPEND_UTF8(out, "appName", op->app_name);
}

static void append_op(struct op *op, const struct op_list_options *options, bson_t *out)
{
    const struct command_ctx *ctx = ctx_of_op(op);
    struct bval lsid;
    int64_t elapsed_ms = clock_now_ms() - ctx->started_ms;
    BSON_APPEND_UTF8(out, "type", "op");
    BSON_APPEND_UTF8(out, "host", options->host);
    append_client(out, op, options);
    BSON_APPEND_BOOL(out, "active", true);
    append_time(out);
    BSON_APPEND_BOOL(out, "threaded", true);
    BSON_APPEND_INT64(out, "opid", op->id);
    if (bdoc_find(body_of(ctx), "lsid", &lsid))
        bval_append(out, "lsid", -1, &lsid);
    BSON_APPEND_INT64(out, "secs_running", elapsed_ms / 1000);
    BSON_APPEND_INT64(out, "microsecs_running", elapsed_ms * 1000);
    BSON_APPEND_UTF8(out, "op", type_of(ctx));
    append_ns(out, ctx);
    BSON_APPEND_BOOL(out, "redacted", false);
    append_command(out, body_of(ctx));
    if (op->plan_summary[0] != '\0')
        BSON_APPEND_UTF8(out, "planSummary", op->plan_summary);
    if (op->waiting_for != NULL)
        BSON_APPEND_UTF8(out, "msg", op->waiting_for);
    if (atomic_load(&op->interrupt.killed) != 0)
        BSON_APPEND_BOOL(out, "killPending", true);
    BSON_APPEND_INT32(out, "numYields", 0);
    BSON_APPEND_BOOL(out, "waitingForLock", false);
}

void op_list(struct op_registry *registry, const struct op_list_options *options,
             void (*add)(void *arg, const bson_t *op), void *arg)
{
    size_t bytes = 0;
    pthread_mutex_lock(&registry->mutex);
    for (struct op *op = registry->first; op != NULL && bytes < OP_LIST_MAX_BYTES; op = op->next) {
        bson_t doc = BSON_INITIALIZER;
        append_op(op, options, &doc);
        bytes += doc.len;
        add(arg, &doc);
        bson_destroy(&doc);
    }
    pthread_mutex_unlock(&registry->mutex);
}
