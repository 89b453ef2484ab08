#include "document/engine.h"

#include "base/mem.h"
#include "command/context.h"
#include "document/claims.h"
#include "document/cursors.h"
#include "document/index_builder.h"
#include "document/index_usage.h"
#include "plan/cache.h"
#include "document/ttl.h"
#include "document/wakeups.h"

#include <pthread.h>
#include <string.h>

struct document_engine {
    struct store *store;
    struct document_log log;
    const struct document_ownership *ownership;
    struct document_cursors *cursors;
    struct document_claims *claims;
    struct index_builder *builder;
    struct index_usage *usage;
    struct plan_cache *plans;
    struct document_wakeups *wakeups;
    struct document_ttl *ttl;
    struct temp_space *temp;
    char *host;
    pthread_mutex_t name_mutex; /* protects member_name */
    char member_name[DOCUMENT_MEMBER_NAME_MAX];
};

struct document_engine *document_engine_of(const struct command_ctx *ctx)
{
    const struct document_host *host = ctx->daemon;
    return host->engine;
}

struct document_engine *document_engine_new(const struct document_engine_options *options)
{
    struct document_engine *engine = mem_alloc(sizeof *engine);
    engine->store = options->store;
    engine->log = options->log;
    engine->ownership = options->ownership;
    engine->temp = options->temp;
    engine->host = mem_copy_str(options->host);
    pthread_mutex_init(&engine->name_mutex, NULL);
    document_engine_set_member_name(engine, options->member_name);
    engine->cursors = document_cursors_new();
    engine->claims = document_claims_new();
    engine->builder = index_builder_new(engine);
    engine->usage = index_usage_new();
    engine->plans = plan_cache_new();
    engine->wakeups = document_wakeups_new();
    engine->ttl = document_ttl_new(engine);
    return engine;
}

void document_engine_free(struct document_engine *engine)
{
    if (engine == NULL)
        return;
    document_ttl_free(engine->ttl);
    index_builder_free(engine->builder);
    index_usage_free(engine->usage);
    plan_cache_free(engine->plans);
    document_cursors_free(engine->cursors);
    document_claims_free(engine->claims);
    document_wakeups_free(engine->wakeups);
    pthread_mutex_destroy(&engine->name_mutex);
    mem_free(engine->host);
    mem_free(engine);
}

struct store *document_engine_store(const struct document_engine *engine)
{
    return engine->store;
}

const struct document_log *document_engine_log(const struct document_engine *engine)
{
    return &engine->log;
}

const struct document_ownership *document_engine_ownership(const struct document_engine *engine)
{
    return engine->ownership;
}

void document_engine_set_ownership(struct document_engine *engine, const struct document_ownership *ownership)
{
    engine->ownership = ownership;
}

struct document_cursors *document_engine_cursors(const struct document_engine *engine)
{
    return engine->cursors;
}

struct document_claims *document_engine_claims(const struct document_engine *engine)
{
    return engine->claims;
}

struct index_builder *document_engine_builder(const struct document_engine *engine)
{
    return engine->builder;
}

struct plan_cache *document_engine_plan_cache(const struct document_engine *engine)
{
    return engine->plans;
}

struct index_usage *document_engine_usage(const struct document_engine *engine)
{
    return engine->usage;
}

struct document_wakeups *document_engine_wakeups(const struct document_engine *engine)
{
    return engine->wakeups;
}

struct document_ttl *document_engine_ttl(const struct document_engine *engine)
{
    return engine->ttl;
}

struct temp_space *document_engine_temp(const struct document_engine *engine)
{
    return engine->temp;
}

const char *document_engine_host(const struct document_engine *engine)
{
    return engine->host;
}

void document_engine_member_name(struct document_engine *engine, char out[DOCUMENT_MEMBER_NAME_MAX])
{
    pthread_mutex_lock(&engine->name_mutex);
    memcpy(out, engine->member_name, sizeof engine->member_name);
    pthread_mutex_unlock(&engine->name_mutex);
}

void document_engine_set_member_name(struct document_engine *engine, const char *name)
{
    pthread_mutex_lock(&engine->name_mutex);
    size_t len = strnlen(name, sizeof engine->member_name - 1);
    memset(engine->member_name, 0, sizeof engine->member_name);
    memcpy(engine->member_name, name, len);
    pthread_mutex_unlock(&engine->name_mutex);
}

void document_engine_tick(struct document_engine *engine)
{
    document_cursors_expire(engine->cursors);
    index_builder_tick(engine->builder);
}

void document_engine_committed(struct document_engine *engine)
{
    document_wakeups_fire(engine->wakeups);
}
