#include "routerd/write_plan.h"

#include "base/buf.h"
#include "base/mem.h"
#include "command/fields.h"
#include "routerd/command_env.h"
#include "routerd/upsert.h"

bool write_statement_parse(enum write_kind kind, struct bdoc doc, struct write_fields *out, struct err *err)
{
    return kind == WRITE_DELETE ? write_fields_read_delete(doc, out, err) : write_fields_read_update(doc, out, err);
}

/* What is known about one statement's place. */
struct place {
    struct target target;
    bool single; /* goes to one shard by key value, together with others of its kind */
};

static bool place_insert(const struct route *route, struct arena *arena, struct bdoc doc, struct place *out,
                         struct err *err)
{
    struct buf key = BUF_INIT;
    if (!shardkey_encode_doc(routing_table_key(route->routing->table), doc, &key, err)) {
        buf_deinit(&key);
        return false;
    }
    out->single = true;
    out->target.list = arena_alloc(arena, sizeof *out->target.list);
    out->target.list->shard = routing_table_target_key(route->routing->table, key_bytes_of(&key), NULL);
    out->target.count = 1;
    buf_deinit(&key);
    return true;
}

static bool place_statement(const struct write_batch *batch, const struct route *route, const struct write_item *item,
                            struct place *out, struct err *err)
{
    struct write_fields statement;
    struct expr_env env;
    if (item->key_doc.data)
        return place_insert(route, &batch->ctx->arena, item->key_doc, out, err);
    if (!write_statement_parse(batch->kind, item->doc, &statement, err) ||
        !command_env_init(&batch->ctx->arena, item->doc, route->routing, &env, err) ||
        !field_get_doc(batch->ctx->body, "let", &env.let, err))
        return false;
    if (item->todo) {
        target_ranges(&batch->ctx->arena, route->routing->table, item->todo, item->todo_count, &out->target);
        return true;
    }
    struct target_query query = {statement.q, &env};
    if (!target_filter(&batch->ctx->arena, route->routing->table, &query, &out->target, err))
        return false;
    out->single = out->target.point;
    if (statement.upsert && out->single) {
        struct upsert upsert = upsert_of_fields(&statement);
        out->single = !upsert_leaves(route, &upsert, out->target.list->shard);
    }
    if (statement.upsert && statement.multi && !out->single)
        return err_set(err, ERR_ShardKeyNotFound,
                       "An upsert on a sharded collection with multi: true must contain the shard key and have the "
                       "simple collation");
    return true;
}

static bool place_item(const struct write_batch *batch, const struct route *route, const struct write_item *item,
                       struct place *out, struct err *err)
{
    *out = (struct place){0};
    if (batch->kind == WRITE_INSERT)
        return place_insert(route, &batch->ctx->arena, item->doc, out, err);
    return place_statement(batch, route, item, out, err);
}

static void group_add(struct write_group *group, uint32_t item)
{
    if (group->count == group->room) {
        group->room = group->room ? group->room * 2 : 16;
        group->items = mem_realloc(group->items, group->room * sizeof *group->items);
    }
    group->items[group->count++] = item;
}

/* A statement over ranges, alone in its round. */
static bool plan_ranges(struct write_batch *batch, struct route *route, struct write_item *item,
                        const struct target *target, struct write_round *round, struct err *err)
{
    struct write_fields statement = {0};
    (void)(batch->kind == WRITE_INSERT || write_statement_parse(batch->kind, item->doc, &statement, NULL));
    if (target->count == 0 && !statement.upsert) {
        item->state = WRITE_DONE;
        return true;
    }
    /* The one shard that an upsert may look at is not always the one where it inserts. */
    if ((target->count > 1 || statement.upsert) && !statement.multi) {
        round->anywhere = item;
        round->anywhere_target = *target;
        return true;
    }
    for (size_t i = 0; i < target->count; i++) {
        struct write_group *group = &round->groups[round->count];
        *group = (struct write_group){.ranges = target->list[i].ranges, .range_count = target->list[i].range_count};
        if (!route_shard(route, target->list[i].shard, &group->set, err))
            return false;
        round->count++;
        group_add(group, (uint32_t)(item - batch->items));
    }
    return true;
}

static void plan_failed(struct write_batch *batch, struct write_item *item, const struct err *err)
{
    item->state = WRITE_FAILED;
    write_result_add_error(&batch->result, (int32_t)item->index, err);
}

/* One round in the making. */
struct planner {
    struct write_batch *batch;
    struct route *route;
    struct write_round *round;
    size_t *by_shard; /* number of a shard's group, from 1; 0: none yet */
};

/* A group for the shard, made when there is none yet. */
static bool planner_group(struct planner *p, size_t shard, struct write_group **out, struct err *err)
{
    if (p->by_shard[shard] == 0) {
        struct write_group *group = &p->round->groups[p->round->count];
        *group = (struct write_group){0};
        if (!route_shard(p->route, shard, &group->set, err))
            return false;
        p->by_shard[shard] = ++p->round->count;
    }
    *out = &p->round->groups[p->by_shard[shard] - 1];
    return true;
}

/* One pending statement into the round. *stop: nothing after it may go along. */
static bool planner_add(struct planner *p, uint32_t index, bool *stop, struct err *err)
{
    struct write_item *item = &p->batch->items[index];
    struct place place;
    struct err failed;
    struct write_group *group;
    *stop = p->batch->ordered;
    if (!place_item(p->batch, p->route, item, &place, &failed)) {
        if (p->round->count == 0 || !p->batch->ordered)
            plan_failed(p->batch, item, &failed);
        return true;
    }
    if (!place.single) {
        /* What follows may depend on it where both touch a document: nobody's order is changed without need. */
        *stop = true;
        if (p->round->count > 0)
            return true;
        /* It runs alone: to place what follows now would cost as much again in each of the rounds to come. */
        p->round->late = item;
        p->round->late_target = place.target;
        return true;
    }
    size_t shard = place.target.list->shard;
    if (p->batch->ordered && p->round->count > 0 && p->by_shard[shard] == 0)
        return true;
    *stop = false;
    if (!planner_group(p, shard, &group, err))
        return false;
    group_add(group, index);
    return true;
}

static bool plan_sharded(struct write_batch *batch, struct route *route, struct write_round *round, struct err *err)
{
    struct planner planner = {.batch = batch, .route = route, .round = round};
    planner.by_shard = mem_alloc_array(routing_table_shard_count(route->routing->table) + 1, sizeof *planner.by_shard);
    bool ok = true;
    bool stop = false;
    for (uint32_t i = batch->first; i < batch->count && ok && !stop; i++)
        if (batch->items[i].state == WRITE_PENDING)
            ok = planner_add(&planner, i, &stop, err);
    mem_free(planner.by_shard);
    if (!ok || round->count > 0 || !round->late)
        return ok;
    return plan_ranges(batch, route, round->late, &round->late_target, round, err);
}

static bool plan_primary(struct write_batch *batch, struct route *route, struct write_round *round, struct err *err)
{
    struct write_group *group = round->groups;
    *group = (struct write_group){0};
    for (uint32_t i = batch->first; i < batch->count; i++)
        if (batch->items[i].state == WRITE_PENDING)
            group_add(group, i);
    if (group->count == 0)
        return true;
    round->count = 1;
    return route_primary(route, &group->set, err);
}

bool write_plan(struct write_batch *batch, struct route *route, struct write_round *round, struct err *err)
{
    const struct routing_table *table = route->routing->table;
    size_t shards = table ? routing_table_shard_count(table) : 1;
    *round = (struct write_round){.groups = mem_alloc_array(shards + 1, sizeof *round->groups)};
    while (batch->first < batch->count && batch->items[batch->first].state != WRITE_PENDING)
        batch->first++;
    bool ok = table ? plan_sharded(batch, route, round, err) : plan_primary(batch, route, round, err);
    if (!ok)
        write_round_deinit(round);
    return ok;
}

void write_round_deinit(struct write_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        remote_set_unref(round->groups[i].set);
        mem_free(round->groups[i].items);
    }
    mem_free(round->groups);
    *round = (struct write_round){0};
}
