#include "document/coll_mod_index.h"

#include "command/fields.h"
#include "storage/cursor.h"
#include "storage/index_keys.h"
#include "storage/records.h"

#include <string.h>

enum {
    AMBIGUOUS_KEY_PATTERN = 181,
    CANNOT_CONVERT_TO_UNIQUE = 359,
    VIOLATION_BYTES_MAX = 2000, /* of the groups of equal keys that an error tells, before the last */
    GROUP_BYTES_MAX = 1500,     /* of the _ids in one group */
};

/* What is asked for; the flags say which of the fields were given. */
struct change {
    const struct index_def *index;
    bool has_expire;
    int64_t expire;
    bool has_hidden;
    bool hidden;
    bool has_prepare_unique;
    bool prepare_unique;
    bool unique;
};

/* ---- reading ---- */

static bool find_index(const struct collection *coll, struct bdoc request, struct change *change, struct err *err)
{
    const char *name = NULL;
    struct bdoc key = {0};
    if (!field_get_str(request, "name", &name, err) || !field_get_doc(request, "keyPattern", &key, err))
        return false;
    if (name != NULL && key.data != NULL)
        return err_set(err, ERR_InvalidOptions, "Cannot specify both key pattern and name.");
    if (name == NULL && key.data == NULL)
        return err_set(err, ERR_InvalidOptions, "Must specify either index name or key pattern.");
    if (name != NULL) {
        change->index = collection_find_index(coll, name);
        return (change->index != NULL && change->index->state == INDEX_READY) ||
               err_set(err, ERR_IndexNotFound, "cannot find index %.100s for ns %s", name, coll->ns);
    }
    if (collection_count_index_key(coll, key) > 1)
        return err_set(err, AMBIGUOUS_KEY_PATTERN, "index keyPattern matches several indexes, must use the name");
    change->index = collection_find_index_key(coll, key);
    return (change->index != NULL && change->index->state == INDEX_READY) ||
           err_set(err, ERR_IndexNotFound, "cannot find an index with that key for ns %s", coll->ns);
}

static bool read_flag(struct bdoc request, const char *name, bool *given, bool *out, struct err *err)
{
    struct bval val;
    *given = bdoc_find(request, name, &val);
    return field_get_bool(request, name, out, err);
}

static bool read_change(const struct collection *coll, struct bdoc request, struct change *change, struct err *err)
{
    static const char *const known[] = {"name",          "keyPattern", "expireAfterSeconds", "hidden", "unique",
                                        "prepareUnique", NULL};
    bool has_unique;
    struct bval expire;
    *change = (struct change){0};
    if (!fields_check_known(request, "collMod.index", known, err) ||
        !field_get_i64(request, "expireAfterSeconds", &change->expire, err) ||
        !read_flag(request, "hidden", &change->has_hidden, &change->hidden, err) ||
        !read_flag(request, "prepareUnique", &change->has_prepare_unique, &change->prepare_unique, err) ||
        !read_flag(request, "unique", &has_unique, &change->unique, err))
        return false;
    change->has_expire = bdoc_find(request, "expireAfterSeconds", &expire);
    if (!find_index(coll, request, change, err))
        return false;
    if (has_unique && !change->unique)
        return err_set(err, ERR_BadValue, "Cannot make index non-unique: 'unique' can only be true");
    return change->has_expire || change->has_hidden || change->has_prepare_unique || change->unique ||
           err_set(err, ERR_InvalidOptions, "no expireAfterSeconds, hidden, unique, or prepareUnique field");
}

/* ---- what an index allows ---- */

static bool check_expire(const struct change *change, struct err *err)
{
    const struct index_def *index = change->index;
    if (change->expire < 0)
        return err_set(err, ERR_InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0");
    if (change->expire > INT32_MAX)
        return err_set(err, ERR_InvalidOptions,
                       "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number");
    if (index->is_id)
        return err_set(err, ERR_InvalidOptions, "the _id field does not support TTL indexes");
    return (index->field_count == 1 && !index->wildcard) ||
           err_set(err, ERR_InvalidOptions,
                   "TTL indexes are single-field indexes, compound indexes do not support TTL");
}

static bool check_change(const struct change *change, struct err *err)
{
    const struct index_def *index = change->index;
    if (change->has_hidden && index->is_id)
        return err_set(err, ERR_BadValue, "can't hide _id index");
    if (change->has_expire && !check_expire(change, err))
        return false;
    if (change->has_prepare_unique && (index->is_id || index->hashed || index->wildcard))
        return err_set(err, ERR_InvalidOptions, "this index can't be made unique");
    if (change->unique && !index->unique && !index->prepare_unique)
        return err_set(err, ERR_InvalidOptions,
                       "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.");
    return true;
}

bool coll_mod_index_check(const struct collection *coll, struct bdoc request, struct err *err)
{
    struct change change;
    return read_change(coll, request, &change, err) && check_change(&change, err);
}

/* ---- unique ---- */

/* Groups of documents with the same key, as [{ids: [...]}, ...]. */
struct violations {
    struct store_txn *txn;
    const struct collection *coll;
    bson_t list;
    uint32_t groups;
    struct buf scratch;
};

static void add_id(struct violations *violations, bson_t *ids, uint32_t position, uint64_t record_id)
{
    struct bdoc doc;
    struct bval id;
    char digits[16];
    const char *name;
    if (!record_get(violations->txn, violations->coll, record_id, &violations->scratch, &doc) ||
        !bdoc_find(doc, "_id", &id) || ids->len + id.len > GROUP_BYTES_MAX)
        return;
    bson_uint32_to_string(position, &name, digits, sizeof digits);
    bval_append(ids, name, -1, &id);
}

static void add_group(struct violations *violations, const uint64_t *records, uint32_t count)
{
    bson_t group;
    bson_t ids;
    char digits[16];
    const char *name;
    if (violations->list.len > VIOLATION_BYTES_MAX)
        return;
    bson_uint32_to_string(violations->groups++, &name, digits, sizeof digits);
    BSON_APPEND_DOCUMENT_BEGIN(&violations->list, name, &group);
    BSON_APPEND_ARRAY_BEGIN(&group, "ids", &ids);
    for (uint32_t i = 0; i < count; i++)
        add_id(violations, &ids, i, records[i]);
    bson_append_array_end(&group, &ids);
    bson_append_document_end(&violations->list, &group);
}

/* Walks the index: equal keys stand together. */
static void find_violations(struct violations *violations, const struct index_def *index)
{
    enum { GROUP_MAX = 16 };
    struct index_cursor cursor;
    struct index_entry entry;
    const struct index_bounds all = {0};
    struct buf last = BUF_INIT;
    uint64_t group[GROUP_MAX];
    uint32_t count = 0;
    index_cursor_open(&cursor, violations->txn, index, &all, false);
    while (violations->list.len <= VIOLATION_BYTES_MAX && index_cursor_next(&cursor, &entry)) {
        bool same = count > 0 && last.len == entry.key_len && memcmp(last.data, entry.key, last.len) == 0;
        if (!same) {
            if (count > 1)
                add_group(violations, group, count);
            count = 0;
            buf_clear(&last);
            buf_append(&last, entry.key, entry.key_len);
        }
        if (count < GROUP_MAX)
            group[count++] = entry.record_id;
    }
    if (count > 1)
        add_group(violations, group, count);
    index_cursor_close(&cursor);
    buf_deinit(&last);
}

static bool check_duplicates(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                             struct err *err)
{
    struct violations violations = {.txn = txn, .coll = coll};
    bson_init(&violations.list);
    find_violations(&violations, index);
    bool ok = violations.groups == 0;
    if (!ok && err != NULL) {
        bson_t details = BSON_INITIALIZER;
        BSON_APPEND_ARRAY(&details, "violations", &violations.list);
        err_set(err, CANNOT_CONVERT_TO_UNIQUE,
                "Cannot convert the index to unique. Please resolve conflicting documents before running collMod "
                "again.");
        err_set_details(err, bson_get_data(&details), details.len);
        bson_destroy(&details);
    }
    bson_destroy(&violations.list);
    buf_deinit(&violations.scratch);
    return ok;
}

/* ---- changing ---- */

static void write_spec(const struct change *change, bson_t *out)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, change->index->spec);
    while (biter_next(&iter, &elem)) {
        bool replaced = (change->has_expire && strcmp(elem.key, "expireAfterSeconds") == 0) ||
                        (change->has_hidden && strcmp(elem.key, "hidden") == 0) ||
                        (change->unique && strcmp(elem.key, "unique") == 0) ||
                        ((change->has_prepare_unique || change->unique) && strcmp(elem.key, "prepareUnique") == 0);
        if (!replaced)
            bval_append(out, elem.key, (int)elem.key_len, &elem.val);
    }
    if (change->unique)
        BSON_APPEND_BOOL(out, "unique", true);
    else if (change->has_prepare_unique && change->prepare_unique)
        BSON_APPEND_BOOL(out, "prepareUnique", true);
    if (change->has_expire)
        BSON_APPEND_INT32(out, "expireAfterSeconds", (int32_t)change->expire);
    if (change->has_hidden && change->hidden)
        BSON_APPEND_BOOL(out, "hidden", true);
}

static void write_reply(const struct change *change, bson_t *reply)
{
    const struct index_def *index = change->index;
    if (change->has_expire) {
        if (index->ttl)
            BSON_APPEND_INT64(reply, "expireAfterSeconds_old", index->expire_after_seconds);
        BSON_APPEND_INT64(reply, "expireAfterSeconds_new", change->expire);
    }
    if (change->has_hidden) {
        BSON_APPEND_BOOL(reply, "hidden_old", index->hidden);
        BSON_APPEND_BOOL(reply, "hidden_new", change->hidden);
    }
    if (change->unique)
        BSON_APPEND_BOOL(reply, "unique_new", true);
    if (change->has_prepare_unique) {
        BSON_APPEND_BOOL(reply, "prepareUnique_old", index->prepare_unique);
        BSON_APPEND_BOOL(reply, "prepareUnique_new", change->prepare_unique);
    }
}

bool coll_mod_index_apply(struct store_txn *txn, const struct collection *coll, struct bdoc request, bson_t *reply,
                          struct err *err)
{
    struct change change;
    if (!read_change(coll, request, &change, err) || !check_change(&change, err))
        return false;
    if (change.unique && change.index->unique)
        change.unique = false; /* it is already */
    else if (change.unique && !check_duplicates(txn, coll, change.index, err))
        return false;
    bson_t spec = BSON_INITIALIZER;
    write_spec(&change, &spec);
    write_reply(&change, reply);
    catalog_set_index_spec(txn, coll, change.index, bdoc_of(&spec));
    bson_destroy(&spec);
    return true;
}
