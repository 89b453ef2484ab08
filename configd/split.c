#include "configd/names.h"
#include "configd/plans.h"

#include "base/mem.h"
#include "cluster/fields.h"

#include <string.h>

/* One split under construction. */
struct split {
    struct collection_entry entry;
    struct chunk *before;
    struct chunk_version version; /* the highest given so far */
    struct bdoc points;           /* array of bounds */
    uint32_t point_count;
    bool has_op;
    uint8_t op[CLUSTER_UUID_BYTES];
};

static bool parse_request(struct change *change, struct bdoc request, struct split *out, struct err *err)
{
    char ns[CLUSTER_NS_MAX + 1];
    bson_oid_t epoch;
    if (!field_str(request, "_configsvrSplit", ns, sizeof ns, err) || !field_oid(request, "epoch", &epoch, err) ||
        !field_array(request, "points", &out->points, err)) {
        return false;
    }
    out->has_op = bdoc_has(request, "op");
    if (out->has_op && !field_uuid(request, "op", out->op, err)) {
        return false;
    }
    out->point_count = bdoc_count(out->points);
    if (out->point_count == 0 || out->point_count > SPLIT_MAX_POINTS) {
        return err_set(err, ERR_InvalidOptions, "a split takes 1 to %d points", SPLIT_MAX_POINTS);
    }
    if (!view_collection(change->view, ns, &out->entry)) {
        return err_set(err, ERR_NamespaceNotSharded, "Collection '%s' is not sharded", ns);
    }
    if (!bson_oid_equal(&epoch, &out->entry.epoch)) {
        return err_set(err, ERR_StaleEpoch, "%s was dropped and sharded anew", ns);
    }
    return true;
}

/* The chunk with exactly the bounds min and max. */
static bool find_chunk(struct change *change, struct bdoc request, struct split *split, struct err *err)
{
    struct bdoc min;
    struct bdoc max;
    struct buf encoded = BUF_INIT;
    if (!field_doc(request, "min", &min, err) || !field_doc(request, "max", &max, err) ||
        !shardkey_encode_bound(split->entry.key, min, &encoded, err)) {
        buf_deinit(&encoded);
        return false;
    }
    buf_clear(&encoded);
    bool ok = shardkey_encode_bound(split->entry.key, max, &encoded, err);
    if (ok && (!view_chunk_at(change->view, &split->entry, min, &split->before) ||
               key_bytes_compare(split->before->range.max, key_bytes_of(&encoded)) != 0)) {
        ok = err_set(err, ERR_BadValue, "no chunk of %s has these bounds", split->entry.ns);
    }
    buf_deinit(&encoded);
    return ok && view_collection_version(change->view, &split->entry, &split->version);
}

static bool make_part(struct split *split, const bson_oid_t *id, struct bdoc min, struct bdoc max, struct chunk **out)
{
    split->version.minor++;
    struct chunk_spec spec = {.id = id,
                              .uuid = split->entry.uuid,
                              .min = min,
                              .max = max,
                              .shard = split->before->shard,
                              .version = split->version,
                              .since = split->before->since};
    return chunk_new(split->entry.key, &spec, out, NULL);
}

static bool refuse_point(const struct split *split, struct err *err)
{
    return err_set(
        err, ERR_InvalidOptions,
        "Split points must be in strictly ascending order and strictly between the bounds of the chunk of %s",
        split->entry.ns);
}

/* A chunk's bounds and version, as the changelog shows them. */
static void append_brief(bson_t *to, const char *name, const struct chunk *chunk)
{
    bson_t inner;
    bson_append_document_begin(to, name, -1, &inner);
    append_bdoc(&inner, "min", chunk->min);
    append_bdoc(&inner, "max", chunk->max);
    append_timestamp(&inner, "lastmod", chunk_version_to_timestamp(&chunk->version));
    bson_append_oid(&inner, "lastmodEpoch", -1, &chunk->version.epoch);
    bson_append_document_end(to, &inner);
}

static void log_split(struct change *change, const struct split *split, struct chunk *const *parts)
{
    bson_t details = BSON_INITIALIZER;
    append_brief(&details, "before", split->before);
    if (split->point_count == 1) {
        append_brief(&details, "left", parts[0]);
        append_brief(&details, "right", parts[1]);
        bson_append_utf8(&details, "owningShard", -1, split->before->shard, -1);
        change_log(change, "split", split->entry.ns, &details);
    } else {
        bson_append_int32(&details, "number", -1, (int32_t)split->point_count + 1);
        bson_append_int32(&details, "of", -1, (int32_t)split->point_count + 1);
        append_brief(&details, "chunk", parts[split->point_count]);
        bson_append_utf8(&details, "owningShard", -1, split->before->shard, -1);
        change_log(change, "multi-split", split->entry.ns, &details);
    }
    bson_destroy(&details);
}

static void put_parts(struct change *change, struct chunk *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bson_t doc = BSON_INITIALIZER;
        chunk_append(&doc, parts[i]);
        change_put(change, NS_CHUNKS, &doc);
        bson_destroy(&doc);
    }
}

static void reply_split(bson_t *reply, const struct split *split)
{
    chunk_version_append(reply, "version", &split->version);
    bson_append_int32(reply, "chunks", -1, (int32_t)split->point_count + 1);
}

static bool make_parts(struct split *split, struct chunk **parts, size_t *made, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct bdoc min = split->before->min;
    bson_oid_t id = split->before->id;
    for (biter_init(&iter, split->points); biter_next(&iter, &elem);) {
        if (elem.val.type != BT_DOCUMENT) {
            return err_set(err, ERR_TypeMismatch, "split points must be documents");
        }
        struct bdoc point = bval_doc(&elem.val);
        struct buf encoded = BUF_INIT;
        bool fits = shardkey_encode_bound(split->entry.key, point, &encoded, err);
        bool below = fits && key_bytes_compare(key_bytes_of(&encoded), split->before->range.max) < 0;
        buf_deinit(&encoded);
        if (!fits) {
            return false;
        }
        if (!below || !make_part(split, &id, min, point, &parts[*made])) {
            return refuse_point(split, err);
        }
        (*made)++;
        min = point;
        bson_oid_init(&id, NULL);
    }
    if (!make_part(split, &id, min, split->before->max, &parts[*made])) {
        return refuse_point(split, err);
    }
    (*made)++;
    return true;
}

/* The record by which the same request gets the same answer. */
static void remember(struct change *change, const struct split *split)
{
    bson_t doc = BSON_INITIALIZER;
    append_uuid(&doc, "_id", split->op);
    bson_append_utf8(&doc, "kind", -1, "split", -1);
    bson_append_utf8(&doc, "ns", -1, split->entry.ns, -1);
    bson_append_utf8(&doc, "state", -1, "committed", -1);
    bson_append_date_time(&doc, "at", -1, change->now_ms);
    reply_split(&doc, split);
    change_put(change, NS_OPERATIONS, &doc);
    bson_destroy(&doc);
}

static bool split_chunk(struct change *change, struct split *split, struct err *err)
{
    size_t made = 0;
    struct chunk **parts = mem_alloc_array(split->point_count + 1, sizeof *parts);
    if (split->version.minor + split->point_count + 1 > UINT32_MAX) {
        mem_free(parts);
        return err_set(err, ERR_Overflow, "the minor version of %s has reached its end", split->entry.ns);
    }
    bool ok = make_parts(split, parts, &made, err);
    if (ok) {
        put_parts(change, parts, made);
        log_split(change, split, parts);
        if (split->has_op) {
            remember(change, split);
        }
        reply_split(&change->reply, split);
    }
    view_chunks_unref(parts, made);
    mem_free(parts);
    return ok;
}

/* The answer that this operation got before. */
static bool answer_known(struct change *change, struct bdoc request)
{
    uint8_t op[CLUSTER_UUID_BYTES];
    struct bdoc doc;
    struct bval val;
    if (!field_uuid(request, "op", op, NULL)) {
        return false;
    }
    struct bval id = view_uuid_value(change->view->arena, op);
    if (!view_get(change->view, NS_OPERATIONS, &id, &doc) || !bdoc_find(doc, "version", &val)) {
        return false;
    }
    bval_append(&change->reply, "version", -1, &val);
    if (bdoc_find(doc, "chunks", &val)) {
        bval_append(&change->reply, "chunks", -1, &val);
    }
    return true;
}

bool plan_split(struct change *change, struct bdoc request, struct err *err)
{
    struct split split = {0};
    if (answer_known(change, request)) {
        return true;
    }
    bool ok = parse_request(change, request, &split, err) && find_chunk(change, request, &split, err) &&
              split_chunk(change, &split, err);
    chunk_unref(split.before);
    collection_entry_deinit(&split.entry);
    return ok;
}
