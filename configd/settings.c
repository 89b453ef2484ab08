#include "configd/names.h"
#include "configd/plans.h"

#include "cluster/fields.h"
#include "update/update.h"

#include <ctype.h>
#include <string.h>

enum { SETTING_NAME_MAX = 63, CHUNK_SIZE_MAX_MIB = 1024 };

/* ---- what the settings may hold ---- */

static bool is_bool(const struct bval *val)
{
    return val->type == BT_BOOL;
}

static bool is_bool_or_doc(const struct bval *val)
{
    return val->type == BT_BOOL || val->type == BT_DOCUMENT;
}

static bool is_chunk_size(const struct bval *val)
{
    int64_t size;
    return bval_is_number(val) && bval_to_i64(val, &size) && size >= 1 && size <= CHUNK_SIZE_MAX_MIB;
}

static bool is_mode(const struct bval *val)
{
    return bval_is_str(val, "full") || bval_is_str(val, "off") || bval_is_str(val, "autoSplitOnly");
}

/* "HH:MM" */
static bool is_time_of_day(const struct bval *val)
{
    uint32_t len;
    if (val->type != BT_STRING) {
        return false;
    }
    const char *text = bval_str(val, &len);
    if (len != 5 || text[2] != ':' || !isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]) ||
        !isdigit((unsigned char)text[3]) || !isdigit((unsigned char)text[4])) {
        return false;
    }
    int hour = (text[0] - '0') * 10 + (text[1] - '0');
    int minute = (text[3] - '0') * 10 + (text[4] - '0');
    return hour < 24 && minute < 60;
}

static bool is_window(const struct bval *val)
{
    struct bval start;
    struct bval stop;
    return val->type == BT_DOCUMENT && bdoc_count(bval_doc(val)) == 2 && bdoc_find(bval_doc(val), "start", &start) &&
           bdoc_find(bval_doc(val), "stop", &stop) && is_time_of_day(&start) && is_time_of_day(&stop);
}

static const struct {
    const char *id;
    const char *field;
    bool (*fits)(const struct bval *val);
    const char *wanted;
} rules[] = {
    {"chunksize", "value", is_chunk_size, "a whole number of MiB from 1 to 1024"},
    {"balancer", "stopped", is_bool, "true or false"},
    {"balancer", "mode", is_mode, "\"full\" or \"off\""},
    {"balancer", "activeWindow", is_window, "{start: \"HH:MM\", stop: \"HH:MM\"}"},
    {"balancer", "_secondaryThrottle", is_bool_or_doc, "true, false or a write concern"},
    {"balancer", "_waitForDelete", is_bool, "true or false"},
    {"balancer", "attemptToBalanceJumboChunks", is_bool, "true or false"},
    {"autosplit", "enabled", is_bool, "true or false"},
    {"automerge", "enabled", is_bool, "true or false"},
};

enum { RULE_COUNT = sizeof rules / sizeof rules[0] };

static bool check_field(const char *id, const struct belem *elem, struct err *err)
{
    for (size_t i = 0; i < RULE_COUNT; i++) {
        if (strcmp(rules[i].id, id) == 0 && strcmp(rules[i].field, elem->key) == 0) {
            return rules[i].fits(&elem->val) ||
                   err_set(err, ERR_BadValue, "setting %s.%s must be %s", id, elem->key, rules[i].wanted);
        }
    }
    return err_set(err, ERR_BadValue, "setting %s has no field '%s'", id, elem->key);
}

static bool check_setting(const char *id, struct bdoc doc, struct err *err)
{
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, doc); biter_next(&iter, &elem);) {
        if (strcmp(elem.key, "_id") != 0 && !check_field(id, &elem, err)) {
            return false;
        }
    }
    return true;
}

static bool check_setting_name(const char *id, struct err *err)
{
    for (size_t i = 0; i < RULE_COUNT; i++) {
        if (strcmp(rules[i].id, id) == 0) {
            return true;
        }
    }
    return err_set(err, ERR_IllegalOperation, "there is no setting '%s'", id);
}

/* ---- statements ---- */

/* The filter must be {_id: "..."}. */
static bool statement_id(struct bdoc statement, char *out, size_t cap, struct err *err)
{
    struct bdoc filter;
    if (!field_doc(statement, "q", &filter, err)) {
        return false;
    }
    if (bdoc_count(filter) != 1 || !field_str(filter, "_id", out, cap, NULL)) {
        return err_set(err, ERR_IllegalOperation,
                       "documents of the config database are changed one at a time, by {_id: \"...\"}");
    }
    return true;
}

/* The statement's update on `before`, appended to `out`. */
static bool apply_update(const struct metadata_view *view, struct bdoc statement, struct bdoc before, struct buf *out,
                         struct err *err)
{
    struct bval source;
    struct update *update;
    struct update_options options = {.multi = field_flag(statement, "multi")};
    struct update_result result;
    if (!bdoc_find(statement, "u", &source)) {
        return err_set(err, ERR_NoSuchKey, "Missing expected field \"u\"");
    }
    if (!update_compile(view->arena, &source, &options, &update, err)) {
        return false;
    }
    bool ok = update_apply(update, before, NULL, out, &result, err);
    update_release(update);
    return ok;
}

static void reply_update(struct change *change, int32_t matched, int32_t modified)
{
    bson_append_int32(&change->reply, "n", -1, matched);
    bson_append_int32(&change->reply, "nModified", -1, modified);
}

static void put_bytes(struct change *change, const char *ns, struct bdoc doc)
{
    bson_t view;
    bdoc_to_bson(doc, &view);
    change_put(change, ns, &view);
}

/* A document of nothing but its _id: what an upsert begins with. */
static struct bdoc only_id(struct arena *arena, const char *id)
{
    bson_t doc = BSON_INITIALIZER;
    bson_append_utf8(&doc, "_id", -1, id, -1);
    struct bdoc copy = {.data = arena_copy(arena, bson_get_data(&doc), doc.len), .len = doc.len};
    bson_destroy(&doc);
    return copy;
}

bool plan_update_settings(struct change *change, struct bdoc request, struct err *err)
{
    char id[SETTING_NAME_MAX + 1];
    struct bdoc before;
    struct buf bytes = BUF_INIT;
    if (!statement_id(request, id, sizeof id, err) || !check_setting_name(id, err)) {
        return false;
    }
    bool found = view_get_str(change->view, NS_SETTINGS, id, &before);
    if (!found && !field_flag(request, "upsert")) {
        reply_update(change, 0, 0);
        return true;
    }
    before = found ? before : only_id(change->view->arena, id);
    bool ok = apply_update(change->view, request, before, &bytes, err);
    struct bdoc after = {.data = bytes.data, .len = (uint32_t)bytes.len};
    ok = ok && check_setting(id, after, err);
    if (ok) {
        bool changed = !found || !bdoc_same(before, after);
        reply_update(change, 1, found && changed);
        if (!found) {
            bson_append_utf8(&change->reply, "upserted", -1, id, -1);
        }
        if (changed) {
            put_bytes(change, NS_SETTINGS, after);
        }
    }
    buf_deinit(&bytes);
    return ok;
}

/* Fields other than `noBalance` must be as they were. */
static bool check_only_no_balance(struct bdoc before, struct bdoc after, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct bval other;
    for (biter_init(&iter, after); biter_next(&iter, &elem);) {
        bool same = bdoc_find(before, elem.key, &other) && other.type == elem.val.type && other.len == elem.val.len &&
                    (other.len == 0 || memcmp(other.data, elem.val.data, other.len) == 0);
        if (strcmp(elem.key, "noBalance") == 0 ? elem.val.type != BT_BOOL : !same) {
            return err_set(err, ERR_IllegalOperation,
                           "of a document in config.collections only noBalance (true or false) may be changed");
        }
    }
    for (biter_init(&iter, before); biter_next(&iter, &elem);) {
        if (strcmp(elem.key, "noBalance") != 0 && !bdoc_has(after, elem.key)) {
            return err_set(err, ERR_IllegalOperation, "'%s' of a sharded collection can't be removed", elem.key);
        }
    }
    return true;
}

bool plan_update_collections(struct change *change, struct bdoc request, struct err *err)
{
    char ns[CLUSTER_NS_MAX + 1];
    struct bdoc before;
    struct buf bytes = BUF_INIT;
    if (!statement_id(request, ns, sizeof ns, err)) {
        return false;
    }
    if (!view_get_str(change->view, NS_COLLECTIONS, ns, &before)) {
        reply_update(change, 0, 0);
        return true;
    }
    bool ok = apply_update(change->view, request, before, &bytes, err);
    struct bdoc after = {.data = bytes.data, .len = (uint32_t)bytes.len};
    ok = ok && check_only_no_balance(before, after, err);
    if (ok) {
        bool changed = !bdoc_same(before, after);
        reply_update(change, 1, changed);
        if (changed) {
            put_bytes(change, NS_COLLECTIONS, after);
        }
    }
    buf_deinit(&bytes);
    return ok;
}

bool plan_delete_settings(struct change *change, struct bdoc request, struct err *err)
{
    char id[SETTING_NAME_MAX + 1];
    struct bdoc before;
    if (!statement_id(request, id, sizeof id, err) || !check_setting_name(id, err)) {
        return false;
    }
    bool found = view_get_str(change->view, NS_SETTINGS, id, &before);
    if (found) {
        change_erase_str(change, NS_SETTINGS, id);
    }
    bson_append_int32(&change->reply, "n", -1, found);
    return true;
}
