#include "support.h"

#include "cluster/fields.h"

/* {s, e: "", u: UUID, b: binary of another kind, o: ObjectId, n: 3.0, f: 3.5, t: timestamp, d: date, x: {}, a: []} */
static struct bdoc sample(struct arena *arena)
{
    return json_doc(arena,
                    "{\"s\": \"text\", \"e\": \"\", \"u\": {\"$uuid\": \"01020304-0506-4708-890a-0b0c0d0e0f10\"}, "
                    "\"b\": {\"$binary\": {\"base64\": \"AQID\", \"subType\": \"00\"}}, "
                    "\"o\": {\"$oid\": \"0102030405060708090a0b0c\"}, \"n\": 3.0, \"f\": 3.5, "
                    "\"t\": {\"$timestamp\": {\"t\": 2, \"i\": 5}}, \"d\": {\"$date\": {\"$numberLong\": \"9\"}}, "
                    "\"x\": {\"k\": 1}, \"a\": [1, 2], \"yes\": true, \"no\": 0}");
}

static void field_reads_what_has_its_type(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    char text[8];
    uint8_t uuid[CLUSTER_UUID_BYTES];
    bson_oid_t oid;
    int64_t number;
    uint64_t timestamp;
    struct bdoc inner;
    arena_init(&arena);
    struct bdoc doc = sample(&arena);
    assert_true(field_str(doc, "s", text, sizeof text, &err));
    assert_string_equal(text, "text");
    assert_true(field_uuid(doc, "u", uuid, &err));
    assert_int_equal(uuid[15], 0x10);
    assert_true(field_oid(doc, "o", &oid, &err));
    assert_int_equal(oid.bytes[11], 0x0c);
    assert_true(field_i64(doc, "n", &number, &err));
    assert_int_equal(number, 3);
    assert_true(field_timestamp(doc, "t", &timestamp, &err));
    assert_true(timestamp == ((uint64_t)2 << 32 | 5));
    assert_true(field_date(doc, "d", &number, &err));
    assert_int_equal(number, 9);
    assert_true(field_doc(doc, "x", &inner, &err));
    assert_int_equal(bdoc_count(inner), 1);
    assert_true(field_array(doc, "a", &inner, &err));
    assert_int_equal(bdoc_count(inner), 2);
    assert_true(field_flag(doc, "yes"));
    assert_false(field_flag(doc, "no"));
    assert_false(field_flag(doc, "absent"));
    arena_deinit(&arena);
}

static void field_refuses_other_types_and_missing(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    char text[5];
    char small[4];
    uint8_t uuid[CLUSTER_UUID_BYTES];
    int64_t number;
    struct bdoc inner;
    arena_init(&arena);
    struct bdoc doc = sample(&arena);
    assert_false(field_str(doc, "absent", text, sizeof text, &err));
    assert_int_equal(err.code, ERR_NoSuchKey);
    assert_false(field_str(doc, "n", text, sizeof text, &err));
    assert_int_equal(err.code, ERR_TypeMismatch);
    assert_false(field_str(doc, "e", text, sizeof text, &err));
    assert_int_equal(err.code, ERR_BadValue);
    assert_true(field_str(doc, "s", text, sizeof text, &err));
    assert_false(field_str(doc, "s", small, sizeof small, &err));
    assert_int_equal(err.code, ERR_BadValue);
    assert_false(field_uuid(doc, "b", uuid, &err));
    assert_int_equal(err.code, ERR_InvalidUUID);
    assert_false(field_i64(doc, "f", &number, &err));
    assert_false(field_i64(doc, "s", &number, &err));
    assert_false(field_doc(doc, "a", &inner, &err));
    assert_false(field_array(doc, "x", &inner, &err));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_reads_what_has_its_type),
        cmocka_unit_test(field_refuses_other_types_and_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
