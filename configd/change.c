#include "configd/change.h"

#include "cluster/fields.h"
#include "configd/names.h"

#include <stdio.h>

void change_init(struct change *change, const struct metadata_view *view, const char *server, int64_t now_ms)
{
    change->view = view;
    change->server = server;
    change->now_ms = now_ms;
    change->sequence = view_sequence(view);
    change->write_count = 0;
    bson_init(&change->writes);
    bson_init(&change->reply);
}

void change_deinit(struct change *change)
{
    bson_destroy(&change->writes);
    bson_destroy(&change->reply);
}

static void write_begin(struct change *change, bson_t *write)
{
    char text[16];
    const char *name;
    size_t len = bson_uint32_to_string(change->write_count++, &name, text, sizeof text);
    bson_append_document_begin(&change->writes, name, (int)len, write);
}

static void write_end(struct change *change, bson_t *write)
{
    bson_append_document_end(&change->writes, write);
}

void change_put(struct change *change, const char *ns, const bson_t *doc)
{
    bson_t write;
    write_begin(change, &write);
    bson_append_utf8(&write, "put", -1, ns, -1);
    bson_append_document(&write, "doc", -1, doc);
    write_end(change, &write);
}

void change_erase(struct change *change, const char *ns, const struct bval *id)
{
    bson_t write;
    write_begin(change, &write);
    bson_append_utf8(&write, "erase", -1, ns, -1);
    bval_append(&write, "id", -1, id);
    write_end(change, &write);
}

void change_erase_str(struct change *change, const char *ns, const char *id)
{
    struct bval val = view_str_value(change->view->arena, id);
    change_erase(change, ns, &val);
}

void change_erase_chunks(struct change *change, const uint8_t uuid[CLUSTER_UUID_BYTES])
{
    bson_t write;
    write_begin(change, &write);
    append_uuid(&write, "eraseChunks", uuid);
    write_end(change, &write);
}

void change_log(struct change *change, const char *what, const char *ns, const bson_t *details)
{
    bson_oid_t oid;
    char hex[25];
    bson_oid_init(&oid, NULL);
    bson_oid_to_string(&oid, hex);
    bson_t doc = BSON_INITIALIZER;
    char id[512];
    int len = snprintf(id, sizeof id, "%s-%lld-%s", change->server, (long long)change->now_ms, hex);
    bson_append_utf8(&doc, "_id", -1, id, len);
    bson_append_utf8(&doc, "server", -1, change->server, -1);
    bson_append_utf8(&doc, "shard", -1, "config", -1);
    bson_append_utf8(&doc, "clientAddr", -1, "", 0);
    bson_append_date_time(&doc, "time", -1, change->now_ms);
    bson_append_utf8(&doc, "what", -1, what, -1);
    bson_append_utf8(&doc, "ns", -1, ns, -1);
    if (details != NULL) {
        bson_append_document(&doc, "details", -1, details);
    } else {
        append_bdoc(&doc, "details", bdoc_empty());
    }
    change_put(change, NS_CHANGELOG, &doc);
    bson_destroy(&doc);
}

uint64_t change_timestamp(const struct change *change)
{
    return (uint64_t)(change->now_ms / 1000) << 32 | (uint32_t)(change->sequence + 1);
}

void change_encode(const struct change *change, bool guarded, struct buf *out)
{
    bson_t payload = BSON_INITIALIZER;
    if (guarded) {
        bson_append_int64(&payload, "sequence", -1, change->sequence);
    }
    bson_append_array(&payload, "writes", -1, &change->writes);
    buf_append(out, bson_get_data(&payload), payload.len);
    bson_destroy(&payload);
}
