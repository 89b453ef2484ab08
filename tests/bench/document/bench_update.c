/* bench_update: what a shard does for {update by _id}, from the parsed message to the reply, against the work that bare
 * LMDB needs for it: look the _id up, get the document, put it again. No log and no network: a proposal is applied at
 * once, in write transactions of BATCH commands, as the apply thread does under load.
 *
 *   one      a command for each update, {q: {_id}, u: {$set: {n}}}
 *   batch    commands of BATCH statements
 *   pipeline a command for each, u: [{$set: {n}}]: evaluated by the leader
 *
 * Each figure is the best of ROUNDS. usage: bench_update [DOCS [DIR]] */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/table.h"
#include "document/apply.h"
#include "document/commands.h"
#include "document/traits.h"
#include "storage/store.h"

#include <lmdb.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 64, ROUNDS = 3, TEXT_BYTES = 900 };

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_update: %s failed\n", what);
    exit(2);
}

static void empty_dir(const char *path)
{
    DIR *dir = opendir(path);
    need(dir != NULL, "reading the directory");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

static bson_t *make_doc(uint32_t number)
{
    char text[TEXT_BYTES + 1];
    bson_t *doc = bson_new();
    memset(text, 'x', TEXT_BYTES);
    text[TEXT_BYTES] = 0;
    BSON_APPEND_INT32(doc, "_id", (int32_t)number);
    BSON_APPEND_INT32(doc, "n", -1);
    BSON_APPEND_UTF8(doc, "text", text);
    return doc;
}

static double rate_since(int64_t start_ns, uint32_t count)
{
    return (double)count * 1e9 / (double)(clock_now_ns() - start_ns);
}

/* ---- bare LMDB ---- */

static double run_raw(const char *dir, uint32_t count)
{
    MDB_env *env;
    MDB_dbi ids, docs;
    MDB_txn *txn;
    char *path = mem_printf("%s/raw.mdb", dir);
    need(mdb_env_create(&env) == 0 && mdb_env_set_mapsize(env, (size_t)1 << 34) == 0 &&
             mdb_env_set_maxdbs(env, 2) == 0 &&
             mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD, 0600) == 0 &&
             mdb_txn_begin(env, NULL, 0, &txn) == 0 && mdb_dbi_open(txn, "ids", MDB_CREATE, &ids) == 0 &&
             mdb_dbi_open(txn, "docs", MDB_CREATE, &docs) == 0,
         "opening LMDB");
    mem_free(path);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t number[4];
        bson_t *doc = make_doc(i);
        store_be32(number, i);
        MDB_val key = {sizeof number, number};
        MDB_val value = {doc->len, (void *)(uintptr_t)bson_get_data(doc)};
        need(mdb_put(txn, ids, &key, &key, 0) == 0 && mdb_put(txn, docs, &key, &value, 0) == 0, "put");
        bson_destroy(doc);
    }
    need(mdb_txn_commit(txn) == 0, "commit");
    double best = 0;
    uint8_t *copy = mem_alloc(2 * TEXT_BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        struct prng prng = {7};
        int64_t start = clock_now_ns();
        for (uint32_t i = 0; i < count; i++) {
            if (i % BATCH == 0)
                need(mdb_txn_begin(env, NULL, 0, &txn) == 0, "begin");
            uint8_t number[4];
            store_be32(number, (uint32_t)prng_below(&prng, count));
            MDB_val key = {sizeof number, number};
            MDB_val place, value;
            need(mdb_get(txn, ids, &key, &place) == 0 && mdb_get(txn, docs, &place, &value) == 0, "get");
            memcpy(copy, value.mv_data, value.mv_size);
            store_le32(copy + 4 + 1 + 4 + 4 + 1 + 2, i);
            MDB_val changed = {value.mv_size, copy};
            need(mdb_put(txn, docs, &place, &changed, 0) == 0, "put");
            if (i % BATCH == BATCH - 1 || i + 1 == count)
                need(mdb_txn_commit(txn) == 0, "commit");
        }
        double rate = rate_since(start, count);
        best = rate > best ? rate : best;
    }
    mem_free(copy);
    mdb_env_close(env);
    return best;
}

/* ---- the shard ---- */

struct shard {
    struct document_host host; /* first: ctx->daemon */
    struct store *store;
    struct command_table *table;
    struct store_txn *txn; /* the open write transaction; NULL: none */
    struct arena arena;
    uint64_t index;
    uint32_t in_txn;
    uint32_t batch; /* commands in a transaction */
    uint64_t changed;
};

static void commit(struct shard *shard)
{
    if (shard->txn != NULL)
        store_write_commit(shard->txn, shard->index);
    shard->txn = NULL;
    shard->in_txn = 0;
}

static void propose(void *arg, uint8_t *bytes, size_t len, document_done_cb *done, void *done_arg)
{
    struct shard *shard = arg;
    struct buf answer = BUF_INIT;
    struct document_result result = {.outcome = DOCUMENT_APPLIED};
    if (shard->txn == NULL)
        need(store_write_begin(shard->store, &shard->txn, &result.err), "begin");
    struct document_apply apply = {
        .engine = shard->host.engine, .txn = shard->txn, .arena = &shard->arena, .index = ++shard->index};
    result.ok = document_apply_command(&apply, bytes[0], bytes + 1, len - 1, &answer, &result.err);
    result.data = answer.data;
    result.len = answer.len;
    arena_reset(&shard->arena);
    if (++shard->in_txn == shard->batch)
        commit(shard);
    done(done_arg, &result);
    buf_deinit(&answer);
    mem_free(bytes);
}

static void submit(void *arg, void (*run)(void *run_arg), void *run_arg)
{
    (void)arg;
    run(run_arg);
}

static void submit_after(void *arg, int64_t delay_ms, void (*run)(void *run_arg), void *run_arg)
{
    (void)arg;
    (void)delay_ms;
    run(run_arg);
}

static void barrier(void *arg, void (*done)(void *done_arg, bool ok), void *done_arg)
{
    (void)arg;
    done(done_arg, true);
}

static bool check_leader(void *arg, struct err *err)
{
    (void)arg;
    (void)err;
    return true;
}

static void shard_open(struct shard *shard, const char *dir)
{
    struct err err;
    struct store_options options = {.dir = dir, .create = true, .collection_hooks = traits_store_hooks()};
    *shard = (struct shard){.batch = 1};
    arena_init(&shard->arena);
    need(store_open(&options, &shard->store, &err), "opening the store");
    struct document_engine_options engine = {
        .store = shard->store,
        .log = {shard, propose, submit, submit_after, barrier, check_leader},
        .member_name = "s1",
        .host = "localhost:1",
    };
    shard->host.engine = document_engine_new(&engine);
    shard->table = command_table_new();
    command_table_add(shard->table, document_commands, document_command_count);
}

static void shard_close(struct shard *shard)
{
    commit(shard);
    document_engine_free(shard->host.engine);
    command_table_free(shard->table);
    arena_deinit(&shard->arena);
    store_close(shard->store);
}

static void respond(struct command_ctx *ctx, struct wire_frame *frame)
{
    struct shard *shard = ctx->session;
    struct wire_msg msg;
    struct err err;
    struct bval n;
    int64_t count = 0;
    need(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err), "reading a reply");
    need(bdoc_find(msg.body, "n", &n) && bval_to_i64(&n, &count) && !bdoc_has(msg.body, "writeErrors"), "a command");
    shard->changed += (uint64_t)count;
    wire_frame_unref(frame);
}

static void run(struct shard *shard, const bson_t *command)
{
    struct wire_msg msg;
    struct err err;
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(command));
    need(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err), "making a message");
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->daemon = shard;
    ctx->session = shard;
    ctx->internal = true;
    ctx->respond = respond;
    command_run(shard->table, ctx);
}

static void fill(struct shard *shard, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bson_t *doc = make_doc(i);
        bson_t command = BSON_INITIALIZER;
        bson_t list;
        BSON_APPEND_UTF8(&command, "insert", "c");
        BSON_APPEND_ARRAY_BEGIN(&command, "documents", &list);
        BSON_APPEND_DOCUMENT(&list, "0", doc);
        bson_append_array_end(&command, &list);
        BSON_APPEND_UTF8(&command, "$db", "t");
        run(shard, &command);
        bson_destroy(&command);
        bson_destroy(doc);
    }
    commit(shard);
}

/* {update: "c", updates: [`statements` of them]} */
static void make_update(bson_t *command, struct prng *prng, uint32_t count, uint32_t statements, int32_t value,
                        bool pipeline)
{
    bson_t list, one, q, u, stage, set;
    BSON_APPEND_UTF8(command, "update", "c");
    BSON_APPEND_ARRAY_BEGIN(command, "updates", &list);
    for (uint32_t i = 0; i < statements; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        BSON_APPEND_DOCUMENT_BEGIN(&list, name, &one);
        BSON_APPEND_DOCUMENT_BEGIN(&one, "q", &q);
        BSON_APPEND_INT32(&q, "_id", (int32_t)prng_below(prng, count));
        bson_append_document_end(&one, &q);
        if (pipeline) {
            BSON_APPEND_ARRAY_BEGIN(&one, "u", &u);
            BSON_APPEND_DOCUMENT_BEGIN(&u, "0", &stage);
        } else {
            BSON_APPEND_DOCUMENT_BEGIN(&one, "u", &stage);
        }
        BSON_APPEND_DOCUMENT_BEGIN(&stage, "$set", &set);
        BSON_APPEND_INT32(&set, "n", value + (int32_t)i);
        bson_append_document_end(&stage, &set);
        bson_append_document_end(pipeline ? &u : &one, &stage);
        if (pipeline)
            bson_append_array_end(&one, &u);
        bson_append_document_end(&list, &one);
    }
    bson_append_array_end(command, &list);
    BSON_APPEND_UTF8(command, "$db", "t");
}

static double run_updates(struct shard *shard, uint32_t count, uint32_t statements, bool pipeline)
{
    double best = 0;
    shard->batch = BATCH / statements;
    for (int round = 0; round < ROUNDS; round++) {
        struct prng prng = {7};
        uint64_t before = shard->changed;
        int64_t start = clock_now_ns();
        for (uint32_t i = 0; i < count; i += statements) {
            bson_t command = BSON_INITIALIZER;
            make_update(&command, &prng, count, statements, (int32_t)i + round, pipeline);
            run(shard, &command);
            bson_destroy(&command);
            /* The leader reads what is committed. */
            if (pipeline)
                commit(shard);
        }
        commit(shard);
        double rate = rate_since(start, count);
        best = rate > best ? rate : best;
        need(shard->changed - before >= count, "updating");
    }
    return best;
}

static void print_line(const char *what, double rate, double floor)
{
    printf("%-28s %9.0f/s %7.2f us  %5.2f of bare LMDB\n", what, rate, 1e6 / rate, rate / floor);
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
    char made[] = "/tmp/bench_update_XXXXXX";
    const char *dir = argc > 2 ? argv[2] : mkdtemp(made);
    need(dir != NULL && count >= BATCH, "arguments");
    count -= count % BATCH;
    log_set_level(LOG_LEVEL_WARN);
    empty_dir(dir);
    double raw = run_raw(dir, count);
    empty_dir(dir);
    struct shard shard;
    shard_open(&shard, dir);
    shard.batch = BATCH;
    fill(&shard, count);
    double one = run_updates(&shard, count, 1, false);
    double batch = run_updates(&shard, count, BATCH, false);
    double pipeline = run_updates(&shard, count, 1, true);
    shard_close(&shard);
    empty_dir(dir);
    if (dir == made)
        (void)rmdir(dir);
    print_line("bare LMDB", raw, raw);
    print_line("update, one a command", one, raw);
    print_line("update, 64 a command", batch, raw);
    print_line("pipeline, one a transaction", pipeline, raw);
    return 0;
}
