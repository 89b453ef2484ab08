#include "configd/operation.h"

#include "cluster/fields.h"
#include "configd/names.h"

#include <string.h>

static const char *const state_names[] = {
    [OPERATION_UNKNOWN] = "unknown",
    [OPERATION_BEGUN] = "begun",
    [OPERATION_COMMITTED] = "committed",
    [OPERATION_ABORTED] = "aborted",
};

const char *operation_state_name(enum operation_state state)
{
    return state_names[state];
}

static bool parse_state(struct bdoc doc, enum operation_state *out, struct err *err)
{
    char name[16];
    if (!field_str(doc, "state", name, sizeof name, err)) {
        return false;
    }
    for (size_t i = OPERATION_BEGUN; i <= OPERATION_ABORTED; i++) {
        if (strcmp(name, state_names[i]) == 0) {
            *out = (enum operation_state)i;
            return true;
        }
    }
    return err_set(err, ERR_BadValue, "an operation can't be in state '%s'", name);
}

static bool parse_shards(struct bdoc array, struct arena *arena, struct operation *out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    out->shards = arena_alloc(arena, (bdoc_count(array) + 1) * sizeof *out->shards);
    for (biter_init(&iter, array); biter_next(&iter, &elem);) {
        uint32_t len;
        if (elem.val.type != BT_STRING) {
            return err_set(err, ERR_TypeMismatch, "shards of an operation must be names");
        }
        const char *name = bval_str(&elem.val, &len);
        out->shards[out->shard_count++] = arena_copy_str(arena, name, len);
    }
    return true;
}

/* The fields that only an operation that began has. */
static bool parse_begun(struct bdoc doc, struct arena *arena, struct operation *out, struct err *err)
{
    struct bdoc pattern;
    struct bdoc shards;
    memcpy(out->entry.ns, out->ns, sizeof out->entry.ns);
    if (!field_uuid(doc, "dbUuid", out->db_uuid, err) || !field_uuid(doc, "uuid", out->entry.uuid, err) ||
        !field_oid(doc, "epoch", &out->entry.epoch, err) ||
        !field_timestamp(doc, "timestamp", &out->entry.timestamp, err) ||
        !field_i64(doc, "numInitialChunks", &out->initial_chunks, err) || !field_array(doc, "shards", &shards, err) ||
        !field_doc(doc, "key", &pattern, err) || !parse_shards(shards, arena, out, err)) {
        return false;
    }
    out->entry.unique = field_flag(doc, "unique");
    out->entry.last_mod_ms = out->at_ms;
    out->empty = field_flag(doc, "empty");
    if (bdoc_has(doc, "defaultCollation")) {
        struct bdoc collation;
        if (!field_doc(doc, "defaultCollation", &collation, err)) {
            return false;
        }
        collection_entry_set_collation(&out->entry, collation);
    }
    return shardkey_parse(pattern, &out->entry.key, err);
}

bool operation_parse(struct bdoc doc, struct arena *arena, struct operation *out, struct err *err)
{
    *out = (struct operation){0};
    return field_uuid(doc, "_id", out->id, err) && field_str(doc, "ns", out->ns, sizeof out->ns, err) &&
           parse_state(doc, &out->state, err) && field_date(doc, "at", &out->at_ms, err) &&
           (!bdoc_has(doc, "key") || parse_begun(doc, arena, out, err));
}

bool operation_read(const struct metadata_view *view, const uint8_t id[CLUSTER_UUID_BYTES], struct operation *out,
                    struct err *err)
{
    struct bdoc doc;
    struct bval val = view_uuid_value(view->arena, id);
    *out = (struct operation){0};
    memcpy(out->id, id, sizeof out->id);
    if (!view_get(view, NS_OPERATIONS, &val, &doc)) {
        return true;
    }
    return operation_parse(doc, view->arena, out, err);
}

void operation_deinit(struct operation *operation)
{
    collection_entry_deinit(&operation->entry);
}

static void append_begun(bson_t *doc, const struct operation *operation)
{
    bson_t shards;
    append_uuid(doc, "dbUuid", operation->db_uuid);
    append_uuid(doc, "uuid", operation->entry.uuid);
    bson_append_oid(doc, "epoch", -1, &operation->entry.epoch);
    append_timestamp(doc, "timestamp", operation->entry.timestamp);
    append_bdoc(doc, "key", shardkey_pattern(operation->entry.key));
    bson_append_bool(doc, "unique", -1, operation->entry.unique);
    bson_append_int64(doc, "numInitialChunks", -1, operation->initial_chunks);
    bson_append_bool(doc, "empty", -1, operation->empty);
    if (operation->entry.default_collation.len > 0) {
        append_bdoc(doc, "defaultCollation", collection_entry_collation(&operation->entry));
    }
    bson_append_array_begin(doc, "shards", -1, &shards);
    for (size_t i = 0; i < operation->shard_count; i++) {
        char text[16];
        const char *name;
        bson_uint32_to_string((uint32_t)i, &name, text, sizeof text);
        bson_append_utf8(&shards, name, -1, operation->shards[i], -1);
    }
    bson_append_array_end(doc, &shards);
}

void operation_put(struct change *change, struct operation *operation)
{
    bson_t doc = BSON_INITIALIZER;
    operation->at_ms = change->now_ms;
    append_uuid(&doc, "_id", operation->id);
    bson_append_utf8(&doc, "kind", -1, "shardCollection", -1);
    bson_append_utf8(&doc, "ns", -1, operation->ns, -1);
    bson_append_utf8(&doc, "state", -1, state_names[operation->state], -1);
    bson_append_date_time(&doc, "at", -1, operation->at_ms);
    if (operation->entry.key != NULL) {
        append_begun(&doc, operation);
    }
    change_put(change, NS_OPERATIONS, &doc);
    bson_destroy(&doc);
}
