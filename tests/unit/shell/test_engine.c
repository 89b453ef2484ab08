#include "shell/engine.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/shell/leaks.h"

#include <string.h>

/* One engine for all cases: it takes a while to start. */
static struct engine *engine;

static int start(void **state)
{
    (void)state;
    struct err err;
    engine = engine_new(NULL, "test", &err);
    if (engine == NULL)
        print_error("%s\n", err.msg);
    return engine != NULL ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    engine_free(engine);
    return 0;
}

static bool run(const char *text, enum engine_mode mode, struct buf *out)
{
    struct engine_source source = {.text = text, .name = mode == ENGINE_SCRIPT ? "file.js" : "--eval", .mode = mode};
    bool ok = engine_run(engine, &source, out);
    buf_append_u8(out, 0);
    return ok;
}

static void check(const char *text, enum engine_mode mode, bool ok, const char *expected)
{
    struct buf out = BUF_INIT;
    bool got = run(text, mode, &out);
    if (got != ok || strcmp((const char *)out.data, expected) != 0)
        print_error("%s\n", text);
    assert_string_equal(out.data, expected);
    assert_int_equal(got, ok);
    buf_deinit(&out);
}

/* What mongosh 2.12 prints for the same text. */
static void values_print_as_in_mongosh(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"1.5", "1.5"},
        {"-0", "-0"},
        {"null", "null"},
        {"undefined", ""},
        {"'text'", "text"},
        {"['text', \"it's\", 'line\\n']", "[ 'text', \"it's\", 'line\\n' ]"},
        {"[]", "[]"},
        {"({})", "{}"},
        {"({a: 1, 'b c': [true, null, {d: {}}]})", "{ a: 1, 'b c': [ true, null, { d: {} } ] }"},
        {"ObjectId('65f0a1b2c3d4e5f601234567')", "ObjectId('65f0a1b2c3d4e5f601234567')"},
        {"NumberLong('9007199254740993')", "Long('9007199254740993')"},
        {"NumberInt(5)", "Int32(5)"},
        {"Double(1)", "Double(1)"},
        {"NumberDecimal('1.10')", "Decimal128('1.10')"},
        {"ISODate('2020-01-02T03:04:05.678Z')", "ISODate('2020-01-02T03:04:05.678Z')"},
        {"Timestamp(1, 2)", "Timestamp({ t: 1, i: 2 })"},
        {"BinData(0, 'AAEC')", "Binary.createFromBase64('AAEC', 0)"},
        {"UUID('65f0a1b2-c3d4-e5f6-0123-456765f0a1b2')", "UUID('65f0a1b2-c3d4-e5f6-0123-456765f0a1b2')"},
        {"MinKey()", "MinKey()"},
        {"/a+/i", "/a+/i"},
        {"Code('x')", "Code('x')"},
        {"DBRef('a', 1)", "DBRef('a', 1)"},
        {"10n", "10n"},
        {"new Map([[1, {a: 2}]])", "Map(1) { 1 => { a: 2 } }"},
        {"new Set([1, 2])", "Set(2) { 1, 2 }"},
        {"({a: 'x'.repeat(40), b: 'y'.repeat(40)})",
         "{\n  a: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n  b: 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'\n}"},
        {"[1, 20, 300, 4, 5, 6, 7, 8]", "[\n  1, 20, 300, 4,\n  5,  6,   7, 8\n]"},
        {"({a: {b: {c: {d: 1}}}})", "{\n  a: { b: { c: { d: 1 } } }\n}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i][0], ENGINE_EVAL, true, cases[i][1]);
}

static void eval_takes_object_literals_await_and_commands(void **state)
{
    (void)state;
    check("{a: 1}", ENGINE_EVAL, true, "{ a: 1 }");
    check("await Promise.resolve(7)", ENGINE_EVAL, true, "7");
    check("const v = await new Promise(done => setTimeout(() => done(5), 10)); v + 1", ENGINE_EVAL, true, "6");
    check("v", ENGINE_EVAL, true, "5");
    check("use shop", ENGINE_EVAL, true, "switched to db shop");
    check("db.getName()", ENGINE_EVAL, true, "shop");
    check("db['a.b'].getFullName() + db.c.d", ENGINE_EVAL, true, "shop.a.bshop.c.d");
    check("it", ENGINE_EVAL, true, "no cursor");
}

static void interactive_names_may_be_declared_again(void **state)
{
    (void)state;
    check("let again = 1", ENGINE_INTERACTIVE, true, "");
    check("const again = 2", ENGINE_INTERACTIVE, true, "");
    check("again", ENGINE_INTERACTIVE, true, "2");
}

static void script_prints_no_value_but_errors_with_their_place(void **state)
{
    (void)state;
    check("1 + 1", ENGINE_SCRIPT, true, "");
    check("\nfunction f() { throw new TypeError('bad'); }\nf()", ENGINE_SCRIPT, false,
          "TypeError: bad\n    at file.js:2:35");
    check("throw 5", ENGINE_SCRIPT, false, "Error: 5");
    check("await Promise.reject(new Error('late'))", ENGINE_EVAL, false, "Error: late");
    check("assert.eq(1, 2, 'sum')", ENGINE_EVAL, false, "AssertionError: 1 is not equal to 2: sum");
}

static void commands_without_a_server_are_errors(void **state)
{
    (void)state;
    check("db.c.findOne()", ENGINE_EVAL, false, "Error: not connected: the shell was started with --nodb");
}

static void incomplete_statements_are_recognised(void **state)
{
    (void)state;
    assert_true(engine_is_incomplete(engine, "db.c.find({"));
    assert_true(engine_is_incomplete(engine, "function f() {\n"));
    assert_true(engine_is_incomplete(engine, "if (1) {"));
    assert_true(engine_is_incomplete(engine, "`abc"));
    assert_true(engine_is_incomplete(engine, "f(`it's \"\n"));
    assert_true(engine_is_incomplete(engine, "/* it's\n"));
    assert_true(engine_is_incomplete(engine, "\"abc\\\n"));
    assert_false(engine_is_incomplete(engine, "\"abc\n"));
    assert_false(engine_is_incomplete(engine, "f('abc\n"));
    assert_false(engine_is_incomplete(engine, "1 + 1"));
    assert_false(engine_is_incomplete(engine, "let x = ;"));
    assert_false(engine_is_incomplete(engine, "use shop"));
}

static void circular_documents_are_refused(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_false(run("var loop = {}; loop.self = loop; EJSON.stringify(loop)", ENGINE_EVAL, &out));
    assert_non_null(strstr((const char *)out.data, "nested too deeply"));
    buf_deinit(&out);
}

static void completion_offers_methods_and_globals(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_true(engine_call(engine, "complete", "db.c.insertO", &out));
    buf_append_u8(&out, 0);
    assert_string_equal(out.data, "db.c.insertOne");
    buf_clear(&out);
    assert_true(engine_call(engine, "complete", "x = printjsono", &out));
    buf_append_u8(&out, 0);
    assert_string_equal(out.data, "printjsononeline");
    buf_deinit(&out);
}

static void quit_ends_with_its_code(void **state)
{
    (void)state;
    int code;
    struct buf out = BUF_INIT;
    assert_false(engine_has_quit(engine, &code));
    assert_true(run("try { quit(3) } catch (ignored) { } for (;;) ;", ENGINE_EVAL, &out));
    assert_true(engine_has_quit(engine, &code));
    assert_int_equal(code, 3);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_print_as_in_mongosh),
        cmocka_unit_test(eval_takes_object_literals_await_and_commands),
        cmocka_unit_test(interactive_names_may_be_declared_again),
        cmocka_unit_test(script_prints_no_value_but_errors_with_their_place),
        cmocka_unit_test(commands_without_a_server_are_errors),
        cmocka_unit_test(incomplete_statements_are_recognised),
        cmocka_unit_test(circular_documents_are_refused),
        cmocka_unit_test(completion_offers_methods_and_globals),
        cmocka_unit_test(quit_ends_with_its_code), /* last: the engine is done after it */
    };
    return cmocka_run_group_tests(tests, start, stop);
}
