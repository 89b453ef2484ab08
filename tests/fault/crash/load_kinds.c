/* Workers that change collections of every kind: capped, validated, expiring, with indexes of all kinds that come and
 * go, renamed, converted. Nothing of it is written into the journals: the checker asks for what must hold of each kind
 * whatever was executed (kinds.c). */
#include "load.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    RANDOM_NUMBERS_MAX = 2000, /* the random numbers in commands lie below */
    BIG_DOCUMENTS = 1500,      /* so many that an index is built in steps */
    BIG_BATCH = 100,
    DDL_ONCE_IN = 12,
    COMMAND_MAX_BYTES = 4096,
};

/* ' stands for "; # for a random number, @ for a random small letter, ~ for the time of day. */
static const char *const setup_commands[] = {
    "{'create': 'k-capped', 'capped': true, 'size': 65536, 'max': 100}",
    "{'createIndexes': 'k-capped', 'indexes': [{'name': 'n', 'key': {'n': 1}}, {'name': 'w', 'key': {'$**': 1}}]}",
    "{'create': 'k-valid', 'validator': {'s': {'$regex': '^[a-m]'}, 'n': {'$type': 'number'}}}",
    "{'create': 'k-tested', 'validator': {'n': {'$gte': 0}, '$jsonSchema': {'required': ['s']}}}",
    "{'create': 'k-collated', 'collation': {'locale': 'en', 'strength': 2}, 'validator': {'s': {'$lt': 'n'}}}",
    "{'createIndexes': 'k-collated', 'indexes': [{'name': 's', 'key': {'s': 1, 'a': 1}, 'unique': true}]}",
    "{'create': 'k-series', 'timeseries': {'timeField': 'at', 'metaField': 'n'}, 'expireAfterSeconds': 3600}",
    "{'createIndexes': 'k-any', 'indexes': [{'name': 'w', 'key': {'$**': 1}},"
    " {'name': 'c', 'key': {'s': 1}, 'collation': {'locale': 'de', 'strength': 1}},"
    " {'name': 'p', 'key': {'a.x': 1, 'n': -1}, 'partialFilterExpression': {'n': {'$gt': 500}}},"
    " {'name': 't', 'key': {'at': 1}, 'expireAfterSeconds': 1}, {'name': 'h', 'key': {'s': 'hashed'}},"
    " {'name': 'u', 'key': {'only': 1}, 'unique': true, 'sparse': true}]}",
    "{'createIndexes': 'k-big', 'indexes': [{'name': 'n', 'key': {'n': 1}}]}",
};

static const char *const write_commands[] = {
    "{'insert': 'k-capped', 'documents': [{'n': #, 's': '@#'}, {'n': #, 'a': [#, '@']}, {'n': #, 's': '@@@@@@@@'}]}",
    "{'update': 'k-capped', 'updates': [{'q': {'n': {'$gt': #}}, 'u': {'$set': {'s': '@@'}}, 'multi': true}]}",
    "{'insert': 'k-valid', 'documents': [{'n': #, 's': '@#'}, {'n': #, 's': '@'}], 'ordered': false}",
    "{'update': 'k-valid', 'updates': [{'q': {'n': {'$lt': #}}, 'u': [{'$set': {'s': {'$concat': ['@', '$s']}}}],"
    " 'multi': true}]}",
    "{'update': 'k-valid', 'updates': [{'q': {'n': #}, 'u': {'$set': {'s': '@'}}, 'upsert': true}]}",
    "{'findAndModify': 'k-valid', 'query': {'s': {'$gte': '@'}}, 'sort': {'n': 1}, 'update': {'$set': {'s': '@@'}}}",
    "{'delete': 'k-valid', 'deletes': [{'q': {'s': {'$regex': '^@'}}, 'limit': 0}]}",
    "{'insert': 'k-tested', 'documents': [{'n': #, 's': 1}, {'n': -1, 's': 1}, {'n': #}], 'ordered': false}",
    "{'update': 'k-tested', 'updates': [{'q': {'n': {'$lt': #}}, 'u': {'$inc': {'n': -7}}, 'multi': true}]}",
    "{'update': 'k-tested', 'updates': [{'q': {'n': #}, 'u': {'$unset': {'s': 1}}}]}",
    "{'insert': 'k-collated', 'documents': [{'n': #, 's': '@@', 'a': #}, {'s': '@'}], 'ordered': false}",
    "{'update': 'k-collated', 'updates': [{'q': {'s': 'A@'}, 'u': {'$set': {'s': '@', 'a': #}}, 'upsert': true}]}",
    "{'insert': 'k-series', 'documents': [{'_id': #, 'at': ~, 'n': #, 'v': #}, {'_id': 1, 'at': ~, 'n': 1}]}",
    "{'update': 'k-series', 'updates': [{'q': {'n': #}, 'u': {'$set': {'n': #}}, 'multi': true}]}",
    "{'delete': 'k-series', 'deletes': [{'q': {'n': {'$gt': #}}, 'limit': 0}]}",
    "{'insert': 'k-any', 'documents': [{'n': #, 's': '@@', 'at': ~, 'a': [{'x': #}, {'x': '@'}, []], 'only': #}]}",
    "{'insert': 'k-any', 'documents': [{'n': #, 's': '@', 'o': {'@': {'@': [#, #.5, null]}}, 'only': ['@', #]}]}",
    "{'update': 'k-any', 'updates': [{'q': {'n': {'$gt': #}}, 'u': {'$inc': {'n': 1.5}, '$push': {'a': {'x': #}}},"
    " 'multi': true}]}",
    "{'update': 'k-any', 'updates': [{'q': {'s': '@'}, 'u': {'$pull': {'a': {'x': {'$regex': '@'}}}}, 'multi': true,"
    " 'collation': {'locale': 'en', 'strength': 2}}]}",
    "{'update': 'k-any', 'updates': [{'q': {'only': #}, 'u': {'$set': {'only': '@'}, '$unset': {'a': 1}}}]}",
    "{'delete': 'k-any', 'deletes': [{'q': {'$expr': {'$lt': ['$n', #]}}, 'limit': 1}]}",
    "{'update': 'k-big', 'updates': [{'q': {'n': #}, 'u': {'$set': {'s': '@@', 'n': #, 'a': [#, '@', #]}}}]}",
    "{'insert': 'k-big', 'documents': [{'n': #, 's': '@', 'a': #}]}",
    "{'delete': 'k-big', 'deletes': [{'q': {'n': #}, 'limit': 1}]}",
    "{'insert': 'k-renamed', 'documents': [{'n': #, 's': '@@'}, {'n': #, 'a': [#, #]}]}",
};

static const char *const ddl_commands[] = {
    "{'createIndexes': 'k-big', 'indexes': [{'name': 'a', 'key': {'a': 1}}, {'name': 'w', 'key': {'$**': 1}}]}",
    "{'createIndexes': 'k-big', 'indexes': [{'name': 'c', 'key': {'s': 1}, 'collation': {'locale': 'fr'}}]}",
    "{'createIndexes': 'k-big', 'indexes': [{'name': 'u', 'key': {'n': 1, 's': 1}, 'unique': true}]}",
    "{'createIndexes': 'k-big', 'indexes': [{'name': 'v', 'key': {'n': 1, '_id': 1}, 'unique': true}]}",
    "{'createIndexes': 'k-big', 'indexes': [{'name': 'q', 'key': {'s': 1, 'a': 1, '_id': 1}, 'prepareUnique': true}]}",
    "{'collMod': 'k-big', 'index': {'name': 'q', 'unique': true}}",
    "{'collMod': 'k-big', 'index': {'name': 'w', 'hidden': true}}",
    "{'dropIndexes': 'k-big', 'index': '*'}",
    "{'dropIndexes': 'k-big', 'index': ['w', 'c']}",
    "{'collMod': 'k-valid', 'validator': {'s': {'$regex': '^[abcdefghijklm]'}, 'n': {'$type': 'number'}}}",
    "{'collMod': 'k-valid', 'validator': {'s': {'$regex': '^[a-m]'}}, 'validationLevel': 'moderate'}",
    "{'collMod': 'k-capped', 'cappedMax': 60}",
    "{'collMod': 'k-capped', 'cappedMax': 100}",
    "{'collMod': 'k-any', 'index': {'name': 't', 'expireAfterSeconds': 2}}",
    "{'renameCollection': 'crash.k-renamed', 'to': 'crash.k-target', 'dropTarget': true, '$db': 'admin'}",
    "{'createIndexes': 'k-renamed', 'indexes': [{'name': 'a', 'key': {'a': 1, 's': 1}}]}",
    "{'convertToCapped': 'k-target', 'size': 4096}",
    "{'drop': 'k-target'}",
    "{'create': 'k-view', 'viewOn': 'k-any', 'pipeline': [{'$match': {'n': {'$gt': #}}}]}",
    "{'drop': 'k-view'}",
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void fill_in(struct prng *prng, const char *template, char out[COMMAND_MAX_BYTES])
{
    size_t len = 0;
    for (const char *at = template; *at != '\0' && len < COMMAND_MAX_BYTES - 64; at++) {
        if (*at == '\'')
            out[len++] = '"';
        else if (*at == '#')
            len += (size_t)snprintf(out + len, 32, "%u", (unsigned)prng_below(prng, RANDOM_NUMBERS_MAX));
        else if (*at == '@')
            out[len++] = (char)('a' + prng_below(prng, 26));
        else if (*at == '~')
            len +=
                (size_t)snprintf(out + len, 64, "{\"$date\": {\"$numberLong\": \"%lld\"}}", (long long)clock_wall_ms());
        else
            out[len++] = *at;
    }
    out[len] = '\0';
}

static bool run(mongoc_client_t *client, struct prng *prng, const char *template, bson_error_t *error)
{
    char text[COMMAND_MAX_BYTES];
    fill_in(prng, template, text);
    const char *db = strstr(template, "'$db': 'admin'") != NULL ? "admin" : LOAD_DATABASE;
    bson_t *command = bson_new_from_json((const uint8_t *)text, -1, error);
    bool ok = command != NULL;
    if (ok) {
        bson_t bare = BSON_INITIALIZER;
        bson_copy_to_excluding_noinit(command, &bare, "$db", NULL);
        ok = mongoc_client_command_simple(client, db, &bare, NULL, NULL, error);
        bson_destroy(&bare);
    }
    bson_destroy(command);
    return ok;
}

static bool fill_big(mongoc_client_t *client, struct prng *prng, bson_error_t *error)
{
    static const char one[] = "{'n': #, 's': '@', 'a': #}";
    char template[COMMAND_MAX_BYTES];
    bool ok = true;
    for (int i = 0; ok && i < BIG_DOCUMENTS / BIG_BATCH; i++) {
        size_t len = (size_t)snprintf(template, sizeof template, "{'insert': 'k-big', 'documents': [%s", one);
        for (int k = 1; k < BIG_BATCH / 2; k++)
            len += (size_t)snprintf(template + len, sizeof template - len, ", %s", one);
        snprintf(template + len, sizeof template - len, "]}");
        ok = run(client, prng, template, error) && run(client, prng, template, error);
    }
    return ok;
}

bool load_kinds_set_up(mongoc_client_t *client)
{
    struct prng prng = {.state = random_u64()};
    bson_error_t error = {0};
    bool ok = run(client, &prng, "{'setParameter': 1, 'ttlMonitorSleepSecs': 1, '$db': 'admin'}", &error);
    for (size_t i = 0; ok && i < COUNT(setup_commands); i++)
        ok = run(client, &prng, setup_commands[i], &error);
    ok = ok && fill_big(client, &prng, &error);
    if (!ok)
        fprintf(stderr, "load: the collections of all kinds can't be made: %s\n", error.message);
    return ok;
}

void *load_kinds_work(void *arg)
{
    struct load_worker *worker = arg;
    worker->client = load_connect(worker->options->uri);
    while (!load_stop) {
        bson_error_t error;
        bool ddl = prng_below(&worker->prng, DDL_ONCE_IN) == 0;
        const char *template = ddl ? ddl_commands[prng_below(&worker->prng, COUNT(ddl_commands))]
                                   : write_commands[prng_below(&worker->prng, COUNT(write_commands))];
        bool ok = run(worker->client, &worker->prng, template, &error);
        bool refused = !ok && error.domain == MONGOC_ERROR_SERVER;
        if (!ok && !refused && !load_stop)
            clock_sleep_ms(20);
    }
    mongoc_client_destroy(worker->client);
    return NULL;
}
