/* bulkWrite: statements of all kinds on several collections. Runs of neighbours that go together become a batch; with
 * results asked for one by one each update and delete is a batch of its own. */
#include "base/mem.h"
#include "command/batch.h"
#include "command/field_spec.h"
#include "command/fields.h"
#include "routerd/commands.h"
#include "routerd/cursor_batch.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/write_batch.h"

#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* One of the collections. */
struct bulk_ns {
    struct ns ns;
    const char *name;
    const uint8_t *uuid; /* the expected one; NULL: any */
};

/* One operation, read. */
struct bulk_op {
    enum write_kind kind;
    int64_t ns;      /* index into nsInfo */
    struct bdoc doc; /* document or statement for a batch */
    struct wire_frame *owner;
};

struct bulk {
    struct command_ctx *ctx;
    struct bulk_op *ops;
    uint32_t count;
    struct bulk_ns *namespaces;
    uint32_t namespace_count;
    bool ordered;
    bool errors_only;
    bool bypass_validation;
    struct bdoc let;
    struct bdoc cursor_options;
    int64_t batch_size;           /* of the cursor; -1: as many as fit */
    struct router_cursor *cursor; /* of the results: one document for each operation that is told */
    int32_t errors;
    int64_t inserted, matched, modified, upserted, deleted;
};

/* {ns, collectionUUID} */
static bool read_namespace(struct bulk *bulk, struct bdoc doc, struct err *err)
{
    static const struct field_spec list[] = {
        {"ns", FIELD_STR, offsetof(struct bulk_ns, name), true},
        {"collectionUUID", FIELD_UUID, offsetof(struct bulk_ns, uuid), false},
        {"encryptionInformation", FIELD_IGNORED, 0, false},
    };
    static const struct field_specs specs = {list, COUNT(list), false};
    struct bulk_ns *out = &bulk->namespaces[bulk->namespace_count++];
    if (!fields_read(doc, "bulkWrite.nsInfo", &specs, out, err))
        return false;
    return ns_parse(&out->ns, out->name, err) ||
           err_set(err, ERR_InvalidNamespace, "Invalid namespace specified for bulkWrite: '%s'", out->name);
}

static bool read_namespaces(struct bulk *bulk, struct err *err)
{
    struct batch list;
    struct batch_iter iter;
    struct bdoc doc;
    if (!batch_init(&list, bulk->ctx, "nsInfo", err))
        return false;
    bulk->namespaces = arena_alloc(&bulk->ctx->arena, list.count * sizeof *bulk->namespaces);
    batch_iter_init(&iter, &list);
    while (batch_next(&iter, &doc))
        if (!read_namespace(bulk, doc, err))
            return false;
    return true;
}

/* Whether the operations may be done there. */
static bool check_namespaces(const struct bulk *bulk, struct err *err)
{
    for (uint32_t i = 0; i < bulk->count; i++) {
        const struct ns *ns = &bulk->namespaces[bulk->ops[i].ns].ns;
        if (!ns_check_write(ns, err))
            return false;
        if (forward_is_config_db(ns->db))
            return err_set(err, ERR_IllegalOperation, "bulkWrite on %s is not allowed", ns->full);
    }
    return true;
}

/* {update: 0, filter, updateMods, ...} to {q, u, ...}, {delete: 0, filter, ...} to {q, limit, ...}. */
static struct bdoc to_statement(struct arena *arena, struct bdoc op, enum write_kind kind)
{
    bson_t out = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    struct bval multi = BVAL_MISSING;
    biter_init(&iter, op);
    (void)biter_next(&iter, &elem);
    while (biter_next(&iter, &elem)) {
        const char *name = elem.key;
        if (strcmp(name, "filter") == 0)
            name = "q";
        else if (strcmp(name, "updateMods") == 0)
            name = "u";
        else if (strcmp(name, "constants") == 0)
            name = "c";
        else if (kind == WRITE_DELETE && strcmp(name, "multi") == 0) {
            multi = elem.val;
            continue;
        }
        bval_append(&out, name, -1, &elem.val);
    }
    if (kind == WRITE_DELETE)
        BSON_APPEND_INT32(&out, "limit", bval_truthy(&multi) ? 0 : 1);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return copy;
}

/* An operation's fields. */
struct op_fields {
    int64_t ns;
    struct bdoc document, filter, array_filters, collation, sort, constants;
    struct bval update, hint;
    bool multi, upsert, upsert_supplied;
};

#define AT(member) offsetof(struct op_fields, member)

static const struct field_spec insert_fields[] = {
    {"insert", FIELD_INDEX, AT(ns), true},
    {"document", FIELD_DOC, AT(document), true},
};

static const struct field_spec update_fields[] = {
    {"update", FIELD_INDEX, AT(ns), true},
    {"filter", FIELD_DOC, AT(filter), true},
    {"updateMods", FIELD_UPDATE, AT(update), true},
    {"multi", FIELD_BOOL, AT(multi), false},
    {"upsert", FIELD_BOOL, AT(upsert), false},
    {"arrayFilters", FIELD_DOC_ARRAY, AT(array_filters), false},
    {"collation", FIELD_DOC, AT(collation), false},
    {"hint", FIELD_HINT, AT(hint), false},
    {"sort", FIELD_DOC, AT(sort), false},
    {"constants", FIELD_DOC, AT(constants), false},
    {"upsertSupplied", FIELD_BOOL, AT(upsert_supplied), false},
    {"sampleId", FIELD_IGNORED, 0, false},
};

static const struct field_spec delete_fields[] = {
    {"delete", FIELD_INDEX, AT(ns), true},   {"filter", FIELD_DOC, AT(filter), true},
    {"multi", FIELD_BOOL, AT(multi), false}, {"collation", FIELD_DOC, AT(collation), false},
    {"hint", FIELD_HINT, AT(hint), false},   {"sampleId", FIELD_IGNORED, 0, false},
};

static const struct field_specs op_specs[] = {
    [WRITE_INSERT] = {insert_fields, COUNT(insert_fields), false},
    [WRITE_UPDATE] = {update_fields, COUNT(update_fields), false},
    [WRITE_DELETE] = {delete_fields, COUNT(delete_fields), false},
};

static bool read_op(struct bulk *bulk, struct bdoc doc, struct bulk_op *op, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct op_fields fields = {.ns = 0};
    biter_init(&iter, doc);
    bool known = biter_next(&iter, &elem);
    unsigned kind = WRITE_INSERT;
    while (known && kind <= WRITE_DELETE && strcmp(elem.key, write_kind_command((enum write_kind)kind)) != 0)
        kind++;
    if (!known || kind > WRITE_DELETE)
        return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field 'bulkWrite.%s' is an unknown field.",
                       known ? elem.key : "");
    op->kind = (enum write_kind)kind;
    if (!fields_read(doc, "bulkWrite.ops", &op_specs[kind], &fields, err))
        return false;
    if (fields.multi && fields.sort.data)
        return err_set(err, ERR_FailedToParse, "Cannot specify sort with multi=true");
    op->ns = fields.ns;
    op->doc = op->kind == WRITE_INSERT ? fields.document : to_statement(&bulk->ctx->arena, doc, op->kind);
    op->owner = op->kind == WRITE_INSERT ? bulk->ctx->frame : NULL;
    return true;
}

/* Each operation names one of the namespaces. */
static bool check_indexes(const struct bulk *bulk, struct err *err)
{
    for (uint32_t i = 0; i < bulk->count; i++)
        if (bulk->ops[i].ns >= bulk->namespace_count)
            return err_set(err, ERR_BadValue, "BulkWrite ops entry %u has an invalid nsInfo index.", i);
    return true;
}

static bool read_ops(struct bulk *bulk, struct err *err)
{
    struct batch list;
    struct batch_iter iter;
    struct bdoc doc;
    if (!batch_init(&list, bulk->ctx, "ops", err))
        return false;
    bulk->ops = arena_alloc(&bulk->ctx->arena, list.count * sizeof *bulk->ops);
    batch_iter_init(&iter, &list);
    while (batch_next(&iter, &doc))
        if (!read_op(bulk, doc, &bulk->ops[bulk->count++], err))
            return false;
    return true;
}

static void result_add(struct bulk *bulk, bson_t *result)
{
    buf_append(&bulk->cursor->made, bson_get_data(result), result->len);
    bson_destroy(result);
}

/* {ok: 0, idx, code, errmsg, ..., n: 0} from an element of writeErrors. */
static void result_error(struct bulk *bulk, int64_t index, struct bdoc error)
{
    static const char *const own[] = {"index", NULL};
    bson_t result = BSON_INITIALIZER;
    BSON_APPEND_DOUBLE(&result, "ok", 0);
    BSON_APPEND_INT32(&result, "idx", (int32_t)index);
    request_append_body(&result, error, own);
    BSON_APPEND_INT32(&result, "n", 0);
    if (bulk->ops[index].kind == WRITE_UPDATE)
        BSON_APPEND_INT32(&result, "nModified", 0);
    result_add(bulk, &result);
    bulk->errors++;
}

static void result_ok(struct bulk *bulk, int64_t index, const struct write_batch *batch)
{
    bson_t result = BSON_INITIALIZER;
    bson_t inner;
    struct bval first, id;
    bool alone = batch->count == 1;
    BSON_APPEND_DOUBLE(&result, "ok", 1);
    BSON_APPEND_INT32(&result, "idx", (int32_t)index);
    BSON_APPEND_INT32(&result, "n", alone ? (int32_t)batch->result.n : 1);
    if (batch->kind == WRITE_UPDATE)
        BSON_APPEND_INT32(&result, "nModified", (int32_t)batch->result.n_modified);
    if (batch->result.upserted_count > 0 && bdoc_find(bdoc_of(&batch->result.upserted), "0", &first) &&
        bdoc_find(bval_doc(&first), "_id", &id)) {
        BSON_APPEND_DOCUMENT_BEGIN(&result, "upserted", &inner);
        bval_append(&inner, "_id", 3, &id);
        bson_append_document_end(&result, &inner);
    }
    result_add(bulk, &result);
}

static void add_counts(struct bulk *bulk, const struct write_batch *batch)
{
    const struct write_result *result = &batch->result;
    if (batch->kind == WRITE_INSERT) {
        bulk->inserted += result->n;
    } else if (batch->kind == WRITE_DELETE) {
        bulk->deleted += result->n;
    } else {
        bulk->matched += result->n - result->upserted_count;
        bulk->modified += result->n_modified;
        bulk->upserted += result->upserted_count;
    }
}

/* What a batch of operations [first, first + count) has brought, one by one. */
static void take_results(struct bulk *bulk, struct write_batch *batch, uint32_t first)
{
    struct biter iter;
    struct belem elem;
    struct bval index;
    int64_t at = -1;
    write_batch_sort_errors(batch);
    add_counts(bulk, batch);
    biter_init(&iter, bdoc_of(&batch->result.errors));
    bool error = biter_next(&iter, &elem);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (error && bdoc_find(bval_doc(&elem.val), "index", &index))
            (void)bval_to_i64(&index, &at);
        if (error && at == i) {
            result_error(bulk, first + i, bval_doc(&elem.val));
            error = biter_next(&iter, &elem);
        } else if (batch->items[i].state == WRITE_DONE && !bulk->errors_only) {
            result_ok(bulk, first + i, batch);
        }
    }
}

/* Operations from `first` on that can be one batch. */
static uint32_t run_length(const struct bulk *bulk, uint32_t first)
{
    const struct bulk_op *op = &bulk->ops[first];
    uint32_t end = first + 1;
    if (op->kind != WRITE_INSERT && !bulk->errors_only)
        return 1;
    while (end < bulk->count && bulk->ops[end].kind == op->kind && bulk->ops[end].ns == op->ns)
        end++;
    return end - first;
}

static bool run_part(struct bulk *bulk, uint32_t first, uint32_t count, struct err *err)
{
    /* The last name is what the kind of statement doesn't know. */
    static const char *const unknown[] = {"let", NULL, "bypassEmptyTsReplacement"};
    const char *const own[] = {
        "bulkWrite", "ops", "nsInfo", "ordered", "errorsOnly", "cursor", "$db", unknown[bulk->ops[first].kind], NULL};
    struct write_batch batch;
    const struct bulk_ns *info = &bulk->namespaces[bulk->ops[first].ns];
    const struct ns *ns = &info->ns;
    write_batch_init_items(&batch, bulk->ctx, bulk->ops[first].kind, count);
    batch.ordered = bulk->ordered;
    bool ok = ns_make(&batch.ns, ns->db, ns->coll, err);
    request_append_body(&batch.common, bulk->ctx->body, own);
    BSON_APPEND_UTF8(&batch.common, "$db", ns->db);
    if (info->uuid)
        BSON_APPEND_BINARY(&batch.common, "collectionUUID", BSON_SUBTYPE_UUID, info->uuid, 16);
    for (uint32_t i = 0; i < count; i++) {
        batch.items[i] =
            (struct write_item){.doc = bulk->ops[first + i].doc, .owner = bulk->ops[first + i].owner, .index = i};
        if (batch.kind == WRITE_INSERT)
            write_item_add_id(&batch, &batch.items[i]);
    }
    ok = ok && write_batch_run(&batch, err);
    if (ok)
        take_results(bulk, &batch, first);
    write_batch_deinit(&batch);
    return ok;
}

static void append_reply(struct bulk *bulk)
{
    bson_t *reply = &bulk->ctx->reply;
    BSON_APPEND_INT32(reply, "nErrors", bulk->errors);
    BSON_APPEND_INT32(reply, "nInserted", (int32_t)bulk->inserted);
    BSON_APPEND_INT32(reply, "nMatched", (int32_t)bulk->matched);
    BSON_APPEND_INT32(reply, "nModified", (int32_t)bulk->modified);
    BSON_APPEND_INT32(reply, "nUpserted", (int32_t)bulk->upserted);
    BSON_APPEND_INT32(reply, "nDeleted", (int32_t)bulk->deleted);
}

/* A part that failed as a whole after others have run: an error of each of its operations, of the first one only when
 * those after it wait for it. */
static void part_failed(struct bulk *bulk, uint32_t first, uint32_t count, const struct err *err)
{
    bson_t error = BSON_INITIALIZER;
    reply_append_error_fields(&error, err);
    for (uint32_t i = 0; i < (bulk->ordered ? 1 : count); i++)
        result_error(bulk, first + i, bdoc_of(&error));
    bson_destroy(&error);
}

/* The operation isn't to blame: the client may send the whole command again. */
static bool ends_command(const struct err *err)
{
    return err_categories(err->code) != ERR_CAT_NONE || err->code == ERR_MaxTimeMSExpired || err->code == ERR_Interrupted;
}

static bool run_parts(struct bulk *bulk, struct err *err)
{
    for (uint32_t first = 0; first < bulk->count;) {
        uint32_t count = run_length(bulk, first);
        if (!run_part(bulk, first, count, err)) {
            if (first == 0 && ends_command(err))
                return false;
            part_failed(bulk, first, count, err);
        }
        if (bulk->ordered && bulk->errors > 0)
            break;
        first += count;
    }
    return true;
}

static bool read_command(struct bulk *bulk, struct err *err)
{
    static const struct field_spec list[] = {
        {"ops", FIELD_IGNORED, 0, false},
        {"nsInfo", FIELD_IGNORED, 0, false},
        {"ordered", FIELD_BOOL, offsetof(struct bulk, ordered), false},
        {"errorsOnly", FIELD_BOOL, offsetof(struct bulk, errors_only), false},
        {"bypassDocumentValidation", FIELD_FLAG, offsetof(struct bulk, bypass_validation), false},
        {"bypassEmptyTsReplacement", FIELD_IGNORED, 0, false},
        {"let", FIELD_DOC, offsetof(struct bulk, let), false},
        {"cursor", FIELD_DOC, offsetof(struct bulk, cursor_options), false},
    };
    static const struct field_spec cursor_list[] = {
        {"batchSize", FIELD_INDEX, offsetof(struct bulk, batch_size), false}};
    static const struct field_specs specs = {list, COUNT(list), true};
    static const struct field_specs cursor_specs = {cursor_list, COUNT(cursor_list), false};
    static const char *const sequences[] = {"ops", "nsInfo", NULL};
    if (!batch_check_sequences(bulk->ctx, sequences, err) ||
        !fields_read(bulk->ctx->body, "bulkWrite", &specs, bulk, err))
        return false;
    if (bulk->cursor_options.data && !fields_read(bulk->cursor_options, "bulkWrite.cursor", &cursor_specs, bulk, err))
        return false;
    return read_namespaces(bulk, err) && read_ops(bulk, err) && check_indexes(bulk, err) && check_namespaces(bulk, err);
}

/* The results are a cursor: what doesn't fit into the first batch is fetched by getMore. */
static enum command_status run_bulk_write(struct command_ctx *ctx, struct err *err)
{
    struct bulk bulk = {.ctx = ctx, .ordered = true, .batch_size = -1};
    struct router *router = router_of(ctx);
    if (!read_command(&bulk, err))
        return COMMAND_ERROR;
    bulk.cursor = router_cursor_new(router, "admin.$cmd.bulkWrite");
    router_cursor_set_origin(bulk.cursor, ctx);
    /* Before anything is written: there may be too many cursors. */
    if (!cursor_table_add(router->cursors, bulk.cursor, err)) {
        router_cursor_close(router, bulk.cursor);
        return COMMAND_ERROR;
    }
    bool ok = run_parts(&bulk, err);
    bulk.cursor->ended = bulk.cursor->made.len == 0;
    ok = ok && cursor_batch_append(ctx, bulk.cursor, bulk.batch_size, true, true, err);
    if (ok)
        append_reply(&bulk);
    cursor_table_give(router->cursors, bulk.cursor, !ok || bulk.cursor->ended);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static const struct command commands[] = {
    {"bulkWrite", NULL, COMMAND_WRITE | COMMAND_ADMIN_ONLY | COMMAND_SEQUENCES, run_bulk_write},
};

const struct command_family commands_bulk = COMMAND_FAMILY(commands);
