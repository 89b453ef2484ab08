#include "configd/commit.h"

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "cluster/fields.h"
#include "configd/names.h"
#include "configd/view.h"
#include "storage/index_build.h"

#include <string.h>

/* Every collection of the config database, with the indexes beside _id: those of MongoDB's config servers. */
static const struct {
    const char *ns;
    const char *indexes[4]; /* extended JSON; NULL ends */
} collections[] = {
    {NS_SHARDS, {"{\"key\": {\"host\": 1}, \"name\": \"host_1\", \"unique\": true}"}},
    {NS_DATABASES, {NULL}},
    {NS_COLLECTIONS, {"{\"key\": {\"uuid\": 1}, \"name\": \"" INDEX_COLLECTIONS_UUID "\", \"unique\": true}"}},
    {NS_CHUNKS,
     {"{\"key\": {\"uuid\": 1, \"min\": 1}, \"name\": \"" INDEX_CHUNKS_MIN "\", \"unique\": true}",
      "{\"key\": {\"uuid\": 1, \"shard\": 1, \"min\": 1}, \"name\": \"uuid_1_shard_1_min_1\", \"unique\": true}",
      "{\"key\": {\"uuid\": 1, \"lastmod\": 1}, \"name\": \"" INDEX_CHUNKS_LASTMOD "\", \"unique\": true}"}},
    {NS_TAGS,
     {"{\"key\": {\"ns\": 1, \"min\": 1}, \"name\": \"ns_1_min_1\", \"unique\": true}",
      "{\"key\": {\"ns\": 1, \"tag\": 1}, \"name\": \"ns_1_tag_1\"}"}},
    {NS_SETTINGS, {NULL}},
    {NS_LOCKS, {NULL}},
    {NS_MONGOS, {NULL}},
    {NS_CHANGELOG, {"{\"key\": {\"time\": 1}, \"name\": \"time_1\"}"}},
    {NS_ACTIONLOG, {"{\"key\": {\"time\": 1}, \"name\": \"time_1\"}"}},
    {NS_VERSION, {NULL}},
    {NS_MIGRATIONS, {"{\"key\": {\"ns\": 1, \"min\": 1}, \"name\": \"ns_1_min_1\", \"unique\": true}"}},
    {NS_OPERATIONS, {NULL}},
};

enum { COLLECTION_COUNT = sizeof collections / sizeof collections[0] };

void bootstrap_encode(struct buf *out)
{
    bson_t payload = BSON_INITIALIZER;
    bson_t uuids;
    bson_oid_t cluster_id;
    bson_oid_init(&cluster_id, NULL);
    bson_append_oid(&payload, "clusterId", -1, &cluster_id);
    bson_append_document_begin(&payload, "uuids", -1, &uuids);
    for (size_t i = 0; i < COLLECTION_COUNT; i++) {
        uint8_t uuid[CLUSTER_UUID_BYTES];
        random_uuid(uuid);
        append_uuid(&uuids, collections[i].ns, uuid);
    }
    bson_append_document_end(&payload, &uuids);
    buf_append(out, bson_get_data(&payload), payload.len);
    bson_destroy(&payload);
}

static bool version_doc(const struct metadata_view *view, struct bdoc *out)
{
    static const uint8_t one[] = {1, 0, 0, 0};
    struct bval id = {.type = BT_INT32, .len = sizeof one, .data = one};
    return view_get(view, NS_VERSION, &id, out);
}

bool bootstrap_done(const struct metadata_view *view)
{
    struct bdoc doc;
    return version_doc(view, &doc);
}

/* Our own constants on empty collections: nothing here can fail. */
static void create_indexes(struct document_apply *apply, const char *ns, const char *const *indexes)
{
    for (size_t i = 0; i < 4 && indexes[i] != NULL; i++) {
        struct err err;
        bson_error_t error;
        bson_t *spec = bson_new_from_json((const uint8_t *)indexes[i], -1, &error);
        CHECK(spec != NULL);
        const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
        CHECK(coll != NULL);
        if (!index_build_now(apply->txn, coll, bdoc_of(spec), NULL, &err)) {
            log_error("CONFIG", 7002, "An index of the config database can't be built", LOG_STR("ns", ns),
                      LOG_STR("error", err.msg));
            UNREACHABLE();
        }
        bson_destroy(spec);
    }
}

static bool create_collections(struct document_apply *apply, struct bdoc uuids, struct err *err)
{
    for (size_t i = 0; i < COLLECTION_COUNT; i++) {
        uint8_t uuid[CLUSTER_UUID_BYTES];
        const char *ns = collections[i].ns;
        if (catalog_find(apply->txn, ns, strlen(ns)) != NULL) {
            continue;
        }
        if (!field_uuid(uuids, ns, uuid, err) || !document_apply_create(apply, ns, uuid, (struct bdoc){0}, err)) {
            return false;
        }
        create_indexes(apply, ns, collections[i].indexes);
    }
    return true;
}

/* Nothing moves chunks in this version, and sh.status() should say so. */
static bool put_balancer_off(struct document_apply *apply, struct err *err)
{
    bson_t doc = BSON_INITIALIZER;
    bson_append_utf8(&doc, "_id", -1, "balancer", -1);
    bson_append_utf8(&doc, "mode", -1, "off", -1);
    bson_append_bool(&doc, "stopped", -1, true);
    bool ok = document_apply_put(apply, NS_SETTINGS, bdoc_of(&doc), err);
    bson_destroy(&doc);
    return ok;
}

/* The last one: it says that the bootstrap is done. */
static bool put_version(struct document_apply *apply, const bson_oid_t *cluster_id, struct err *err)
{
    bson_t doc = BSON_INITIALIZER;
    bson_append_int32(&doc, "_id", -1, 1);
    bson_append_oid(&doc, "clusterId", -1, cluster_id);
    bool ok = document_apply_put(apply, NS_VERSION, bdoc_of(&doc), err);
    bson_destroy(&doc);
    return ok;
}

bool bootstrap_apply(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len, struct buf *result,
                     struct err *err)
{
    (void)plugin;
    (void)result;
    struct metadata_view view = {.txn = apply->txn, .arena = apply->arena};
    struct bdoc uuids;
    bson_oid_t cluster_id;
    if (bootstrap_done(&view)) {
        return true;
    }
    if (!bdoc_validate(payload, len, BDOC_MAX_WIRE_DEPTH, err)) {
        return false;
    }
    struct bdoc command = {.data = payload, .len = (uint32_t)len};
    if (!field_oid(command, "clusterId", &cluster_id, err) || !field_doc(command, "uuids", &uuids, err) ||
        !create_collections(apply, uuids, err)) {
        return false;
    }
    return put_balancer_off(apply, err) && put_version(apply, &cluster_id, err);
}
