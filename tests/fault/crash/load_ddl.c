/* Workers that shard, fill, split and drop collections of their own, one after another. */
#include "load.h"

#include <stdio.h>

enum {
    DDL_DOCUMENTS = 20, /* inserted into each collection */
    NAME_MAX_BYTES = 48,
};

static bool admin_command(struct load_worker *worker, const bson_t *command, bson_error_t *error)
{
    return mongoc_client_command_simple(worker->client, "admin", command, NULL, NULL, error);
}

static enum op_outcome shard(struct load_worker *worker, const char *name)
{
    char ns[NAME_MAX_BYTES + sizeof LOAD_DATABASE + 1];
    bson_t key;
    bson_t command = BSON_INITIALIZER;
    bson_error_t error;
    snprintf(ns, sizeof ns, "%s.%s", LOAD_DATABASE, name);
    bson_append_utf8(&command, "shardCollection", -1, ns, -1);
    bson_append_document_begin(&command, "key", -1, &key);
    bson_append_utf8(&key, "_id", -1, "hashed", -1);
    bson_append_document_end(&command, &key);
    journal_begin(worker->file, OP_SHARD, name, 1);
    bool ok = admin_command(worker, &command, &error);
    bson_destroy(&command);
    return load_finish(worker, ok ? OUTCOME_OK : load_outcome_of(&error));
}

/* False when an insert's outcome was not an acknowledgement: then the rest is left out. */
static bool fill(struct load_worker *worker, const char *name)
{
    mongoc_collection_t *collection = mongoc_client_get_collection(worker->client, LOAD_DATABASE, name);
    bool ok = true;
    for (int i = 0; i < DDL_DOCUMENTS && ok; i++) {
        char id[JOURNAL_ID_MAX + 1];
        char pad[PAD_BYTES + 1];
        bson_t doc = BSON_INITIALIZER;
        bson_error_t error;
        snprintf(id, sizeof id, "%s/%d", name, i);
        journal_pad(id, pad);
        bson_append_utf8(&doc, "_id", -1, id, -1);
        bson_append_int64(&doc, "v", -1, i);
        bson_append_utf8(&doc, "pad", -1, pad, PAD_BYTES);
        journal_begin(worker->file, OP_INSERT, id, i);
        ok = mongoc_collection_insert_one(collection, &doc, NULL, NULL, &error);
        ok = load_finish(worker, ok ? OUTCOME_OK : load_outcome_of(&error)) == OUTCOME_OK;
        bson_destroy(&doc);
    }
    mongoc_collection_destroy(collection);
    return ok;
}

/* Whether it worked is not written down: a split changes no document. The checker looks at the chunks. */
static void split(struct load_worker *worker, const char *name)
{
    char ns[NAME_MAX_BYTES + sizeof LOAD_DATABASE + 1];
    bson_t middle;
    bson_t command = BSON_INITIALIZER;
    bson_error_t error;
    snprintf(ns, sizeof ns, "%s.%s", LOAD_DATABASE, name);
    bson_append_utf8(&command, "split", -1, ns, -1);
    bson_append_document_begin(&command, "middle", -1, &middle);
    bson_append_int64(&middle, "_id", -1, (int64_t)prng_next(&worker->prng));
    bson_append_document_end(&command, &middle);
    (void)admin_command(worker, &command, &error);
    bson_destroy(&command);
}

static void drop(struct load_worker *worker, const char *name)
{
    bson_error_t error;
    mongoc_collection_t *collection = mongoc_client_get_collection(worker->client, LOAD_DATABASE, name);
    journal_begin(worker->file, OP_DROP, name, 0);
    bool ok = mongoc_collection_drop_with_opts(collection, NULL, &error);
    load_finish(worker, ok ? OUTCOME_OK : load_outcome_of(&error));
    mongoc_collection_destroy(collection);
}

void *load_ddl_work(void *arg)
{
    struct load_worker *worker = arg;
    worker->client = load_connect(worker->options->uri);
    for (int64_t made = 0; !load_stop; made++) {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof name, "x-%lld-%d-%lld", (long long)worker->options->run, worker->number, (long long)made);
        if (shard(worker, name) != OUTCOME_OK) {
            continue;
        }
        bool certain = fill(worker, name);
        for (uint64_t splits = prng_below(&worker->prng, 4); splits > 0 && !load_stop; splits--) {
            split(worker, name);
        }
        if (certain && prng_below(&worker->prng, 2) == 0 && !load_stop) {
            drop(worker, name);
        }
    }
    mongoc_client_destroy(worker->client);
    return NULL;
}
