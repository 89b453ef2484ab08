/* What must hold of every collection of the crash test, whatever was executed: its indexes and counters fit its
 * documents, and its documents fit its options. For the checker. */
#ifndef SHERD_TESTS_FAULT_CRASH_KINDS_H
#define SHERD_TESTS_FAULT_CRASH_KINDS_H

#include <mongoc/mongoc.h>

#include <stdbool.h>

/* False: something doesn't hold, or could not be asked for; each is printed to stderr. */
bool kinds_hold(mongoc_client_t *client);

#endif
