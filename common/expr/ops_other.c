/* What fits nowhere else: $type, $isNumber, $rand, $toHashedIndexKey, $meta, and operators that take JavaScript. */
#include "base/map.h"
#include "base/random.h"
#include "bson/hash.h"
#include "expr/expr_tree.h"

#include <string.h>

static bool op_hashed_key(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = make_i64(s->scratch, bval_hash(&args[0]));
    return true;
}

/* A number in [0, 1) out of the seed and the document: the same again when a command is repeated with its seed. */
static bool op_rand(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    struct prng prng = {call->seed ^ hash_bytes(s->root.data, s->root.len)};
    *out = make_f64(s->scratch, (double)(prng_next(&prng) >> 11) / 9007199254740992.0);
    return true;
}

static uint64_t next_seed(struct expr_compiler *c)
{
    uint64_t seed = c->env == NULL ? 0 : c->env->random != 0 ? c->env->random : (uint64_t)c->env->now_ms;
    struct prng prng = {seed + ++c->rand_count};
    return prng_next(&prng);
}

static bool compile_rand(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    bool empty = (operand->type == BT_DOCUMENT || operand->type == BT_ARRAY) && bdoc_is_empty(bval_doc(operand));
    if (!empty)
        return err_set(c->err, 3040501, "$rand does not currently accept arguments");
    call->seed = next_seed(c);
    return true;
}

static bool op_type(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    const char *name = bval_type_name(args[0].type);
    *out = make_str(s->scratch, name, strlen(name));
    return true;
}

static bool op_is_number(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)s;
    (void)call;
    *out = make_bool(bval_is_number(&args[0]));
    return true;
}

enum meta_tag {
    META_RECORD_ID,
    META_SORT_KEY,
    META_INDEX_KEY,
    META_RAND,
    META_COUNT,
};

static bool op_meta(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_MISSING;
    switch (call->slot) {
    case META_RECORD_ID:
        *out = s->meta != NULL ? s->meta->record_id : BVAL_MISSING;
        return true;
    case META_SORT_KEY:
        *out = s->meta != NULL ? s->meta->sort_key : BVAL_MISSING;
        return true;
    case META_INDEX_KEY:
        *out = s->meta != NULL ? s->meta->index_key : BVAL_MISSING;
        return true;
    default:
        return op_rand(s, call, args, out);
    }
}

static bool compile_meta(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    static const char *const names[META_COUNT] = {"recordId", "sortKey", "indexKey", "randVal"};
    static const char *const scores[] = {"textScore",           "searchScore",       "searchHighlights",
                                         "searchScoreDetails",  "vectorSearchScore", "score",
                                         "searchSequenceToken", "geoNearDistance",   "geoNearPoint"};
    if (operand->type != BT_STRING)
        return err_set(c->err, 17307, "$meta only supports string arguments");
    for (int i = 0; i < META_COUNT; i++) {
        if (bval_is_str(operand, names[i])) {
            call->slot = i;
            call->seed = next_seed(c);
            return true;
        }
    }
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
        if (bval_is_str(operand, scores[i]))
            return err_set(c->err, 40218, "query requires %s metadata, but it is not available", scores[i]);
    return err_set(c->err, 17308, "Unsupported argument to $meta");
}

unsigned expr_wanted_meta(const struct expr *expr)
{
    static const unsigned kinds[META_COUNT] = {EXPR_META_RECORD_ID, EXPR_META_SORT_KEY, EXPR_META_INDEX_KEY, 0};
    unsigned wanted = 0;
    if (expr == NULL)
        return 0;
    if (expr->kind == EXPR_CALL && expr->op->eval == op_meta)
        wanted = kinds[expr->slot];
    for (uint32_t i = 0; i < expr->arg_count; i++)
        wanted |= expr_wanted_meta(expr->args[i]);
    return wanted;
}

static bool compile_javascript(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    (void)operand;
    return err_set(c->err, 31264, "%s takes JavaScript, which this server does not run", call->op->name);
}

const struct expr_operator expr_ops_other[] = {
    {"$toHashedIndexKey", 1, 1, false, op_hashed_key, NULL, NULL, 0},
    {"$rand", 0, 0, true, op_rand, NULL, compile_rand, 0},
    {"$type", 1, 1, false, op_type, NULL, NULL, 0},
    {"$isNumber", 1, 1, false, op_is_number, NULL, NULL, 0},
    {"$meta", 1, 1, true, op_meta, NULL, compile_meta, 0},
    {"$function", 1, 1, true, op_meta, NULL, compile_javascript, 0},
    {"$_internalJsEmit", 1, 1, true, op_meta, NULL, compile_javascript, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
