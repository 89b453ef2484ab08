/* What the machine can do without a database: the figures that the benchmark's are held against, measured in the same
 * run. */
#ifndef SHERD_TESTS_BENCH_CLUSTER_FLOOR_H
#define SHERD_TESTS_BENCH_CLUSTER_FLOOR_H

#include <stddef.h>

/* Documents a second that LMDB (MDB_NOSYNC, batches of `batch` a transaction, 12-byte random keys) takes in one thread.
 */
double floor_lmdb_puts(const char *dir, size_t documents, size_t document_bytes, size_t batch);
/* Random gets a second of one thread on the same file. Call it after floor_lmdb_puts. */
double floor_lmdb_gets(const char *dir, size_t documents, double seconds);
/* Appends of `batch` records of `bytes` each, one write and one fdatasync a batch: records a second. */
double floor_synced_appends(const char *dir, size_t bytes, size_t batch, double seconds);
/* Round trips a second of `clients` threads through `hops` TCP hops (1: client to server, 2: with a relay between
 * them), requests of `request_bytes` and replies of `reply_bytes`. The servers are processes of their own. */
double floor_echo(int hops, int clients, size_t request_bytes, size_t reply_bytes, double seconds);

#endif
