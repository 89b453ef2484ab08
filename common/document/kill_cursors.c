/* killCursors */
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursors.h"
#include "document/engine.h"

static void append_ids(bson_t *reply, const char *name, const bson_t *ids)
{
    bson_append_array(reply, name, -1, ids);
}

enum command_status kill_cursors_run(struct command_ctx *ctx, struct err *err)
{
    struct bdoc ids = {0};
    struct biter iter;
    struct belem elem;
    if (!field_require(ctx->body, "cursors", err) || !field_get_array(ctx->body, "cursors", &ids, err))
        return COMMAND_ERROR;
    bson_t killed = BSON_INITIALIZER;
    bson_t missing = BSON_INITIALIZER;
    bson_t none = BSON_INITIALIZER;
    bool ok = true;
    biter_init(&iter, ids);
    while (ok && biter_next(&iter, &elem)) {
        ok = elem.val.type == BT_INT64 ||
             err_set(err, ERR_TypeMismatch,
                     "BSON field 'killCursors.cursors.%s' is the wrong type '%s', expected type 'long'", elem.key,
                     bval_type_name(elem.val.type));
        if (!ok)
            break;
        bool found = document_cursors_kill(document_engine_cursors(document_engine_of(ctx)), bval_i64(&elem.val));
        bson_t *to = found ? &killed : &missing;
        const char *key;
        char digits[16];
        bson_uint32_to_string(bson_count_keys(to), &key, digits, sizeof digits);
        bval_append(to, key, -1, &elem.val);
    }
    if (ok) {
        append_ids(&ctx->reply, "cursorsKilled", &killed);
        append_ids(&ctx->reply, "cursorsNotFound", &missing);
        append_ids(&ctx->reply, "cursorsAlive", &none);
        append_ids(&ctx->reply, "cursorsUnknown", &none);
    }
    bson_destroy(&killed);
    bson_destroy(&missing);
    bson_destroy(&none);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}
