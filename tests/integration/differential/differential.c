/* Asks the same of four collections that hold the same documents, plain, with indexes, sharded, and sharded with
 * indexes, and reports every difference between the answers. Ends with "N operations, D differences"; status 0 when D
 * is 0. */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const target_names[TARGETS] = {"plain", "indexed", "sharded", "both"};

struct document_walk {
    bson_iter_t items;
    const uint8_t *data;
    uint32_t len;
    bool more;
};

static bool walk_begin(struct document_walk *walk, const bson_t *reply)
{
    bson_iter_t list;
    walk->more = true;
    return bson_iter_init_find(&list, reply, "documents") && bson_iter_recurse(&list, &walk->items);
}

static void walk_next(struct document_walk *walk)
{
    walk->more = bson_iter_next(&walk->items);
    walk->len = 0;
    if (walk->more)
        bson_iter_document(&walk->items, &walk->len, &walk->data);
}

static void walk_print(const struct document_walk *walk, bson_t *out)
{
    bson_t doc;
    bson_reinit(out);
    if (walk->more && bson_init_static(&doc, walk->data, walk->len)) {
        BSON_APPEND_UTF8(out, "at", bson_iter_key(&walk->items));
        BSON_APPEND_DOCUMENT(out, "document", &doc);
    }
}

/* Of two lists of documents the first pair that differs; else the whole replies. */
static void narrow(const bson_t *expected, const bson_t *got, bson_t *expected_out, bson_t *got_out)
{
    struct document_walk left = {.len = 0}, right = {.len = 0};
    bson_copy_to(expected, expected_out);
    bson_copy_to(got, got_out);
    if (!walk_begin(&left, expected) || !walk_begin(&right, got))
        return;
    do {
        walk_next(&left);
        walk_next(&right);
    } while (left.more && right.more && left.len == right.len && memcmp(left.data, right.data, left.len) == 0);
    walk_print(&left, expected_out);
    walk_print(&right, got_out);
}

void world_report(struct world *world, const bson_t *command, const bson_t *expected, const bson_t *got, int which)
{
    bson_t left, right;
    narrow(expected, got, &left, &right);
    char *texts[3] = {bson_as_canonical_extended_json(command, NULL), bson_as_canonical_extended_json(&left, NULL),
                      bson_as_canonical_extended_json(&right, NULL)};
    const char *hint = world->targets[which].hint;
    printf("DIFFERENCE after %llu operations: %s against %s; shard key %s; indexes %s; hint %s\n",
           (unsigned long long)world->operations, target_names[which], target_names[0], world->shard_key,
           world->indexes, hint == NULL ? "none" : hint);
    printf("  command: %s\n  plain: %.2000s\n  %s: %.2000s\n", texts[0], texts[1], target_names[which], texts[2]);
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        bson_free(texts[i]);
    bson_destroy(&left);
    bson_destroy(&right);
    world->differences++;
}

void world_compare(struct world *world, const bson_t *command, enum reply_shape shape, bool write)
{
    bson_t expected, got;
    client_run(&world->targets[0], command, shape, &expected);
    for (int i = 1; i < TARGETS; i++) {
        client_run(&world->targets[i], command, shape, &got);
        if (!bson_equal(&expected, &got)) {
            world_report(world, command, &expected, &got, i);
            world->diverged |= write;
        }
        bson_destroy(&got);
    }
    bson_destroy(&expected);
}

static void forget_hints(struct world *world);

static void compare_everything(struct world *world)
{
    forget_hints(world);
    bson_t *find = BCON_NEW("find", "", "sort", "{", "_id", BCON_INT32(1), "}");
    world_compare(world, find, REPLY_CURSOR, true);
    bson_destroy(find);
}

/* ---- set-up of a round ---- */

static void make_indexes(struct world *world, const char *collection)
{
    for (const char *at = world->indexes; *at != '\0'; at = strchr(at, ' ') + 1) {
        uint32_t which = (uint32_t)strtoul(at, NULL, 10);
        char json[600];
        snprintf(json, sizeof json, "{\"createIndexes\": \"%s\", \"indexes\": [%s]}", collection,
                 generate_index(which));
        client_must_json(world->targets[0].client, world->db, json);
    }
}

static void choose_indexes(struct world *world)
{
    uint32_t count = 1 + rng_below(&world->rng, 5), chosen = 0;
    world->indexes[0] = '\0';
    world->chosen_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t which = rng_below(&world->rng, generate_index_count());
        if (chosen >> which & 1)
            continue;
        chosen |= 1U << which;
        snprintf(world->indexes + strlen(world->indexes), 8, "%u ", which);
        world->chosen[world->chosen_count++] = which;
    }
}

static void shard(struct world *world, const char *collection)
{
    static const char *const keys[] = {
        "{\"_id\": \"hashed\"}",          "{\"k\": \"hashed\"}", "{\"k\": 1}",
        "{\"k\": 1, \"_id\": 1}",         "{\"_id\": 1}",        "{\"k\": \"hashed\", \"_id\": 1}",
        "{\"k\": 1, \"_id\": \"hashed\"}"};
    static const char *const middles[] = {NULL,
                                          NULL,
                                          "{\"k\": 3}",
                                          "{\"k\": 3, \"_id\": 0}",
                                          "{\"_id\": 40}",
                                          NULL,
                                          "{\"k\": 3, \"_id\": {\"$minKey\": 1}}"};
    char json[400];
    uint32_t which = rng_below(&world->rng, 7);
    world->shard_key = keys[which];
    snprintf(json, sizeof json, "{\"shardCollection\": \"%s.%s\", \"key\": %s}", world->db, collection, keys[which]);
    client_must_json(world->targets[0].client, "admin", json);
    if (middles[which] != NULL) {
        snprintf(json, sizeof json, "{\"split\": \"%s.%s\", \"middle\": %s}", world->db, collection, middles[which]);
        client_must_json(world->targets[0].client, "admin", json);
    }
}

static void insert(struct world *world, const bson_t *doc, int which)
{
    bson_t *command = BCON_NEW("insert", BCON_UTF8(target_names[which]), "documents", "[", BCON_DOCUMENT(doc), "]");
    client_must(world->targets[which].client, world->db, command);
    bson_destroy(command);
}

static void make_views(struct world *world)
{
    for (int i = 0; i < TARGETS; i++) {
        char json[300];
        snprintf(json, sizeof json,
                 "{\"create\": \"%s_view\", \"viewOn\": \"%s\", \"pipeline\": [{\"$match\": {\"n\": {\"$gte\": 0}}},"
                 " {\"$addFields\": {\"b\": {\"$ifNull\": [\"$b\", \"$k\"]}}}]}",
                 target_names[i], target_names[i]);
        client_must_json(world->targets[0].client, world->db, json);
    }
}

static void start_round(struct world *world)
{
    forget_hints(world);
    client_must_json(world->targets[0].client, world->db, "{\"dropDatabase\": 1}");
    choose_indexes(world);
    uint64_t key_state = world->rng.state;
    for (int i = 0; i < TARGETS; i++) {
        char json[100];
        snprintf(json, sizeof json, "{\"create\": \"%s\"}", target_names[i]);
        client_must_json(world->targets[0].client, world->db, json);
        world->rng.state = key_state;
        if (i >= 2)
            shard(world, target_names[i]);
    }
    /* One collection gets its indexes before the documents, the other while or after they come. */
    make_indexes(world, "both");
    for (world->next_number = 0; world->next_number < DOCUMENTS; world->next_number++) {
        bson_t doc = BSON_INITIALIZER;
        generate_document(&world->rng, world->next_number, &doc);
        for (int i = 0; i < TARGETS; i++)
            insert(world, &doc, i);
        bson_destroy(&doc);
        if (world->next_number == DOCUMENTS / 2)
            make_indexes(world, "indexed");
    }
    world->diverged = false;
    make_views(world);
}

/* ---- operations ---- */

void world_append_collation(struct world *world, bson_t *command)
{
    if (!rng_chance(&world->rng, 12))
        return;
    bson_t *collation = BCON_NEW("locale", "en", "strength", BCON_INT32(rng_chance(&world->rng, 70) ? 2 : 1));
    BSON_APPEND_DOCUMENT(command, "collation", collation);
    bson_destroy(collation);
}

void world_append_filter(struct world *world, bson_t *command, const char *key)
{
    bson_t filter = BSON_INITIALIZER;
    generate_filter(&world->rng, 2, &filter);
    BSON_APPEND_DOCUMENT(command, key, &filter);
    bson_destroy(&filter);
}

/* The random filter and the one that the update needs. */
static void append_both(struct world *world, const bson_t *needed, bson_t *out, const char *key)
{
    bson_t random = BSON_INITIALIZER;
    generate_filter(&world->rng, 1, &random);
    bson_t *both = BCON_NEW("$and", "[", BCON_DOCUMENT(needed), BCON_DOCUMENT(&random), "]");
    BSON_APPEND_DOCUMENT(out, key, both);
    bson_destroy(both);
    bson_destroy(&random);
}

static void forget_hints(struct world *world)
{
    for (int i = 0; i < TARGETS; i++) {
        free(world->targets[i].hint);
        world->targets[i].hint = NULL;
        world->targets[i].view = false;
    }
}

/* An index for each collection that has some. Those that leave documents out may only be hinted together with a filter
 * that leaves the same out: *needed is that of the one that was chosen, NULL when any will do. */
static void choose_hints(struct world *world, const char **needed)
{
    *needed = NULL;
    forget_hints(world);
    if (rng_chance(&world->rng, 12)) {
        for (int i = 0; i < TARGETS; i++)
            world->targets[i].view = true;
        return;
    }
    if (world->chosen_count == 0 || !rng_chance(&world->rng, 35))
        return;
    uint32_t which = world->chosen[rng_below(&world->rng, world->chosen_count)];
    bson_t spec;
    bson_iter_t iter;
    *needed = generate_index_needs(which);
    if (*needed == NULL)
        return;
    bson_init_from_json(&spec, generate_index(which), -1, NULL);
    bson_iter_init_find(&iter, &spec, "name");
    for (int i = 1; i < TARGETS; i += 2)
        world->targets[i].hint = strdup(bson_iter_utf8(&iter, NULL));
    bson_destroy(&spec);
    if (strcmp(*needed, "{}") == 0)
        *needed = NULL;
}

/* A random filter, and what a hinted index needs. */
static void append_hinted_filter(struct world *world, bson_t *command, const char *key)
{
    const char *needed;
    bson_t parsed;
    choose_hints(world, &needed);
    if (needed == NULL) {
        world_append_filter(world, command, key);
        return;
    }
    bson_init_from_json(&parsed, needed, -1, NULL);
    append_both(world, &parsed, command, key);
    bson_destroy(&parsed);
}

/* A partial index on strings serves no query of another collation, and a view has its own. */
static void append_read_collation(struct world *world, bson_t *command)
{
    if (world->targets[0].view)
        return;
    if (world->targets[1].hint == NULL || strcmp(world->targets[1].hint, "s_partial") != 0)
        world_append_collation(world, command);
}

static void op_find(struct world *world)
{
    bson_t *command = BCON_NEW("find", "");
    bson_t part = BSON_INITIALIZER;
    bool sorted = rng_chance(&world->rng, 65);
    append_hinted_filter(world, command, "filter");
    if (sorted) {
        generate_sort(&world->rng, &part);
        BSON_APPEND_DOCUMENT(command, "sort", &part);
        bson_reinit(&part);
    }
    if (rng_chance(&world->rng, 35)) {
        generate_projection(&world->rng, &part);
        BSON_APPEND_DOCUMENT(command, "projection", &part);
    }
    if (sorted && rng_chance(&world->rng, 30))
        BSON_APPEND_INT32(command, "limit", 1 + (int32_t)rng_below(&world->rng, 20));
    if (sorted && rng_chance(&world->rng, 20))
        BSON_APPEND_INT32(command, "skip", (int32_t)rng_below(&world->rng, 12));
    if (rng_chance(&world->rng, 15))
        BSON_APPEND_INT32(command, "batchSize", 2 + (int32_t)rng_below(&world->rng, 9));
    append_read_collation(world, command);
    world_compare(world, command, sorted ? REPLY_CURSOR : REPLY_CURSOR_ANY_ORDER, false);
    bson_destroy(&part);
    bson_destroy(command);
}

static void op_count(struct world *world)
{
    bson_t *command = BCON_NEW("count", "");
    append_hinted_filter(world, command, "query");
    if (rng_chance(&world->rng, 20))
        BSON_APPEND_INT32(command, "limit", 1 + (int32_t)rng_below(&world->rng, 30));
    append_read_collation(world, command);
    world_compare(world, command, REPLY_COUNTS, false);
    bson_destroy(command);
}

static void op_distinct(struct world *world)
{
    /* With a collation only the number counts: which of several equal strings stands for its class is not defined. */
    bson_t *command = BCON_NEW("distinct", "", "key", BCON_UTF8(generate_path(&world->rng)));
    append_hinted_filter(world, command, "query");
    append_read_collation(world, command);
    world_compare(world, command, bson_has_field(command, "collation") ? REPLY_VALUE_COUNT : REPLY_VALUES, false);
    bson_destroy(command);
}

static void op_aggregate(struct world *world)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t *command;
    generate_filter(&world->rng, 1, &filter);
    if (rng_chance(&world->rng, 50))
        command = BCON_NEW("aggregate", "", "pipeline", "[", "{", "$match", BCON_DOCUMENT(&filter), "}", "{", "$group",
                           "{", "_id", "$s", "count", "{", "$sum", BCON_INT32(1), "}", "least", "{", "$min", "$_id",
                           "}", "}", "}", "{", "$sort", "{", "_id", BCON_INT32(1), "}", "}", "]", "cursor", "{", "}");
    else
        command = BCON_NEW("aggregate", "", "pipeline", "[", "{", "$match", BCON_DOCUMENT(&filter), "}", "{", "$sort",
                           "{", "n", BCON_INT32(-1), "_id", BCON_INT32(1), "}", "}", "{", "$limit", BCON_INT32(9), "}",
                           "{", "$project", "{", "s", BCON_INT32(1), "twice", "{", "$add", "[", "$n", "$n", "]", "}",
                           "}", "}", "]", "cursor", "{", "}");
    world_compare(world, command, REPLY_CURSOR, false);
    bson_destroy(command);
    bson_destroy(&filter);
}

static void append_update(const struct generated_update *update, bson_t *statement, const char *key)
{
    if (update->pipeline)
        BSON_APPEND_ARRAY(statement, key, &update->update);
    else
        BSON_APPEND_DOCUMENT(statement, key, &update->update);
    if (!bson_empty(&update->array_filters))
        BSON_APPEND_ARRAY(statement, "arrayFilters", &update->array_filters);
}

static void op_update(struct world *world)
{
    struct generated_update update;
    bson_t statement = BSON_INITIALIZER;
    generate_update(&world->rng, &update);
    append_both(world, &update.filter, &statement, "q");
    append_update(&update, &statement, "u");
    if (rng_chance(&world->rng, 50)) {
        BSON_APPEND_BOOL(&statement, "multi", true);
    } else {
        bson_t sort = BSON_INITIALIZER;
        generate_sort(&world->rng, &sort);
        BSON_APPEND_DOCUMENT(&statement, "sort", &sort);
        bson_destroy(&sort);
    }
    world_append_collation(world, &statement);
    bson_t *command = BCON_NEW("update", "", "updates", "[", BCON_DOCUMENT(&statement), "]");
    world_compare(world, command, REPLY_COUNTS, true);
    bson_destroy(command);
    bson_destroy(&statement);
    generated_update_deinit(&update);
}

static void op_modify(struct world *world)
{
    struct generated_update update;
    bson_t *command = BCON_NEW("findAndModify", "");
    bson_t sort = BSON_INITIALIZER;
    generate_update(&world->rng, &update);
    append_both(world, &update.filter, command, "query");
    generate_sort(&world->rng, &sort);
    BSON_APPEND_DOCUMENT(command, "sort", &sort);
    if (rng_chance(&world->rng, 15)) {
        BSON_APPEND_BOOL(command, "remove", true);
    } else {
        append_update(&update, command, "update");
        BSON_APPEND_BOOL(command, "new", rng_chance(&world->rng, 50));
    }
    world_append_collation(world, command);
    world_compare(world, command, REPLY_COUNTS, true);
    bson_destroy(&sort);
    bson_destroy(command);
    generated_update_deinit(&update);
}

static void op_insert(struct world *world)
{
    bson_t doc = BSON_INITIALIZER;
    generate_document(&world->rng, world->next_number++, &doc);
    bson_t *command = BCON_NEW("insert", "", "documents", "[", BCON_DOCUMENT(&doc), "]");
    world_compare(world, command, REPLY_COUNTS, true);
    bson_destroy(command);
    bson_destroy(&doc);
}

/* One document by its _id, there or not, replaced, upserted or deleted. */
static void op_by_id(struct world *world)
{
    bson_t *command;
    bson_t filter = BSON_INITIALIZER;
    int32_t number = (int32_t)rng_below(&world->rng, (uint32_t)world->next_number + 2);
    if (number >= world->next_number)
        world->next_number = number + 1;
    generate_id(number, &filter, "_id");
    if (rng_chance(&world->rng, 30))
        command = BCON_NEW("findAndModify", "", "query", BCON_DOCUMENT(&filter), "update", "{", "$set", "{", "n",
                           BCON_INT32((int32_t)rng_below(&world->rng, 9)), "}", "$setOnInsert", "{", "s", "fam", "k",
                           BCON_INT32(4), "}", "}", "upsert", BCON_BOOL(rng_chance(&world->rng, 60)), "new",
                           BCON_BOOL(rng_chance(&world->rng, 50)), "fields", "{", "n", BCON_INT32(1), "s",
                           BCON_INT32(1), "}");
    else if (rng_chance(&world->rng, 40))
        command =
            BCON_NEW("delete", "", "deletes", "[", "{", "q", BCON_DOCUMENT(&filter), "limit", BCON_INT32(1), "}", "]");
    else
        command = BCON_NEW("update", "", "updates", "[", "{", "q", BCON_DOCUMENT(&filter), "u", "{", "$set", "{", "n",
                           BCON_INT32((int32_t)rng_below(&world->rng, 9)), "}", "$setOnInsert", "{", "s", "up", "}",
                           "}", "upsert", BCON_BOOL(rng_chance(&world->rng, 50)), "}", "]");
    world_compare(world, command, REPLY_COUNTS, true);
    bson_destroy(command);
    bson_destroy(&filter);
}

static void op_delete_many(struct world *world)
{
    /* Few go: the collection must not run empty. */
    bson_t statement = BSON_INITIALIZER;
    bson_t *range = BCON_NEW("n", "{", "$gt", BCON_DOUBLE(9), "}");
    append_both(world, range, &statement, "q");
    BSON_APPEND_INT32(&statement, "limit", 0);
    bson_t *command = BCON_NEW("delete", "", "deletes", "[", BCON_DOCUMENT(&statement), "]");
    world_compare(world, command, REPLY_COUNTS, true);
    bson_destroy(command);
    bson_destroy(range);
    bson_destroy(&statement);
}

static void one_operation(struct world *world)
{
    uint32_t kind = rng_below(&world->rng, 112);
    forget_hints(world);
    static void (*const writes[])(struct world *) = {op_update, op_update, op_modify,     op_insert,
                                                     op_insert, op_by_id,  op_delete_many};
    if (kind < 58) {
        op_find(world);
    } else if (kind < 67) {
        op_count(world);
    } else if (kind < 73) {
        op_distinct(world);
    } else if (kind < 80) {
        op_aggregate(world);
    } else if (kind >= 104) {
        op_pipeline(world);
    } else if (kind >= 101) {
        op_moving(world);
    } else {
        writes[rng_below(&world->rng, 7)](world);
        if (++world->writes % COMPARE_EVERY == 0)
            compare_everything(world);
    }
    world->operations++;
}

static const char *argument(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return fallback;
}

int main(int argc, char **argv)
{
    struct world world = {.shard_key = ""};
    uint64_t wanted = strtoull(argument(argc, argv, "--ops", "2000"), NULL, 10);
    uint64_t seed = strtoull(argument(argc, argv, "--seed", "1"), NULL, 10);
    const char *uri = argument(argc, argv, "--uri", "mongodb://127.0.0.1:27017");
    char db[40];
    mongoc_init();
    mongoc_client_t *clients[2] = {mongoc_client_new(uri),
                                   mongoc_client_new(argument(argc, argv, "--second-uri", uri))};
    snprintf(db, sizeof db, "differential_%llu", (unsigned long long)seed);
    world.db = db;
    for (int i = 0; i < TARGETS; i++)
        world.targets[i] = (struct collection_target){.name = target_names[i], .client = clients[i / 2], .db = db};
    uint64_t first = strtoull(argument(argc, argv, "--round", "0"), NULL, 10);
    for (uint64_t round = first; world.operations < wanted && world.differences < DIFFERENCES_MAX; round++) {
        world.rng.state = (seed * 1000003 + round) * 0x9e3779b97f4a7c15ULL | 1;
        start_round(&world);
        for (int i = 0; i < ROUND_OPERATIONS && world.operations < wanted && !world.diverged; i++)
            one_operation(&world);
        if (!world.diverged)
            compare_everything(&world);
    }
    client_must_json(clients[0], db, "{\"dropDatabase\": 1}");
    for (int i = 0; i < TARGETS; i++)
        free(world.targets[i].hint);
    printf("seed %llu: %llu operations, %llu differences\n", (unsigned long long)seed,
           (unsigned long long)world.operations, (unsigned long long)world.differences);
    mongoc_client_destroy(clients[0]);
    mongoc_client_destroy(clients[1]);
    mongoc_cleanup();
    return world.differences == 0 && world.operations >= wanted ? 0 : 1;
}
