#include "routerd/let_values.h"

#include "base/clock.h"
#include "command/fields.h"
#include "expr/expr.h"

#include <string.h>

static void note_read(void *arg, const char *path)
{
    (void)path;
    *(bool *)arg = true;
}

static bool evaluate(struct command_ctx *ctx, struct bdoc let, bson_t *out, struct err *err)
{
    struct expr_env env = {.now_ms = clock_wall_ms()};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, let);
    while (biter_next(&iter, &elem)) {
        struct expr *expr;
        struct bval value;
        if (!expr_compile(&ctx->arena, &elem.val, &env, &expr, err))
            return false;
        bool reads = false;
        if (!expr_dependencies(expr, note_read, &reads) || reads)
            return err_set(err, ERR_FailedToParse, "Command let Expression does not evaluate to a constant: %s",
                           elem.key);
        if (!expr_eval(expr, bdoc_empty(), &ctx->arena, &value, err))
            return false;
        if (value.type == BT_EOO)
            continue;
        /* A shard evaluates what it gets: the result must not look like an expression again. */
        bson_t literal;
        bson_append_document_begin(out, elem.key, (int)elem.key_len, &literal);
        bval_append(&literal, "$literal", -1, &value);
        bson_append_document_end(out, &literal);
    }
    return true;
}

bool let_values_resolve(struct command_ctx *ctx, struct err *err)
{
    struct bdoc let = {0};
    struct biter iter;
    struct belem elem;
    if (!field_get_doc(ctx->body, "let", &let, err))
        return false;
    if (!let.data)
        return true;
    bson_t values = BSON_INITIALIZER;
    bson_t body = BSON_INITIALIZER;
    bool ok = evaluate(ctx, let, &values, err);
    biter_init(&iter, ctx->body);
    while (ok && biter_next(&iter, &elem)) {
        struct bval constants = bval_from_doc(bdoc_of(&values));
        bval_append(&body, elem.key, (int)elem.key_len, strcmp(elem.key, "let") == 0 ? &constants : &elem.val);
    }
    if (ok)
        ctx->body = (struct bdoc){arena_copy(&ctx->arena, bson_get_data(&body), body.len), body.len};
    bson_destroy(&body);
    bson_destroy(&values);
    return ok;
}
