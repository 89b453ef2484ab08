#include "configd/names.h"
#include "configd/plans.h"

#include "cluster/fields.h"

#include <string.h>

static bool lists_share_a_host(const struct host_list *a, const struct host_list *b, const char **host)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < b->count; j++) {
            if (strcmp(a->hosts[i], b->hosts[j]) == 0) {
                *host = a->hosts[i];
                return true;
            }
        }
    }
    return false;
}

/* How the wanted shard stands to one that is there. *same: it is that one already. */
static bool check_against(const struct shard_entry *wanted, const struct host_list *hosts,
                          const struct shard_entry *there, bool *same, struct err *err)
{
    struct host_list there_hosts;
    const char *host;
    if (!host_list_parse(there->host, &there_hosts, err)) {
        return false;
    }
    bool same_name = strcmp(wanted->name, there->name) == 0;
    bool same_set = strcmp(hosts->set, there_hosts.set) == 0;
    if (same_name && same_set) {
        *same = true;
        return true;
    }
    if (same_set) {
        return err_set(err, ERR_IllegalOperation, "A shard named '%s' containing the replica set '%s' already exists",
                       there->name, hosts->set);
    }
    if (same_name) {
        return err_set(err, ERR_IllegalOperation, "A shard named '%s' already exists with the connection string '%s'",
                       there->name, there->host);
    }
    if (lists_share_a_host(hosts, &there_hosts, &host)) {
        return err_set(err, ERR_IllegalOperation, "'%s' is already a member of the existing shard '%s'", host,
                       there->name);
    }
    return true;
}

static bool check_shard_name(const char *name, struct err *err)
{
    if (strcmp(name, "config") == 0 || strcmp(name, "local") == 0 || strcmp(name, "admin") == 0) {
        return err_set(err, ERR_BadValue, "a shard can't be named '%s'", name);
    }
    return true;
}

static void put_shard(struct change *change, struct shard_entry *entry)
{
    bson_t doc = BSON_INITIALIZER;
    bson_t details = BSON_INITIALIZER;
    entry->topology_time = change_timestamp(change);
    shard_entry_append(&doc, entry);
    change_put(change, NS_SHARDS, &doc);
    bson_append_utf8(&details, "name", -1, entry->name, -1);
    bson_append_utf8(&details, "host", -1, entry->host, -1);
    change_log(change, "addShard", "", &details);
    bson_destroy(&details);
    bson_destroy(&doc);
}

bool plan_add_shard(struct change *change, struct bdoc request, struct err *err)
{
    struct shard_entry wanted = {0};
    struct host_list hosts;
    if (!field_str(request, "host", wanted.host, sizeof wanted.host, err) ||
        !host_list_parse(wanted.host, &hosts, err)) {
        return false;
    }
    if (hosts.set[0] == '\0') {
        return err_set(err, ERR_BadValue, "a shard's connection string must name its set: set/host:port,...");
    }
    if (!bdoc_has(request, "name")) {
        memcpy(wanted.name, hosts.set, sizeof wanted.name);
    } else if (!field_str(request, "name", wanted.name, sizeof wanted.name, err)) {
        return false;
    }
    if (!check_shard_name(wanted.name, err) || !check_shard_name(hosts.set, err)) {
        return false;
    }
    struct shard_entry *entries;
    size_t count = view_shards(change->view, &entries);
    bool same = false;
    for (size_t i = 0; i < count; i++) {
        if (!check_against(&wanted, &hosts, &entries[i], &same, err)) {
            return false;
        }
    }
    if (!same) {
        put_shard(change, &wanted);
    }
    bson_append_utf8(&change->reply, "shardAdded", -1, wanted.name, -1);
    return true;
}
