/* What the error of one statement means for a user's write command with several of them (user_writes.c). Pure. */
#ifndef SHERD_CONFIGD_BATCH_ERROR_H
#define SHERD_CONFIGD_BATCH_ERROR_H

#include "base/err.h"

#include <stdint.h>

/* Whether `failed`, a statement's error, is one of this member and not of the statement (it doesn't lead, is busy, the
 * outcome is unknown). Then it ends the whole command, so that the router finds the leader and sends it again: in
 * writeErrors it would reach the client, and no driver repeats a statement. *out gets the command's error; 11602 when
 * documents of earlier statements were changed (`changed` > 0), as the command as a whole isn't fit to be repeated. */
bool batch_error_ends(const struct err *failed, int64_t changed, struct err *out) ERR_WARN_UNUSED;

#endif
