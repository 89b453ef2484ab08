/* libmongoc: collation, hints, update operators with array filters, pipelines, find-and-modify, bulk writes, explain,
 * views and joins on an unsharded and on a sharded collection. */
#include <mongoc/mongoc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

static void check(const char *name, bool held, const char *why)
{
    if (held)
        return;
    failed++;
    printf("FAILED %s: %s\n", name, why);
}

static bson_t *json(const char *text)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)text, -1, &error);
    if (doc == NULL) {
        printf("%s: %s\n", text, error.message);
        exit(2);
    }
    return doc;
}

/* The documents of a cursor as relaxed JSON, joined. Freed by the caller. */
static char *drained(const char *name, mongoc_cursor_t *cursor)
{
    bson_string_t *all = bson_string_new("");
    bson_error_t error;
    const bson_t *doc;
    while (mongoc_cursor_next(cursor, &doc)) {
        char *text = bson_as_relaxed_extended_json(doc, NULL);
        bson_string_append(all, text);
        bson_free(text);
    }
    bool broken = mongoc_cursor_error(cursor, &error);
    check(name, !broken, broken ? error.message : "");
    mongoc_cursor_destroy(cursor);
    return bson_string_free(all, false);
}

static void expect(const char *name, char *got, const char *want)
{
    check(name, strcmp(got, want) == 0, got);
    bson_free(got);
}

static void find(mongoc_collection_t *coll, const char *filter, const char *opts, const char *want)
{
    bson_t *q = json(filter), *o = json(opts);
    expect(filter, drained(filter, mongoc_collection_find_with_opts(coll, q, o, NULL)), want);
    bson_destroy(q);
    bson_destroy(o);
}

static void aggregate(mongoc_collection_t *coll, const char *pipeline, const char *want)
{
    bson_t *p = json(pipeline);
    expect(pipeline, drained(pipeline, mongoc_collection_aggregate(coll, MONGOC_QUERY_NONE, p, NULL, NULL)), want);
    bson_destroy(p);
}

/* Runs a command; its reply must hold `part`, or its error have the code that `part` begins with. */
static void command(mongoc_client_t *client, const char *db, const char *text, const char *part)
{
    bson_t *cmd = json(text);
    bson_t reply;
    bson_error_t error;
    bool ok = mongoc_client_command_simple(client, db, cmd, NULL, &reply, &error);
    char *got = bson_as_relaxed_extended_json(&reply, NULL);
    check(text, ok ? strstr(got, part) != NULL : (int)error.code == atoi(part), got);
    bson_free(got);
    bson_destroy(&reply);
    bson_destroy(cmd);
}

static void bulk(mongoc_collection_t *coll)
{
    mongoc_bulk_operation_t *op = mongoc_collection_create_bulk_operation_with_opts(coll, NULL);
    bson_error_t error;
    bson_t reply;
    bson_iter_t iter;
    bson_t *filter = json("{\"n\": {\"$gte\": 4}}"), *update = json("{\"$inc\": {\"list.$[e]\": 10}}");
    bson_t *opts = json("{\"arrayFilters\": [{\"e\": {\"$gte\": 2}}]}"), *one = json("{\"_id\": 100}");
    mongoc_bulk_operation_insert(op, one);
    check("bulk update", mongoc_bulk_operation_update_many_with_opts(op, filter, update, opts, &error), error.message);
    check("bulk remove", mongoc_bulk_operation_remove_one_with_opts(op, one, NULL, &error), error.message);
    check("bulk", mongoc_bulk_operation_execute(op, &reply, &error) != 0, error.message);
    check("bulk nModified", bson_iter_init_find(&iter, &reply, "nModified") && bson_iter_as_int64(&iter) == 2, "count");
    bson_destroy(&reply);
    bson_destroy(filter);
    bson_destroy(update);
    bson_destroy(opts);
    bson_destroy(one);
    mongoc_bulk_operation_destroy(op);
}

static void scenario(mongoc_client_t *client, const char *db, const char *name)
{
    mongoc_collection_t *coll = mongoc_client_get_collection(client, db, name);
    char text[600];
    bson_error_t error;
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof text, "{\"_id\": %d, \"n\": %d, \"s\": \"%s\", \"list\": [1, 2, %d]}", i, i,
                 i % 2 ? "Ab" : "aB", i);
        bson_t *doc = json(text);
        check("insert", mongoc_collection_insert_one(coll, doc, NULL, NULL, &error), error.message);
        bson_destroy(doc);
    }
    snprintf(text, sizeof text,
             "{\"createIndexes\": \"%s\", \"indexes\": [{\"key\": {\"s\": 1, \"n\": -1}, \"name\": \"s_n\"}, {\"key\": "
             "{\"s\": 1}, "
             "\"name\": \"ci\", \"collation\": {\"locale\": \"en\", \"strength\": 2}}]}",
             name);
    command(client, db, text, "\"ok\" : 1");
    find(coll, "{\"s\": \"ab\"}",
         "{\"collation\": {\"locale\": \"en\", \"strength\": 2}, \"projection\": {\"_id\": 1}, \"sort\": {\"_id\": "
         "-1}, \"limit\": 2}",
         "{ \"_id\" : 5 }{ \"_id\" : 4 }");
    find(coll, "{\"s\": \"Ab\"}", "{\"hint\": \"s_n\", \"sort\": {\"n\": -1}, \"projection\": {\"_id\": 0, \"n\": 1}}",
         "{ \"n\" : 5 }{ \"n\" : 3 }{ \"n\" : 1 }");
    find(coll, "{\"list\": {\"$elemMatch\": {\"$gt\": 3, \"$lt\": 5}}}", "{\"projection\": {\"list.$\": 1}}",
         "{ \"_id\" : 4, \"list\" : [ 4 ] }");
    bulk(coll);
    find(coll, "{\"_id\": {\"$in\": [4, 5]}}", "{\"sort\": {\"_id\": 1}, \"projection\": {\"list\": 1}}",
         "{ \"_id\" : 4, \"list\" : [ 1, 12, 14 ] }{ \"_id\" : 5, \"list\" : [ 1, 12, 15 ] }");
    aggregate(coll,
              "{\"pipeline\": [{\"$group\": {\"_id\": \"$s\", \"n\": {\"$sum\": \"$n\"}}}, {\"$sort\": {\"_id\": 1}}]}",
              "{ \"_id\" : \"Ab\", \"n\" : 9 }{ \"_id\" : \"aB\", \"n\" : 6 }");
    snprintf(text, sizeof text,
             "{\"pipeline\": [{\"$match\": {\"_id\": {\"$lt\": 2}}}, {\"$lookup\": {\"from\": \"%s\", \"localField\": "
             "\"s\", "
             "\"foreignField\": \"s\", \"as\": \"same\"}}, {\"$project\": {\"count\": {\"$size\": \"$same\"}}}, "
             "{\"$sort\": {\"_id\": 1}}]}",
             name);
    aggregate(coll, text, "{ \"_id\" : 0, \"count\" : 3 }{ \"_id\" : 1, \"count\" : 3 }");
    snprintf(text, sizeof text,
             "{\"findAndModify\": \"%s\", \"query\": {\"s\": \"aB\"}, \"sort\": {\"n\": -1}, \"update\": [{\"$set\": "
             "{\"n\": {\"$add\": "
             "[\"$n\", \"$$more\"]}}}], \"let\": {\"more\": 7}, \"new\": true, \"fields\": {\"n\": 1}}",
             name);
    command(client, db, text, "\"value\" : { \"_id\" : 4, \"n\" : 11 }");
    snprintf(
        text, sizeof text,
        "{\"explain\": {\"find\": \"%s\", \"filter\": {\"s\": \"aB\", \"n\": 2}}, \"verbosity\": \"executionStats\"}",
        name);
    command(client, db, text, "\"indexName\" : \"s_n\"");
    snprintf(text, sizeof text,
             "{\"update\": \"%s\", \"updates\": [{\"q\": {}, \"u\": {\"$rename\": {\"a\": \"a\"}}}]}", name);
    command(client, db, text, "writeErrors");
    snprintf(text, sizeof text, "{\"find\": \"%s\", \"filter\": {\"a\": {\"$nothing\": 1}}}", name);
    command(client, db, text, "2");
    snprintf(text, sizeof text,
             "{\"create\": \"%s_view\", \"viewOn\": \"%s\", \"pipeline\": [{\"$match\": {\"n\": {\"$lt\": 2}}}]}", name,
             name);
    command(client, db, text, "\"ok\" : 1");
    snprintf(text, sizeof text, "{\"count\": \"%s_view\"}", name);
    command(client, db, text, "\"n\" : 2");
    mongoc_collection_destroy(coll);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    mongoc_init();
    mongoc_client_t *client = mongoc_client_new(argv[1]);
    const char *db = "drivers_mongoc_language";
    command(client, db, "{\"dropDatabase\": 1}", "\"ok\" : 1");
    command(client, "admin",
            "{\"shardCollection\": \"drivers_mongoc_language.sharded\", \"key\": {\"_id\": \"hashed\"}}", "\"ok\" : 1");
    scenario(client, db, "plain");
    scenario(client, db, "sharded");
    command(client, db, "{\"dropDatabase\": 1}", "\"ok\" : 1");
    mongoc_client_destroy(client);
    mongoc_cleanup();
    puts(failed ? "failed" : "all passed");
    return failed != 0;
}
