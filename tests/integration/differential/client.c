#include "client.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void die(const bson_t *command, const char *message)
{
    char *text = bson_as_relaxed_extended_json(command, NULL);
    fprintf(stderr, "differential: %s: %s\n", text, message);
    exit(2);
}

void client_must(mongoc_client_t *client, const char *db, const bson_t *command)
{
    bson_t reply;
    bson_error_t error;
    bson_iter_t iter;
    if (!mongoc_client_command_simple(client, db, command, NULL, &reply, &error))
        die(command, error.message);
    if (bson_iter_init_find(&iter, &reply, "writeErrors"))
        die(command, bson_as_relaxed_extended_json(&reply, NULL));
    bson_destroy(&reply);
}

void client_must_json(mongoc_client_t *client, const char *db, const char *json)
{
    bson_t command;
    bson_error_t error;
    if (!bson_init_from_json(&command, json, -1, &error)) {
        fprintf(stderr, "differential: %s: %s\n", json, error.message);
        exit(2);
    }
    client_must(client, db, &command);
    bson_destroy(&command);
}

/* ---- documents of a cursor ---- */

struct document_list {
    bson_t **items;
    uint32_t count;
    uint32_t capacity;
};

static void list_add(struct document_list *list, const uint8_t *data, uint32_t len)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        list->items = realloc(list->items, list->capacity * sizeof(bson_t *));
    }
    list->items[list->count++] = bson_new_from_data(data, len);
}

static int by_bytes(const void *a, const void *b)
{
    return bson_compare(*(bson_t *const *)a, *(bson_t *const *)b);
}

static void list_append(struct document_list *list, bson_t *out, const char *key, bool any_order)
{
    bson_t array;
    if (any_order && list->count > 0)
        qsort(list->items, list->count, sizeof(bson_t *), by_bytes);
    bson_append_array_begin(out, key, -1, &array);
    for (uint32_t i = 0; i < list->count; i++) {
        char name[12];
        snprintf(name, sizeof name, "%u", i);
        bson_append_document(&array, name, -1, list->items[i]);
        bson_destroy(list->items[i]);
    }
    bson_append_array_end(out, &array);
    free(list->items);
}

/* Takes the batch; returns the cursor's id. */
static int64_t take_batch(const bson_t *reply, struct document_list *list)
{
    bson_iter_t iter, cursor, batch;
    int64_t id = 0;
    if (!bson_iter_init_find(&iter, reply, "cursor") || !bson_iter_recurse(&iter, &cursor))
        return 0;
    while (bson_iter_next(&cursor)) {
        if (strcmp(bson_iter_key(&cursor), "id") == 0) {
            id = bson_iter_as_int64(&cursor);
        } else if (strcmp(bson_iter_key(&cursor), "firstBatch") == 0 ||
                   strcmp(bson_iter_key(&cursor), "nextBatch") == 0) {
            bson_iter_recurse(&cursor, &batch);
            while (bson_iter_next(&batch)) {
                const uint8_t *data;
                uint32_t len;
                bson_iter_document(&batch, &len, &data);
                list_add(list, data, len);
            }
        }
    }
    return id;
}

static const char *name_of(const struct collection_target *target, bool read, char *out, size_t size)
{
    snprintf(out, size, "%s%s", target->name, read && target->view ? "_view" : "");
    return out;
}

static bool drain(const struct collection_target *target, int64_t id, struct document_list *list, bson_error_t *error)
{
    char name[40];
    while (id != 0) {
        bson_t *more = BCON_NEW("getMore", BCON_INT64(id), "collection",
                                BCON_UTF8(name_of(target, true, name, sizeof name)), "batchSize", BCON_INT32(13));
        bson_t reply;
        bool ok = mongoc_client_command_simple(target->client, target->db, more, NULL, &reply, error);
        id = ok ? take_batch(&reply, list) : 0;
        bson_destroy(more);
        bson_destroy(&reply);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- other replies ---- */

/* The value under `key`; numbers, at any depth, as the double of their value: which of several equal numbers stands for
 * its class is not defined. Minus zero is zero. */
static void append_by_value(bson_t *out, const char *key, const bson_iter_t *iter)
{
    bson_decimal128_t decimal;
    char text[BSON_DECIMAL128_STRING];
    bson_iter_t inner;
    bson_t child;
    if (BSON_ITER_HOLDS_NUMBER(iter)) {
        BSON_APPEND_DOUBLE(out, key, bson_iter_as_double(iter) + 0.0);
    } else if (bson_iter_decimal128(iter, &decimal)) {
        bson_decimal128_to_string(&decimal, text);
        BSON_APPEND_DOUBLE(out, key, strtod(text, NULL) + 0.0);
    } else if (BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) {
        /* An array as a document of the same fields: only for comparison, and libbson warns of empty arrays. */
        BSON_APPEND_DOCUMENT_BEGIN(out, key, &child);
        for (bson_iter_recurse(iter, &inner); bson_iter_next(&inner);)
            append_by_value(&child, bson_iter_key(&inner), &inner);
        bson_append_document_end(out, &child);
    } else {
        bson_append_iter(out, key, -1, iter);
    }
}

static void add_value(struct document_list *list, const bson_iter_t *iter)
{
    bson_t one = BSON_INITIALIZER;
    append_by_value(&one, "v", iter);
    list_add(list, bson_get_data(&one), one.len);
    bson_destroy(&one);
}

static void take_values(const bson_t *reply, bson_t *out)
{
    struct document_list list = {0};
    bson_iter_t iter, values;
    if (bson_iter_init_find(&iter, reply, "values") && bson_iter_recurse(&iter, &values))
        while (bson_iter_next(&values))
            add_value(&list, &values);
    list_append(&list, out, "values", true);
}

static int value_count(const bson_t *taken)
{
    bson_iter_t iter, values;
    int count = 0;
    if (bson_iter_init_find(&iter, taken, "values") && bson_iter_recurse(&iter, &values))
        while (bson_iter_next(&values))
            count++;
    return count;
}

static void take_counts(const bson_t *reply, bson_t *out)
{
    static const char *const names[] = {"n", "nModified", "upserted", "value"};
    bson_iter_t iter, last;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bson_iter_init_find(&iter, reply, names[i]))
            bson_append_iter(out, names[i], -1, &iter);
    if (bson_iter_init(&last, reply) && bson_iter_find_descendant(&last, "writeErrors.0.code", &iter))
        BSON_APPEND_INT32(out, "writeError", bson_iter_int32(&iter));
    if (bson_iter_init(&last, reply) && bson_iter_find_descendant(&last, "lastErrorObject.n", &iter))
        BSON_APPEND_INT32(out, "modifyN", bson_iter_int32(&iter));
    if (bson_iter_init(&last, reply) && bson_iter_find_descendant(&last, "lastErrorObject.updatedExisting", &iter))
        BSON_APPEND_BOOL(out, "updatedExisting", bson_iter_bool(&iter));
}

static bool is_read(const bson_t *command)
{
    return bson_has_field(command, "find") || bson_has_field(command, "count") || bson_has_field(command, "distinct") ||
           bson_has_field(command, "aggregate");
}

static void addressed(const struct collection_target *target, const bson_t *command, bson_t *out)
{
    bson_iter_t iter;
    bool first = true, read = is_read(command);
    char name[40];
    bson_init(out);
    bson_iter_init(&iter, command);
    for (; bson_iter_next(&iter); first = false) {
        if (first)
            BSON_APPEND_UTF8(out, bson_iter_key(&iter), name_of(target, read, name, sizeof name));
        else
            bson_append_iter(out, bson_iter_key(&iter), -1, &iter);
    }
    if (target->hint != NULL && read && !target->view && !bson_has_field(command, "hint"))
        BSON_APPEND_UTF8(out, "hint", target->hint);
}

static void list_by_value(struct document_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        bson_t made = BSON_INITIALIZER;
        bson_iter_t iter;
        for (bson_iter_init(&iter, list->items[i]); bson_iter_next(&iter);)
            append_by_value(&made, bson_iter_key(&iter), &iter);
        bson_destroy(list->items[i]);
        list->items[i] = bson_copy(&made);
        bson_destroy(&made);
    }
}

void client_run(const struct collection_target *target, const bson_t *command, enum reply_shape shape, bson_t *out)
{
    bson_t sent, reply;
    bson_error_t error;
    struct document_list list = {0};
    addressed(target, command, &sent);
    bool ok = mongoc_client_command_simple(target->client, target->db, &sent, NULL, &reply, &error);
    if (!ok && (error.domain == MONGOC_ERROR_STREAM || error.domain == MONGOC_ERROR_SERVER_SELECTION))
        die(&sent, error.message);
    bson_init(out);
    if (ok && (shape == REPLY_CURSOR || shape == REPLY_CURSOR_ANY_ORDER || shape == REPLY_CURSOR_BY_VALUE)) {
        ok = drain(target, take_batch(&reply, &list), &list, &error);
        if (shape == REPLY_CURSOR_BY_VALUE)
            list_by_value(&list);
        list_append(&list, out, "documents", shape != REPLY_CURSOR);
    } else if (ok && shape == REPLY_VALUE_COUNT) {
        bson_t values;
        bson_init(&values);
        take_values(&reply, &values);
        BSON_APPEND_INT32(out, "values", value_count(&values));
        bson_destroy(&values);
    } else if (ok && shape == REPLY_VALUES) {
        take_values(&reply, out);
    } else if (ok) {
        take_counts(&reply, out);
    }
    if (!ok) {
        bson_reinit(out);
        BSON_APPEND_INT32(out, "code", (int32_t)error.code);
    }
    bson_destroy(&reply);
    bson_destroy(&sent);
}

void client_run_moving(const struct collection_target *target, const bson_t *find, bson_t *const *writes, int count,
                       bson_t *out)
{
    bson_t sent, reply;
    bson_error_t error;
    struct document_list list = {0};
    int done = 0;
    addressed(target, find, &sent);
    BSON_APPEND_INT32(&sent, "batchSize", 5);
    bool ok = mongoc_client_command_simple(target->client, target->db, &sent, NULL, &reply, &error);
    int64_t id = ok ? take_batch(&reply, &list) : 0;
    /* The writes are all made, also after a read that failed: the collections have to stay the same. */
    while (id != 0 || done < count) {
        bson_destroy(&reply);
        bson_destroy(&sent);
        bson_t *more =
            BCON_NEW("getMore", BCON_INT64(id), "collection", BCON_UTF8(target->name), "batchSize", BCON_INT32(7));
        bson_init(&sent);
        bson_init(&reply);
        if (done < count) {
            bson_destroy(&sent);
            addressed(target, writes[done++], &sent);
            client_must(target->client, target->db, &sent);
        }
        if (id != 0) {
            bson_destroy(&reply);
            ok = mongoc_client_command_simple(target->client, target->db, more, NULL, &reply, &error);
            id = ok ? take_batch(&reply, &list) : 0;
        }
        bson_destroy(more);
    }
    bson_destroy(&reply);
    bson_destroy(&sent);
    bson_init(out);
    list_append(&list, out, "documents", false);
    if (!ok)
        BSON_APPEND_INT32(out, "code", (int32_t)error.code);
}
