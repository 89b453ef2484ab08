/* setParameter and what getParameter and serverStatus ask the shards for: settings and counters of the TTL monitor. */
#include "base/clock.h"
#include "base/mem.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/parameters.h"
#include "routerd/request.h"
#include "routerd/scatter.h"

#include <string.h>

enum { PARAMETERS_ASK_MS = 1000 }; /* what is only shown must not hold a command up */

static const char *const shard_parameters[] = {"ttlMonitorEnabled", "ttlMonitorSleepSecs"};

enum { SHARD_PARAMETER_COUNT = sizeof shard_parameters / sizeof shard_parameters[0] };

static bool names_shard_parameter(struct bdoc body)
{
    for (size_t i = 0; i < SHARD_PARAMETER_COUNT; i++) {
        if (bdoc_has(body, shard_parameters[i]))
            return true;
    }
    return false;
}

static enum command_status run_set_parameter(struct command_ctx *ctx, struct err *err)
{
    struct set_list sets;
    struct scatter scatter;
    struct scatter_command command = {.repeatable = true};
    struct bval was;
    struct belem elem;
    struct biter iter;
    if (!names_shard_parameter(ctx->body)) {
        biter_init(&iter, ctx->body);
        bool named = biter_next(&iter, &elem) && biter_next(&iter, &elem) && !field_is_generic(elem.key);
        err_set(err, ERR_InvalidOptions, "attempted to set unrecognized parameter [%s]", named ? elem.key : "");
        return COMMAND_ERROR;
    }
    if (!registry_all(router_of(ctx)->registry, ctx->deadline_ms, &sets, err)) {
        client_error_make(ctx, false, err);
        return COMMAND_ERROR;
    }
    bson_init(&command.body);
    request_append_body(&command.body, ctx->body, NULL);
    bool ok = scatter_sets(ctx, &sets, &command, &scatter, err) == SCATTER_DONE;
    if (ok && scatter.count > 0 && bdoc_find(scatter.requests[0].reply, "was", &was))
        bval_append(&ctx->reply, "was", -1, &was);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    set_list_deinit(&sets);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

/* ---- asking, as far as it can be done at once ---- */

struct answers {
    struct remote_request *requests;
    size_t count;
};

static void ask(struct command_ctx *ctx, const bson_t *body, struct answers *out)
{
    struct set_list sets;
    struct err ignored;
    int64_t limit_ms = deadline_after_ms(PARAMETERS_ASK_MS);
    *out = (struct answers){0};
    if (ctx->deadline_ms < limit_ms)
        limit_ms = ctx->deadline_ms;
    if (!registry_all(router_of(ctx)->registry, limit_ms, &sets, &ignored))
        return;
    out->requests = remote_requests_new(sets.count + 1);
    for (size_t i = 0; i < sets.count; i++) {
        remote_request_init(&out->requests[i], sets.sets[i], true);
        bson_concat(&out->requests[i].body, body);
    }
    out->count = sets.count;
    remote_run(router_of(ctx), out->requests, out->count, limit_ms);
    set_list_deinit(&sets);
}

static void answers_deinit(struct answers *answers)
{
    for (size_t i = 0; i < answers->count; i++)
        remote_request_deinit(&answers->requests[i]);
    mem_free(answers->requests);
}

unsigned parameters_append(struct command_ctx *ctx, bool all)
{
    struct answers answers;
    unsigned found = 0;
    bson_t body = BSON_INITIALIZER;
    if (!all && !names_shard_parameter(ctx->body))
        return 0;
    BSON_APPEND_UTF8(&body, "getParameter", "*");
    BSON_APPEND_UTF8(&body, "$db", "admin");
    ask(ctx, &body, &answers);
    for (size_t i = 0; i < SHARD_PARAMETER_COUNT && answers.count > 0; i++) {
        struct bval value;
        if ((all || bdoc_has(ctx->body, shard_parameters[i])) && answers.requests[0].ok &&
            bdoc_find(answers.requests[0].reply, shard_parameters[i], &value)) {
            bval_append(&ctx->reply, shard_parameters[i], -1, &value);
            found++;
        }
    }
    answers_deinit(&answers);
    bson_destroy(&body);
    return found;
}

static int64_t counter_of(struct bdoc reply, const char *name)
{
    struct bval metrics, ttl, value;
    int64_t number = 0;
    if (bdoc_find(reply, "metrics", &metrics) && metrics.type == BT_DOCUMENT &&
        bdoc_find(bval_doc(&metrics), "ttl", &ttl) && ttl.type == BT_DOCUMENT &&
        bdoc_find(bval_doc(&ttl), name, &value) && !bval_to_i64(&value, &number))
        number = 0;
    return number;
}

void parameters_append_ttl(struct command_ctx *ctx, bson_t *metrics)
{
    static const char *const names[] = {"deletedDocuments", "passes", "subPasses"};
    struct answers answers;
    bson_t ttl;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_INT32(&body, "serverStatus", 1);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    ask(ctx, &body, &answers);
    BSON_APPEND_DOCUMENT_BEGIN(metrics, "ttl", &ttl);
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        int64_t total = 0;
        for (size_t i = 0; i < answers.count; i++)
            total += answers.requests[i].ok ? counter_of(answers.requests[i].reply, names[n]) : 0;
        bson_append_int64(&ttl, names[n], -1, total);
    }
    bson_append_document_end(metrics, &ttl);
    answers_deinit(&answers);
    bson_destroy(&body);
}

static const struct command commands[] = {
    {"setParameter", NULL, COMMAND_WRITE | COMMAND_ADMIN_ONLY, run_set_parameter},
};

const struct command_family commands_parameters = COMMAND_FAMILY(commands);
