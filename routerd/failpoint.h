/* failCommand, MongoDB's fail point for driver tests: makes named commands fail before or after they run. Exists only
 * with --enable-test-commands. Any thread.
 * https://github.com/mongodb/mongo/wiki/The-%22failCommand%22-fail-point */
#ifndef SHERD_ROUTERD_FAILPOINT_H
#define SHERD_ROUTERD_FAILPOINT_H

#include "command/context.h"

struct failpoints;

struct failpoints *failpoints_new(void);
void failpoints_free(struct failpoints *failpoints);

enum failpoint_effect {
    FAILPOINT_NONE,  /* run the command; with a writeConcernError in the outcome: add it to the reply */
    FAILPOINT_CLOSE, /* close the connection without an answer */
    FAILPOINT_ERROR, /* answer err and the context's labels */
};

struct failpoint_outcome {
    enum failpoint_effect effect;
    struct bdoc write_concern_error; /* in the context's arena; data NULL: none */
    struct bdoc labels;              /* array of errorLabels that go with it; data NULL: none */
};

/* Counts the command; blocks when the fail point says so. `app_name` is the client's. */
void failpoints_check(struct failpoints *failpoints, struct command_ctx *ctx, const char *app_name,
                      struct failpoint_outcome *out, struct err *err);

#endif
