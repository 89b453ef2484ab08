#include "configd/names.h"
#include "configd/plans.h"

#include "base/random.h"
#include "cluster/fields.h"

#include <string.h>
#include <strings.h>

enum { DATABASE_DIFFERS_IN_CASE = 13297 };

static bool is_reserved(const char *db)
{
    return strcasecmp(db, "admin") == 0 || strcasecmp(db, "config") == 0 || strcasecmp(db, "local") == 0;
}

/* What a walk over all databases finds out. */
struct database_survey {
    const char *db;
    char differs[CLUSTER_DB_NAME_MAX + 1]; /* the name that differs only in case; "" when there is none */
    const struct shard_entry *shards;
    size_t shard_count;
    size_t *counts; /* databases by shard */
};

static bool survey_database(void *arg, struct bdoc doc)
{
    struct database_survey *survey = arg;
    struct database_entry entry;
    if (!database_entry_parse(doc, &entry, NULL)) {
        return true;
    }
    if (strcasecmp(entry.name, survey->db) == 0) {
        memcpy(survey->differs, entry.name, sizeof survey->differs);
    }
    for (size_t i = 0; i < survey->shard_count; i++) {
        survey->counts[i] += strcmp(survey->shards[i].name, entry.primary) == 0;
    }
    return true;
}

static bool pick_emptiest(const struct database_survey *survey, char *out, struct err *err)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < survey->shard_count; i++) {
        if (!survey->shards[i].draining && (best == SIZE_MAX || survey->counts[i] < survey->counts[best])) {
            best = i;
        }
    }
    if (best == SIZE_MAX) {
        return err_set(err, ERR_ShardNotFound, "No non-draining shard is available: add one with addShard");
    }
    memcpy(out, survey->shards[best].name, CLUSTER_SHARD_NAME_MAX + 1);
    return true;
}

/* The shard that the request names in `field`, if it does and the shard can take a database. */
static bool named_shard(struct change *change, struct bdoc request, const char *field, char *out, struct err *err)
{
    struct shard_entry shard;
    out[0] = '\0';
    if (!bdoc_has(request, field)) {
        return true;
    }
    if (!field_str(request, field, out, CLUSTER_SHARD_NAME_MAX + 1, err)) {
        return false;
    }
    if (!view_shard(change->view, out, &shard)) {
        return err_set(err, ERR_ShardNotFound, "Shard %s not found", out);
    }
    if (shard.draining) {
        return err_set(err, ERR_ShardNotFound, "Shard %s is currently draining", out);
    }
    return true;
}

static void reply_database(struct change *change, const struct database_entry *entry)
{
    bson_t inner;
    bson_append_document_begin(&change->reply, "database", -1, &inner);
    database_entry_append(&inner, entry);
    bson_append_document_end(&change->reply, &inner);
}

static bool answer_existing(struct change *change, struct bdoc request, const struct database_entry *entry,
                            struct err *err)
{
    char wanted[CLUSTER_SHARD_NAME_MAX + 1];
    if (!named_shard(change, request, "primaryShard", wanted, err)) {
        return false;
    }
    if (wanted[0] != '\0' && strcmp(wanted, entry->primary) != 0) {
        return err_set(err, ERR_NamespaceExists,
                       "Cannot enable sharding for database %s with primary shard %s: it exists with primary shard %s",
                       entry->name, wanted, entry->primary);
    }
    reply_database(change, entry);
    return true;
}

static bool choose_primary(struct change *change, struct bdoc request, struct database_entry *entry, struct err *err)
{
    struct shard_entry *shards;
    struct database_survey survey = {.db = entry->name};
    struct shard_entry preferred;
    survey.shard_count = view_shards(change->view, &shards);
    survey.shards = shards;
    survey.counts = arena_alloc(change->view->arena, (survey.shard_count + 1) * sizeof *survey.counts);
    if (!view_each(change->view, NS_DATABASES, (struct bdoc){0}, survey_database, &survey, err)) {
        return false;
    }
    if (survey.differs[0] != '\0') {
        return err_set(err, DATABASE_DIFFERS_IN_CASE,
                       "db already exists with different case already have: [%s] trying to create [%s]", survey.differs,
                       entry->name);
    }
    if (!named_shard(change, request, "primaryShard", entry->primary, err)) {
        return false;
    }
    if (entry->primary[0] != '\0') {
        return true;
    }
    if (field_str(request, "preferredShard", entry->primary, sizeof entry->primary, NULL) &&
        view_shard(change->view, entry->primary, &preferred) && !preferred.draining) {
        return true;
    }
    return pick_emptiest(&survey, entry->primary, err);
}

bool plan_create_database(struct change *change, struct bdoc request, struct err *err)
{
    struct database_entry entry = {.last_mod = 1};
    if (!field_str(request, "_configsvrCreateDatabase", entry.name, sizeof entry.name, err) ||
        !db_name_check(entry.name, strlen(entry.name), err)) {
        return false;
    }
    if (is_reserved(entry.name)) {
        return err_set(err, ERR_InvalidOptions, "database '%s' is the cluster's own", entry.name);
    }
    struct database_entry existing;
    if (view_database(change->view, entry.name, &existing)) {
        return answer_existing(change, request, &existing, err);
    }
    if (!choose_primary(change, request, &entry, err)) {
        return false;
    }
    entry.timestamp = change_timestamp(change);
    random_uuid(entry.uuid);
    bson_t doc = BSON_INITIALIZER;
    database_entry_append(&doc, &entry);
    change_put(change, NS_DATABASES, &doc);
    change_log(change, "createDatabase", entry.name, NULL);
    bson_destroy(&doc);
    reply_database(change, &entry);
    return true;
}
