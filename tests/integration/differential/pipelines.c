/* Aggregations that join, unwind, group and branch. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stages after a random $match. @ becomes the name of any of the collections: all hold the same. Where several
 * documents or values may stand for one, numbers are compared by value. */
struct pipeline_form {
    const char *stages;
    bool collation; /* the result is the same whichever of equal strings is met first */
};

static const struct pipeline_form forms[] = {
    {"{'$unwind': '$a'}, {'$match': {'a': {'$type': 'number'}}}, {'$group': {'_id': '$a', 'k': {'$sum': 1}}}", true},
    {"{'$unwind': {'path': '$c', 'preserveNullAndEmptyArrays': true, 'includeArrayIndex': 'i'}},"
     " {'$project': {'c.x': 1, 'i': 1, 's': 1}}",
     true},
    {"{'$unwind': '$c'}, {'$match': {'c.x': {'$gt': %d}}}, {'$sort': {'c.x': 1, '_id': 1}}, {'$limit': 7}", true},
    {"{'$lookup': {'from': '@', 'localField': 'n', 'foreignField': 'b', 'as': 'j'}},"
     " {'$project': {'n': 1, 'j': {'$size': '$j'}}}",
     true},
    {"{'$lookup': {'from': '@', 'localField': 'a', 'foreignField': 'c.x', 'as': 'j'}},"
     " {'$project': {'a': 1, 'j': {'$size': '$j'}}}",
     true},
    {"{'$lookup': {'from': '@', 'localField': 's', 'foreignField': 's', 'as': 'j'}}, {'$unwind': '$j'},"
     " {'$match': {'j.n': {'$gt': %d}}}, {'$project': {'j._id': 1}}",
     true},
    {"{'$lookup': {'from': '@', 'let': {'v': '$n'}, 'pipeline': [{'$match': {'$expr': {'$eq': ['$b', '$$v']}}},"
     " {'$count': 'k'}], 'as': 'j'}}, {'$project': {'j': 1}}",
     true},
    {"{'$limit': 40}, {'$count': 'k'}", true},
    {"{'$facet': {'one': [{'$group': {'_id': '$d', 'k': {'$sum': 1}}}, {'$sort': {'_id': 1}}],"
     " 'two': [{'$sort': {'_id': 1}}, {'$skip': %d}, {'$limit': 3}, {'$project': {'n': 1}}], 'three': [{'$count': "
     "'k'}]}}",
     true},
    {"{'$sort': {'n': -1, '_id': 1}}, {'$skip': %d}, {'$limit': 12}, {'$match': {'s': {'$gt': 'a'}}},"
     " {'$sort': {'s': 1, '_id': -1}}, {'$limit': 4}",
     true},
    {"{'$unionWith': {'coll': '@', 'pipeline': [{'$match': {'n': {'$gt': %d}}}]}},"
     " {'$group': {'_id': '$_id', 'k': {'$sum': 1}}}",
     false},
    {"{'$graphLookup': {'from': '@', 'startWith': '$n', 'connectFromField': 'n', 'connectToField': 'b', 'as': 'g',"
     " 'maxDepth': 1}}, {'$project': {'g': {'$size': '$g'}}}",
     true},
    {"{'$sortByCount': '$d'}", true},
    {"{'$sort': {'_id': 1}}, {'$group': {'_id': '$d', 'f': {'$first': '$_id'}, 'l': {'$last': '$_id'},"
     " 'm': {'$max': '$n'}, 'a': {'$avg': '$n'}, 'p': {'$push': '$_id'}}}",
     false},
    {"{'$group': {'_id': {'d': '$d', 't': {'$type': '$b'}}, 'k': {'$sum': '$n'}, 'x': {'$min': '$k'}}},"
     " {'$match': {'k': {'$gt': %d}}}",
     false},
    {"{'$addFields': {'v': {'$add': ['$n', %d]}}}, {'$match': {'v': {'$gte': 4}, 'b': {'$ne': null}}},"
     " {'$project': {'v': 1}}",
     true},
    {"{'$project': {'z': '$k', 'b': 1}}, {'$match': {'z': {'$lte': %d}, 'b': {'$exists': true}}}", true},
    {"{'$bucket': {'groupBy': '$n', 'boundaries': [-5, 0, %d, 20], 'default': 'other', 'output': {'k': {'$sum': 1}}}}",
     true},
    {"{'$replaceRoot': {'newRoot': {'o': '$$ROOT', '_id': '$_id'}}}, {'$match': {'o.n': {'$lt': %d}}}", true},
    {"{'$group': {'_id': null, 't': {'$topN': {'n': 3, 'sortBy': {'n': -1, '_id': 1}, 'output': '$_id'}}}}", true},
};

static void fill(struct world *world, const char *form, char *out, size_t size)
{
    static const char *const names[] = {"plain", "indexed", "sharded", "both"};
    size_t len = 0;
    for (; *form != '\0' && len + 12 < size; form++) {
        if (*form == '@')
            len += (size_t)snprintf(out + len, size - len, "%s", names[rng_below(&world->rng, 4)]);
        else if (form[0] == '%' && form[1] == 'd' && form++)
            len += (size_t)snprintf(out + len, size - len, "%u", 1 + rng_below(&world->rng, 9));
        else
            out[len++] = *form == '\'' ? '"' : *form;
    }
    out[len] = '\0';
}

void op_pipeline(struct world *world)
{
    const struct pipeline_form *form = &forms[rng_below(&world->rng, sizeof forms / sizeof forms[0])];
    char stages[700], json[800];
    bson_t filter = BSON_INITIALIZER, parsed;
    bson_error_t error;
    bson_iter_t iter, stage;
    bson_t *command = BCON_NEW("aggregate", "");
    bson_t list;
    fill(world, form->stages, stages, sizeof stages);
    snprintf(json, sizeof json, "{\"stages\": [%s]}", stages);
    if (!bson_init_from_json(&parsed, json, -1, &error)) {
        fprintf(stderr, "differential: %s: %s\n", json, error.message);
        abort();
    }
    generate_filter(&world->rng, 1, &filter);
    bson_t *match = BCON_NEW("$match", BCON_DOCUMENT(&filter));
    BSON_APPEND_ARRAY_BEGIN(command, "pipeline", &list);
    BSON_APPEND_DOCUMENT(&list, "0", match);
    bson_iter_init_find(&iter, &parsed, "stages");
    bson_iter_recurse(&iter, &stage);
    for (uint32_t i = 1; bson_iter_next(&stage); i++) {
        char key[12];
        snprintf(key, sizeof key, "%u", i);
        bson_append_iter(&list, key, -1, &stage);
    }
    bson_append_array_end(command, &list);
    bson_t *cursor = BCON_NEW("batchSize", BCON_INT32(1 + (int32_t)rng_below(&world->rng, 60)));
    BSON_APPEND_DOCUMENT(command, "cursor", cursor);
    if (form->collation)
        world_append_collation(world, command);
    world_compare(world, command, REPLY_CURSOR_BY_VALUE, false);
    bson_destroy(cursor);
    bson_destroy(match);
    bson_destroy(command);
    bson_destroy(&parsed);
    bson_destroy(&filter);
}
