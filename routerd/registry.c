#include "routerd/registry.h"

#include "base/map.h"
#include "base/mem.h"
#include "routerd/remote.h"

#include <stdlib.h>
#include <string.h>

struct registry {
    struct router *router;
    struct remote_set *config;
    pthread_mutex_t lock; /* guards `shards`; never held over a wait */
    struct map shards;    /* name -> struct remote_set *, a reference each */
};

bool registry_new(struct router *router, const char *configdb, struct registry **out, struct err *err)
{
    struct registry *registry = mem_alloc(sizeof *registry);
    registry->router = router;
    pthread_mutex_init(&registry->lock, NULL);
    if (!remote_set_new("config", configdb, &registry->config, err)) {
        registry_free(registry);
        return false;
    }
    *out = registry;
    return true;
}

static void shards_clear(struct map *shards)
{
    for (struct map_entry *entry = map_next(shards, NULL); entry; entry = map_next(shards, entry))
        remote_set_unref(entry->value);
    map_deinit(shards);
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    shards_clear(&registry->shards);
    remote_set_unref(registry->config);
    pthread_mutex_destroy(&registry->lock);
    mem_free(registry);
}

struct remote_set *registry_config(struct registry *registry)
{
    return registry->config;
}

/* Adds the set of one config.shards document to `shards`: the old object where nothing changed, so that what is known
 * about its leader stays. */
static bool shards_add(struct map *shards, const struct map *old, struct bdoc doc, struct err *err)
{
    struct shard_entry entry;
    if (!shard_entry_parse(doc, &entry, err))
        return false;
    size_t len = strlen(entry.name);
    struct remote_set *set = map_get(old, entry.name, len);
    if (set && strcmp(set->host, entry.host) == 0)
        remote_set_ref(set);
    else if (!remote_set_new(entry.name, entry.host, &set, err))
        return false;
    remote_set_unref(map_put(shards, entry.name, len, set));
    return true;
}

static bool shards_read(struct registry *registry, struct bdoc batch, struct err *err)
{
    struct map shards = MAP_INIT;
    struct biter iter;
    struct belem elem;
    bool ok = true;
    pthread_mutex_lock(&registry->lock);
    biter_init(&iter, batch);
    while (ok && biter_next(&iter, &elem))
        ok = elem.val.type == BT_DOCUMENT && shards_add(&shards, &registry->shards, bval_doc(&elem.val), err);
    struct map old = ok ? registry->shards : shards;
    if (ok)
        registry->shards = shards;
    pthread_mutex_unlock(&registry->lock);
    shards_clear(&old);
    return ok;
}

bool registry_refresh(struct registry *registry, int64_t deadline_ms, struct err *err)
{
    struct remote_request request;
    remote_request_init_config(&request, registry->router, true);
    BSON_APPEND_UTF8(&request.body, "find", "shards");
    BSON_APPEND_INT32(&request.body, "batchSize", REGISTRY_MAX_SHARDS);
    BSON_APPEND_BOOL(&request.body, "singleBatch", true);
    BSON_APPEND_UTF8(&request.body, "$db", "config");
    bool ok = remote_run_one(registry->router, &request, deadline_ms, err);
    if (ok) {
        struct bval cursor, batch;
        ok = bdoc_find(request.reply, "cursor", &cursor) && cursor.type == BT_DOCUMENT &&
             bdoc_find(bval_doc(&cursor), "firstBatch", &batch) && batch.type == BT_ARRAY;
        if (!ok)
            err_set(err, ERR_FailedToParse, "the config service's answer about shards can't be read");
        else
            ok = shards_read(registry, bval_doc(&batch), err);
    }
    remote_request_deinit(&request);
    return ok;
}

static struct remote_set *registry_find(struct registry *registry, const char *name)
{
    pthread_mutex_lock(&registry->lock);
    struct remote_set *set = map_get(&registry->shards, name, strlen(name));
    if (set)
        remote_set_ref(set);
    pthread_mutex_unlock(&registry->lock);
    return set;
}

bool registry_shard(struct registry *registry, const char *name, int64_t deadline_ms, struct remote_set **out,
                    struct err *err)
{
    *out = registry_find(registry, name);
    if (*out)
        return true;
    if (!registry_refresh(registry, deadline_ms, err))
        return false;
    *out = registry_find(registry, name);
    return *out || err_set(err, ERR_ShardNotFound, "Shard %s not found", name);
}

static int set_compare(const void *a, const void *b)
{
    return strcmp((*(struct remote_set *const *)a)->name, (*(struct remote_set *const *)b)->name);
}

bool registry_all(struct registry *registry, int64_t deadline_ms, struct set_list *out, struct err *err)
{
    *out = (struct set_list){0};
    if (!registry_refresh(registry, deadline_ms, err))
        return false;
    pthread_mutex_lock(&registry->lock);
    out->sets = mem_alloc_array(registry->shards.count + 1, sizeof *out->sets);
    for (struct map_entry *e = map_next(&registry->shards, NULL); e; e = map_next(&registry->shards, e))
        out->sets[out->count++] = remote_set_ref(e->value);
    pthread_mutex_unlock(&registry->lock);
    qsort(out->sets, out->count, sizeof *out->sets, set_compare);
    return true;
}

void set_list_deinit(struct set_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        remote_set_unref(list->sets[i]);
    mem_free(list->sets);
    *list = (struct set_list){0};
}
