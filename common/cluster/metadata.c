#include "cluster/metadata.h"

#include "cluster/fields.h"

#include <stdlib.h>
#include <string.h>

bool shard_entry_parse(struct bdoc doc, struct shard_entry *out, struct err *err)
{
    struct shard_entry entry = {0};
    if (!field_str(doc, "_id", entry.name, sizeof entry.name, err) ||
        !field_str(doc, "host", entry.host, sizeof entry.host, err)) {
        return false;
    }
    entry.draining = field_flag(doc, "draining");
    if (bdoc_has(doc, "topologyTime") && !field_timestamp(doc, "topologyTime", &entry.topology_time, err)) {
        return false;
    }
    *out = entry;
    return true;
}

void shard_entry_append(bson_t *to, const struct shard_entry *entry)
{
    bson_append_utf8(to, "_id", -1, entry->name, -1);
    bson_append_utf8(to, "host", -1, entry->host, -1);
    bson_append_int32(to, "state", -1, 1);
    append_timestamp(to, "topologyTime", entry->topology_time);
    if (entry->draining) {
        bson_append_bool(to, "draining", -1, true);
    }
}

bool database_entry_parse(struct bdoc doc, struct database_entry *out, struct err *err)
{
    struct database_entry entry = {0};
    struct bdoc version;
    int64_t last_mod;
    if (!field_str(doc, "_id", entry.name, sizeof entry.name, err) ||
        !field_str(doc, "primary", entry.primary, sizeof entry.primary, err) ||
        !field_doc(doc, "version", &version, err) || !field_uuid(version, "uuid", entry.uuid, err) ||
        !field_timestamp(version, "timestamp", &entry.timestamp, err) ||
        !field_i64(version, "lastMod", &last_mod, err)) {
        return false;
    }
    if (last_mod < 1 || last_mod > INT32_MAX) {
        return err_set(err, ERR_BadValue, "version.lastMod of database %s is out of range", entry.name);
    }
    entry.last_mod = (int32_t)last_mod;
    entry.partitioned = field_flag(doc, "partitioned");
    *out = entry;
    return true;
}

void database_entry_append(bson_t *to, const struct database_entry *entry)
{
    bson_append_utf8(to, "_id", -1, entry->name, -1);
    bson_append_utf8(to, "primary", -1, entry->primary, -1);
    bson_append_bool(to, "partitioned", -1, entry->partitioned);
    bson_t version;
    bson_append_document_begin(to, "version", -1, &version);
    append_uuid(&version, "uuid", entry->uuid);
    append_timestamp(&version, "timestamp", entry->timestamp);
    bson_append_int32(&version, "lastMod", -1, entry->last_mod);
    bson_append_document_end(to, &version);
}

bool collection_entry_parse(struct bdoc doc, struct collection_entry *out, struct err *err)
{
    struct collection_entry entry = {0};
    struct bdoc pattern;
    if (!field_str(doc, "_id", entry.ns, sizeof entry.ns, err) || !field_uuid(doc, "uuid", entry.uuid, err) ||
        !field_oid(doc, "lastmodEpoch", &entry.epoch, err) ||
        !field_timestamp(doc, "timestamp", &entry.timestamp, err) ||
        !field_date(doc, "lastmod", &entry.last_mod_ms, err) || !field_doc(doc, "key", &pattern, err) ||
        !shardkey_parse(pattern, &entry.key, err)) {
        return false;
    }
    entry.unique = field_flag(doc, "unique");
    entry.no_balance = field_flag(doc, "noBalance");
    if (bdoc_has(doc, "defaultCollation")) {
        struct bdoc collation;
        if (!field_doc(doc, "defaultCollation", &collation, err)) {
            collection_entry_deinit(&entry);
            return false;
        }
        collection_entry_set_collation(&entry, collation);
    }
    *out = entry;
    return true;
}

void collection_entry_set_collation(struct collection_entry *entry, struct bdoc collation)
{
    buf_clear(&entry->default_collation);
    if (collation.data != NULL) {
        buf_append(&entry->default_collation, collation.data, collation.len);
    }
}

struct bdoc collection_entry_collation(const struct collection_entry *entry)
{
    struct bdoc none = {0};
    const struct buf *bytes = &entry->default_collation;
    return bytes->len == 0 ? none : (struct bdoc){.data = bytes->data, .len = (uint32_t)bytes->len};
}

void collection_entry_append(bson_t *to, const struct collection_entry *entry)
{
    bson_append_utf8(to, "_id", -1, entry->ns, -1);
    bson_append_oid(to, "lastmodEpoch", -1, &entry->epoch);
    bson_append_date_time(to, "lastmod", -1, entry->last_mod_ms);
    append_timestamp(to, "timestamp", entry->timestamp);
    append_uuid(to, "uuid", entry->uuid);
    append_bdoc(to, "key", shardkey_pattern(entry->key));
    bson_append_bool(to, "unique", -1, entry->unique);
    bson_append_bool(to, "noBalance", -1, entry->no_balance);
    if (entry->default_collation.len > 0) {
        append_bdoc(to, "defaultCollation", collection_entry_collation(entry));
    }
}

void collection_entry_deinit(struct collection_entry *entry)
{
    shardkey_unref(entry->key);
    entry->key = NULL;
    buf_deinit(&entry->default_collation);
}

static bool db_name_fits(const char *db, size_t len)
{
    if (len == 0 || len > CLUSTER_DB_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (db[i] == '\0' || strchr("/\\. \"$", db[i]) != NULL) {
            return false;
        }
    }
    return true;
}

bool db_name_check(const char *db, size_t len, struct err *err)
{
    if (db_name_fits(db, len)) {
        return true;
    }
    return err_set(err, ERR_InvalidNamespace, "Invalid database name: '%.*s'", (int)(len > 200 ? 200 : len), db);
}

bool ns_split(const char *ns, size_t ns_len, char db[CLUSTER_DB_NAME_MAX + 1], const char **collection)
{
    const char *dot = memchr(ns, '.', ns_len);
    if (dot == NULL || ns_len > CLUSTER_NS_MAX || !db_name_fits(ns, (size_t)(dot - ns))) {
        return false;
    }
    size_t rest = ns_len - (size_t)(dot - ns) - 1;
    if (rest == 0 || dot[1] == '.' || memchr(ns, '\0', ns_len) != NULL) {
        return false;
    }
    memcpy(db, ns, (size_t)(dot - ns));
    db[dot - ns] = '\0';
    *collection = dot + 1;
    return true;
}

bool ns_check(const char *ns, size_t ns_len, struct err *err)
{
    char db[CLUSTER_DB_NAME_MAX + 1];
    const char *collection;
    if (ns_split(ns, ns_len, db, &collection)) {
        return true;
    }
    return err_set(err, ERR_InvalidNamespace, "Invalid namespace specified '%.*s'", (int)(ns_len > 300 ? 300 : ns_len),
                   ns);
}

static bool host_fits(const char *host, size_t len)
{
    const char *colon = memrchr(host, ':', len);
    if (colon == NULL || colon == host || len >= sizeof((struct host_list *)0)->hosts[0]) {
        return false;
    }
    char *end;
    long port = strtol(colon + 1, &end, 10);
    return end == host + len && end != colon + 1 && port > 0 && port <= UINT16_MAX;
}

bool host_list_parse(const char *text, struct host_list *out, struct err *err)
{
    *out = (struct host_list){0};
    const char *pos = text;
    const char *slash = strchr(text, '/');
    if (slash != NULL) {
        if (slash == text || slash - text > CLUSTER_SHARD_NAME_MAX) {
            return err_set(err, ERR_FailedToParse, "The set name in '%s' is empty or too long", text);
        }
        memcpy(out->set, text, (size_t)(slash - text));
        pos = slash + 1;
    }
    for (;;) {
        const char *comma = strchrnul(pos, ',');
        if (!host_fits(pos, (size_t)(comma - pos))) {
            return err_set(err, ERR_FailedToParse, "'%s' is not a list of host:port", text);
        }
        if (out->count == sizeof out->hosts / sizeof out->hosts[0]) {
            return err_set(err, ERR_FailedToParse, "'%s' names too many hosts", text);
        }
        memcpy(out->hosts[out->count], pos, (size_t)(comma - pos));
        out->hosts[out->count++][comma - pos] = '\0';
        if (*comma == '\0') {
            return true;
        }
        pos = comma + 1;
    }
}
