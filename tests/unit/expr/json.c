#include "tests/unit/expr/json.h"

#include "bson/extjson.h"
#include "expr/writer.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

struct bdoc json_doc(struct arena *arena, const char *text)
{
    struct err err;
    bson_t bson;
    char *quoted = arena_copy_str(arena, text, strlen(text));
    for (char *at = quoted; *at != 0; at++)
        if (*at == '\'')
            *at = '"';
    if (!extjson_parse(quoted, strlen(quoted), &bson, &err))
        fail_msg("%s: %s", text, err.msg);
    struct bdoc doc = bdoc_of(&bson);
    doc.data = arena_copy(arena, doc.data, doc.len);
    bson_destroy(&bson);
    return doc;
}

struct bval json_val(struct arena *arena, const char *text)
{
    struct bval val;
    bdoc_find(json_doc(arena, arena_printf(arena, "{\"v\": %s}", text)), "v", &val);
    return val;
}

const char *json_text(struct arena *arena, struct bdoc doc)
{
    struct buf text = BUF_INIT;
    extjson_print(&text, doc, EXTJSON_CANONICAL);
    const char *copy = arena_copy_str(arena, (const char *)text.data, text.len);
    buf_deinit(&text);
    return copy;
}

void json_assert_same(struct arena *arena, struct bdoc got, const char *want, const char *what)
{
    struct bdoc expected = json_doc(arena, want);
    struct err err;
    assert_true(bdoc_validate(got.data, got.len, BDOC_MAX_WIRE_DEPTH, &err));
    if (!bdoc_same(got, expected))
        fail_msg("%s\n  want %s\n  got  %s", what, json_text(arena, expected), json_text(arena, got));
}
