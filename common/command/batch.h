/* The documents of a write command, wherever the client has put them: an array in the body, or a kind-1 section of the
 * message. Views into the message. */
#ifndef SHERD_COMMAND_BATCH_H
#define SHERD_COMMAND_BATCH_H

#include "base/err.h"
#include "command/context.h"

enum { COMMAND_BATCH_MAX = 100000 }; /* maxWriteBatchSize */

struct batch {
    uint32_t count;
    bool in_sequence; /* documents lie end to end in `sequence`; else they are elements of `array` */
    struct wire_sequence sequence;
    struct bdoc array;
};

struct batch_iter {
    const struct batch *batch;
    uint32_t index;  /* documents returned so far */
    uint32_t offset; /* in the sequence */
    struct biter iter;
};

/* `field` is "documents", "updates", "deletes" or "ops". 40414 when it is in neither place, 9 when in both, 14 for an
 * element that is no document, 16 InvalidLength for none or more than COMMAND_BATCH_MAX. */
bool batch_init(struct batch *batch, const struct command_ctx *ctx, const char *field, struct err *err) ERR_WARN_UNUSED;
/* Refuses document sequences that are not among `known` (ended by NULL): 40415. */
bool batch_check_sequences(const struct command_ctx *ctx, const char *const *known, struct err *err) ERR_WARN_UNUSED;
void batch_iter_init(struct batch_iter *iter, const struct batch *batch);
/* False at the end. */
bool batch_next(struct batch_iter *iter, struct bdoc *out);

#endif
