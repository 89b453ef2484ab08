#include "routerd/write_batch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "command/field_spec.h"
#include "routerd/client_error.h"
#include "routerd/request.h"
#include "routerd/single_write.h"
#include "routerd/write_plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { OUTGOING_PIECES_MAX = 32 }; /* runs of bytes in one request; beyond it the statements are copied together */

const char *write_kind_command(enum write_kind kind)
{
    static const char *const names[] = {"insert", "update", "delete"};
    return names[kind];
}

const char *write_kind_field(enum write_kind kind)
{
    static const char *const names[] = {"documents", "updates", "deletes"};
    return names[kind];
}

void write_batch_init_items(struct write_batch *batch, struct command_ctx *ctx, enum write_kind kind, uint32_t count)
{
    *batch = (struct write_batch){.ctx = ctx, .kind = kind, .ordered = true, .count = count};
    batch->items = arena_alloc(&ctx->arena, count * sizeof *batch->items);
    bson_init(&batch->common);
    write_result_init(&batch->result, kind == WRITE_UPDATE);
}

void write_batch_deinit(struct write_batch *batch)
{
    bson_destroy(&batch->common);
    write_result_deinit(&batch->result);
}

void write_item_add_id(struct write_batch *batch, struct write_item *item)
{
    enum { ID_ELEMENT_BYTES = 1 + 4 + 12 };
    if (bdoc_has(item->doc, "_id"))
        return;
    uint32_t len = item->doc.len + ID_ELEMENT_BYTES;
    uint8_t *bytes = arena_alloc(&batch->ctx->arena, len);
    bson_oid_t oid;
    bson_oid_init(&oid, NULL);
    store_le32(bytes, len);
    bytes[4] = BT_OBJECT_ID;
    memcpy(bytes + 5, "_id", 4);
    memcpy(bytes + 9, oid.bytes, sizeof oid.bytes);
    memcpy(bytes + 4 + ID_ELEMENT_BYTES, item->doc.data + 4, item->doc.len - 4);
    item->doc = (struct bdoc){bytes, len};
    item->owner = NULL;
}

static void batch_read_common(struct write_batch *batch)
{
    const char *const skip[] = {write_kind_command(batch->kind), write_kind_field(batch->kind), "ordered", NULL};
    request_append_body(&batch->common, batch->ctx->body, skip);
}

/* The fields of the three commands, but for the statements. */
static bool batch_check_fields(struct write_batch *batch, struct err *err)
{
    struct given {
        struct bdoc statements, let;
        const uint8_t *uuid;
        bool ordered, bypass;
    } given = {.ordered = true};
    const struct field_spec list[] = {
        {write_kind_field(batch->kind), FIELD_ARRAY, offsetof(struct given, statements), false},
        {"ordered", FIELD_BOOL, offsetof(struct given, ordered), false},
        {"bypassDocumentValidation", FIELD_FLAG, offsetof(struct given, bypass), false},
        {"bypassEmptyTsReplacement", FIELD_FLAG, offsetof(struct given, bypass), false},
        {"collectionUUID", FIELD_UUID, offsetof(struct given, uuid), false},
        {"let", FIELD_DOC, offsetof(struct given, let), false}, /* the last: insert has none */
    };
    const struct field_specs specs = {list, (unsigned)(sizeof list / sizeof list[0]) - (batch->kind == WRITE_INSERT),
                                      true};
    if (!fields_read(batch->ctx->body, write_kind_command(batch->kind), &specs, &given, err))
        return false;
    batch->ordered = given.ordered;
    return true;
}

/* What is malformed refuses the command before anything of it is done. */
static bool item_check(const struct write_batch *batch, const struct write_item *item, struct err *err)
{
    struct write_fields ignored;
    return batch->kind == WRITE_INSERT || write_statement_parse(batch->kind, item->doc, &ignored, err);
}

bool write_batch_init(struct write_batch *batch, struct command_ctx *ctx, enum write_kind kind, struct err *err)
{
    struct batch docs;
    struct batch_iter iter;
    const char *const sequences[] = {write_kind_field(kind), NULL};
    write_batch_init_items(batch, ctx, kind, 0);
    if (!command_ns(ctx, &batch->ns, err) || !batch_check_sequences(ctx, sequences, err) ||
        !batch_check_fields(batch, err) || !batch_init(&docs, ctx, write_kind_field(kind), err))
        return false;
    batch->count = docs.count;
    batch->items = arena_alloc(&ctx->arena, docs.count * sizeof *batch->items);
    batch_iter_init(&iter, &docs);
    for (uint32_t i = 0; i < docs.count; i++) {
        struct write_item *item = &batch->items[i];
        item->index = i;
        item->owner = ctx->frame;
        if (!batch_next(&iter, &item->doc))
            return err_set(err, ERR_InvalidBSON, "malformed list of statements");
        if (!item_check(batch, item, err))
            return false;
        if (kind == WRITE_INSERT)
            write_item_add_id(batch, item);
    }
    batch_read_common(batch);
    return true;
}

/* A request on the wire: what rpc borrows until the round is over. */
struct outgoing {
    struct wire_piece pieces[OUTGOING_PIECES_MAX];
    struct wire_frame *copy; /* holds statements that lie too scattered to go out as they are; NULL: none */
    struct rpc_sequence sequence;
};

/* The statements of a group as runs of bytes; neighbours in the client's message become one run. False: there are too
 * many runs. */
static bool outgoing_runs(const struct write_batch *batch, const struct write_group *group, struct outgoing *out)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct write_item *item = &batch->items[group->items[i]];
        struct wire_piece *last = count ? &out->pieces[count - 1] : NULL;
        if (last && item->owner && last->owner == item->owner &&
            (const uint8_t *)last->data + last->len == item->doc.data) {
            last->len += item->doc.len;
            continue;
        }
        if (count == OUTGOING_PIECES_MAX)
            return false;
        out->pieces[count++] = (struct wire_piece){.data = item->doc.data, .len = item->doc.len, .owner = item->owner};
    }
    out->sequence.piece_count = count;
    return true;
}

static void outgoing_copy(const struct write_batch *batch, const struct write_group *group, struct outgoing *out)
{
    struct buf bytes = BUF_INIT;
    size_t total = 0;
    for (uint32_t i = 0; i < group->count; i++)
        total += batch->items[group->items[i]].doc.len;
    (void)buf_reserve(&bytes, total);
    for (uint32_t i = 0; i < group->count; i++)
        buf_append(&bytes, batch->items[group->items[i]].doc.data, batch->items[group->items[i]].doc.len);
    out->copy = wire_frame_take(&bytes);
    out->pieces[0] = (struct wire_piece){.data = out->copy->data, .len = out->copy->len, .owner = out->copy};
    out->sequence.piece_count = 1;
}

static void outgoing_make(const struct write_batch *batch, const struct route *route, const struct write_group *group,
                          struct outgoing *outgoing, struct remote_request *request)
{
    remote_request_init(request, group->set, false);
    BSON_APPEND_UTF8(&request->body, write_kind_command(batch->kind), batch->ns.coll);
    BSON_APPEND_BOOL(&request->body, "ordered", batch->ordered);
    bson_concat(&request->body, &batch->common);
    if (!route->routing->table)
        route_append_db_version(route, &request->body);
    else if (group->ranges)
        route_append_range_version(route, &request->body, group->ranges, group->range_count);
    else
        route_append_key_version(route, &request->body);
    if (!outgoing_runs(batch, group, outgoing))
        outgoing_copy(batch, group, outgoing);
    outgoing->sequence.pieces = outgoing->pieces;
    outgoing->sequence.name = write_kind_field(batch->kind);
    request->sequences = &outgoing->sequence;
    request->sequence_count = 1;
}

static void item_fail(struct write_batch *batch, struct write_item *item, const struct err *err)
{
    item->state = WRITE_FAILED;
    write_result_add_error(&batch->result, (int32_t)item->index, err);
}

/* Counts and upserted ids of a reply. */
static void absorb_counts(struct write_batch *batch, const struct write_group *group, struct bdoc reply)
{
    struct bval value;
    int64_t number;
    if (bdoc_find(reply, "n", &value) && bval_to_i64(&value, &number))
        batch->result.n += number;
    if (bdoc_find(reply, "nModified", &value) && bval_to_i64(&value, &number))
        batch->result.n_modified += number;
    if (!bdoc_find(reply, "upserted", &value) || value.type != BT_ARRAY)
        return;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(&value));
    while (biter_next(&iter, &elem)) {
        struct bval index, id;
        if (elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "index", &index) &&
            bval_to_i64(&index, &number) && number >= 0 && number < group->count &&
            bdoc_find(bval_doc(&elem.val), "_id", &id))
            write_result_add_upserted(&batch->result, (int32_t)batch->items[group->items[number]].index, &id);
    }
}

/* One element of a shard's writeErrors. Returns its position in the group, or -1. */
static int64_t absorb_error(struct write_batch *batch, struct route *route, const struct write_group *group,
                            struct bdoc error)
{
    struct bval value;
    int64_t index = -1;
    int64_t code = ERR_UnknownError;
    uint32_t len;
    if (!bdoc_find(error, "index", &value) || !bval_to_i64(&value, &index) || index < 0 || index >= group->count)
        return -1;
    struct write_item *item = &batch->items[group->items[index]];
    if (bdoc_find(error, "code", &value))
        (void)bval_to_i64(&value, &code);
    struct err err = {.code = (int32_t)code};
    if (bdoc_find(error, "errmsg", &value) && value.type == BT_STRING) {
        const char *text = bval_str(&value, &len);
        (void)err_set(&err, (int32_t)code, "%.*s", (int)len, text);
    }
    if (route_is_stale(route, &err) || route_is_busy(route, &err))
        return index; /* still pending */
    bson_t details = BSON_INITIALIZER;
    static const char *const known[] = {"index", "code", "codeName", "errmsg", NULL};
    request_append_body(&details, error, known);
    if (bson_count_keys(&details) > 0)
        err_set_details(&err, bson_get_data(&details), details.len);
    bson_destroy(&details);
    client_error_make(batch->ctx, code == ERR_InterruptedDueToReplStateChange, &err);
    item_fail(batch, item, &err);
    return index;
}

static int range_compare(const void *a, const void *b)
{
    return key_bytes_compare(((const struct key_range *)a)->min, ((const struct key_range *)b)->min);
}

/* A range statement that one shard has done: the others may still have to. */
static void settle_ranges(struct write_batch *batch, const struct write_round *round, const bool *again)
{
    struct write_item *item = &batch->items[round->groups[0].items[0]];
    size_t count = 0;
    for (size_t i = 0; i < round->count; i++)
        count += again[i] ? round->groups[i].range_count : 0;
    if (item->state != WRITE_PENDING)
        return;
    if (count == 0) {
        item->state = WRITE_DONE;
        return;
    }
    struct arena *arena = &batch->ctx->arena;
    item->todo = arena_alloc(arena, count * sizeof *item->todo);
    item->todo_count = 0;
    for (size_t i = 0; i < round->count; i++) {
        for (size_t k = 0; again[i] && k < round->groups[i].range_count; k++) {
            struct key_range range = round->groups[i].ranges[k];
            range.min.data = arena_copy(arena, range.min.data, range.min.len);
            range.max.data = arena_copy(arena, range.max.data, range.max.len);
            item->todo[item->todo_count++] = range;
        }
    }
    qsort(item->todo, item->todo_count, sizeof *item->todo, range_compare);
}

/* What a reply that says ok tells about each statement. Returns true when some are still pending. */
static bool absorb_reply(struct write_batch *batch, struct route *route, const struct write_group *group,
                         struct bdoc reply)
{
    absorb_counts(batch, group, reply);
    struct bval value;
    bool *refused = mem_alloc_array(group->count, sizeof *refused);
    int64_t first = group->count;
    if (bdoc_find(reply, "writeErrors", &value) && value.type == BT_ARRAY) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bval_doc(&value));
        while (biter_next(&iter, &elem)) {
            int64_t index = elem.val.type == BT_DOCUMENT ? absorb_error(batch, route, group, bval_doc(&elem.val)) : -1;
            if (index >= 0)
                refused[index] = true;
            if (index >= 0 && index < first)
                first = index;
        }
    }
    bool pending = false;
    for (uint32_t i = 0; i < group->count; i++) {
        struct write_item *item = &batch->items[group->items[i]];
        bool reached = !batch->ordered || i < first;
        if (item->state == WRITE_PENDING && reached && !refused[i] && !group->ranges)
            item->state = WRITE_DONE;
        pending |= item->state == WRITE_PENDING && (refused[i] || !reached);
    }
    mem_free(refused);
    return pending;
}

/* A request that failed as a whole: true when its statements are to be tried again. */
static bool absorb_failure(struct write_batch *batch, struct route *route, const struct write_group *group,
                           const struct remote_request *request)
{
    struct err err;
    if (!request->unknown && route_is_stale(route, &request->err))
        return true;
    client_error_from(batch->ctx, request, &err);
    batch->unknown |= request->unknown;
    for (uint32_t i = 0; i < group->count; i++) {
        struct write_item *item = &batch->items[group->items[i]];
        if (item->state == WRITE_PENDING)
            item_fail(batch, item, &err);
        if (batch->ordered)
            break;
    }
    return false;
}

/* Sends a round and notes what came back. *whole: the error of the only request, when it failed as a command. */
static void run_round(struct write_batch *batch, struct route *route, struct write_round *round, struct err *whole)
{
    struct remote_request *requests = remote_requests_new(round->count);
    struct outgoing *outgoing = mem_alloc_array(round->count, sizeof *outgoing);
    bool *again = mem_alloc_array(round->count, sizeof *again);
    for (size_t i = 0; i < round->count; i++)
        outgoing_make(batch, route, &round->groups[i], &outgoing[i], &requests[i]);
    remote_run(route->router, requests, round->count, batch->ctx->deadline_ms);
    bool ranges = round->groups[0].ranges;
    for (size_t i = 0; i < round->count; i++) {
        if (requests[i].ok) {
            batch->executed = true;
            again[i] = absorb_reply(batch, route, &round->groups[i], requests[i].reply);
        } else {
            again[i] = absorb_failure(batch, route, &round->groups[i], &requests[i]);
            if (!again[i] && !whole->code)
                (void)client_error_from(batch->ctx, &requests[i], whole);
        }
    }
    if (ranges)
        settle_ranges(batch, round, again);
    for (size_t i = 0; i < round->count; i++) {
        remote_request_deinit(&requests[i]);
        wire_frame_unref(outgoing[i].copy);
    }
    mem_free(again);
    mem_free(outgoing);
    mem_free(requests);
}

static bool any_pending(struct write_batch *batch)
{
    if (batch->ordered && batch->result.error_count > 0)
        return false;
    for (uint32_t i = batch->first; i < batch->count; i++)
        if (batch->items[i].state == WRITE_PENDING)
            return true;
    return false;
}

/* A namespace without a database has nothing to update or delete; anything that can make a document needs one. */
static bool needs_database(const struct write_batch *batch)
{
    if (batch->kind == WRITE_DELETE)
        return false;
    for (uint32_t i = batch->first; i < batch->count && batch->kind == WRITE_UPDATE; i++) {
        struct write_fields statement;
        if (write_statement_parse(WRITE_UPDATE, batch->items[i].doc, &statement, NULL) && statement.upsert)
            return true;
    }
    return batch->kind == WRITE_INSERT;
}

static bool run_step(struct write_batch *batch, struct route *route, struct err *whole, struct err *err)
{
    struct write_round round;
    if (!route_next(route, err))
        return false;
    if (!route->routing->exists && !needs_database(batch)) {
        for (uint32_t i = batch->first; i < batch->count; i++)
            batch->items[i].state = WRITE_DONE;
        return true;
    }
    if (!route_create_database(route, err) || !write_plan(batch, route, &round, err))
        return false;
    if (round.count > 0)
        run_round(batch, route, &round, whole);
    else if (round.anywhere)
        single_write_run(batch, route, round.anywhere, &round.anywhere_target);
    write_round_deinit(&round);
    return true;
}

bool write_batch_run(struct write_batch *batch, struct err *err)
{
    struct route route;
    struct err whole = {0};
    bool ok = true;
    route_init(&route, batch->ctx, batch->ns.full);
    while (ok && any_pending(batch))
        ok = run_step(batch, &route, &whole, err);
    route_deinit(&route);
    /* A driver that repeats the command must not do so when a part of it may have been carried out. */
    if (batch->unknown)
        batch->ctx->label_count = 0;
    /* Nothing ran and a command failed as such: that is the answer, not a list of the same error. */
    if (ok && !batch->executed && whole.code) {
        *err = whole;
        ok = false;
    }
    if (ok || !batch->executed)
        return ok;
    /* Part of it ran: the rest is told statement by statement. */
    for (uint32_t i = batch->first; i < batch->count; i++) {
        if (batch->items[i].state == WRITE_PENDING)
            item_fail(batch, &batch->items[i], err);
        if (batch->ordered && batch->result.error_count > 0)
            break;
    }
    return true;
}

void write_batch_first_error(const struct write_batch *batch, struct err *err)
{
    struct bval first, value;
    int64_t code = ERR_UnknownError;
    uint32_t len;
    const char *text = "";
    bson_t details = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    if (bdoc_find(bdoc_of(&batch->result.errors), "0", &first) && first.type == BT_DOCUMENT) {
        for (biter_init(&iter, bval_doc(&first)); biter_next(&iter, &elem);)
            if (strcmp(elem.key, "index") != 0 && strcmp(elem.key, "code") != 0 && strcmp(elem.key, "errmsg") != 0)
                bval_append(&details, elem.key, (int)elem.key_len, &elem.val);
        if (bdoc_find(bval_doc(&first), "code", &value))
            (void)bval_to_i64(&value, &code);
        if (bdoc_find(bval_doc(&first), "errmsg", &value) && value.type == BT_STRING)
            text = bval_str(&value, &len);
    }
    (void)err_set(err, (int32_t)code, "%s", text);
    if (bson_count_keys(&details) > 0)
        err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
}

struct error_entry {
    int64_t index;
    struct bval val;
};

static int error_compare(const void *a, const void *b)
{
    int64_t left = ((const struct error_entry *)a)->index;
    int64_t right = ((const struct error_entry *)b)->index;
    return (left > right) - (left < right);
}

void write_batch_sort_errors(struct write_batch *batch)
{
    uint32_t count = 0;
    struct biter iter;
    struct belem elem;
    struct bval index;
    bson_t sorted = BSON_INITIALIZER;
    struct error_entry *entries = mem_alloc_array(batch->result.error_count + 1, sizeof *entries);
    biter_init(&iter, bdoc_of(&batch->result.errors));
    while (biter_next(&iter, &elem) && count < batch->result.error_count) {
        entries[count].val = elem.val;
        if (bdoc_find(bval_doc(&elem.val), "index", &index))
            (void)bval_to_i64(&index, &entries[count].index);
        count++;
    }
    qsort(entries, count, sizeof *entries, error_compare);
    for (uint32_t i = 0; i < count; i++) {
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string(i, &key, number, sizeof number);
        bval_append(&sorted, key, (int)len, &entries[i].val);
    }
    mem_free(entries);
    bson_destroy(&batch->result.errors);
    bson_copy_to(&sorted, &batch->result.errors);
    bson_destroy(&sorted);
}
