/* Writes split over shards: a config service and two shards in this process, which answer what the test says. The
 * collection is the one of support.h: keys from 10 to 19 on s1, all others on s0. */
#include "support.h"

#include "base/clock.h"
#include "base/mem.h"
#include "command/reply.h"
#include "command/table.h"
#include "routerd/commands.h"
#include "routerd/cursors.h"
#include "routerd/registry.h"
#include "routerd/routing_cache.h"
#include "routerd/write_batch.h"
#include "rpc/client.h"
#include "rpc/server.h"

enum { NAMES_MAX = 256 };

/* A daemon of the cluster. */
struct node {
    struct rpc_server *server;
    struct cluster *cluster;
    char address[64];
    pthread_mutex_t lock; /* guards what follows: handlers run on nng's threads */
    unsigned requests;    /* writes */
    char seen[NAMES_MAX]; /* values of `a` (or of q.a) in the order of arrival: "1 2 |3 |", '|' ends a request */
    int64_t fails_at;     /* a statement with this `a` is refused with `fails_with` */
    int32_t fails_with;
    int32_t refuses_with; /* whole requests are, `refusals` times */
    unsigned refusals;
    const char *replies[2]; /* JSON: to its first command that is no write, and to those after it; NULL: `ok` */
    unsigned commands;      /* of these so far */
    int64_t killed[4];      /* ids of cursors, in the order of arrival */
    unsigned kills;
};

struct cluster {
    struct router router;
    struct node config;
    struct node shards[2];
    bool sharded;
    unsigned routings; /* times that the routing was read; guarded by config.lock */
};

static bool value_of(struct bdoc statement, int64_t *out)
{
    struct bval value;
    if (bdoc_find(statement, "q", &value) && value.type == BT_DOCUMENT)
        statement = bval_doc(&value);
    return bdoc_find(statement, "a", &value) && bval_to_i64(&value, out);
}

/* Answers a write: one document a statement, stops at an error when ordered. */
static void answer_write(struct node *node, const struct wire_msg *msg, bson_t *out)
{
    struct write_result result;
    struct bval ordered;
    struct bdoc doc;
    uint32_t offset = 0;
    int32_t index = 0;
    bool stops = bdoc_find(msg->body, "ordered", &ordered) && bval_truthy(&ordered);
    write_result_init(&result, false);
    while (wire_sequence_next(&msg->sequences[0], &offset, &doc)) {
        int64_t a = -1;
        (void)value_of(doc, &a);
        snprintf(node->seen + strlen(node->seen), NAMES_MAX - strlen(node->seen), "%d ", (int)a);
        if (node->fails_with && a == node->fails_at) {
            struct err err;
            err_set(&err, node->fails_with, "as the test says");
            write_result_add_error(&result, index, &err);
            if (node->fails_with == ERR_StaleConfig || node->fails_with == ERR_NotWritablePrimary)
                node->fails_with = 0;
            if (stops)
                break;
        } else {
            result.n++;
        }
        index++;
    }
    snprintf(node->seen + strlen(node->seen), NAMES_MAX - strlen(node->seen), "|");
    write_result_append(&result, out);
    write_result_deinit(&result);
    reply_append_ok(out);
}

static void answer_kill(struct node *node, struct bdoc body, bson_t *out)
{
    struct bval ids;
    struct bval id;
    assert_true(bdoc_find(body, "cursors", &ids) && bdoc_find(bval_doc(&ids), "0", &id));
    assert_in_range(node->kills, 0, 3);
    node->killed[node->kills++] = bval_i64(&id);
    reply_append_ok(out);
}

static void answer_command(struct node *node, bson_t *out)
{
    const char *json = node->replies[node->commands > 0];
    node->commands++;
    bson_error_t error;
    bson_t *reply = json ? bson_new_from_json((const uint8_t *)json, -1, &error) : NULL;
    if (reply)
        bson_concat(out, reply);
    else
        reply_append_ok(out);
    bson_destroy(reply);
}

static void handle_shard(void *arg, struct rpc_request *request)
{
    struct node *node = arg;
    if (bdoc_has(request->msg.body, "getMore")) {
        rpc_request_drop(request); /* the batch is lost on its way */
        return;
    }
    bson_t out = BSON_INITIALIZER;
    if (bdoc_has(request->msg.body, "killCursors")) {
        pthread_mutex_lock(&node->lock);
        answer_kill(node, request->msg.body, &out);
        pthread_mutex_unlock(&node->lock);
        rpc_request_reply_doc(request, bdoc_of(&out));
        bson_destroy(&out);
        return;
    }
    pthread_mutex_lock(&node->lock);
    node->requests++;
    assert_true(bdoc_has(request->msg.body, "$sherdVersion"));
    if (node->refuses_with && node->refusals > 0) {
        struct err err;
        node->refusals--;
        err_set(&err, node->refuses_with, "as the test says");
        reply_append_error(&out, &err, NULL, 0);
    } else if (request->msg.sequence_count == 0) {
        answer_command(node, &out);
    } else {
        answer_write(node, &request->msg, &out);
    }
    pthread_mutex_unlock(&node->lock);
    rpc_request_reply_doc(request, bdoc_of(&out));
    bson_destroy(&out);
}

static void append_shards(const struct cluster *cluster, bson_t *out)
{
    bson_t cursor, batch, child;
    BSON_APPEND_DOCUMENT_BEGIN(out, "cursor", &cursor);
    BSON_APPEND_INT64(&cursor, "id", 0);
    BSON_APPEND_UTF8(&cursor, "ns", "config.shards");
    BSON_APPEND_ARRAY_BEGIN(&cursor, "firstBatch", &batch);
    for (int i = 0; i < 2; i++) {
        struct shard_entry entry = {.topology_time = 1};
        snprintf(entry.name, sizeof entry.name, "s%d", i);
        snprintf(entry.host, sizeof entry.host, "s%d/%s", i, cluster->shards[i].address);
        BSON_APPEND_DOCUMENT_BEGIN(&batch, i ? "1" : "0", &child);
        shard_entry_append(&child, &entry);
        bson_append_document_end(&batch, &child);
    }
    bson_append_array_end(&cursor, &batch);
    bson_append_document_end(out, &cursor);
}

static void handle_config(void *arg, struct rpc_request *request)
{
    struct node *node = arg;
    struct cluster *cluster = node->cluster;
    bson_t out = BSON_INITIALIZER;
    pthread_mutex_lock(&node->lock);
    if (bdoc_has(request->msg.body, "_configsvrGetRouting")) {
        struct arena arena;
        arena_init(&arena);
        support_reply(&arena, cluster->sharded, cluster->routings++, &out);
        arena_deinit(&arena);
    } else {
        append_shards(cluster, &out);
    }
    pthread_mutex_unlock(&node->lock);
    reply_append_ok(&out);
    rpc_request_reply_doc(request, bdoc_of(&out));
    bson_destroy(&out);
}

static void node_start(struct cluster *cluster, struct node *node, void (*handle)(void *, struct rpc_request *))
{
    struct err err;
    pthread_mutex_init(&node->lock, NULL);
    node->cluster = cluster;
    assert_true(rpc_server_start(&(struct rpc_server_options){.handle = handle, .arg = node}, &node->server, &err));
    snprintf(node->address, sizeof node->address, "127.0.0.1:%u", (unsigned)rpc_server_port(node->server));
}

static int set_up(void **state)
{
    struct cluster *cluster = mem_alloc(sizeof *cluster);
    char config[80];
    struct err err;
    cluster->sharded = true;
    node_start(cluster, &cluster->config, handle_config);
    node_start(cluster, &cluster->shards[0], handle_shard);
    node_start(cluster, &cluster->shards[1], handle_shard);
    snprintf(config, sizeof config, "config/%s", cluster->config.address);
    cluster->router.rpc = rpc_client_new(&(struct rpc_client_options){.name = "test"});
    assert_true(registry_new(&cluster->router, config, &cluster->router.registry, &err));
    cluster->router.routing = routing_cache_new(routing_fetch_remote, &cluster->router);
    cluster->router.cursors = cursor_table_new(&cluster->router);
    *state = cluster;
    return 0;
}

static int tear_down(void **state)
{
    struct cluster *cluster = *state;
    struct node *nodes[] = {&cluster->config, &cluster->shards[0], &cluster->shards[1]};
    cursor_table_free(cluster->router.cursors);
    routing_cache_free(cluster->router.routing);
    registry_free(cluster->router.registry);
    rpc_client_free(cluster->router.rpc);
    for (int i = 0; i < 3; i++) {
        rpc_server_stop(nodes[i]->server);
        rpc_server_free(nodes[i]->server);
    }
    mem_free(cluster);
    return 0;
}

/* A context for the command; the statements stand in its body. */
static struct command_ctx *context(struct cluster *cluster, const char *json)
{
    static const struct command write = {.name = "write", .flags = COMMAND_WRITE};
    struct arena arena;
    struct wire_msg msg;
    struct err err;
    arena_init(&arena);
    struct wire_frame *frame = wire_frame_of_doc(json_doc(&arena, json));
    arena_deinit(&arena);
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->daemon = &cluster->router;
    ctx->command = &write;
    ctx->deadline_ms = deadline_after_ms(20000);
    assert_true(command_parse(ctx, &err));
    return ctx;
}

/* "1:11000 3:11000", the errors by index. */
static void errors_text(const struct write_batch *batch, char *out, size_t size)
{
    struct biter iter;
    struct belem elem;
    out[0] = 0;
    biter_init(&iter, bdoc_of(&batch->result.errors));
    while (biter_next(&iter, &elem)) {
        struct bval index, code;
        int64_t i = -1, c = -1;
        if (bdoc_find(bval_doc(&elem.val), "index", &index))
            (void)bval_to_i64(&index, &i);
        if (bdoc_find(bval_doc(&elem.val), "code", &code))
            (void)bval_to_i64(&code, &c);
        snprintf(out + strlen(out), size - strlen(out), "%s%d:%d", out[0] ? " " : "", (int)i, (int)c);
    }
}

struct outcome {
    bool ok;
    struct err err;
    int64_t n;
    char errors[NAMES_MAX];
    unsigned labels;
    size_t memory; /* bytes that the command took */
};

static struct outcome run(struct cluster *cluster, enum write_kind kind, const char *json)
{
    struct outcome out = {0};
    struct write_batch batch;
    struct command_ctx *ctx = context(cluster, json);
    assert_true(write_batch_init(&batch, ctx, kind, &out.err));
    out.ok = write_batch_run(&batch, &out.err);
    write_batch_sort_errors(&batch);
    errors_text(&batch, out.errors, sizeof out.errors);
    out.n = batch.result.n;
    out.labels = ctx->label_count;
    out.memory = ctx->arena.used_bytes;
    write_batch_deinit(&batch);
    command_ctx_free(ctx);
    return out;
}

#define INSERT(ordered)                                                                                                \
    "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"a\": 1}, {\"_id\": 2, \"a\": 11}, {\"_id\": 3, \"a\": 2},"     \
    " {\"_id\": 4, \"a\": 12}], \"ordered\": " ordered ", \"$db\": \"db\"}"

static void write_batch_unordered_insert_goes_out_in_one_request_a_shard(void **state)
{
    struct cluster *cluster = *state;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("false"));
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(cluster->shards[0].seen, "1 2 |");
    assert_string_equal(cluster->shards[1].seen, "11 12 |");
}

static void write_batch_ordered_insert_keeps_the_order(void **state)
{
    struct cluster *cluster = *state;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("true"));
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(cluster->shards[0].seen, "1 |2 |");
    assert_string_equal(cluster->shards[1].seen, "11 |12 |");
}

static void write_batch_ordered_insert_stops_at_an_error(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[1].fails_at = 11;
    cluster->shards[1].fails_with = ERR_DuplicateKey;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("true"));
    assert_true(out.ok);
    assert_int_equal(out.n, 1);
    assert_string_equal(out.errors, "1:11000");
    assert_string_equal(cluster->shards[0].seen, "1 |");
    assert_string_equal(cluster->shards[1].seen, "11 |");
}

static void write_batch_unordered_errors_have_the_clients_indexes(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[0].fails_at = 2;
    cluster->shards[0].fails_with = ERR_DuplicateKey;
    cluster->shards[1].fails_at = 11;
    cluster->shards[1].fails_with = ERR_DuplicateKey;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("false"));
    assert_true(out.ok);
    assert_int_equal(out.n, 2);
    assert_string_equal(out.errors, "1:11000 2:11000");
}

static void write_batch_stale_statement_is_sent_again_alone(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[1].fails_at = 12;
    cluster->shards[1].fails_with = ERR_StaleConfig;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("false"));
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(out.errors, "");
    assert_string_equal(cluster->shards[1].seen, "11 12 |12 |");
    assert_string_equal(cluster->shards[0].seen, "1 2 |");
    assert_int_equal(cluster->routings, 2);
}

/* Its leader stepped down in the middle of the batch; a statement that such a member refuses was not carried out. */
static void write_batch_statement_without_a_leader_is_sent_again(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[1].fails_at = 12;
    cluster->shards[1].fails_with = ERR_NotWritablePrimary;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("false"));
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(out.errors, "");
    assert_string_equal(cluster->shards[1].seen, "11 12 |12 |");
    assert_string_equal(cluster->shards[0].seen, "1 2 |");
}

static void write_batch_stale_request_is_sent_again(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[0].refuses_with = ERR_StaleConfig;
    cluster->shards[0].refusals = 2;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("false"));
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(cluster->shards[1].seen, "11 12 |");
    assert_string_equal(cluster->shards[0].seen, "1 2 |");
}

static void write_batch_document_without_id_gets_one(void **state)
{
    struct cluster *cluster = *state;
    struct write_batch batch;
    struct err err;
    struct command_ctx *ctx = context(cluster, "{\"insert\": \"c\", \"documents\": [{\"a\": 1}], \"$db\": \"db\"}");
    assert_true(write_batch_init(&batch, ctx, WRITE_INSERT, &err));
    struct bval id;
    assert_true(bdoc_find(batch.items[0].doc, "_id", &id));
    assert_int_equal(id.type, BT_OBJECT_ID);
    assert_true(bdoc_validate(batch.items[0].doc.data, batch.items[0].doc.len, BDOC_MAX_DEPTH, &err));
    write_batch_deinit(&batch);
    command_ctx_free(ctx);
}

static void write_batch_document_with_array_in_the_key_is_refused(void **state)
{
    struct outcome out = run(*state, WRITE_INSERT,
                             "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"a\": 1}, {\"_id\": 2, \"a\": [1]}],"
                             " \"ordered\": false, \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_int_equal(out.n, 1);
    assert_string_equal(out.errors, "1:61");
}

static void write_batch_update_by_key_goes_to_one_shard(void **state)
{
    struct cluster *cluster = *state;
    struct outcome out = run(cluster, WRITE_UPDATE,
                             "{\"update\": \"c\", \"updates\": [{\"q\": {\"a\": 12}, \"u\": {\"$set\": {\"b\": 1}}}],"
                             " \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_string_equal(cluster->shards[0].seen, "");
    assert_string_equal(cluster->shards[1].seen, "12 |");
}

static void write_batch_multi_update_goes_to_all_owners(void **state)
{
    struct cluster *cluster = *state;
    struct outcome out =
        run(cluster, WRITE_UPDATE,
            "{\"update\": \"c\", \"updates\": [{\"q\": {\"b\": 1}, \"u\": {\"$set\": {\"b\": 1}}, \"multi\": true}],"
            " \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_int_equal(out.n, 2);
    assert_int_equal(cluster->shards[0].requests, 1);
    assert_int_equal(cluster->shards[1].requests, 1);
}

static void write_batch_multi_update_is_not_repeated_where_it_was_done(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[1].refuses_with = ERR_StaleConfig;
    cluster->shards[1].refusals = 1;
    struct outcome out = run(cluster, WRITE_DELETE,
                             "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"b\": 1}, \"limit\": 0}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_int_equal(out.n, 2);
    assert_int_equal(cluster->shards[0].requests, 1);
    assert_int_equal(cluster->shards[1].requests, 2);
}

/* Placing a statement compiles its filter: that is done a few times for each, not once in the round of each other. */
static void write_batch_unordered_range_statements_cost_memory_in_proportion(void **state)
{
    enum { STATEMENTS = 200, BYTES_EACH = 16 * 1024 };
    struct cluster *cluster = *state;
    struct buf json = BUF_INIT;
    char text[80];
    snprintf(text, sizeof text, "{\"delete\": \"c\", \"ordered\": false, \"$db\": \"db\", \"deletes\": [");
    buf_append(&json, text, strlen(text));
    for (int i = 0; i < STATEMENTS; i++) {
        snprintf(text, sizeof text, "%s{\"q\": {\"b\": %d}, \"limit\": 0}", i ? ", " : "", i);
        buf_append(&json, text, strlen(text));
    }
    buf_append(&json, "]}", sizeof "]}");
    struct outcome out = run(cluster, WRITE_DELETE, (const char *)json.data);
    buf_deinit(&json);
    assert_true(out.ok);
    assert_int_equal(out.n, 2 * STATEMENTS);
    assert_in_range(out.memory, 1, STATEMENTS * BYTES_EACH);
}

static void write_batch_range_statement_keeps_its_place(void **state)
{
    struct cluster *cluster = *state;
    struct outcome out = run(cluster, WRITE_DELETE,
                             "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"a\": 1}, \"limit\": 1},"
                             " {\"q\": {\"b\": 1}, \"limit\": 0}, {\"q\": {\"a\": 2}, \"limit\": 1}],"
                             " \"ordered\": false, \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(cluster->shards[0].seen, "1 |-1 |2 |");
    assert_string_equal(cluster->shards[1].seen, "-1 |");
}

static void write_batch_multi_upsert_without_the_key_is_refused(void **state)
{
    struct cluster *cluster = *state;
    struct outcome out = run(cluster, WRITE_UPDATE,
                             "{\"update\": \"c\", \"updates\": [{\"q\": {\"b\": 1}, \"u\": {\"$set\": {\"b\": 1}},"
                             " \"upsert\": true, \"multi\": true}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_string_equal(out.errors, "0:61");
    assert_int_equal(cluster->shards[0].requests + cluster->shards[1].requests, 0);
}

#define EMPTY_CURSOR "{\"cursor\": {\"id\": {\"$numberLong\": \"0\"}, \"ns\": \"db.c\", \"firstBatch\": []}, \"ok\": 1}"

static void write_batch_upsert_without_the_key_goes_to_the_documents_owner(void **state)
{
    struct cluster *cluster = *state;
    for (int i = 0; i < 2; i++)
        cluster->shards[i].replies[0] = cluster->shards[i].replies[1] = EMPTY_CURSOR;
    struct outcome out = run(cluster, WRITE_UPDATE,
                             "{\"update\": \"c\", \"updates\": [{\"q\": {\"b\": 1}, \"u\": {\"$set\": {\"a\": 15}},"
                             " \"upsert\": true}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_string_equal(out.errors, "");
    assert_int_equal(out.n, 1);
    assert_string_equal(cluster->shards[0].seen, "");
    assert_string_equal(cluster->shards[1].seen, "15 |");
}

/* A missing field of the shard key counts as null, which lies in the first shard's range. */
static void write_batch_upsert_without_a_key_at_all_counts_as_null(void **state)
{
    struct cluster *cluster = *state;
    for (int i = 0; i < 2; i++)
        cluster->shards[i].replies[0] = cluster->shards[i].replies[1] = EMPTY_CURSOR;
    struct outcome out = run(cluster, WRITE_UPDATE,
                             "{\"update\": \"c\", \"updates\": [{\"q\": {\"b\": 1}, \"u\": {\"$set\": {\"d\": 1}},"
                             " \"upsert\": true}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_int_equal(out.n, 1);
    assert_string_equal(cluster->shards[0].seen, "-1 |");
    assert_string_equal(cluster->shards[1].seen, "");
}

static void write_batch_upsert_that_finds_a_taken_key_gives_up_with_it(void **state)
{
    struct cluster *cluster = *state;
    for (int i = 0; i < 2; i++)
        cluster->shards[i].replies[0] = cluster->shards[i].replies[1] = EMPTY_CURSOR;
    cluster->shards[1].fails_at = 15;
    cluster->shards[1].fails_with = ERR_DuplicateKey;
    struct outcome out = run(cluster, WRITE_UPDATE,
                             "{\"update\": \"c\", \"updates\": [{\"q\": {\"b\": 1}, \"u\": {\"$set\": {\"a\": 15}},"
                             " \"upsert\": true}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_string_equal(out.errors, "0:11000");
    assert_string_equal(cluster->shards[1].seen, "15 |15 |15 |");
}

/* Strings of another collation don't say where a document is, but the candidate's own key does. */
static void write_batch_candidate_is_found_by_its_key_under_a_collation(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[0].replies[0] = cluster->shards[0].replies[1] = EMPTY_CURSOR;
    cluster->shards[1].replies[0] = cluster->shards[1].replies[1] =
        "{\"cursor\": {\"id\": {\"$numberLong\": \"0\"}, \"ns\": \"db.c\", \"firstBatch\":"
        " [{\"_id\": 1, \"a\": 12}]}, \"ok\": 1}";
    struct outcome out = run(cluster, WRITE_UPDATE,
                             "{\"update\": \"c\", \"updates\": [{\"q\": {\"b\": \"x\"}, \"u\": {\"$set\": {\"d\": 1}},"
                             " \"collation\": {\"locale\": \"en\", \"strength\": 2}}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_int_equal(out.n, 1);
    assert_string_equal(cluster->shards[0].seen, "");
    assert_string_equal(cluster->shards[1].seen, "-1 |");
}

/* The candidate's shard doesn't know what became of the write: it isn't sent a second time. */
static void write_batch_unknown_outcome_of_a_candidate_is_told(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[0].replies[0] = cluster->shards[0].replies[1] = EMPTY_CURSOR;
    cluster->shards[1].replies[0] = cluster->shards[1].replies[1] =
        "{\"cursor\": {\"id\": {\"$numberLong\": \"0\"}, \"ns\": \"db.c\", \"firstBatch\":"
        " [{\"_id\": 1, \"a\": 12}]}, \"ok\": 1}";
    cluster->shards[1].fails_at = -1;
    cluster->shards[1].fails_with = ERR_InterruptedDueToReplStateChange;
    struct outcome out = run(cluster, WRITE_DELETE,
                             "{\"delete\": \"c\", \"deletes\": [{\"q\": {\"b\": 1}, \"limit\": 1}], \"$db\": \"db\"}");
    assert_true(out.ok);
    assert_string_equal(out.errors, "0:89");
    assert_int_equal(out.labels, 0);
    assert_string_equal(cluster->shards[1].seen, "-1 |");
}

static void write_batch_unknown_outcome_is_told_without_a_label(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[1].refuses_with = ERR_InterruptedDueToReplStateChange;
    cluster->shards[1].refusals = 1;
    struct outcome out =
        run(cluster, WRITE_INSERT,
            "{\"insert\": \"c\", \"documents\": [{\"_id\": 1, \"a\": 11}], \"lsid\": {}, \"txnNumber\": 1,"
            " \"$db\": \"db\"}");
    assert_false(out.ok);
    assert_int_equal(out.err.code, ERR_NetworkTimeout);
    assert_int_equal(out.labels, 0);
    assert_int_equal(cluster->shards[1].requests, 1);
}

static void write_batch_unsharded_goes_to_the_primary_as_it_is(void **state)
{
    struct cluster *cluster = *state;
    cluster->sharded = false;
    struct outcome out = run(cluster, WRITE_INSERT, INSERT("true"));
    assert_true(out.ok);
    assert_int_equal(out.n, 4);
    assert_string_equal(cluster->shards[0].seen, "1 11 2 12 |");
    assert_int_equal(cluster->shards[1].requests, 0);
}

static void keep_reply(struct command_ctx *ctx, struct wire_frame *reply)
{
    *(struct wire_frame **)ctx->session = reply;
}

/* Runs the message as a command of the family; the caller ends with wire_frame_unref of the reply, which *out views. */
static struct wire_frame *run_message(struct cluster *cluster, const struct command_family *family,
                                      struct wire_frame *message, struct wire_msg *out)
{
    struct wire_frame *reply = NULL;
    struct wire_msg msg;
    struct err err;
    assert_true(wire_msg_parse(message->data, message->len, WIRE_PARSE_CHECKED, &msg, &err));
    struct command_ctx *ctx = command_ctx_new(message, &msg);
    wire_frame_unref(message);
    struct command_table *table = command_table_new();
    command_table_add(table, family->commands, family->count);
    ctx->daemon = &cluster->router;
    ctx->session = &reply;
    ctx->respond = keep_reply;
    command_run(table, ctx);
    command_table_free(table);
    assert_true(wire_msg_parse(reply->data, reply->len, WIRE_PARSE_CHECKED, out, &err));
    return reply;
}

/* A section's name goes into the request to the config service: one that is no statement list's must not get there. */
static void write_on_config_with_an_unknown_section_is_refused(void **state)
{
    enum { NAME_BYTES = 100, UNKNOWN_FIELD = 40415 };
    char name[NAME_BYTES + 1] = "";
    struct arena arena;
    struct wire_msg msg;
    struct buf bytes = BUF_INIT;
    struct bval code;
    arena_init(&arena);
    memset(name, 'x', NAME_BYTES);
    size_t start = wire_msg_begin(&bytes, 1, 0, 0);
    wire_msg_body(&bytes, json_doc(&arena, "{\"update\": \"settings\", \"$db\": \"config\"}"));
    wire_msg_sequence_end(&bytes, wire_msg_sequence_begin(&bytes, name));
    wire_msg_end(&bytes, start);
    struct wire_frame *reply = run_message(*state, &commands_write, wire_frame_take(&bytes), &msg);
    assert_true(bdoc_find(msg.body, "code", &code));
    assert_int_equal(bval_i32(&code), UNKNOWN_FIELD);
    wire_frame_unref(reply);
    arena_deinit(&arena);
}

/* The second namespace's shard doesn't answer: each of its inserts has failed, and the client is told so. */
static void bulk_write_unordered_part_that_fails_fails_all_its_operations(void **state)
{
    struct cluster *cluster = *state;
    struct arena arena;
    struct wire_msg msg;
    struct bval errors;
    arena_init(&arena);
    cluster->shards[1].refuses_with = ERR_OutOfDiskSpace;
    cluster->shards[1].refusals = 1;
    struct bdoc command = json_doc(
        &arena,
        "{\"bulkWrite\": 1, \"$db\": \"admin\", \"ordered\": false, \"nsInfo\": [{\"ns\": \"db.c\"}], \"ops\": ["
        "{\"insert\": 0, \"document\": {\"_id\": 1, \"a\": 1}}, {\"delete\": 0, \"filter\": {\"a\": 2}},"
        "{\"insert\": 0, \"document\": {\"_id\": 3, \"a\": 11}},"
        "{\"insert\": 0, \"document\": {\"_id\": 4, \"a\": 12}}]}");
    struct wire_frame *reply = run_message(cluster, &commands_bulk, wire_frame_of_doc(command), &msg);
    assert_true(bdoc_find(msg.body, "nErrors", &errors));
    assert_int_equal(bval_i32(&errors), 2);
    wire_frame_unref(reply);
    arena_deinit(&arena);
}

static int32_t code_of_get_more(struct cluster *cluster, int64_t id)
{
    struct wire_msg msg;
    struct bval code;
    bson_t command = BSON_INITIALIZER;
    BSON_APPEND_INT64(&command, "getMore", id);
    BSON_APPEND_UTF8(&command, "collection", "c");
    BSON_APPEND_UTF8(&command, "$db", "db");
    struct wire_frame *reply = run_message(cluster, &commands_cursors, wire_frame_of_doc(bdoc_of(&command)), &msg);
    bson_destroy(&command);
    int32_t out = bdoc_find(msg.body, "code", &code) ? bval_i32(&code) : 0;
    wire_frame_unref(reply);
    return out;
}

/* Nobody knows whether the shard's cursor has moved on: the next getMore must not go on behind a lost batch. */
static void get_more_that_ran_out_of_time_ends_the_cursor(void **state)
{
    struct cluster *cluster = *state;
    struct err err;
    struct router_cursor *cursor = router_cursor_new(&cluster->router, "db.c");
    assert_true(registry_shard(cluster->router.registry, "s0", deadline_after_ms(5000), &cursor->set, &err));
    snprintf(cursor->member, sizeof cursor->member, "%s", cluster->shards[0].address);
    cursor->shard_id = 5;
    cursor->time_left_ms = 100;
    assert_true(cursor_table_add(cluster->router.cursors, cursor, &err));
    int64_t id = cursor->id;
    cursor_table_give(cluster->router.cursors, cursor, false);
    assert_int_equal(code_of_get_more(cluster, id), ERR_MaxTimeMSExpired);
    assert_int_equal(code_of_get_more(cluster, id), ERR_CursorNotFound);
}

static int32_t code_of(struct cluster *cluster, const struct command_family *family, const char *json)
{
    struct arena arena;
    struct wire_msg msg;
    struct bval code;
    arena_init(&arena);
    struct wire_frame *reply = run_message(cluster, family, wire_frame_of_doc(json_doc(&arena, json)), &msg);
    arena_deinit(&arena);
    int32_t out = bdoc_find(msg.body, "code", &code) ? bval_i32(&code) : 0;
    wire_frame_unref(reply);
    return out;
}

/* One shard's answer can't be read: the cursors of the others are closed. */
static void read_with_a_malformed_reply_leaves_no_cursors(void **state)
{
    struct cluster *cluster = *state;
    cluster->shards[0].replies[0] = cluster->shards[0].replies[1] = "{\"cursor\": {\"id\": \"x\"}, \"ok\": 1}";
    cluster->shards[1].replies[0] = cluster->shards[1].replies[1] =
        "{\"cursor\": {\"firstBatch\": [], \"id\": {\"$numberLong\": \"77\"}, \"ns\": \"db.c\"}, \"ok\": 1}";
    assert_int_not_equal(code_of(cluster, &commands_find, "{\"find\": \"c\", \"$db\": \"db\"}"), 0);
    assert_int_equal(cluster->shards[1].kills, 1);
    assert_int_equal(cluster->shards[1].killed[0], 77);
    assert_int_not_equal(code_of(cluster, &commands_aggregate,
                                 "{\"aggregate\": \"c\", \"pipeline\": [], \"cursor\": {}, \"$db\": \"db\"}"),
                         0);
    assert_int_equal(cluster->shards[1].kills, 2);
    assert_int_equal(cluster->shards[1].killed[1], 77);
}

#define GONE                                                                                                           \
    "{\"ok\": 0, \"code\": 27, \"codeName\": \"IndexNotFound\", \"errmsg\": \"index not found with name [a_1]\"}"
#define DROPPED     "{\"nIndexesWas\": 2, \"ok\": 1}"
#define DROP(index) "{\"dropIndexes\": \"c\", \"index\": " index ", \"$db\": \"db\"}"

static void set_replies(struct node *node, const char *first, const char *later)
{
    node->commands = 0;
    node->replies[0] = first;
    node->replies[1] = later;
}

/* An earlier attempt reached one shard only: the next one does the rest. */
static void drop_indexes_that_one_shard_did_before_is_no_error(void **state)
{
    struct cluster *cluster = *state;
    set_replies(&cluster->shards[0], GONE, GONE);
    set_replies(&cluster->shards[1], DROPPED, DROPPED);
    assert_int_equal(code_of(cluster, &commands_index, DROP("\"a_1\"")), 0);
    assert_int_equal(code_of(cluster, &commands_index, DROP("[\"a_1\", \"b_1\"]")), ERR_IndexNotFound);
    set_replies(&cluster->shards[1], GONE, GONE);
    assert_int_equal(code_of(cluster, &commands_index, DROP("\"a_1\"")), ERR_IndexNotFound);
}

/* One shard has done it when another wants a newer routing table: the second round finds it gone there. */
static void drop_indexes_of_a_second_round_finds_them_gone(void **state)
{
    struct cluster *cluster = *state;
    set_replies(&cluster->shards[0], DROPPED, GONE);
    set_replies(&cluster->shards[1], DROPPED, DROPPED);
    cluster->shards[1].refuses_with = ERR_StaleConfig;
    cluster->shards[1].refusals = 1;
    assert_int_equal(code_of(cluster, &commands_index, DROP("\"a_1\"")), 0);
    assert_int_equal(cluster->shards[0].commands, 2);
    assert_int_equal(cluster->shards[1].commands, 1);
    set_replies(&cluster->shards[0], GONE, GONE);
    cluster->shards[1].refusals = 1;
    assert_int_equal(code_of(cluster, &commands_index, DROP("\"a_1\"")), 0);
    set_replies(&cluster->shards[0], DROPPED, GONE);
    set_replies(&cluster->shards[1], GONE, GONE);
    cluster->shards[1].refusals = 1;
    assert_int_equal(code_of(cluster, &commands_index, DROP("\"a_1\"")), 0);
}

#define WRITE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WRITE_TEST(write_batch_unordered_insert_goes_out_in_one_request_a_shard),
        WRITE_TEST(write_batch_ordered_insert_keeps_the_order),
        WRITE_TEST(write_batch_ordered_insert_stops_at_an_error),
        WRITE_TEST(write_batch_unordered_errors_have_the_clients_indexes),
        WRITE_TEST(write_batch_stale_statement_is_sent_again_alone),
        WRITE_TEST(write_batch_statement_without_a_leader_is_sent_again),
        WRITE_TEST(write_batch_stale_request_is_sent_again),
        WRITE_TEST(write_batch_document_without_id_gets_one),
        WRITE_TEST(write_batch_document_with_array_in_the_key_is_refused),
        WRITE_TEST(write_batch_update_by_key_goes_to_one_shard),
        WRITE_TEST(write_batch_multi_update_goes_to_all_owners),
        WRITE_TEST(write_batch_multi_update_is_not_repeated_where_it_was_done),
        WRITE_TEST(write_batch_unordered_range_statements_cost_memory_in_proportion),
        WRITE_TEST(write_batch_range_statement_keeps_its_place),
        WRITE_TEST(write_batch_multi_upsert_without_the_key_is_refused),
        WRITE_TEST(write_batch_upsert_without_the_key_goes_to_the_documents_owner),
        WRITE_TEST(write_batch_upsert_without_a_key_at_all_counts_as_null),
        WRITE_TEST(write_batch_upsert_that_finds_a_taken_key_gives_up_with_it),
        WRITE_TEST(write_batch_candidate_is_found_by_its_key_under_a_collation),
        WRITE_TEST(write_batch_unknown_outcome_of_a_candidate_is_told),
        WRITE_TEST(write_batch_unknown_outcome_is_told_without_a_label),
        WRITE_TEST(write_batch_unsharded_goes_to_the_primary_as_it_is),
        WRITE_TEST(write_on_config_with_an_unknown_section_is_refused),
        WRITE_TEST(bulk_write_unordered_part_that_fails_fails_all_its_operations),
        WRITE_TEST(drop_indexes_that_one_shard_did_before_is_no_error),
        WRITE_TEST(drop_indexes_of_a_second_round_finds_them_gone),
        WRITE_TEST(read_with_a_malformed_reply_leaves_no_cursors),
        WRITE_TEST(get_more_that_ran_out_of_time_ends_the_cursor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
