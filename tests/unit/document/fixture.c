#include "tests/unit/document/fixture.h"

#include "tests/unit/cmocka_all.h"

#include "base/log.h"
#include "base/mem.h"
#include "command/context.h"
#include "document/commands.h"
#include "document/traits.h"
#include "wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct queued_job {
    struct queued_job *next;
    void (*run)(void *arg);
    void *arg;
};

struct queued_command {
    struct queued_command *next;
    uint8_t *bytes;
    size_t len;
    document_done_cb *done;
    void *arg;
};

static void apply_one(struct fixture *fixture, struct queued_command *command)
{
    struct store_txn *txn;
    struct err err;
    struct arena arena;
    struct buf result = BUF_INIT;
    struct document_result out;
    arena_init(&arena);
    assert_true(store_write_begin(fixture->store, &txn, &err));
    struct document_apply apply = {
        .engine = fixture->host.engine, .txn = txn, .arena = &arena, .index = ++fixture->index};
    document_result_encode_ok_header(&result);
    bool ok =
        command->bytes[0] >= DOCUMENT_KIND_LIMIT
            ? fixture->apply_other(fixture->apply_other_arg, &apply, command->bytes, command->len, &result, &err)
            : document_apply_command(&apply, command->bytes[0], command->bytes + 1, command->len - 1, &result, &err);
    if (!ok) {
        buf_clear(&result);
        document_result_encode_err(&result, &err);
    }
    store_write_commit(txn, fixture->index);
    document_engine_committed(fixture->host.engine);
    arena_deinit(&arena);
    command->next = fixture->history;
    fixture->history = command;
    fixture->history_count++;
    assert_true(document_result_parse(result.data, result.len, &out));
    if (command->done != NULL)
        command->done(command->arg, &out);
    buf_deinit(&result);
}

static bool refuse_busy(struct fixture *fixture)
{
    if (fixture->busy == 0)
        return false;
    if (fixture->busy_after > 0) {
        fixture->busy_after--;
        return false;
    }
    fixture->busy--;
    return true;
}

static void propose(void *arg, uint8_t *bytes, size_t len, document_done_cb *done, void *done_arg)
{
    struct fixture *fixture = arg;
    if (refuse_busy(fixture)) {
        struct document_result result = {.outcome = DOCUMENT_BUSY};
        document_busy_set(&result.err, "the test says so");
        mem_free(bytes);
        done(done_arg, &result);
        return;
    }
    if (fixture->lead_left > 0)
        fixture->not_leader = --fixture->lead_left == 0;
    if (fixture->not_leader) {
        struct document_result result = {.outcome = DOCUMENT_NOT_LEADER};
        err_set(&result.err, ERR_NotWritablePrimary, "not the leader");
        mem_free(bytes);
        done(done_arg, &result);
        return;
    }
    struct queued_command *command = mem_alloc(sizeof *command);
    *command = (struct queued_command){.bytes = bytes, .len = len, .done = done, .arg = done_arg};
    if (!fixture->hold) {
        apply_one(fixture, command);
        return;
    }
    *fixture->proposed_end = command;
    fixture->proposed_end = &command->next;
}

static struct queued_job *job_new(void (*run)(void *run_arg), void *run_arg)
{
    struct queued_job *job = mem_alloc(sizeof *job);
    *job = (struct queued_job){.run = run, .arg = run_arg};
    return job;
}

static void submit(void *arg, void (*run)(void *run_arg), void *run_arg)
{
    struct fixture *fixture = arg;
    struct queued_job *job = job_new(run, run_arg);
    *fixture->jobs_end = job;
    fixture->jobs_end = &job->next;
}

static void submit_after(void *arg, int64_t delay_ms, void (*run)(void *run_arg), void *run_arg)
{
    struct fixture *fixture = arg;
    struct queued_job **end = &fixture->later;
    (void)delay_ms;
    while (*end != NULL)
        end = &(*end)->next;
    *end = job_new(run, run_arg);
}

static void barrier(void *arg, void (*done)(void *done_arg, bool ok), void *done_arg)
{
    struct fixture *fixture = arg;
    fixture->barriers++;
    done(done_arg, !fixture->not_leader);
}

static bool check_leader(void *arg, struct err *err)
{
    struct fixture *fixture = arg;
    void (*hook)(struct fixture *) = fixture->on_check_leader;
    fixture->on_check_leader = NULL;
    if (hook != NULL)
        hook(fixture);
    return !fixture->not_leader || err_set(err, ERR_NotWritablePrimary, "not the leader");
}

static struct store_filter_hooks filter_hooks;

void fixture_set_filter_hooks(struct store_filter_hooks hooks)
{
    filter_hooks = hooks;
}

static void open_sized(struct fixture *fixture, const struct document_ownership *ownership, uint64_t map_bytes,
                       uint64_t ahead_bytes)
{
    struct err err;
    log_set_level(LOG_LEVEL_WARN);
    *fixture = (struct fixture){.ownership = ownership};
    fixture->jobs_end = &fixture->jobs;
    fixture->proposed_end = &fixture->proposed;
    snprintf(fixture->dir, sizeof fixture->dir, "/tmp/sherd-document-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    struct store_options options = {.dir = fixture->dir,
                                    .create = true,
                                    .map_bytes = map_bytes,
                                    .ahead_bytes = ahead_bytes,
                                    .filter_hooks = filter_hooks,
                                    .collection_hooks = traits_store_hooks()};
    if (!store_open(&options, &fixture->store, &err))
        fail_msg("%s", err.msg);
    struct document_engine_options engine = {
        .store = fixture->store,
        .log = {.arg = fixture,
                .propose = propose,
                .submit = submit,
                .submit_after = submit_after,
                .barrier = barrier,
                .check_leader = check_leader},
        .ownership = ownership,
        .member_name = "s1",
        .host = "localhost:1",
    };
    fixture->host.engine = document_engine_new(&engine);
    fixture->table = command_table_new();
    command_table_add(fixture->table, document_commands, document_command_count);
}

void fixture_open_with(struct fixture *fixture, const struct document_ownership *ownership)
{
    open_sized(fixture, ownership, UINT64_C(1) << 32, 1 << 20);
}

void fixture_open_small(struct fixture *fixture, uint64_t map_bytes)
{
    open_sized(fixture, NULL, map_bytes, map_bytes / 3);
}

void fixture_open(struct fixture *fixture)
{
    fixture_open_with(fixture, NULL);
}

void fixture_close(struct fixture *fixture)
{
    fixture_drain(fixture);
    document_engine_free(fixture->host.engine);
    command_table_free(fixture->table);
    store_close(fixture->store);
    while (fixture->history != NULL) {
        struct queued_command *command = fixture->history;
        fixture->history = command->next;
        mem_free(command->bytes);
        mem_free(command);
    }
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", fixture->dir);
    assert_int_equal(system(line), 0);
}

/* What was put off runs when nothing is left that it could wait for. */
static bool has_jobs(struct fixture *fixture)
{
    if (fixture->jobs == NULL && fixture->proposed == NULL && fixture->later != NULL) {
        fixture->jobs = fixture->later;
        fixture->later = NULL;
        fixture->jobs_end = &fixture->jobs;
        while (*fixture->jobs_end != NULL)
            fixture->jobs_end = &(*fixture->jobs_end)->next;
    }
    return fixture->jobs != NULL;
}

void fixture_drain(struct fixture *fixture)
{
    while (has_jobs(fixture)) {
        struct queued_job *job = fixture->jobs;
        fixture->jobs = job->next;
        if (fixture->jobs == NULL)
            fixture->jobs_end = &fixture->jobs;
        job->run(job->arg);
        mem_free(job);
    }
}

unsigned fixture_apply(struct fixture *fixture)
{
    unsigned rounds = 0;
    fixture_drain(fixture);
    while (fixture->proposed != NULL) {
        struct queued_command *command = fixture->proposed;
        fixture->proposed = NULL;
        fixture->proposed_end = &fixture->proposed;
        while (command != NULL) {
            struct queued_command *next = command->next;
            apply_one(fixture, command);
            command = next;
        }
        fixture_drain(fixture);
        rounds++;
    }
    return rounds;
}

/* ---- commands ---- */

static void respond(struct command_ctx *ctx, struct wire_frame *frame)
{
    struct fixture_call *call = ctx->session;
    struct wire_msg msg;
    struct err err;
    if (!wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err))
        fail_msg("the reply is malformed: %s", err.msg);
    call->reply = bson_new_from_data(msg.body.data, msg.body.len);
    call->done = true;
    wire_frame_unref(frame);
}

static void start(struct fixture *fixture, struct fixture_call *call, const bson_t *command)
{
    struct wire_msg msg;
    struct err err;
    *call = (struct fixture_call){.fixture = fixture};
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(command));
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->daemon = fixture;
    ctx->session = call;
    ctx->internal = true;
    ctx->ops = fixture->ops;
    ctx->respond = respond;
    command_run(fixture->table, ctx);
}

static bson_t *from_json(const char *json)
{
    bson_error_t error;
    char *text = mem_copy_str(json);
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '\'')
            *at = '"';
    }
    bson_t *doc = bson_new_from_json((const uint8_t *)text, -1, &error);
    if (doc == NULL)
        fail_msg("%s: %s", text, error.message);
    mem_free(text);
    return doc;
}

static bson_t *command_from_json(const char *json)
{
    bson_t *command = from_json(json);
    if (!bson_has_field(command, "$db"))
        BSON_APPEND_UTF8(command, "$db", "t");
    return command;
}

void fixture_start(struct fixture *fixture, struct fixture_call *call, const char *json)
{
    bson_t *command = command_from_json(json);
    start(fixture, call, command);
    bson_destroy(command);
}

bson_t *fixture_run_bson(struct fixture *fixture, const bson_t *command)
{
    struct fixture_call call;
    start(fixture, &call, command);
    fixture_drain(fixture);
    assert_true(call.done);
    return call.reply;
}

bson_t *fixture_run(struct fixture *fixture, const char *json)
{
    bson_t *command = command_from_json(json);
    bson_t *reply = fixture_run_bson(fixture, command);
    bson_destroy(command);
    return reply;
}

/* The named field of both must print alike. */
static void expect_same(const bson_t *reply, const bson_t *expected)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bdoc_of(expected));
    while (biter_next(&iter, &elem)) {
        struct bval val;
        bson_t a = BSON_INITIALIZER;
        bson_t b = BSON_INITIALIZER;
        bdoc_find(bdoc_of(reply), elem.key, &val);
        if (val.type != BT_EOO)
            bval_append(&a, elem.key, -1, &val);
        bval_append(&b, elem.key, -1, &elem.val);
        char *got = bson_as_relaxed_extended_json(&a, NULL);
        char *want = bson_as_relaxed_extended_json(&b, NULL);
        char *whole = bson_as_relaxed_extended_json(reply, NULL);
        if (strcmp(got, want) != 0)
            fail_msg("got %s, expected %s, in %s", got, want, whole);
        bson_free(got);
        bson_free(want);
        bson_free(whole);
        bson_destroy(&a);
        bson_destroy(&b);
    }
}

void fixture_expect(struct fixture *fixture, const char *json, const char *expected)
{
    bson_t *reply = fixture_run(fixture, json);
    bson_t *want = from_json(expected);
    expect_same(reply, want);
    bson_destroy(want);
    bson_destroy(reply);
}

void fixture_expect_error(struct fixture *fixture, const char *json, int code)
{
    bson_t *reply = fixture_run(fixture, json);
    struct bval val;
    bool is_error = bdoc_find(bdoc_of(reply), "code", &val) && val.type == BT_INT32 && bval_i32(&val) == code;
    if (!is_error) {
        char *text = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("%s: expected error %d, got %s", json, code, text);
    }
    bson_destroy(reply);
}

void fixture_expect_batch(struct fixture *fixture, const char *json, const char *documents)
{
    bson_t *reply = fixture_run(fixture, json);
    struct bval cursor;
    struct bval batch;
    char *text = mem_printf("{\"batch\": %s}", documents);
    bson_t *want = from_json(text);
    if (!bdoc_find(bdoc_of(reply), "cursor", &cursor)) {
        char *got = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("%s: no cursor in %s", json, got);
    }
    if (!bdoc_find(bval_doc(&cursor), "firstBatch", &batch))
        assert_true(bdoc_find(bval_doc(&cursor), "nextBatch", &batch));
    bson_t got = BSON_INITIALIZER;
    bval_append(&got, "batch", -1, &batch);
    expect_same(&got, want);
    bson_destroy(&got);
    bson_destroy(want);
    bson_destroy(reply);
    mem_free(text);
}

static void keep_error(void *arg, const struct document_result *result)
{
    struct err *err = arg;
    *err = result->err;
    if (result->ok)
        err->code = ERR_OK;
}

bool fixture_apply_command(struct fixture *fixture, uint8_t kind, const void *payload, size_t len, struct err *err)
{
    struct queued_command *command = mem_alloc(sizeof *command);
    uint8_t *bytes = mem_alloc(len + 1);
    bytes[0] = kind;
    memcpy(bytes + 1, payload, len);
    *command = (struct queued_command){.bytes = bytes, .len = len + 1, .done = keep_error, .arg = err};
    apply_one(fixture, command);
    return err->code == ERR_OK;
}

uint64_t fixture_hash(struct fixture *fixture)
{
    struct store_txn *txn;
    struct err err;
    assert_true(store_read_begin(fixture->store, &txn, &err));
    uint64_t hash = store_logical_hash(txn);
    store_read_end(txn);
    return hash;
}

void fixture_replay(const struct fixture *from, struct fixture *to)
{
    struct queued_command **all = mem_alloc_array(from->history_count + 1, sizeof *all);
    unsigned at = from->history_count;
    for (struct queued_command *command = from->history; command != NULL; command = command->next)
        all[--at] = command;
    for (unsigned i = 0; i < from->history_count; i++) {
        struct queued_command *copy = mem_alloc(sizeof *copy);
        *copy = (struct queued_command){.bytes = mem_copy(all[i]->bytes, all[i]->len), .len = all[i]->len};
        apply_one(to, copy);
    }
    mem_free(all);
}

int64_t fixture_i64(const bson_t *reply, const char *path)
{
    bson_iter_t iter;
    bson_iter_t found;
    assert_true(bson_iter_init(&iter, reply));
    if (!bson_iter_find_descendant(&iter, path, &found))
        fail_msg("no %s in the reply", path);
    return bson_iter_as_int64(&found);
}
