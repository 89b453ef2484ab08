#include "tests/fuzz/query/material.h"

#include "base/check.h"
#include "collation/collation.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEPTH = 4,
    DOC_DEPTH = 3,
};

void material_check_document(struct bdoc doc)
{
    struct err err;
    if (bdoc_validate(doc.data, doc.len, BDOC_MAX_WIRE_DEPTH, &err))
        return;
    fprintf(stderr, "malformed result: %s\n", err.msg);
    abort();
}

void material_check_error(const struct err *err)
{
    CHECK(err->code > 0 && err->msg[0] != 0);
}

static struct bval keep(struct arena *arena, const bson_t *holder)
{
    struct bval val = BVAL_MISSING;
    (void)bdoc_find(bdoc_of(holder), "v", &val);
    val.data = arena_copy(arena, val.data, val.len);
    return val;
}

static struct bval generate(struct arena *arena, struct chooser *choose, enum random_kind kind, int depth)
{
    bson_t holder = BSON_INITIALIZER;
    if (kind == RANDOM_STAGE)
        random_query_append_list(choose, &holder, "v", kind, depth);
    else
        random_query_append(choose, &holder, "v", kind, depth);
    struct bval val = keep(arena, &holder);
    bson_destroy(&holder);
    return val;
}

/* No name twice, at any depth: what such documents mean is nobody's business. */
static bool names_differ(struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        struct bval first;
        (void)bdoc_find_n(doc, elem.key, elem.key_len, &first);
        if (first.data != elem.val.data)
            return false;
        bool container = elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY;
        if (container && !names_differ(bval_doc(&elem.val)))
            return false;
    }
    return true;
}

/* The next bytes as they are, when they are a document; else an empty one. */
static struct bdoc raw_document(struct chooser *choose)
{
    struct err err;
    size_t left = choose->len - choose->at;
    const uint8_t *bytes = choose->data + choose->at;
    if (left < 5)
        return bdoc_empty();
    uint32_t len = load_le32(bytes);
    if (len > left || !bdoc_validate(bytes, len, BDOC_MAX_WIRE_DEPTH, &err))
        return bdoc_empty();
    choose->at += len;
    return (struct bdoc){bytes, len};
}

static const struct bval_order *choose_order(struct arena *arena, struct chooser *choose)
{
    static const char *const locales[] = {"en", "fr", "de", "simple"};
    struct collation *collation;
    struct err err;
    bson_t spec = BSON_INITIALIZER;
    if (chooser_below(choose, 3) != 2) {
        bson_destroy(&spec);
        return NULL;
    }
    BSON_APPEND_UTF8(&spec, "locale", locales[chooser_below(choose, 3)]);
    BSON_APPEND_INT32(&spec, "strength", 1 + (int32_t)chooser_below(choose, 5));
    BSON_APPEND_BOOL(&spec, "numericOrdering", chooser_below(choose, 2) == 1);
    CHECK(collation_open(bdoc_of(&spec), &collation, &err));
    bson_destroy(&spec);
    const struct bval_order *order = collation_order(collation);
    collation_keep(collation, arena);
    collation_unref(collation);
    return order;
}

void material_make(struct arena *arena, const uint8_t *data, size_t len, const enum random_kind *kinds,
                   unsigned kind_count, struct material *out)
{
    struct chooser choose = {.data = data, .len = len};
    *out = (struct material){.spec = BVAL_MISSING, .env = {.now_ms = 1700000000000}};
    bool raw = chooser_below(&choose, 4) == 3;
    out->env.order = choose_order(arena, &choose);
    if (raw) {
        out->filter = raw_document(&choose);
        out->spec = bval_from_doc(raw_document(&choose));
    } else {
        struct bval filter = generate(arena, &choose, RANDOM_FILTER, DEPTH);
        out->filter = bval_doc(&filter);
        if (kind_count > 0)
            out->spec = generate(arena, &choose, kinds[chooser_below(&choose, kind_count)], DEPTH);
    }
    for (int i = 0; i < MATERIAL_DOCS; i++) {
        struct bval doc = generate(arena, &choose, RANDOM_DOCUMENT, DOC_DEPTH);
        out->docs[i] = raw ? raw_document(&choose) : bval_doc(&doc);
        if (!names_differ(out->docs[i]))
            out->docs[i] = bdoc_empty();
    }
}
