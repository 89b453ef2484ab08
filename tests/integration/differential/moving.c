/* A cursor goes on while the documents under it change. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES = 8 };

struct moves {
    bson_t *writes[MOVES]; /* each of one document, by _id; the same on all collections */
    bson_t ids[MOVES];     /* {_id} of each */
};

static bson_t *make_move(struct rng *rng, const bson_t *id)
{
    static const char *const updates[] = {
        "{\"$inc\": {\"n\": 3}}",
        "{\"$set\": {\"b\": 5}}",
        "{\"$set\": {\"a\": [1, 5, {\"x\": 2}]}}",
        "{\"$set\": {\"a\": 7, \"s\": \"aB\"}}",
        "{\"$set\": {\"c\": [{\"x\": 1, \"y\": 2}, {\"x\": 9}]}}",
        "{\"$unset\": {\"b\": 1, \"c\": 1}}",
    };
    if (rng_chance(rng, 15))
        return BCON_NEW("delete", "", "deletes", "[", "{", "q", BCON_DOCUMENT(id), "limit", BCON_INT32(1), "}", "]");
    bson_t update;
    bson_init_from_json(&update, updates[rng_below(rng, 6)], -1, NULL);
    bson_t *command =
        BCON_NEW("update", "", "updates", "[", "{", "q", BCON_DOCUMENT(id), "u", BCON_DOCUMENT(&update), "}", "]");
    bson_destroy(&update);
    return command;
}

static void make_moves(struct world *world, struct moves *moves)
{
    for (int i = 0; i < MOVES; i++) {
        bson_init(&moves->ids[i]);
        generate_id((int32_t)rng_below(&world->rng, (uint32_t)world->next_number), &moves->ids[i], "_id");
        moves->writes[i] = make_move(&world->rng, &moves->ids[i]);
    }
}

static bool same_value(const bson_value_t *a, const bson_value_t *b)
{
    bson_t left = BSON_INITIALIZER, right = BSON_INITIALIZER;
    BSON_APPEND_VALUE(&left, "v", a);
    BSON_APPEND_VALUE(&right, "v", b);
    bool same = bson_equal(&left, &right);
    bson_destroy(&left);
    bson_destroy(&right);
    return same;
}

/* How often the document with that _id is in the list. */
static int count_of(const bson_t *list, const bson_iter_t *id)
{
    bson_iter_t iter, docs, at;
    int count = 0;
    if (!bson_iter_init_find(&iter, list, "documents") || !bson_iter_recurse(&iter, &docs))
        return 0;
    while (bson_iter_next(&docs))
        if (bson_iter_recurse(&docs, &at) && bson_iter_find(&at, "_id") &&
            same_value(bson_iter_value(&at), bson_iter_value((bson_iter_t *)id)))
            count++;
    return count;
}

static bool is_moved(const struct moves *moves, const bson_iter_t *id)
{
    bson_iter_t iter;
    for (int i = 0; i < MOVES; i++)
        if (bson_iter_init_find(&iter, &moves->ids[i], "_id") &&
            same_value(bson_iter_value(&iter), bson_iter_value((bson_iter_t *)id)))
            return true;
    return false;
}

/* True when each document of `one` that nobody touched is in `other` exactly once. */
static bool each_once(const bson_t *one, const bson_t *other, const struct moves *moves)
{
    bson_iter_t iter, docs, at;
    if (!bson_iter_init_find(&iter, one, "documents") || !bson_iter_recurse(&iter, &docs))
        return true;
    while (bson_iter_next(&docs))
        if (bson_iter_recurse(&docs, &at) && bson_iter_find(&at, "_id") && !is_moved(moves, &at) &&
            count_of(other, &at) != 1)
            return false;
    return true;
}

void op_moving(struct world *world)
{
    bson_t *command = BCON_NEW("find", "");
    bson_t projection, sort = BSON_INITIALIZER;
    struct moves moves;
    world_append_filter(world, command, "filter");
    if (rng_chance(&world->rng, 30)) {
        generate_sort(&world->rng, &sort);
        BSON_APPEND_DOCUMENT(command, "sort", &sort);
    }
    bson_init_from_json(&projection, "{\"_id\": 1}", -1, NULL);
    if (rng_chance(&world->rng, 50))
        BSON_APPEND_DOCUMENT(command, "projection", &projection);
    world_append_collation(world, command);
    make_moves(world, &moves);
    for (int i = 0; i < TARGETS; i++) {
        bson_t before, moving;
        client_run(&world->targets[i], command, REPLY_CURSOR, &before);
        client_run_moving(&world->targets[i], command, moves.writes, MOVES, &moving);
        /* A sort by two arrays of one document is refused, and moves make arrays. */
        bool refused = bson_has_field(&before, "code") || bson_has_field(&moving, "code");
        bool same =
            refused ? !bson_empty(&sort) : each_once(&before, &moving, &moves) && each_once(&moving, &before, &moves);
        if (!same)
            world_report(world, command, &before, &moving, i);
        bson_destroy(&before);
        bson_destroy(&moving);
    }
    for (int i = 0; i < MOVES; i++) {
        bson_destroy(moves.writes[i]);
        bson_destroy(&moves.ids[i]);
    }
    bson_destroy(&sort);
    bson_destroy(&projection);
    bson_destroy(command);
}
