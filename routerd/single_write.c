#include "routerd/single_write.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "bson/path.h"
#include "routerd/request.h"
#include "routerd/scatter.h"
#include "routerd/upsert.h"
#include "routerd/write_plan.h"

#include <string.h>

/* find {filter, limit: 1, projection: {_id, shard key fields}} */
static void candidate_command(const struct route *route, const char *coll, const struct single_query *query,
                              bson_t *body)
{
    const struct shardkey *key = routing_table_key(route->routing->table);
    bson_t projection;
    BSON_APPEND_UTF8(body, "find", coll);
    struct bval filter = bval_from_doc(query->filter);
    bval_append(body, "filter", -1, &filter);
    BSON_APPEND_INT32(body, "limit", 1);
    BSON_APPEND_BOOL(body, "singleBatch", true);
    BSON_APPEND_DOCUMENT_BEGIN(body, "projection", &projection);
    BSON_APPEND_INT32(&projection, "_id", 1);
    for (size_t i = 0; i < shardkey_field_count(key); i++)
        if (strcmp(shardkey_field_path(key, i), "_id") != 0)
            BSON_APPEND_INT32(&projection, shardkey_field_path(key, i), 1);
    bson_append_document_end(body, &projection);
    if (query->sort.data && !bdoc_is_empty(query->sort)) {
        struct bval sort = bval_from_doc(query->sort);
        bval_append(body, "sort", -1, &sort);
        BSON_APPEND_BOOL(body, "$sherdSortKeys", true);
    }
    if (query->collation.data) {
        struct bval collation = bval_from_doc(query->collation);
        bval_append(body, "collation", -1, &collation);
    }
    if (query->hint.type != BT_EOO)
        bval_append(body, "hint", -1, &query->hint);
    static const char *const kept[] = {"let", "$db", "lsid", "comment", NULL};
    for (const char *const *name = kept; *name; name++) {
        struct bval value;
        if (bdoc_find(query->body, *name, &value))
            bval_append(body, *name, -1, &value);
    }
}

/* The best document of the answers; data NULL: none. */
static bool candidate_choose(const struct remote_request *requests, size_t count, bool sorted, struct bdoc *best,
                             struct err *err)
{
    struct key_bytes best_key = {0};
    *best = (struct bdoc){0};
    for (size_t i = 0; i < count; i++) {
        struct cursor_reply reply;
        struct bval doc, key;
        if (!cursor_reply_parse(requests[i].reply, &reply, err))
            return false;
        if (!bdoc_find(reply.batch, "0", &doc) || doc.type != BT_DOCUMENT)
            continue;
        struct key_bytes bytes = {0};
        if (sorted) {
            uint8_t subtype;
            if (!reply.sort_keys.data || !bdoc_find(reply.sort_keys, "0", &key) || key.type != BT_BINARY)
                return err_set(err, ERR_FailedToParse, "a shard's answer lacks its sort key");
            bytes.data = bval_binary(&key, &subtype, &bytes.len);
        }
        if (!best->data || (sorted && key_bytes_compare(bytes, best_key) < 0)) {
            *best = bval_doc(&doc);
            best_key = bytes;
        }
    }
    return true;
}

static void append_equality(bson_t *to, const char *path, const struct bval *value)
{
    bson_t equality;
    /* What can't be taken for operators or a pattern needs no $eq. */
    if (value->type != BT_DOCUMENT && value->type != BT_REGEX) {
        bval_append(to, path, -1, value->type == BT_EOO ? &BVAL_NULL : value);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(to, path, &equality);
    bval_append(&equality, "$eq", -1, value);
    bson_append_document_end(to, &equality);
}

/* {$and: [filter, {_id: {$eq: ..}, key fields: {$eq: ..}}]} */
static struct bdoc candidate_filter(const struct route *route, struct bdoc filter, struct bdoc doc)
{
    const struct shardkey *key = routing_table_key(route->routing->table);
    bson_t out = BSON_INITIALIZER;
    bson_t both, exact;
    struct bval value = bval_from_doc(filter);
    BSON_APPEND_ARRAY_BEGIN(&out, "$and", &both);
    bval_append(&both, "0", -1, &value);
    BSON_APPEND_DOCUMENT_BEGIN(&both, "1", &exact);
    (void)bdoc_find(doc, "_id", &value);
    append_equality(&exact, "_id", &value);
    for (size_t i = 0; i < shardkey_field_count(key); i++) {
        const char *path = shardkey_field_path(key, i);
        if (strcmp(path, "_id") == 0)
            continue;
        (void)path_get_str(doc, path, &value);
        append_equality(&exact, path, &value);
    }
    bson_append_document_end(&both, &exact);
    bson_append_array_end(&out, &both);
    struct bdoc result = {arena_copy(&route->ctx->arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return result;
}

enum single_found single_write_find(struct route *route, const char *coll, const struct single_query *query,
                                    const struct target *target, struct single_candidate *out, struct err *err)
{
    struct scatter_command command = {.repeatable = true};
    struct scatter scatter;
    struct bdoc best;
    bool sorted = query->sort.data && !bdoc_is_empty(query->sort);
    bson_init(&command.body);
    candidate_command(route, coll, query, &command.body);
    enum scatter_outcome outcome = scatter_targets(route, target, &command, &scatter, err);
    enum single_found found = SINGLE_FOUND;
    if (outcome == SCATTER_STALE)
        found = SINGLE_STALE;
    else if (outcome == SCATTER_FAILED || !candidate_choose(scatter.requests, scatter.count, sorted, &best, err))
        found = SINGLE_FAILED;
    else if (!best.data)
        found = SINGLE_NONE;
    else
        *out = (struct single_candidate){
            .filter = candidate_filter(route, query->filter, best),
            .doc = {arena_copy(&route->ctx->arena, best.data, best.len), best.len},
        };
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return found;
}

bool single_write_shard(const struct route *route, struct bdoc doc, size_t *shard, struct err *err)
{
    struct buf key = BUF_INIT;
    const struct routing_table *table = route->routing->table;
    bool ok = shardkey_encode_doc(routing_table_key(table), doc, &key, err);
    if (ok)
        *shard = routing_table_target_key(table, key_bytes_of(&key), NULL);
    buf_deinit(&key);
    return ok;
}

bool single_write_pause(struct command_ctx *ctx, int tries, struct err *err)
{
    enum { FREE_TRIES = 2, PAUSE_MAX_MS = 20 };
    if (tries > FREE_TRIES) {
        uint64_t most_ms = tries < PAUSE_MAX_MS ? (uint64_t)tries : PAUSE_MAX_MS;
        clock_sleep_ms((int64_t)(random_u64() % most_ms));
    }
    return command_ctx_check_deadline(ctx, err) && interrupt_check(err);
}

/* The statement with another q and without upsert. */
static struct bdoc statement_with(struct arena *arena, struct bdoc statement, struct bdoc filter)
{
    bson_t out = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, statement);
    while (biter_next(&iter, &elem)) {
        struct bval q = bval_from_doc(filter);
        if (strcmp(elem.key, "upsert") != 0 && strcmp(elem.key, "upsertSupplied") != 0)
            bval_append(&out, elem.key, (int)elem.key_len, strcmp(elem.key, "q") == 0 ? &q : &elem.val);
    }
    struct bdoc result = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return result;
}

static void fail(struct write_batch *batch, struct write_item *item, const struct err *err)
{
    item->state = WRITE_FAILED;
    write_result_add_error(&batch->result, (int32_t)item->index, err);
}

/* The write itself, as a batch of its own with a statement for one key value. True: `batch` has the result. */
static bool write_candidate(struct write_batch *batch, struct write_item *item, const struct single_candidate *found)
{
    struct write_batch one;
    struct err err;
    write_batch_init_items(&one, batch->ctx, batch->kind, 1);
    bson_concat(&one.common, &batch->common);
    one.ns = batch->ns;
    one.ns.coll = one.ns.full + (batch->ns.coll - batch->ns.full);
    one.items[0].doc = statement_with(&batch->ctx->arena, item->doc, found->filter);
    one.items[0].key_doc = found->doc;
    one.items[0].index = item->index;
    bool done = true;
    if (!write_batch_run(&one, &err)) {
        fail(batch, item, &err);
    } else if (one.result.error_count > 0) {
        item->state = WRITE_FAILED;
        write_result_take_errors(&batch->result, &one.result);
    } else {
        batch->result.n += one.result.n;
        batch->result.n_modified += one.result.n_modified;
        done = one.result.n > 0;
        item->state = done ? WRITE_DONE : WRITE_PENDING;
    }
    batch->executed |= one.executed;
    batch->unknown |= one.unknown;
    write_batch_deinit(&one);
    return done;
}

/* Nothing matches: inserts. *taken: a unique key is in use, so that something may match by now. */
static bool write_upsert(struct write_batch *batch, struct route *route, struct write_item *item,
                         const struct write_fields *fields, bool *taken, struct err *err)
{
    struct upsert upsert = upsert_of_fields(fields);
    struct bdoc doc;
    struct bval id;
    bool unknown = false;
    *taken = false;
    if (!upsert_build(route, &upsert, &doc, err))
        return false;
    bool ok = upsert_insert(route, &batch->ns, batch->ctx->body, doc, &unknown, err);
    batch->unknown |= unknown;
    *taken = !ok && err->code == ERR_DuplicateKey;
    if (!ok)
        return false;
    bdoc_find(doc, "_id", &id);
    batch->executed = true;
    batch->result.n++;
    write_result_add_upserted(&batch->result, (int32_t)item->index, &id);
    item->state = WRITE_DONE;
    return true;
}

void single_write_run(struct write_batch *batch, struct route *route, struct write_item *item,
                      const struct target *target)
{
    struct write_fields fields;
    struct err err;
    int upserts = 0;
    bool ok = write_statement_parse(batch->kind, item->doc, &fields, &err);
    struct single_query query = {fields.q, fields.sort, fields.collation, fields.hint, batch->ctx->body};
    for (int tries = 0; ok && tries < SINGLE_WRITE_TRIES_MAX; tries++) {
        struct single_candidate candidate;
        enum single_found found = single_write_find(route, batch->ns.coll, &query, target, &candidate, &err);
        if (found == SINGLE_STALE)
            return;
        ok = found != SINGLE_FAILED;
        if (found == SINGLE_NONE && fields.upsert) {
            bool taken;
            if (write_upsert(batch, route, item, &fields, &taken, &err))
                return;
            ok = taken && ++upserts < UPSERT_TRIES_MAX;
        } else if (found == SINGLE_NONE) {
            item->state = WRITE_DONE;
            return;
        } else if (ok && write_candidate(batch, item, &candidate)) {
            return;
        }
        ok = ok && single_write_pause(batch->ctx, tries, &err);
    }
    if (ok)
        (void)err_set(&err, ERR_WriteConflict, "the document kept changing while it was looked for");
    fail(batch, item, &err);
}
