/* Part of the checker: whether config.chunks covers every key of every sharded collection exactly once, on shards that
 * exist. */
#ifndef SHERD_TESTS_FAULT_CRASH_CHUNKS_H
#define SHERD_TESTS_FAULT_CRASH_CHUNKS_H

#include <mongoc/mongoc.h>

#include <stdbool.h>

/* Reads the config database through a router. Prints what is wrong to stderr. */
bool chunks_cover_all(mongoc_client_t *client);

#endif
