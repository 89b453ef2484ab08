/* bulkWrite: statements of all kinds on several collections. Runs of neighbours that go together become a batch; with
 * results asked for one by one each update and delete is a batch of its own. */
#include "base/mem.h"
#include "command/batch.h"
#include "command/fields.h"
#include "routerd/commands.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/write_batch.h"

#include <string.h>

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
    struct ns *namespaces;
    uint32_t namespace_count;
    bool ordered;
    bool errors_only;
    bson_t results; /* the cursor's documents */
    uint32_t result_count;
    int32_t errors;
    int64_t inserted, matched, modified, upserted, deleted;
};

static bool read_namespaces(struct bulk *bulk, struct err *err)
{
    struct batch list;
    struct batch_iter iter;
    struct bdoc doc;
    if (!batch_init(&list, bulk->ctx, "nsInfo", err))
        return false;
    bulk->namespaces = arena_alloc(&bulk->ctx->arena, list.count * sizeof *bulk->namespaces);
    batch_iter_init(&iter, &list);
    while (batch_next(&iter, &doc)) {
        const char *name = NULL;
        if (!field_require(doc, "ns", err) || !field_get_str(doc, "ns", &name, err) || !name ||
            !ns_parse(&bulk->namespaces[bulk->namespace_count], name, err) ||
            !ns_check_write(&bulk->namespaces[bulk->namespace_count], err))
            return false;
        if (forward_is_config_db(bulk->namespaces[bulk->namespace_count].db))
            return err_set(err, ERR_IllegalOperation, "bulkWrite on %s is not allowed", name);
        bulk->namespace_count++;
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

/* An operation's fields: the whole command is refused before anything of it is done. */
static bool check_op(enum write_kind kind, struct bdoc doc, struct err *err)
{
    static const char *const inserts[] = {"insert", "document", NULL};
    static const char *const updates[] = {"update",    "filter", "updateMods", "multi",     "upsert", "arrayFilters",
                                          "collation", "hint",   "sort",       "constants", NULL};
    static const char *const deletes[] = {"delete", "filter", "multi", "collation", "hint", NULL};
    static const char *const *const known[] = {
        [WRITE_INSERT] = inserts, [WRITE_UPDATE] = updates, [WRITE_DELETE] = deletes};
    struct bdoc ignored_doc;
    bool ignored;
    if (!fields_check_known(doc, "bulkWrite.ops", known[kind], err))
        return false;
    if (kind == WRITE_INSERT)
        return field_require(doc, "document", err);
    return field_require(doc, "filter", err) && field_get_doc(doc, "filter", &ignored_doc, err) &&
           (kind == WRITE_DELETE || field_require(doc, "updateMods", err)) &&
           field_get_bool(doc, "multi", &ignored, err) && field_get_bool(doc, "upsert", &ignored, err) &&
           field_get_array(doc, "arrayFilters", &ignored_doc, err);
}

static bool read_op(struct bulk *bulk, struct bdoc doc, struct bulk_op *op, struct err *err)
{
    static const char *const names[] = {"insert", "update", "delete"};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    bool known = biter_next(&iter, &elem);
    int kind = 0;
    while (known && kind < 3 && strcmp(elem.key, names[kind]) != 0)
        kind++;
    if (!known || kind == 3)
        return err_set(err, ERR_FailedToParse, "an operation of bulkWrite must begin with insert, update or delete");
    op->kind = (enum write_kind)kind;
    if (!bval_to_i64(&elem.val, &op->ns) || op->ns < 0 || op->ns >= bulk->namespace_count)
        return err_set(err, ERR_BadValue, "BulkWrite ops entry has an invalid nsInfo index");
    if (!check_op(op->kind, doc, err))
        return false;
    if (op->kind != WRITE_INSERT) {
        op->doc = to_statement(&bulk->ctx->arena, doc, op->kind);
        return true;
    }
    op->owner = bulk->ctx->frame;
    return field_get_doc(doc, "document", &op->doc, err);
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

static bson_t *result_begin(struct bulk *bulk, bson_t *child)
{
    char number[16];
    const char *key;
    size_t len = bson_uint32_to_string(bulk->result_count++, &key, number, sizeof number);
    bson_append_document_begin(&bulk->results, key, (int)len, child);
    return child;
}

/* {ok: 0, idx, code, errmsg, ..., n: 0} from an element of writeErrors. */
static void result_error(struct bulk *bulk, int64_t index, struct bdoc error)
{
    static const char *const own[] = {"index", NULL};
    bson_t child;
    result_begin(bulk, &child);
    BSON_APPEND_DOUBLE(&child, "ok", 0);
    BSON_APPEND_INT32(&child, "idx", (int32_t)index);
    request_append_body(&child, error, own);
    BSON_APPEND_INT32(&child, "n", 0);
    bson_append_document_end(&bulk->results, &child);
    bulk->errors++;
}

static void result_ok(struct bulk *bulk, int64_t index, const struct write_batch *batch)
{
    bson_t child, inner;
    struct bval first, id;
    if (bulk->errors_only)
        return;
    bool alone = batch->count == 1;
    result_begin(bulk, &child);
    BSON_APPEND_DOUBLE(&child, "ok", 1);
    BSON_APPEND_INT32(&child, "idx", (int32_t)index);
    BSON_APPEND_INT32(&child, "n", alone ? (int32_t)batch->result.n : 1);
    if (batch->kind == WRITE_UPDATE)
        BSON_APPEND_INT32(&child, "nModified", (int32_t)batch->result.n_modified);
    if (batch->result.upserted_count > 0 && bdoc_find(bdoc_of(&batch->result.upserted), "0", &first) &&
        bdoc_find(bval_doc(&first), "_id", &id)) {
        BSON_APPEND_DOCUMENT_BEGIN(&child, "upserted", &inner);
        BSON_APPEND_INT32(&inner, "index", 0);
        bval_append(&inner, "_id", 3, &id);
        bson_append_document_end(&child, &inner);
    }
    bson_append_document_end(&bulk->results, &child);
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
        } else if (batch->items[i].state == WRITE_DONE) {
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
    static const char *const unknown[] = {"let", NULL, "bypassDocumentValidation"};
    const char *const own[] = {
        "bulkWrite", "ops", "nsInfo", "ordered", "errorsOnly", "cursor", "$db", unknown[bulk->ops[first].kind], NULL};
    struct write_batch batch;
    const struct ns *ns = &bulk->namespaces[bulk->ops[first].ns];
    write_batch_init_items(&batch, bulk->ctx, bulk->ops[first].kind, count);
    batch.ordered = bulk->ordered;
    bool ok = ns_make(&batch.ns, ns->db, ns->coll, err);
    request_append_body(&batch.common, bulk->ctx->body, own);
    BSON_APPEND_UTF8(&batch.common, "$db", ns->db);
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
    bson_t cursor;
    BSON_APPEND_DOCUMENT_BEGIN(reply, "cursor", &cursor);
    BSON_APPEND_INT64(&cursor, "id", 0);
    BSON_APPEND_ARRAY(&cursor, "firstBatch", &bulk->results);
    BSON_APPEND_UTF8(&cursor, "ns", "admin.$cmd.bulkWrite");
    bson_append_document_end(reply, &cursor);
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

static bool run_parts(struct bulk *bulk, struct err *err)
{
    for (uint32_t first = 0; first < bulk->count;) {
        uint32_t count = run_length(bulk, first);
        if (!run_part(bulk, first, count, err)) {
            if (first == 0)
                return false;
            part_failed(bulk, first, count, err);
        }
        if (bulk->ordered && bulk->errors > 0)
            break;
        first += count;
    }
    return true;
}

/* The answer is always one batch. */
static bool check_cursor(const struct command_ctx *ctx, struct err *err)
{
    struct bdoc cursor = {0};
    int64_t batch_size;
    return field_get_doc(ctx->body, "cursor", &cursor, err) &&
           field_get_i64_in(cursor, "batchSize", 0, INT64_MAX, &batch_size, err);
}

static enum command_status run_bulk_write(struct command_ctx *ctx, struct err *err)
{
    static const char *const sequences[] = {"ops", "nsInfo", NULL};
    struct bulk bulk = {.ctx = ctx, .ordered = true};
    bson_init(&bulk.results);
    bool ok = batch_check_sequences(ctx, sequences, err) && field_get_bool(ctx->body, "ordered", &bulk.ordered, err) &&
              field_get_bool(ctx->body, "errorsOnly", &bulk.errors_only, err) && check_cursor(ctx, err) &&
              read_namespaces(&bulk, err) && read_ops(&bulk, err) && run_parts(&bulk, err);
    if (ok)
        append_reply(&bulk);
    bson_destroy(&bulk.results);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static const struct command commands[] = {
    {"bulkWrite", NULL, COMMAND_WRITE | COMMAND_ADMIN_ONLY | COMMAND_SEQUENCES, run_bulk_write},
};

const struct command_family commands_bulk = COMMAND_FAMILY(commands);
