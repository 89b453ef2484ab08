/* Commands from JSON, replies caught. */
#ifndef SHERD_TESTS_UNIT_COMMAND_COMMAND_ENV_H
#define SHERD_TESTS_UNIT_COMMAND_COMMAND_ENV_H

#include "tests/unit/cmocka_all.h"

#include "command/context.h"
#include "command/table.h"

#include <string.h>

static inline bson_t *json(const char *text)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)text, -1, &error);
    if (doc == NULL)
        fail_msg("%s: %s", text, error.message);
    return doc;
}

/* The same with single quotes for double ones. */
static inline bson_t *json_single(const char *text)
{
    char buffer[2048];
    assert_true(strlen(text) < sizeof buffer);
    for (size_t i = 0; i <= strlen(text); i++)
        buffer[i] = text[i] == '\'' ? '"' : text[i];
    return json(buffer);
}

/* A context for the command. With `sequence`, `count` copies of `doc` come in a kind-1 section of that name. */
static inline struct command_ctx *ctx_of(const char *body_json, const char *sequence, const char *doc_json, int count)
{
    bson_t *body = json(body_json);
    struct buf buf = BUF_INIT;
    size_t start = wire_msg_begin(&buf, 1, 0, 0);
    wire_msg_body(&buf, bdoc_of(body));
    if (sequence != NULL) {
        bson_t *doc = json(doc_json);
        size_t at = wire_msg_sequence_begin(&buf, sequence);
        for (int i = 0; i < count; i++)
            buf_append(&buf, bson_get_data(doc), doc->len);
        wire_msg_sequence_end(&buf, at);
        bson_destroy(doc);
    }
    wire_msg_end(&buf, start);
    bson_destroy(body);
    struct wire_frame *frame = wire_frame_take(&buf);
    struct wire_msg msg;
    struct err err;
    if (!wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err))
        fail_msg("%s", err.msg);
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame); /* the context has its own reference */
    return ctx;
}

/* What the last command answered; the test frees it. */
static bson_t *answered;

static inline void catch_reply(struct command_ctx *ctx, struct wire_frame *reply)
{
    (void)ctx;
    struct wire_msg msg;
    struct err err;
    assert_true(wire_msg_parse(reply->data, reply->len, WIRE_PARSE_CHECKED, &msg, &err));
    assert_null(answered);
    answered = bson_new_from_data(msg.body.data, msg.body.len);
    wire_frame_unref(reply);
}

/* Compares the last answer with JSON and frees it. */
static inline void expect_answer(const char *expected_json)
{
    bson_t *expected = json(expected_json);
    char *got = bson_as_relaxed_extended_json(answered, NULL);
    char *want = bson_as_relaxed_extended_json(expected, NULL);
    assert_string_equal(got, want);
    bson_free(got);
    bson_free(want);
    bson_destroy(expected);
    bson_destroy(answered);
    answered = NULL;
}

/* The last answer is an error of that code. */
static inline void expect_error(int32_t code)
{
    struct bval val;
    assert_non_null(answered);
    assert_true(bdoc_find(bdoc_of(answered), "code", &val));
    assert_int_equal(bval_i32(&val), code);
    assert_true(bdoc_find(bdoc_of(answered), "ok", &val));
    assert_false(bval_truthy(&val));
    bson_destroy(answered);
    answered = NULL;
}

#endif
