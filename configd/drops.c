#include "configd/names.h"
#include "configd/plans.h"

#include "cluster/fields.h"

#include <string.h>

struct tag_eraser {
    struct change *change;
    const char *ns;
};

static bool erase_tag(void *arg, struct bdoc doc)
{
    struct tag_eraser *eraser = arg;
    struct bval val;
    if (bdoc_find(doc, "ns", &val) && bval_is_str(&val, eraser->ns) && bdoc_find(doc, "_id", &val)) {
        change_erase(eraser->change, NS_TAGS, &val);
    }
    return true;
}

/* Everything that the config service holds of one sharded collection. */
static bool drop_sharded(struct change *change, const struct collection_entry *entry, struct err *err)
{
    struct tag_eraser eraser = {.change = change, .ns = entry->ns};
    bson_t details = BSON_INITIALIZER;
    change_erase_str(change, NS_COLLECTIONS, entry->ns);
    change_erase_chunks(change, entry->uuid);
    append_uuid(&details, "collectionUUID", entry->uuid);
    change_log(change, "dropCollection", entry->ns, &details);
    bson_destroy(&details);
    return view_each(change->view, NS_TAGS, (struct bdoc){0}, erase_tag, &eraser, err) &&
           abort_operations(change, entry->ns, err);
}

bool plan_drop_collection(struct change *change, struct bdoc request, struct err *err)
{
    char ns[CLUSTER_NS_MAX + 1];
    struct collection_entry entry = {0};
    uint8_t uuid[CLUSTER_UUID_BYTES];
    bool by_uuid = bdoc_has(request, "uuid");
    if (!field_str(request, "_configsvrDropCollection", ns, sizeof ns, err) ||
        (by_uuid && !field_uuid(request, "uuid", uuid, err))) {
        return false;
    }
    bool ok = true;
    bool found = view_collection(change->view, ns, &entry);
    bool wanted = found && (!by_uuid || memcmp(uuid, entry.uuid, sizeof uuid) == 0);
    if (wanted) {
        ok = drop_sharded(change, &entry, err);
    } else if (!found) {
        ok = abort_operations(change, ns, err);
    }
    collection_entry_deinit(&entry);
    bson_append_bool(&change->reply, "dropped", -1, wanted);
    return ok;
}

struct collection_dropper {
    struct change *change;
    char prefix[CLUSTER_DB_NAME_MAX + 2]; /* "db." */
    struct err *err;
    bool ok;
};

static bool drop_if_inside(void *arg, struct bdoc doc)
{
    struct collection_dropper *dropper = arg;
    struct collection_entry entry;
    if (!collection_entry_parse(doc, &entry, NULL)) {
        return true;
    }
    if (strncmp(entry.ns, dropper->prefix, strlen(dropper->prefix)) == 0) {
        dropper->ok = drop_sharded(dropper->change, &entry, dropper->err);
    }
    collection_entry_deinit(&entry);
    return dropper->ok;
}

bool plan_drop_database(struct change *change, struct bdoc request, struct err *err)
{
    char db[CLUSTER_DB_NAME_MAX + 1];
    struct database_entry entry;
    if (!field_str(request, "_configsvrDropDatabase", db, sizeof db, err)) {
        return false;
    }
    bool found = view_database(change->view, db, &entry);
    bson_append_bool(&change->reply, "dropped", -1, found);
    if (!found) {
        return true;
    }
    struct collection_dropper dropper = {.change = change, .err = err, .ok = true};
    stpcpy(stpcpy(dropper.prefix, db), ".");
    if (!view_each(change->view, NS_COLLECTIONS, (struct bdoc){0}, drop_if_inside, &dropper, err) || !dropper.ok) {
        return false;
    }
    change_erase_str(change, NS_DATABASES, db);
    change_log(change, "dropDatabase", db, NULL);
    return true;
}
