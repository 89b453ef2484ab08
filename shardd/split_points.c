#include "shardd/split_points.h"

#include "base/mem.h"
#include "command/fields.h"
#include "command/namespace.h"
#include "plan/plan.h"
#include "document/read_txn.h"
#include "plan/scan.h"
#include "shardd/shard.h"
#include "storage/counters.h"

#include <string.h>

enum {
    SPLIT_PIECES_MAX = 1000,
};

struct split_request {
    struct ns ns;
    struct key_range range;
    int64_t pieces;
};

static bool open_view(struct command_ctx *ctx, struct ns *ns, struct read_txn *read, struct err *err)
{
    uint32_t len;
    *read = (struct read_txn){0};
    if (ctx->value.type != BT_STRING)
        return err_set(err, ERR_TypeMismatch, "%s takes a namespace", ctx->name);
    if (!ns_parse(ns, bval_str(&ctx->value, &len), err) ||
        !read_txn_open(read, document_engine_of(ctx), ns->full, (struct bdoc){0}, err))
        return false;
    if (read->coll != NULL && read->view != NULL)
        return true;
    return err_set(err, ERR_NamespaceNotSharded, "%s is not sharded here", ns->full);
}

static void append_size(bson_t *array, size_t index, const struct read_txn *read, struct key_range range)
{
    struct counter counter;
    bson_t one;
    const char *key;
    char digits[16];
    bool pending = read->view->pending != NULL && range_set_contains(read->view->pending, range.min);
    counter_range(read->txn, read->coll, range.min.data, range.min.len, &counter);
    bson_uint32_to_string((uint32_t)index, &key, digits, sizeof digits);
    BSON_APPEND_DOCUMENT_BEGIN(array, key, &one);
    bson_append_binary(&one, "min", -1, BSON_SUBTYPE_BINARY, range.min.data, range.min.len);
    bson_append_binary(&one, "max", -1, BSON_SUBTYPE_BINARY, range.max.data, range.max.len);
    BSON_APPEND_INT64(&one, "docs", counter.docs);
    BSON_APPEND_INT64(&one, "bytes", counter.bytes);
    BSON_APPEND_BOOL(&one, "exact", !pending);
    bson_append_document_end(array, &one);
}

enum command_status range_sizes_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct read_txn read;
    bool ok = open_view(ctx, &ns, &read, err);
    if (ok) {
        bson_t array;
        BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "ranges", &array);
        size_t count = read.view->ranges == NULL ? 0 : range_set_count(read.view->ranges);
        for (size_t i = 0; i < count; i++)
            append_size(&array, i, &read, range_set_at(read.view->ranges, i));
        bson_append_array_end(&ctx->reply, &array);
    }
    read_txn_close(&read);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

/* ---- split points ---- */

/* One walk in the order of the shard key. */
struct walk {
    const struct document_view *view;
    struct key_range range;
    int64_t docs;
    int64_t bytes;
    int64_t step_bytes; /* second walk: a point after so many; 0: only count */
    int64_t next_bytes;
    uint32_t points;
    struct buf key;
    struct buf last; /* key of the document before */
    bson_t *out;
};

static void visit(struct walk *walk, struct bdoc doc)
{
    buf_clear(&walk->key);
    if (!shardkey_encode_doc(walk->view->key, doc, &walk->key, NULL) ||
        !key_range_contains(walk->range, key_bytes_of(&walk->key)))
        return;
    bool new_key = walk->docs == 0 || key_bytes_compare(key_bytes_of(&walk->key), key_bytes_of(&walk->last)) != 0;
    if (walk->step_bytes > 0 && walk->docs > 0 && new_key && walk->bytes >= walk->next_bytes) {
        bson_t value = BSON_INITIALIZER;
        const char *key;
        char digits[16];
        if (shardkey_extract(walk->view->key, doc, &value, NULL)) {
            bson_uint32_to_string(walk->points++, &key, digits, sizeof digits);
            bson_append_document(walk->out, key, -1, &value);
        }
        bson_destroy(&value);
        while (walk->next_bytes <= walk->bytes)
            walk->next_bytes += walk->step_bytes;
    }
    walk->docs++;
    walk->bytes += doc.len;
    buf_clear(&walk->last);
    buf_append(&walk->last, walk->key.data, walk->key.len);
}

static bool walk_range(struct walk *walk, const struct read_txn *read, struct command_ctx *ctx, struct err *err)
{
    struct sort_spec *sort;
    struct filter *filter;
    struct plan *plan;
    struct scan scan = {0};
    bool found = true;
    walk->docs = 0;
    walk->bytes = 0;
    if (!filter_compile(&ctx->arena, bdoc_empty(), NULL, &filter, err))
        return false;
    bson_t by_key = BSON_INITIALIZER;
    for (size_t i = 0; i < shardkey_field_count(walk->view->key); i++)
        BSON_APPEND_INT32(&by_key, shardkey_field_path(walk->view->key, i), 1);
    struct plan_request request = {.filter = filter};
    struct bval pattern = bval_from_doc(shardkey_pattern(walk->view->key));
    bool hashed = shardkey_hashed_field(walk->view->key) != SIZE_MAX;
    bool ok = sort_spec_compile(&ctx->arena, bdoc_of(&by_key), NULL, &sort, err);
    request.sort = sort;
    /* The order of a hashed key is only in its index. */
    if (hashed)
        request.hint = pattern;
    ok = ok && plan_make(&ctx->arena, read->coll, &request, &plan, err);
    if (ok && plan->kind != PLAN_INDEX)
        ok = err_set(err, ERR_IndexNotFound, "the shard key of %s has no index", walk->view->ns);
    if (ok) {
        struct scan_options options = {.txn = read->txn, .coll = read->coll, .plan = plan, .need_doc = true};
        ok = scan_open(&scan, &options, err);
        while (ok && found) {
            ok = scan_next(&scan, &found, err);
            if (ok && found)
                visit(walk, scan.doc);
        }
    }
    scan_close(&scan);
    bson_destroy(&by_key);
    return ok;
}

static bool parse_bound(struct bdoc body, const char *name, struct key_bytes *out, struct err *err)
{
    struct bval val;
    uint8_t subtype;
    if (!bdoc_find(body, name, &val) || val.type != BT_BINARY)
        return err_set(err, ERR_TypeMismatch, "'%s' is not an encoded bound", name);
    out->data = bval_binary(&val, &subtype, &out->len);
    return true;
}

enum command_status split_points_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct read_txn read;
    struct walk walk = {0};
    int64_t pieces = 2;
    bson_t points = BSON_INITIALIZER;
    bool ok = open_view(ctx, &ns, &read, err) && parse_bound(ctx->body, "min", &walk.range.min, err) &&
              parse_bound(ctx->body, "max", &walk.range.max, err) &&
              field_get_i64_in(ctx->body, "pieces", 2, SPLIT_PIECES_MAX, &pieces, err);
    walk.view = read.view;
    walk.out = &points;
    ok = ok && walk_range(&walk, &read, ctx, err);
    if (ok && walk.bytes > 0) {
        walk.step_bytes = (walk.bytes + pieces - 1) / pieces;
        walk.next_bytes = walk.step_bytes;
        ok = walk_range(&walk, &read, ctx, err);
    }
    if (ok) {
        BSON_APPEND_ARRAY(&ctx->reply, "points", &points);
        BSON_APPEND_INT64(&ctx->reply, "docs", walk.docs);
        BSON_APPEND_INT64(&ctx->reply, "bytes", walk.bytes);
    }
    read_txn_close(&read);
    buf_deinit(&walk.key);
    buf_deinit(&walk.last);
    bson_destroy(&points);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
