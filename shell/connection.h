/* One blocking connection to a router. A command that is interrupted by Ctrl-C closes it; the next one connects again.
 * Used from one thread. */
#ifndef SHERD_SHELL_CONNECTION_H
#define SHERD_SHELL_CONNECTION_H

#include "bson/value.h"
#include "shell/uri.h"

struct connection;

/* Documents that go as a kind-1 section: `name` is "documents", "updates" or "deletes"; bytes end to end. */
struct connection_sequence {
    const char *name;
    const void *data;
    size_t len;
};

/* Does not connect yet. The caller frees it. */
struct connection *connection_new(const struct uri *uri);
/* Closes; accepts NULL. */
void connection_free(struct connection *conn);
/* Connects unless connected: the hosts in their order, then the handshake. Blocks up to the URI's timeout for each
 * host. Network errors have category ERR_CAT_NETWORK. */
bool connection_ensure(struct connection *conn, struct err *err) ERR_WARN_UNUSED;
/* Sends `command` with $db added and waits for the reply, without a time limit. `sequence` may be NULL. *reply is valid
 * until the next call, and may say ok: 0. Errors: network, protocol, ERR_Interrupted. */
bool connection_run(struct connection *conn, const char *database, struct bdoc command,
                    const struct connection_sequence *sequence, struct bdoc *reply, struct err *err) ERR_WARN_UNUSED;
/* "host:port" of the current or last connection, or of the first host. */
const char *connection_address(const struct connection *conn);

#endif
