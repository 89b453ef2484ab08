#include "routerd/write_concern.h"

#include "command/fields.h"

enum {
    WRITE_CONCERN_MAX_W = 50,
    UNSATISFIABLE_WRITE_CONCERN = 100,
};

static bool check_write(struct bdoc concern, struct err *err)
{
    struct bval w;
    int64_t number;
    bool ignored;
    if (!bdoc_find(concern, "w", &w))
        w = BVAL_MISSING;
    if (bval_is_number(&w)) {
        if (!bval_to_i64(&w, &number) || number < 0 || number > WRITE_CONCERN_MAX_W)
            return err_set(err, ERR_FailedToParse, "w has to be a non-negative number and not greater than %d",
                           WRITE_CONCERN_MAX_W);
    } else if (w.type != BT_EOO && w.type != BT_STRING && w.type != BT_DOCUMENT) {
        return err_set(err, ERR_FailedToParse, "w has to be a number, string, or object; found: %s",
                       bval_type_name(w.type));
    }
    return field_get_bool(concern, "j", &ignored, err) && field_get_i64(concern, "wtimeout", &number, err);
}

static bool check_read(struct bdoc concern, struct err *err)
{
    static const char *const levels[] = {"local", "available", "majority", "linearizable", "snapshot"};
    const char *level = NULL;
    if (!field_get_str(concern, "level", &level, err) || !level)
        return !level && !bdoc_is_empty(concern)
                   ? bdoc_has(concern, "afterClusterTime") || bdoc_has(concern, "provenance") ||
                         err_set(err, ERR_FailedToParse, "unknown readConcern field")
                   : !level;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(level, levels[i]) != 0)
            continue;
        if (strcmp(level, "snapshot") == 0)
            return err_set(err, ERR_InvalidOptions, "read concern level snapshot is not supported");
        return true;
    }
    return err_set(err, ERR_FailedToParse,
                   "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'");
}

bool concerns_check(const struct command_ctx *ctx, struct err *err)
{
    struct bdoc concern = {0};
    if (!field_get_doc(ctx->body, "writeConcern", &concern, err) || (concern.data && !check_write(concern, err)))
        return false;
    concern = (struct bdoc){0};
    return field_get_doc(ctx->body, "readConcern", &concern, err) && (!concern.data || check_read(concern, err));
}

static void append(struct command_ctx *ctx, int32_t code, const char *name, const char *text)
{
    bson_t error;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "writeConcernError", &error);
    BSON_APPEND_INT32(&error, "code", code);
    BSON_APPEND_UTF8(&error, "codeName", name);
    BSON_APPEND_UTF8(&error, "errmsg", text);
    bson_append_document_end(&ctx->reply, &error);
}

void write_concern_append_error(struct command_ctx *ctx, size_t members)
{
    struct bval concern, w;
    int64_t number;
    if (!bdoc_find(ctx->body, "writeConcern", &concern) || concern.type != BT_DOCUMENT ||
        !bdoc_find(bval_doc(&concern), "w", &w))
        return;
    if (bval_to_i64(&w, &number) && number > (int64_t)members)
        append(ctx, UNSATISFIABLE_WRITE_CONCERN, "UnsatisfiableWriteConcern", "Not enough data-bearing nodes");
    else if (w.type == BT_STRING && !bval_is_str(&w, "majority"))
        append(ctx, ERR_UnknownReplWriteConcern, "UnknownReplWriteConcern",
               "No write concern mode of that name is defined");
}
