/* The load of the crash test: many connections that insert, change and delete documents of their own and raise counters
 * that all share, through the routers, with every operation written to a journal (journal.h) before it is sent and
 * after its end. Runs for --seconds or until SIGTERM, whatever happens to the daemons; ends with 0 when its journals
 * are complete. --setup shards the two collections and creates the counters first. */
#include "load.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "config/options.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LIVE_MAX = 500,      /* documents of its own that a thread goes on changing */
    ERROR_PAUSE_MS = 20, /* after an operation that failed */
    SETUP_PATIENCE_MS = 60000,
};

atomic_bool load_stop;

struct live_document {
    char id[JOURNAL_ID_MAX + 1];
    int64_t value;
};

/* One that changes documents of its own and the counters. */
struct worker {
    struct load_worker base; /* first: the threads' mains take either */
    mongoc_collection_t *documents;
    mongoc_collection_t *counters;
    struct live_document *live;
    size_t live_count;
    int64_t made; /* documents tried so far, for ids */
};

static void on_signal(int number)
{
    (void)number;
    load_stop = true;
}

enum op_outcome load_outcome_of(const bson_error_t *error)
{
    return error->domain == MONGOC_ERROR_SERVER_SELECTION ? OUTCOME_NONE : OUTCOME_UNKNOWN;
}

enum op_outcome load_finish(struct load_worker *worker, enum op_outcome outcome)
{
    journal_end(worker->file, outcome);
    worker->acked += outcome == OUTCOME_OK;
    worker->unknown += outcome == OUTCOME_UNKNOWN;
    worker->unsent += outcome == OUTCOME_NONE;
    if (outcome != OUTCOME_OK && !load_stop) {
        clock_sleep_ms(ERROR_PAUSE_MS);
    }
    return outcome;
}

static int64_t reply_count(const bson_t *reply, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, reply, field) ? bson_iter_as_int64(&iter) : 0;
}

/* The outcome of an update or delete that must have hit one document. */
static enum op_outcome hit_outcome(bool ok, const bson_t *reply, const char *field, const bson_error_t *error)
{
    if (!ok) {
        return load_outcome_of(error);
    }
    return reply_count(reply, field) == 1 ? OUTCOME_OK : OUTCOME_MISSING;
}

static void forget(struct worker *worker, size_t index)
{
    worker->live[index] = worker->live[--worker->live_count];
}

static void insert_document(struct worker *worker)
{
    char pad[PAD_BYTES + 1];
    struct live_document document = {.value = (int64_t)prng_below(&worker->base.prng, 1000000)};
    snprintf(document.id, sizeof document.id, "d-%lld-%d-%lld", (long long)worker->base.options->run,
             worker->base.number, (long long)worker->made++);
    journal_pad(document.id, pad);
    bson_t doc = BSON_INITIALIZER;
    bson_append_utf8(&doc, "_id", -1, document.id, -1);
    bson_append_int64(&doc, "v", -1, document.value);
    bson_append_utf8(&doc, "pad", -1, pad, PAD_BYTES);
    bson_error_t error;
    journal_begin(worker->base.file, OP_INSERT, document.id, document.value);
    bool ok = mongoc_collection_insert_one(worker->documents, &doc, NULL, NULL, &error);
    if (load_finish(&worker->base, ok ? OUTCOME_OK : load_outcome_of(&error)) == OUTCOME_OK &&
        worker->live_count < LIVE_MAX) {
        worker->live[worker->live_count++] = document;
    }
    bson_destroy(&doc);
}

/* {$set: {v: VALUE}} as a pipeline, which the leader evaluates. */
static enum op_outcome compute_one(mongoc_collection_t *collection, const char *id, int64_t value)
{
    bson_t reply;
    bson_error_t error;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(id));
    bson_t *update = BCON_NEW("0", "{", "$set", "{", "v", "{", "$add", "[", BCON_INT64(value - 1), BCON_INT32(1), "]",
                              "}", "}", "}");
    bool ok = mongoc_collection_update_one(collection, filter, update, NULL, &reply, &error);
    enum op_outcome outcome = hit_outcome(ok, &reply, "matchedCount", &error);
    bson_destroy(&reply);
    bson_destroy(update);
    bson_destroy(filter);
    return outcome;
}

static enum op_outcome update_one(mongoc_collection_t *collection, const char *id, const char *operator,
                                  const char * field, int64_t value)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    bson_t fields;
    bson_t reply;
    bson_error_t error;
    bson_append_utf8(&filter, "_id", -1, id, -1);
    bson_append_document_begin(&update, operator, - 1, &fields);
    bson_append_int64(&fields, field, -1, value);
    bson_append_document_end(&update, &fields);
    bool ok = mongoc_collection_update_one(collection, &filter, &update, NULL, &reply, &error);
    enum op_outcome outcome = hit_outcome(ok, &reply, "matchedCount", &error);
    bson_destroy(&reply);
    bson_destroy(&update);
    bson_destroy(&filter);
    return outcome;
}

static void set_document(struct worker *worker)
{
    size_t index = (size_t)prng_below(&worker->base.prng, worker->live_count);
    struct live_document *document = &worker->live[index];
    int64_t value = document->value + 1;
    journal_begin(worker->base.file, OP_SET, document->id, value);
    bool compute = prng_below(&worker->base.prng, 2) == 0;
    enum op_outcome outcome = compute ? compute_one(worker->documents, document->id, value)
                                      : update_one(worker->documents, document->id, "$set", "v", value);
    load_finish(&worker->base, outcome);
    if (outcome == OUTCOME_OK) {
        document->value = value;
    } else if (outcome != OUTCOME_NONE) {
        forget(worker, index);
    }
}

static void delete_document(struct worker *worker)
{
    size_t index = (size_t)prng_below(&worker->base.prng, worker->live_count);
    bson_t filter = BSON_INITIALIZER;
    bson_t reply;
    bson_error_t error;
    bson_append_utf8(&filter, "_id", -1, worker->live[index].id, -1);
    journal_begin(worker->base.file, OP_DELETE, worker->live[index].id, 0);
    bool ok = mongoc_collection_delete_one(worker->documents, &filter, NULL, &reply, &error);
    if (load_finish(&worker->base, hit_outcome(ok, &reply, "deletedCount", &error)) != OUTCOME_NONE) {
        forget(worker, index);
    }
    bson_destroy(&reply);
    bson_destroy(&filter);
}

static void counter_id(int64_t number, char out[JOURNAL_ID_MAX + 1])
{
    snprintf(out, JOURNAL_ID_MAX + 1, "c-%lld", (long long)number);
}

static void raise_counter(struct worker *worker)
{
    char id[JOURNAL_ID_MAX + 1];
    int64_t delta = 1 + (int64_t)prng_below(&worker->base.prng, 9);
    counter_id((int64_t)prng_below(&worker->base.prng, (uint64_t)worker->base.options->counters), id);
    journal_begin(worker->base.file, OP_INC, id, delta);
    load_finish(&worker->base, update_one(worker->counters, id, "$inc", "v", delta));
}

static void step(struct worker *worker)
{
    uint64_t dice = prng_below(&worker->base.prng, 100);
    if (dice < 45 || worker->live_count == 0) {
        insert_document(worker);
    } else if (dice < 65) {
        set_document(worker);
    } else if (dice < 90) {
        raise_counter(worker);
    } else {
        delete_document(worker);
    }
}

mongoc_client_t *load_connect(const char *uri)
{
    mongoc_client_t *client = mongoc_client_new(uri);
    if (client == NULL) {
        fprintf(stderr, "load: not a connection string: %s\n", uri);
        exit(2);
    }
    return client;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    worker->base.client = load_connect(worker->base.options->uri);
    worker->documents = mongoc_client_get_collection(worker->base.client, LOAD_DATABASE, "documents");
    worker->counters = mongoc_client_get_collection(worker->base.client, LOAD_DATABASE, "counters");
    while (!load_stop) {
        step(worker);
    }
    mongoc_collection_destroy(worker->documents);
    mongoc_collection_destroy(worker->counters);
    mongoc_client_destroy(worker->base.client);
    return NULL;
}

/* ---- setup ---- */

/* Until it works: routers may start before the shards. */
static bool command_until_it_works(mongoc_client_t *client, const char *db, const char *json)
{
    int64_t deadline = deadline_after_ms(SETUP_PATIENCE_MS);
    bson_error_t error;
    bson_t *command = bson_new_from_json((const uint8_t *)json, -1, &error);
    bool ok = false;
    while (command != NULL && !ok && !deadline_passed(deadline)) {
        ok = mongoc_client_command_simple(client, db, command, NULL, NULL, &error);
        if (!ok) {
            clock_sleep_ms(200);
        }
    }
    bson_destroy(command);
    if (!ok) {
        fprintf(stderr, "load: %s: %s\n", json, error.message);
    }
    return ok;
}

static bool create_counter(mongoc_collection_t *counters, int file, int64_t number)
{
    char id[JOURNAL_ID_MAX + 1];
    bson_error_t error;
    bson_t doc = BSON_INITIALIZER;
    counter_id(number, id);
    bson_append_utf8(&doc, "_id", -1, id, -1);
    bson_append_int64(&doc, "v", -1, 0);
    journal_begin(file, OP_COUNTER, id, 0);
    bool ok = mongoc_collection_insert_one(counters, &doc, NULL, NULL, &error);
    journal_end(file, ok ? OUTCOME_OK : OUTCOME_UNKNOWN);
    bson_destroy(&doc);
    if (!ok) {
        fprintf(stderr, "load: counter %s: %s\n", id, error.message);
    }
    return ok;
}

static bool admin_command(mongoc_client_t *client, const char *json)
{
    return command_until_it_works(client, "admin", json);
}

/* The documents whose every operation is known get indexes of all kinds, and a validator that all of them pass. */
static bool index_documents(mongoc_client_t *client)
{
    static const char *const commands[] = {
        "{\"createIndexes\": \"documents\", \"indexes\": [{\"name\": \"w\", \"key\": {\"$**\": 1}},"
        " {\"name\": \"c\", \"key\": {\"pad\": 1, \"v\": -1}, \"collation\": {\"locale\": \"en\"}},"
        " {\"name\": \"p\", \"key\": {\"v\": 1}, \"partialFilterExpression\": {\"v\": {\"$gt\": 500000}}}]}",
        "{\"collMod\": \"documents\", \"validator\": {\"v\": {\"$type\": \"long\"}, \"pad\": {\"$regex\": \"...\"}}}",
    };
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof commands / sizeof commands[0]; i++)
        ok = command_until_it_works(client, LOAD_DATABASE, commands[i]);
    return ok;
}

static bool set_up(const struct load_options *options)
{
    char path[4096];
    struct err err;
    mongoc_client_t *client = load_connect(options->uri);
    bool ok = admin_command(client, "{\"enableSharding\": \"crash\"}") &&
              admin_command(client, "{\"shardCollection\": \"crash.documents\", \"key\": {\"_id\": \"hashed\"}}") &&
              admin_command(client, "{\"shardCollection\": \"crash.counters\", \"key\": {\"_id\": \"hashed\"}}");
    ok = ok && index_documents(client) && load_kinds_set_up(client);
    snprintf(path, sizeof path, "%s/setup.journal", options->journal);
    int file = ok ? journal_open(path, &err) : -1;
    mongoc_collection_t *counters = mongoc_client_get_collection(client, LOAD_DATABASE, "counters");
    for (int64_t i = 0; i < options->counters && ok; i++) {
        ok = file >= 0 && create_counter(counters, file, i);
    }
    mongoc_collection_destroy(counters);
    mongoc_client_destroy(client);
    if (file >= 0) {
        close(file);
    }
    return ok;
}

/* ---- the run ---- */

static bool worker_init(struct worker *worker, const struct load_options *options, int number)
{
    char path[4096];
    struct err err;
    *worker = (struct worker){.base = {.options = options, .number = number, .prng.state = random_u64()}};
    worker->live = mem_alloc_array(LIVE_MAX, sizeof *worker->live);
    snprintf(path, sizeof path, "%s/%04lld-%03d.journal", options->journal, (long long)options->run, number);
    worker->base.file = journal_open(path, &err);
    if (worker->base.file < 0) {
        fprintf(stderr, "load: %s\n", err.msg);
    }
    return worker->base.file >= 0;
}

static void wait_for_the_end(int64_t seconds)
{
    int64_t deadline = deadline_after_ms(seconds * 1000);
    while (!load_stop && !deadline_passed(deadline)) {
        clock_sleep_ms(10);
    }
    load_stop = true;
}

static void end_worker(struct worker *worker, struct load_worker *sum)
{
    sum->acked += worker->base.acked;
    sum->unknown += worker->base.unknown;
    sum->unsent += worker->base.unsent;
    close(worker->base.file);
    mem_free(worker->live);
}

static int run_load(const struct load_options *options)
{
    int count = (int)(options->threads + options->ddl_threads + options->kinds_threads);
    struct worker *workers = mem_alloc_array((size_t)count, sizeof *workers);
    pthread_t *threads = mem_alloc_array((size_t)count, sizeof *threads);
    struct load_worker sum = {0};
    for (int i = 0; i < count; i++) {
        if (!worker_init(&workers[i], options, i)) {
            return 1;
        }
    }
    for (int i = 0; i < count; i++) {
        void *(*main_of)(void *) = i < options->threads                          ? work
                                   : i < options->threads + options->ddl_threads ? load_ddl_work
                                                                                 : load_kinds_work;
        thread_start(&threads[i], "load", main_of, &workers[i]);
    }
    wait_for_the_end(options->seconds);
    for (int i = 0; i < count; i++) {
        thread_join(threads[i]);
        end_worker(&workers[i], &sum);
    }
    printf("load: run %lld: %lld acknowledged, %lld unknown, %lld not sent\n", (long long)options->run,
           (long long)sum.acked, (long long)sum.unknown, (long long)sum.unsent);
    mem_free(threads);
    mem_free(workers);
    return 0;
}

/* The driver must not repeat anything: the journal has to know of every attempt. */
static char *full_uri(const char *uri)
{
    return mem_printf("%s%sretryWrites=false&retryReads=false&serverSelectionTimeoutMS=1000&connectTimeoutMS=1000"
                      "&socketTimeoutMS=15000&heartbeatFrequencyMS=1000&serverSelectionTryOnce=false",
                      uri, strchr(uri, '?') == NULL ? "?" : "&");
}

int main(int argc, char **argv)
{
    struct load_options load = {.threads = 16, .ddl_threads = 2, .kinds_threads = 3, .seconds = 3600, .counters = 10};
    const struct option options[] = {
        {"uri", OPTION_STR, &load.uri, 0, 0, "URI", "connection string of the routers (required)"},
        {"journal", OPTION_STR, &load.journal, 0, 0, "DIR", "folder of the journals, which must exist (required)"},
        {"run", OPTION_INT, &load.run, 0, 9999, "N", "number of this run: part of its ids"},
        {"threads", OPTION_INT, &load.threads, 1, 512, "N", "connections (default 16)"},
        {"ddl-threads", OPTION_INT, &load.ddl_threads, 0, 64, "N",
         "workers that shard, split and drop collections (default 2)"},
        {"kinds-threads", OPTION_INT, &load.kinds_threads, 0, 64, "N",
         "workers that change collections of all kinds (default 3)"},
        {"seconds", OPTION_INT, &load.seconds, 1, 86400, "N", "how long, unless SIGTERM comes first"},
        {"counters", OPTION_INT, &load.counters, 1, 1000, "N", "counters shared by all (default 10)"},
        {"setup", OPTION_FLAG, &load.setup, 0, 0, NULL, "shard the collections and create the counters, then exit"},
    };
    const struct options_usage usage = {"load", "load and journal of the crash test"};
    struct err err = {0};
    enum options_result parsed = options_parse(&usage, options, sizeof options / sizeof options[0], argc, argv, &err);
    if (parsed == OPTIONS_EXIT) {
        return 0;
    }
    if (parsed != OPTIONS_OK || load.uri == NULL || load.journal == NULL) {
        fprintf(stderr, "load: %s\n", parsed == OPTIONS_OK ? "--uri and --journal are required" : err.msg);
        return 2;
    }
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGPIPE, SIG_IGN);
    mongoc_init();
    char *given = load.uri;
    load.uri = full_uri(given);
    int status = load.setup ? !set_up(&load) : run_load(&load);
    mem_free(load.uri);
    load.uri = given;
    options_deinit(options, sizeof options / sizeof options[0]);
    mongoc_cleanup();
    return status;
}
