/* Arbitrary bytes into bdoc_validate; what it accepts must be safe for everything that reads documents. */
#include "tests/fuzz/bson/fuzz_validate.h"
#include "base/check.h"
#include "bson/compare.h"
#include "bson/extjson.h"
#include "bson/hash.h"
#include "bson/keyenc.h"
#include "bson/path.h"

static bool ignore_hit(void *arg, const struct path_hit *hit)
{
    (void)hit;
    ++*(int *)arg;
    return true;
}

static void check_value(const struct belem *elem)
{
    struct buf key = BUF_INIT;
    keyenc_append(&key, &elem->val, false);
    CHECK(key.len > 0 && bval_equal(&elem->val, &elem->val));
    (void)bval_hash(&elem->val);
    buf_deinit(&key);
}

static void check_paths(struct bdoc doc)
{
    static const char *const texts[] = {"a", "a.b", "a.0.b", "0.0.0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct path path;
        struct err err;
        int hits = 0;
        CHECK(path_init(&path, texts[i], strlen(texts[i]), &err));
        CHECK(path_each(&path, doc, PATH_LEAF_ELEMENTS_AND_ARRAY, ignore_hit, &hits));
        path_deinit(&path);
    }
}

/* Copying field by field gives the same bytes. */
static void check_copy(struct bdoc doc)
{
    bson_t copy = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        check_value(&elem);
        bval_append(&copy, elem.key, (int)elem.key_len, &elem.val);
    }
    CHECK(bdoc_same(bdoc_of(&copy), doc));
    bson_destroy(&copy);
}

/* Text that is printed parses again, unless a field's name happens to be that of a type wrapper. */
static void check_json(struct bdoc doc)
{
    struct buf text = BUF_INIT;
    extjson_print(&text, doc, EXTJSON_CANONICAL);
    bson_t parsed;
    struct err err;
    if (extjson_parse((const char *)text.data, text.len, &parsed, &err)) {
        CHECK(bdoc_validate(bson_get_data(&parsed), parsed.len, BDOC_MAX_DEPTH, &err));
        bson_destroy(&parsed);
    }
    buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    bson_t parsed;
    if (extjson_parse((const char *)data, size, &parsed, &err)) {
        check_copy(bdoc_of(&parsed));
        bson_destroy(&parsed);
    }
    if (!bdoc_validate(data, size, BDOC_MAX_DEPTH, &err)) {
        CHECK(err.code == ERR_InvalidBSON || err.code == ERR_Overflow);
        return 0;
    }
    struct bdoc doc = {.data = data, .len = (uint32_t)size};
    check_copy(doc);
    check_paths(doc);
    check_json(doc);
    return 0;
}
