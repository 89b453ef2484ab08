#include "routerd/upsert.h"

#include "routerd/command_env.h"
#include "routerd/write_batch.h"
#include "update/update.h"

#include <string.h>

struct upsert upsert_of_fields(const struct write_fields *fields)
{
    return (struct upsert){
        .filter = fields->q,
        .update = fields->u,
        .array_filters = fields->array_filters,
        .constants = fields->constants,
        .collation = fields->collation,
        .supplied = fields->upsert_supplied,
    };
}

/* The command's variables and over them the constants, which are values and no expressions. */
static struct bdoc join_variables(struct arena *arena, struct bdoc let, struct bdoc constants)
{
    bson_t out = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    if (let.data)
        for (biter_init(&iter, let); biter_next(&iter, &elem);)
            if (!bdoc_has(constants, elem.key))
                bval_append(&out, elem.key, (int)elem.key_len, &elem.val);
    for (biter_init(&iter, constants); biter_next(&iter, &elem);) {
        bson_t literal;
        bson_append_document_begin(&out, elem.key, (int)elem.key_len, &literal);
        bval_append(&literal, "$literal", -1, &elem.val);
        bson_append_document_end(&out, &literal);
    }
    struct bdoc joined = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return joined;
}

static bool read_env(const struct route *route, const struct upsert *upsert, struct expr_env *out, struct err *err)
{
    struct arena *arena = &route->ctx->arena;
    struct bval let;
    bson_t body = BSON_INITIALIZER;
    if (bdoc_find(route->ctx->body, "let", &let))
        bval_append(&body, "let", -1, &let);
    if (upsert->collation.data) {
        struct bval collation = bval_from_doc(upsert->collation);
        bval_append(&body, "collation", -1, &collation);
    }
    struct bdoc kept = {arena_copy(arena, bson_get_data(&body), body.len), body.len};
    bson_destroy(&body);
    return command_env_init(arena, kept, route->routing, out, err);
}

static bool take_supplied(const struct upsert *upsert, struct buf *out, struct err *err)
{
    bson_oid_t id;
    struct bval supplied;
    bson_oid_init(&id, NULL);
    if (!bdoc_find(upsert->constants, "new", &supplied) || supplied.type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "the document of an upsert is missing");
    return update_prepare_insert(bval_doc(&supplied), &id, out, err);
}

static bool build(const struct route *route, const struct upsert *upsert, struct buf *out, struct err *err)
{
    struct arena *arena = &route->ctx->arena;
    struct expr_env env;
    struct filter *filter = NULL;
    struct update *update = NULL;
    bson_oid_t id;
    if (upsert->supplied)
        return take_supplied(upsert, out, err);
    if (!read_env(route, upsert, &env, err))
        return false;
    struct expr_env inner = env;
    if (upsert->constants.data)
        inner.let = join_variables(arena, env.let, upsert->constants);
    struct update_options options = {.env = &inner, .array_filters = upsert->array_filters, .upsert = true};
    bson_oid_init(&id, NULL);
    bool ok = filter_compile(arena, upsert->filter, &env, &filter, err) &&
              update_compile(arena, &upsert->update, &options, &update, err) &&
              update_build_upsert(update, filter, &id, out, err);
    update_release(update);
    filter_release(filter);
    return ok;
}

bool upsert_build(const struct route *route, const struct upsert *upsert, struct bdoc *out, struct err *err)
{
    struct buf bytes = BUF_INIT;
    bool ok = build(route, upsert, &bytes, err);
    if (ok)
        *out = (struct bdoc){arena_copy(&route->ctx->arena, bytes.data, bytes.len), (uint32_t)bytes.len};
    buf_deinit(&bytes);
    return ok;
}

/* `name` may be a part of the shard key: it begins with the same field. */
static bool names_key(const struct shardkey *key, const char *name)
{
    for (size_t i = 0; i < shardkey_field_count(key); i++) {
        const char *path = shardkey_field_path(key, i);
        size_t len = strcspn(name, ".");
        if (strncmp(path, name, len) == 0 && (path[len] == 0 || path[len] == '.'))
            return true;
    }
    return false;
}

/* Whether the update decides about the shard key of what is inserted, or may: most don't, which shows without compiling
 * them. */
static bool may_decide_key(const struct shardkey *key, const struct upsert *upsert)
{
    struct biter iter, fields;
    struct belem elem, field;
    if (upsert->supplied || upsert->update.type != BT_DOCUMENT)
        return true;
    biter_init(&iter, bval_doc(&upsert->update));
    bool any = biter_next(&iter, &elem);
    if (!any || elem.key[0] != '$') {
        bool only_id = shardkey_field_count(key) == 1 && strcmp(shardkey_field_path(key, 0), "_id") == 0;
        return !only_id || bdoc_has(bval_doc(&upsert->update), "_id");
    }
    for (; any; any = biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            continue;
        for (biter_init(&fields, bval_doc(&elem.val)); biter_next(&fields, &field);)
            if (names_key(key, field.key) || strcmp(elem.key, "$rename") == 0)
                return true;
    }
    return false;
}

bool upsert_leaves(const struct route *route, const struct upsert *upsert, size_t shard)
{
    const struct routing_table *table = route->routing->table;
    struct bdoc doc;
    struct err ignored;
    struct buf key = BUF_INIT;
    if (!may_decide_key(routing_table_key(table), upsert) || !upsert_build(route, upsert, &doc, &ignored))
        return false;
    bool leaves = shardkey_encode_doc(routing_table_key(table), doc, &key, &ignored) &&
                  routing_table_target_key(table, key_bytes_of(&key), NULL) != shard;
    buf_deinit(&key);
    return leaves;
}

bool upsert_insert(struct route *route, const struct ns *ns, struct bdoc body, struct bdoc doc, bool *unknown,
                   struct err *err)
{
    static const char *const kept[] = {"bypassDocumentValidation", "comment", "lsid", NULL};
    struct write_batch one;
    write_batch_init_items(&one, route->ctx, WRITE_INSERT, 1);
    one.ns = *ns;
    one.ns.coll = one.ns.full + (ns->coll - ns->full);
    for (const char *const *name = kept; *name; name++) {
        struct bval value;
        if (bdoc_find(body, *name, &value))
            bval_append(&one.common, *name, -1, &value);
    }
    BSON_APPEND_UTF8(&one.common, "$db", ns->db);
    one.items[0].doc = doc;
    bool ok = write_batch_run(&one, err);
    if (ok && one.result.error_count > 0) {
        write_batch_first_error(&one, err);
        ok = false;
    }
    *unknown = one.unknown;
    write_batch_deinit(&one);
    return ok;
}
