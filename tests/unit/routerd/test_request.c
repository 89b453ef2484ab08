#include "support.h"

#include "routerd/request.h"

static void request_append_body_leaves_out_what_is_the_routers(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    bson_t out = BSON_INITIALIZER;
    static const char *const skip[] = {"limit", NULL};
    request_append_body(&out,
                        json_doc(&arena,
                                 "{\"find\": \"c\", \"filter\": {\"a\": 1}, \"limit\": 3, \"apiVersion\": \"1\","
                                 " \"$clusterTime\": {}, \"$readPreference\": {}, \"maxTimeMS\": 5,"
                                 " \"writeConcern\": {\"w\": 1}, \"lsid\": {\"id\": 1}, \"$db\": \"db\"}"),
                        skip);
    struct bdoc want =
        json_doc(&arena, "{\"find\": \"c\", \"filter\": {\"a\": 1}, \"lsid\": {\"id\": 1}, \"$db\": \"db\"}");
    assert_true(bdoc_same(bdoc_of(&out), want));
    bson_destroy(&out);
    arena_deinit(&arena);
}

static void cursor_reply_parse_finds_id_and_batch(void **state)
{
    (void)state;
    struct arena arena;
    struct cursor_reply reply;
    struct err err;
    arena_init(&arena);
    struct bdoc doc = json_doc(&arena, "{\"cursor\": {\"id\": {\"$numberLong\": \"77\"}, \"ns\": \"db.c\","
                                       " \"firstBatch\": [{\"a\": 1}, {\"a\": 2}]}, \"ok\": 1}");
    assert_true(cursor_reply_parse(doc, &reply, &err));
    assert_int_equal(reply.id, 77);
    assert_int_equal(load_le64(reply.id_at), 77);
    assert_int_equal(bdoc_count(reply.batch), 2);
    assert_null(reply.sort_keys.data);
    arena_deinit(&arena);
}

static void cursor_reply_parse_refuses_other_shapes(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"ok\": 1}",
        "{\"cursor\": 5}",
        "{\"cursor\": {\"firstBatch\": []}}",
        "{\"cursor\": {\"id\": 5, \"firstBatch\": []}}",
        "{\"cursor\": {\"id\": {\"$numberLong\": \"0\"}}}",
    };
    struct arena arena;
    struct cursor_reply reply;
    struct err err;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cursor_reply_parse(json_doc(&arena, bad[i]), &reply, &err));
    arena_deinit(&arena);
}

static void request_array_rest_drops_the_first(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct bdoc list = json_doc(&arena, "{\"0\": {\"a\": 1}, \"1\": {\"b\": 1}, \"2\": {\"c\": 1}}");
    struct bdoc want = json_doc(&arena, "{\"0\": {\"b\": 1}, \"1\": {\"c\": 1}}");
    assert_true(bdoc_same(request_array_rest(&arena, list), want));
    assert_true(bdoc_is_empty(request_array_rest(&arena, bdoc_empty())));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_append_body_leaves_out_what_is_the_routers),
        cmocka_unit_test(cursor_reply_parse_finds_id_and_batch),
        cmocka_unit_test(cursor_reply_parse_refuses_other_shapes),
        cmocka_unit_test(request_array_rest_drops_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
