#include "command/batch.h"

#include "command/fields.h"

#include <string.h>

static bool array_init(struct batch *batch, struct bdoc array, const char *field, struct err *err)
{
    struct biter iter;
    struct belem elem;
    batch->array = array;
    for (biter_init(&iter, array); biter_next(&iter, &elem); batch->count++)
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_TypeMismatch, "BSON field '%s.%u' is the wrong type '%s', expected type 'object'",
                           field, batch->count, bval_type_name(elem.val.type));
    return true;
}

bool batch_check_sequences(const struct command_ctx *ctx, const char *const *known, struct err *err)
{
    for (unsigned i = 0; i < ctx->msg.sequence_count; i++) {
        const char *name = ctx->msg.sequences[i].name;
        const char *const *at = known;
        while (*at != NULL && strcmp(*at, name) != 0)
            at++;
        if (*at == NULL)
            return err_set(err, COMMAND_ERR_FIELD_UNKNOWN, "BSON field '%s.%s' is an unknown field.", ctx->name, name);
    }
    return true;
}

bool batch_init(struct batch *batch, const struct command_ctx *ctx, const char *field, struct err *err)
{
    *batch = (struct batch){0};
    const struct wire_sequence *sequence = wire_msg_sequence(&ctx->msg, field);
    struct bdoc array = {0};
    if (!field_get_array(ctx->body, field, &array, err))
        return false;
    if (sequence != NULL && array.data != NULL)
        return err_set(err, ERR_FailedToParse, "'%s' is given both in the body and as a document sequence", field);
    if (sequence != NULL) {
        batch->in_sequence = true;
        batch->sequence = *sequence;
        batch->count = sequence->count;
    } else if (array.data == NULL) {
        return err_set(err, COMMAND_ERR_FIELD_MISSING, "BSON field '%s.%s' is missing but a required field", ctx->name,
                       field);
    } else if (!array_init(batch, array, field, err)) {
        return false;
    }
    if (batch->count == 0 || batch->count > COMMAND_BATCH_MAX)
        return err_set(err, ERR_InvalidLength, "Write batch sizes must be between 1 and %d. Got %u operations.",
                       COMMAND_BATCH_MAX, batch->count);
    return true;
}

void batch_iter_init(struct batch_iter *iter, const struct batch *batch)
{
    *iter = (struct batch_iter){.batch = batch};
    if (!batch->in_sequence)
        biter_init(&iter->iter, batch->array);
}

bool batch_next(struct batch_iter *iter, struct bdoc *out)
{
    if (iter->batch->in_sequence) {
        if (!wire_sequence_next(&iter->batch->sequence, &iter->offset, out))
            return false;
    } else {
        struct belem elem;
        if (!biter_next(&iter->iter, &elem))
            return false;
        *out = bval_doc(&elem.val);
    }
    iter->index++;
    return true;
}
