/* JSON to BSON to JavaScript and back: every type must survive, save that a whole double comes back as an integer, as
 * in every shell with one kind of number. */
#include "shell/engine.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/shell/leaks.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *hex;
    const char *canonical;
    const char *relaxed;
} sample[] = {
#include "tests/unit/bson/extjson_sample.inc"
};

static struct engine *engine;

static int start(void **state)
{
    (void)state;
    struct err err;
    engine = engine_new(NULL, "test", &err);
    return engine != NULL ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    engine_free(engine);
    return 0;
}

static void append_js_string(struct buf *to, const char *text)
{
    buf_append_u8(to, '"');
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\')
            buf_append_u8(to, '\\');
        buf_append_u8(to, (uint8_t)*text);
    }
    buf_append_u8(to, '"');
}

/* EJSON.stringify(EJSON.parse(json), canonical) */
static char *round_trip(const char *json, struct buf *out)
{
    struct buf script = BUF_INIT;
    buf_append(&script, "EJSON.stringify(EJSON.parse(", 28);
    append_js_string(&script, json);
    static const char tail[] = "), {relaxed: false})";
    buf_append(&script, tail, sizeof tail);
    struct engine_source source = {.text = (const char *)script.data, .name = "--eval", .mode = ENGINE_EVAL};
    buf_clear(out);
    bool ok = engine_run(engine, &source, out);
    buf_append_u8(out, 0);
    if (!ok)
        print_error("%s: %s\n", json, out->data);
    assert_true(ok);
    buf_deinit(&script);
    return (char *)out->data;
}

/* What JavaScript can't tell apart, or a driver turns into something else. */
static bool is_lossy(const char *canonical)
{
    static const char *const signs[] = {"$numberDouble", "$undefined"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (strstr(canonical, signs[i]) != NULL)
            return true;
    }
    return false;
}

static void corpus_documents_survive_a_round_trip(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        if (is_lossy(sample[i].canonical))
            continue;
        if (strcmp(round_trip(sample[i].canonical, &out), sample[i].canonical) != 0)
            print_error("%s\n", sample[i].name);
        assert_string_equal(out.data, sample[i].canonical);
    }
    buf_deinit(&out);
}

static void numbers_take_the_types_of_mongosh(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"1", "{\"$numberInt\":\"1\"}"},
        {"2147483647", "{\"$numberInt\":\"2147483647\"}"},
        {"2147483648", "{\"$numberDouble\":\"2147483648.0\"}"},
        {"1.5", "{\"$numberDouble\":\"1.5\"}"},
        {"-0", "{\"$numberDouble\":\"-0.0\"}"},
        {"NaN", "{\"$numberDouble\":\"NaN\"}"},
        {"NumberLong(5)", "{\"$numberLong\":\"5\"}"},
        {"NumberLong('-9223372036854775808')", "{\"$numberLong\":\"-9223372036854775808\"}"},
        {"5n", "{\"$numberLong\":\"5\"}"},
        {"Double(5)", "{\"$numberDouble\":\"5.0\"}"},
        {"NumberInt('7')", "{\"$numberInt\":\"7\"}"},
        {"undefined", "null"},
        {"MinKey", "{\"$minKey\":1}"},
        {"/b/gi", "{\"$regularExpression\":{\"pattern\":\"b\",\"options\":\"i\"}}"},
        {"'\\ud83d\\ude00'", "\"\xf0\x9f\x98\x80\""},
        {"'\\ud83d'", "\"\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[256];
        struct buf out = BUF_INIT;
        snprintf(script, sizeof script, "EJSON.stringify(%s, {relaxed: false})", cases[i][0]);
        struct engine_source source = {.text = script, .name = "--eval", .mode = ENGINE_EVAL};
        assert_true(engine_run(engine, &source, &out));
        buf_append_u8(&out, 0);
        assert_string_equal(out.data, cases[i][1]);
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus_documents_survive_a_round_trip),
        cmocka_unit_test(numbers_take_the_types_of_mongosh),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
