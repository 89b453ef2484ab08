/* `sherd import` and `sherd export`: JSON lines into and out of a collection, with progress on stderr. */
#ifndef SHERD_SHELL_TRANSFER_H
#define SHERD_SHELL_TRANSFER_H

#include "shell/connection.h"
#include "shell/options.h"

/* Both return the exit code: 0, or 1 after an error, which is on stderr (for import with the number of the line). They
 * block. */
int transfer_import(struct connection *conn, const struct options *options);
int transfer_export(struct connection *conn, const struct options *options);

#endif
