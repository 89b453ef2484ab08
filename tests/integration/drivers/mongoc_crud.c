/* libmongoc: create, read, update, delete, count, index and list on an unsharded and on a sharded collection. */
#include <mongoc/mongoc.h>

#include <stdio.h>
#include <stdlib.h>

static int failed;

static void check(const char *name, bool held, const bson_error_t *error)
{
    if (held)
        return;
    failed++;
    printf("FAILED %s: %s\n", name, error ? error->message : "another result");
}

static int64_t number(const bson_t *doc, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, doc, name) ? bson_iter_as_int64(&iter) : -1;
}

static void insert_and_find(mongoc_collection_t *coll)
{
    enum { DOCUMENTS = 300 };
    bson_error_t error;
    bson_t *docs[DOCUMENTS];
    bson_t reply;
    for (int i = 0; i < DOCUMENTS; i++)
        docs[i] = BCON_NEW("_id", BCON_INT32(i), "a", BCON_INT32(i % 10));
    check("insert_many", mongoc_collection_insert_many(coll, (const bson_t **)docs, DOCUMENTS, NULL, &reply, &error), &error);
    check("insertedCount", number(&reply, "insertedCount") == DOCUMENTS, NULL);
    bson_destroy(&reply);
    for (int i = 0; i < DOCUMENTS; i++)
        bson_destroy(docs[i]);
    bson_t *one = BCON_NEW("_id", BCON_INT32(1));
    check("duplicate", !mongoc_collection_insert_one(coll, one, NULL, NULL, &error) && error.code == 11000, &error);
    bson_destroy(one);
    bson_t *filter = BCON_NEW("a", BCON_INT32(3));
    bson_t *opts = BCON_NEW("sort", "{", "_id", BCON_INT32(-1), "}", "batchSize", BCON_INT32(7));
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(coll, filter, opts, NULL);
    const bson_t *doc;
    int count = 0;
    while (mongoc_cursor_next(cursor, &doc))
        check("order", number(doc, "_id") == 293 - 10 * count++, NULL);
    check("cursor", !mongoc_cursor_error(cursor, &error), &error);
    check("found", count == DOCUMENTS / 10, NULL);
    mongoc_cursor_destroy(cursor);
    bson_destroy(filter);
    bson_destroy(opts);
}

static void change(mongoc_collection_t *coll)
{
    bson_error_t error;
    bson_t reply;
    bson_t all = BSON_INITIALIZER;
    bson_t *filter = BCON_NEW("_id", BCON_INT32(5));
    bson_t *update = BCON_NEW("$set", "{", "b", BCON_INT32(1), "}");
    check("update_one", mongoc_collection_update_one(coll, filter, update, NULL, &reply, &error), &error);
    check("modifiedCount", number(&reply, "modifiedCount") == 1, NULL);
    bson_destroy(&reply);
    check("update_many", mongoc_collection_update_many(coll, &all, update, NULL, &reply, &error), &error);
    check("matchedCount", number(&reply, "matchedCount") == 300, NULL);
    bson_destroy(&reply);
    check("delete_one", mongoc_collection_delete_one(coll, filter, NULL, &reply, &error), &error);
    check("deletedCount", number(&reply, "deletedCount") == 1, NULL);
    bson_destroy(&reply);
    check("count", mongoc_collection_count_documents(coll, &all, NULL, NULL, NULL, &error) == 299, &error);
    check("estimated", mongoc_collection_estimated_document_count(coll, NULL, NULL, NULL, &error) == 299, &error);
    bson_destroy(filter);
    bson_destroy(update);
}

static void index_and_list(mongoc_client_t *client, mongoc_database_t *db, mongoc_collection_t *coll)
{
    bson_error_t error;
    bson_t reply;
    const bson_t *doc;
    bson_t *command = BCON_NEW("createIndexes", BCON_UTF8(mongoc_collection_get_name(coll)), "indexes", "[", "{", "key", "{", "a",
                               BCON_INT32(1), "}", "name", BCON_UTF8("a_1"), "}", "]");
    check("createIndexes", mongoc_database_write_command_with_opts(db, command, NULL, &reply, &error), &error);
    bson_destroy(&reply);
    bson_destroy(command);
    mongoc_cursor_t *cursor = mongoc_collection_find_indexes_with_opts(coll, NULL);
    bool found = false;
    bson_iter_t iter;
    while (mongoc_cursor_next(cursor, &doc))
        found |= bson_iter_init_find(&iter, doc, "name") && !strcmp(bson_iter_utf8(&iter, NULL), "a_1");
    check("listIndexes", found, NULL);
    mongoc_cursor_destroy(cursor);
    char **names = mongoc_database_get_collection_names_with_opts(db, NULL, &error);
    check("listCollections", names && names[0], &error);
    bson_strfreev(names);
    names = mongoc_client_get_database_names_with_opts(client, NULL, &error);
    check("listDatabases", names && names[0], &error);
    bson_strfreev(names);
}

static void tour(mongoc_client_t *client, mongoc_database_t *db, const char *name)
{
    bson_error_t error;
    mongoc_collection_t *coll = mongoc_database_get_collection(db, name);
    insert_and_find(coll);
    change(coll);
    index_and_list(client, db, coll);
    check("drop", mongoc_collection_drop(coll, &error), &error);
    mongoc_collection_destroy(coll);
}

int main(int argc, char **argv)
{
    bson_error_t error;
    if (argc != 2)
        return 2;
    mongoc_init();
    mongoc_client_t *client = mongoc_client_new(argv[1]);
    mongoc_database_t *db = mongoc_client_get_database(client, "drivers_mongoc");
    check("drop", mongoc_database_drop(db, &error), &error);
    tour(client, db, "plain");
    bson_t *command = BCON_NEW("shardCollection", BCON_UTF8("drivers_mongoc.sharded"), "key", "{", "_id", BCON_UTF8("hashed"), "}");
    check("shardCollection", mongoc_client_command_simple(client, "admin", command, NULL, NULL, &error), &error);
    bson_destroy(command);
    tour(client, db, "sharded");
    check("drop", mongoc_database_drop(db, &error), &error);
    mongoc_database_destroy(db);
    mongoc_client_destroy(client);
    mongoc_cleanup();
    printf(failed ? "%d failed\n" : "all passed\n", failed);
    return failed ? 1 : 0;
}
