#include "tests/unit/cmocka_all.h"

#include "document/statement.h"

#include <string.h>

static struct bdoc make_doc(bson_t *storage, int value)
{
    bson_init(storage);
    BSON_APPEND_INT32(storage, "v", value);
    return bdoc_of(storage);
}

static void fill(struct statement *statement, struct statement_candidate candidates[2], bson_t docs[4])
{
    candidates[0] =
        (struct statement_candidate){.record_id = 7, .sort_key = (const uint8_t *)"key", .sort_key_len = 3, .hash = 99};
    candidates[1] = (struct statement_candidate){.record_id = 8, .hash = 100, .after = make_doc(&docs[0], 1)};
    *statement = (struct statement){
        .flags = STATEMENT_MULTI | STATEMENT_IMAGE,
        .index = 4,
        .filter = make_doc(&docs[1], 2),
        .update = bval_from_doc(make_doc(&docs[2], 3)),
        .sort = make_doc(&docs[3], 4),
        .candidates = candidates,
        .candidate_count = 2,
    };
    memset(&statement->upsert_id, 5, sizeof statement->upsert_id);
}

static void statement_survives_encoding(void **state)
{
    (void)state;
    struct statement statement;
    struct statement_candidate candidates[2];
    bson_t docs[4];
    struct buf bytes = BUF_INIT;
    struct codec_reader reader;
    struct statement out;
    struct arena arena;
    arena_init(&arena);
    fill(&statement, candidates, docs);
    statement_encode(&bytes, &statement);
    codec_reader_init(&reader, bytes.data, bytes.len);
    statement_decode(&reader, &arena, &out);
    assert_false(reader.failed);
    assert_ptr_equal(reader.pos, reader.end);
    assert_int_equal(out.flags, statement.flags);
    assert_int_equal(out.index, 4);
    assert_true(bdoc_same(out.filter, statement.filter));
    assert_true(bdoc_same(bval_doc(&out.update), bval_doc(&statement.update)));
    assert_true(bdoc_same(out.sort, statement.sort));
    assert_null(out.array_filters.data);
    assert_int_equal(out.candidate_count, 2);
    assert_int_equal(out.candidates[0].record_id, 7);
    assert_memory_equal(out.candidates[0].sort_key, "key", 3);
    assert_null(out.candidates[0].after.data);
    assert_int_equal(out.candidates[1].hash, 100);
    assert_true(bdoc_same(out.candidates[1].after, candidates[1].after));
    for (size_t i = 0; i < 4; i++)
        bson_destroy(&docs[i]);
    arena_deinit(&arena);
    buf_deinit(&bytes);
}

static void statement_cut_short_fails_at_every_length(void **state)
{
    (void)state;
    struct statement statement;
    struct statement_candidate candidates[2];
    bson_t docs[4];
    struct buf bytes = BUF_INIT;
    fill(&statement, candidates, docs);
    statement_encode(&bytes, &statement);
    for (size_t len = 0; len < bytes.len; len++) {
        struct codec_reader reader;
        struct statement out;
        struct arena arena;
        arena_init(&arena);
        uint8_t *copy = bson_malloc(len + 1);
        memcpy(copy, bytes.data, len);
        codec_reader_init(&reader, copy, len);
        statement_decode(&reader, &arena, &out);
        assert_true(reader.failed);
        bson_free(copy);
        arena_deinit(&arena);
    }
    for (size_t i = 0; i < 4; i++)
        bson_destroy(&docs[i]);
    buf_deinit(&bytes);
}

static void statement_result_carries_its_error(void **state)
{
    (void)state;
    struct statement_result result = {.status = STATEMENT_ERROR, .index = 3, .n = 2, .n_modified = 1};
    struct statement_result out;
    struct buf bytes = BUF_INIT;
    struct codec_reader reader;
    bson_t details;
    err_set(&result.err, ERR_DuplicateKey, "dup");
    struct bdoc more = make_doc(&details, 9);
    err_set_details(&result.err, more.data, more.len);
    statement_result_encode(&bytes, &result);
    codec_reader_init(&reader, bytes.data, bytes.len);
    statement_result_decode(&reader, &out);
    assert_false(reader.failed);
    assert_int_equal(out.err.code, ERR_DuplicateKey);
    assert_string_equal(out.err.msg, "dup");
    assert_int_equal(out.err.details_len, details.len);
    assert_int_equal(out.n, 2);
    bson_destroy(&details);
    buf_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statement_survives_encoding),
        cmocka_unit_test(statement_cut_short_fails_at_every_length),
        cmocka_unit_test(statement_result_carries_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
