#include "cluster/version.h"

#include "cluster/fields.h"
#include "cluster/keyrange.h"

#include <string.h>

static const bson_oid_t no_epoch;

static enum version_order order_of(int64_t a, int64_t b)
{
    return a < b ? VERSION_OLDER : a > b ? VERSION_NEWER : VERSION_SAME;
}

enum version_order chunk_version_compare_major(const struct chunk_version *a, const struct chunk_version *b)
{
    if (memcmp(&a->epoch, &b->epoch, sizeof a->epoch) != 0) {
        return VERSION_UNRELATED;
    }
    return order_of(a->major, b->major);
}

enum version_order chunk_version_compare(const struct chunk_version *a, const struct chunk_version *b)
{
    enum version_order order = chunk_version_compare_major(a, b);
    return order == VERSION_SAME ? order_of(a->minor, b->minor) : order;
}

bool chunk_version_is_set(const struct chunk_version *version)
{
    return memcmp(&version->epoch, &no_epoch, sizeof no_epoch) != 0;
}

uint64_t chunk_version_to_timestamp(const struct chunk_version *version)
{
    return (uint64_t)version->major << 32 | (uint64_t)version->minor;
}

void chunk_version_set_timestamp(struct chunk_version *version, uint64_t timestamp)
{
    version->major = (int64_t)(timestamp >> 32);
    version->minor = (int64_t)(timestamp & UINT32_MAX);
}

static void append_version_fields(bson_t *to, const struct chunk_version *version)
{
    bson_append_oid(to, "epoch", -1, &version->epoch);
    bson_append_int64(to, "major", -1, version->major);
    bson_append_int64(to, "minor", -1, version->minor);
}

void chunk_version_append(bson_t *to, const char *name, const struct chunk_version *version)
{
    bson_t inner;
    bson_append_document_begin(to, name, -1, &inner);
    append_version_fields(&inner, version);
    bson_append_document_end(to, &inner);
}

bool chunk_version_parse(struct bdoc doc, struct chunk_version *out, struct err *err)
{
    struct chunk_version version;
    if (!field_oid(doc, "epoch", &version.epoch, err) || !field_i64(doc, "major", &version.major, err) ||
        !field_i64(doc, "minor", &version.minor, err)) {
        return false;
    }
    if (version.major < 0 || version.major > UINT32_MAX || version.minor < 0 || version.minor > UINT32_MAX) {
        return err_set(err, ERR_BadValue, "major and minor of a version must be between 0 and 4294967295");
    }
    *out = version;
    return true;
}

/* One side of a pair of encoded bounds. */
static bool parse_bound(struct bdoc pair, const char *index, struct key_bytes *out, struct err *err)
{
    struct bval val;
    if (!bdoc_find(pair, index, &val) || val.type != BT_BINARY) {
        return err_set(err, ERR_TypeMismatch, OP_VERSION_FIELD ".ranges must hold pairs of encoded bounds");
    }
    uint8_t subtype;
    uint32_t len;
    out->data = bval_binary(&val, &subtype, &len);
    out->len = len;
    return true;
}

static bool check_ranges(struct bdoc ranges, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct key_bytes end = {0};
    int count = 0;
    for (biter_init(&iter, ranges); biter_next(&iter, &elem); count++) {
        struct key_range range;
        if (elem.val.type != BT_ARRAY || bdoc_count(bval_doc(&elem.val)) != 2) {
            return err_set(err, ERR_TypeMismatch, OP_VERSION_FIELD ".ranges must be an array of pairs");
        }
        if (!parse_bound(bval_doc(&elem.val), "0", &range.min, err) ||
            !parse_bound(bval_doc(&elem.val), "1", &range.max, err)) {
            return false;
        }
        if (key_range_is_empty(range) || key_bytes_compare(range.min, end) < 0) {
            return err_set(err, ERR_BadValue, OP_VERSION_FIELD ".ranges must be sorted and not empty");
        }
        if (count == OP_VERSION_MAX_RANGES) {
            return err_set(err, ERR_BadValue, OP_VERSION_FIELD ".ranges holds more than %d ranges", count);
        }
        end = range.max;
    }
    return true;
}

bool op_version_parse(struct bdoc doc, struct op_version *out, struct err *err)
{
    struct op_version version = {.kind = OP_VERSION_DATABASE};
    if (bdoc_has(doc, "db")) {
        if (!field_uuid(doc, "db", version.db_uuid, err)) {
            return false;
        }
        *out = version;
        return true;
    }
    version.kind = OP_VERSION_COLLECTION;
    if (!field_uuid(doc, "uuid", version.uuid, err) || !chunk_version_parse(doc, &version.version, err)) {
        return false;
    }
    if (bdoc_has(doc, "ranges")) {
        if (!field_array(doc, "ranges", &version.ranges, err) || !check_ranges(version.ranges, err)) {
            return false;
        }
    }
    *out = version;
    return true;
}

void op_version_append(bson_t *to, const struct op_version *version)
{
    if (version->kind == OP_VERSION_NONE) {
        return;
    }
    bson_t inner;
    bson_append_document_begin(to, OP_VERSION_FIELD, -1, &inner);
    if (version->kind == OP_VERSION_DATABASE) {
        append_uuid(&inner, "db", version->db_uuid);
    } else {
        append_uuid(&inner, "uuid", version->uuid);
        append_version_fields(&inner, &version->version);
        if (version->ranges.data != NULL) {
            append_array(&inner, "ranges", version->ranges);
        }
    }
    bson_append_document_end(to, &inner);
}

bool stale_config_set(struct err *err, const char *ns, const char *shard, const struct chunk_version *received,
                      const struct chunk_version *wanted)
{
    bson_t details = BSON_INITIALIZER;
    bson_append_utf8(&details, "ns", -1, ns, -1);
    if (received != NULL) {
        chunk_version_append(&details, "vReceived", received);
    }
    if (wanted != NULL) {
        chunk_version_append(&details, "vWanted", wanted);
    }
    bson_append_utf8(&details, "shardId", -1, shard, -1);
    err_set(err, ERR_StaleConfig, "version mismatch detected for %s", ns);
    err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
    return false;
}

bool stale_config_wanted(struct bdoc details, struct chunk_version *out)
{
    struct bval val;
    if (!bdoc_find(details, "vWanted", &val) || val.type != BT_DOCUMENT) {
        return false;
    }
    return chunk_version_parse(bval_doc(&val), out, NULL);
}
