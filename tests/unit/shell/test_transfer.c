#include "shell/interrupt.h"
#include "shell/transfer.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/shell/fake_router.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A collection of one: it counts what comes in, refuses {bad: true}, and hands out 1500 documents in two batches. */
struct script {
    _Atomic int inserts;   /* commands */
    _Atomic int documents; /* accepted */
    _Atomic bool dropped;
    _Atomic bool filtered; /* a find had a filter */
};

static void append_write_error(bson_t *errors, int n, int index)
{
    char key[16];
    bson_t item;
    snprintf(key, sizeof key, "%d", n);
    bson_append_document_begin(errors, key, -1, &item);
    BSON_APPEND_INT32(&item, "index", index);
    BSON_APPEND_INT32(&item, "code", 121);
    BSON_APPEND_UTF8(&item, "errmsg", "is bad");
    bson_append_document_end(errors, &item);
}

static void handle_insert(struct script *script, const struct wire_msg *msg, bson_t *reply)
{
    const struct wire_sequence *documents = wire_msg_sequence(msg, "documents");
    uint32_t offset = 0;
    struct bdoc doc;
    struct bval ordered;
    int inserted = 0;
    int refused = 0;
    bool stop = false;
    bson_t errors = BSON_INITIALIZER;
    bdoc_find(msg->body, "ordered", &ordered);
    for (int i = 0; !stop && wire_sequence_next(documents, &offset, &doc); i++) {
        if (bdoc_has(doc, "bad")) {
            append_write_error(&errors, refused++, i);
            stop = bval_truthy(&ordered);
        } else {
            inserted++;
        }
    }
    script->inserts++;
    script->documents += inserted;
    BSON_APPEND_INT32(reply, "n", inserted);
    if (refused > 0)
        BSON_APPEND_ARRAY(reply, "writeErrors", &errors);
    bson_destroy(&errors);
}

static void append_batch(bson_t *reply, const char *field, int from, int to, int64_t id)
{
    bson_t cursor;
    bson_t batch;
    BSON_APPEND_DOCUMENT_BEGIN(reply, "cursor", &cursor);
    BSON_APPEND_INT64(&cursor, "id", id);
    BSON_APPEND_ARRAY_BEGIN(&cursor, field, &batch);
    for (int i = from; i < to; i++) {
        char key[16];
        bson_t doc;
        snprintf(key, sizeof key, "%d", i - from);
        bson_append_document_begin(&batch, key, -1, &doc);
        BSON_APPEND_INT32(&doc, "_id", i);
        bson_append_document_end(&batch, &doc);
    }
    bson_append_array_end(&cursor, &batch);
    bson_append_document_end(reply, &cursor);
}

static enum fake_action handle(void *arg, const struct wire_msg *msg, bson_t *reply)
{
    struct script *script = arg;
    if (bdoc_has(msg->body, "insert")) {
        handle_insert(script, msg, reply);
    } else if (bdoc_has(msg->body, "drop")) {
        script->dropped = true;
    } else if (bdoc_has(msg->body, "count")) {
        BSON_APPEND_INT32(reply, "n", 1500);
    } else if (bdoc_has(msg->body, "find")) {
        script->filtered = bdoc_has(msg->body, "filter");
        append_batch(reply, "firstBatch", 0, 1000, 77);
    } else {
        append_batch(reply, "nextBatch", 1000, 1500, 0);
    }
    BSON_APPEND_DOUBLE(reply, "ok", 1);
    return FAKE_REPLY;
}

struct fixture {
    struct script script;
    struct fake_router router;
    struct connection *conn;
    struct options options;
    char path[64];     /* the JSON file */
    char messages[64]; /* what went to stderr */
};

static void open_fixture(struct fixture *fixture)
{
    struct err err;
    *fixture = (struct fixture){.router = {.handle = handle}};
    fixture->router.arg = &fixture->script;
    fake_router_start(&fixture->router);
    char text[64];
    snprintf(text, sizeof text, "mongodb://127.0.0.1:%d/d", fixture->router.port);
    assert_true(uri_parse(text, &fixture->options.uri, &err));
    fixture->conn = connection_new(&fixture->options.uri);
    fixture->options.transfer.collection = "c";
    fixture->options.transfer.file = fixture->path;
    strcpy(fixture->path, "/tmp/sherd-transfer-XXXXXX");
    strcpy(fixture->messages, "/tmp/sherd-messages-XXXXXX");
    close(mkstemp(fixture->path));
    close(mkstemp(fixture->messages));
    interrupt_clear();
}

static void close_fixture(struct fixture *fixture)
{
    connection_free(fixture->conn);
    fake_router_stop(&fixture->router);
    unlink(fixture->path);
    unlink(fixture->messages);
}

static void write_file(const char *path, const char *line, int count, const char *tail)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < count; i++)
        fputs(line, file);
    fputs(tail, file);
    fclose(file);
}

static char *read_file(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* Runs a transfer with stderr in fixture->messages. */
static int run(struct fixture *fixture, int (*transfer)(struct connection *, const struct options *))
{
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    int file = open(fixture->messages, O_WRONLY | O_TRUNC);
    dup2(file, STDERR_FILENO);
    close(file);
    int exit_code = transfer(fixture->conn, &fixture->options);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    return exit_code;
}

static void import_sends_batches_of_a_thousand(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.options.transfer.drop = true;
    write_file(fixture.path, "{\"a\": 1}\n\n", 2500, "{\"last\": true}");
    assert_int_equal(run(&fixture, transfer_import), 0);
    assert_int_equal(fixture.script.documents, 2501);
    assert_int_equal(fixture.script.inserts, 3);
    assert_true(fixture.script.dropped);
    assert_non_null(strstr(read_file(fixture.messages), "imported 2501 documents"));
    close_fixture(&fixture);
}

static void import_keeps_batches_below_8_megabytes(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    char *line = malloc(3000000 + 16);
    memcpy(line, "{\"a\":\"", 6);
    memset(line + 6, 'x', 3000000);
    memcpy(line + 6 + 3000000, "\"}\n", 4);
    write_file(fixture.path, line, 5, "");
    free(line);
    assert_int_equal(run(&fixture, transfer_import), 0);
    assert_int_equal(fixture.script.documents, 5);
    assert_int_equal(fixture.script.inserts, 3);
    close_fixture(&fixture);
}

static void import_malformed_line_is_named_and_the_others_are_kept(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    write_file(fixture.path, "{\"a\": 1}\n", 6, "{\"a\": }\n{\"a\": 2}\n");
    assert_int_equal(run(&fixture, transfer_import), 1);
    assert_int_equal(fixture.script.documents, 7);
    fixture.script.documents = 0;
    fixture.options.transfer.ordered = true;
    assert_int_equal(run(&fixture, transfer_import), 1);
    assert_int_equal(fixture.script.documents, 6);
    assert_non_null(strstr(read_file(fixture.messages), "line 7: invalid JSON at byte 6"));
    close_fixture(&fixture);
}

static void import_refused_document_ends_it_when_ordered(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.options.transfer.ordered = true;
    write_file(fixture.path, "{\"a\": 1}\n", 3, "{\"bad\": true}\n{\"a\": 2}\n{\"bad\": 1}\n{\"a\": 3}\n");
    assert_int_equal(run(&fixture, transfer_import), 1);
    assert_int_equal(fixture.script.documents, 3);
    assert_non_null(strstr(read_file(fixture.messages), "line 4: is bad"));
    fixture.script.documents = 0;
    fixture.options.transfer.ordered = false;
    assert_int_equal(run(&fixture, transfer_import), 1);
    assert_int_equal(fixture.script.documents, 5);
    assert_non_null(strstr(read_file(fixture.messages), "line 6: is bad"));
    close_fixture(&fixture);
}

static void import_of_a_file_that_is_not_there_fails(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.options.transfer.file = "/nonexistent/file";
    assert_int_equal(run(&fixture, transfer_import), 1);
    assert_non_null(strstr(read_file(fixture.messages), "No such file"));
    close_fixture(&fixture);
}

static void export_writes_a_line_for_each_document(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.options.transfer.query = "{\"a\": {\"$gt\": 1}}";
    assert_int_equal(run(&fixture, transfer_export), 0);
    assert_true(fixture.script.filtered);
    const char *text = read_file(fixture.path);
    int lines = 0;
    for (const char *at = text; *at != 0; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 1500);
    assert_memory_equal(text, "{\"_id\":0}\n", 10);
    fixture.options.transfer.canonical = true;
    assert_int_equal(run(&fixture, transfer_export), 0);
    assert_memory_equal(read_file(fixture.path), "{\"_id\":{\"$numberInt\":\"0\"}}\n", 27);
    fixture.options.transfer.query = "{";
    assert_int_equal(run(&fixture, transfer_export), 1);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(import_sends_batches_of_a_thousand),
        cmocka_unit_test(import_keeps_batches_below_8_megabytes),
        cmocka_unit_test(import_malformed_line_is_named_and_the_others_are_kept),
        cmocka_unit_test(import_refused_document_ends_it_when_ordered),
        cmocka_unit_test(import_of_a_file_that_is_not_there_fails),
        cmocka_unit_test(export_writes_a_line_for_each_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
