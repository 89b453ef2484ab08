#include "storage/shell_text.h"
#include "tests/unit/storage/storage_test.h"

static void shell_text_prints_every_type(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *text;
    } cases[] = {
        {"{}", "{}"},
        {"{\"a\": 1, \"b\": \"x\\\"y\"}", "{ a: 1, b: \"x\\\"y\" }"},
        {"{\"a\": {\"$numberDouble\": \"1.0\"}, \"b\": 0.25}", "{ a: 1.0, b: 0.25 }"},
        {"{\"a\": null, \"b\": true, \"c\": [1, {\"d\": []}]}", "{ a: null, b: true, c: [ 1, { d: [] } ] }"},
        {"{\"_id\": {\"$oid\": \"0123456789abcdef01234567\"}}", "{ _id: ObjectId('0123456789abcdef01234567') }"},
        {"{\"a\": {\"$date\": {\"$numberLong\": \"5\"}}}", "{ a: new Date(5) }"},
        {"{\"a\": {\"$numberDecimal\": \"1.10\"}}", "{ a: 1.10 }"},
        {"{\"a\": {\"$timestamp\": {\"t\": 3, \"i\": 4}}}", "{ a: Timestamp(3, 4) }"},
        {"{\"a\": {\"$binary\": {\"base64\": \"AQI=\", \"subType\": \"00\"}}}", "{ a: BinData(0, 0102) }"},
        {"{\"a\": {\"$numberLong\": \"9007199254740993\"}}", "{ a: 9007199254740993 }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t *doc = json_doc(cases[i].json);
        struct buf out = BUF_INIT;
        shell_text_append(&out, bdoc_of(doc), 1000);
        buf_append_u8(&out, 0);
        assert_string_equal((const char *)out.data, cases[i].text);
        buf_deinit(&out);
        bson_destroy(doc);
    }
}

static void shell_text_of_a_large_document_is_bounded(void **state)
{
    (void)state;
    bson_t doc = BSON_INITIALIZER;
    for (int i = 0; i < 10000; i++)
        BSON_APPEND_UTF8(&doc, "name", "some text that takes space");
    struct buf out = BUF_INIT;
    shell_text_append(&out, bdoc_of(&doc), 300);
    assert_in_range(out.len, 100, 500);
    buf_deinit(&out);
    bson_destroy(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shell_text_prints_every_type),
        cmocka_unit_test(shell_text_of_a_large_document_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
