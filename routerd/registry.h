/* The sets that this router knows: the config service, named at start, and the shards as config.shards lists them. Read
 * again when a shard is asked for that it doesn't know. Any thread. */
#ifndef SHERD_ROUTERD_REGISTRY_H
#define SHERD_ROUTERD_REGISTRY_H

#include "routerd/remote_set.h"
#include "routerd/router.h"

struct registry;

enum { REGISTRY_MAX_SHARDS = 1000 };

/* `configdb` is "set/h:p,h:p". ERR_FailedToParse. */
bool registry_new(struct router *router, const char *configdb, struct registry **out, struct err *err) ERR_WARN_UNUSED;
void registry_free(struct registry *registry);

/* Borrowed; lives as long as the registry. */
struct remote_set *registry_config(struct registry *registry);
/* A reference to a shard's set; reads config.shards when the name is unknown. ERR_ShardNotFound. Blocks. */
bool registry_shard(struct registry *registry, const char *name, int64_t deadline_ms, struct remote_set **out,
                    struct err *err) ERR_WARN_UNUSED;

struct set_list {
    struct remote_set **sets; /* in order of names, references */
    size_t count;
};

/* All shards as config.shards has them now. The caller ends with set_list_deinit. Blocks. */
bool registry_all(struct registry *registry, int64_t deadline_ms, struct set_list *out,
                  struct err *err) ERR_WARN_UNUSED;
void set_list_deinit(struct set_list *list);
/* Reads config.shards again. Blocks. */
bool registry_refresh(struct registry *registry, int64_t deadline_ms, struct err *err) ERR_WARN_UNUSED;

#endif
