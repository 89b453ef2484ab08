/* The router's commands, one array a family; main joins them into the table. Each runs on a worker and may block until
 * the command's deadline. */
#ifndef SHERD_ROUTERD_COMMANDS_H
#define SHERD_ROUTERD_COMMANDS_H

#include "command/table.h"

struct command_family {
    const struct command *commands;
    unsigned count;
};

extern const struct command_family commands_handshake; /* hello, ping, buildInfo ... */
extern const struct command_family commands_info;      /* serverStatus, hostInfo, getParameter ... */
extern const struct command_family commands_session;   /* startSession, endSessions ..., transactions refused */
extern const struct command_family commands_ops;       /* currentOp, killOp, killSessions ... */
extern const struct command_family commands_explain;
extern const struct command_family commands_find;
extern const struct command_family commands_cursors; /* getMore, killCursors */
extern const struct command_family commands_count;     /* count, distinct */
extern const struct command_family commands_aggregate;
extern const struct command_family commands_write;    /* insert, update, delete */
extern const struct command_family commands_bulk;     /* bulkWrite */
extern const struct command_family commands_modify;   /* findAndModify */
extern const struct command_family commands_ddl;      /* create, drop, dropDatabase, collMod ... */
extern const struct command_family commands_index;    /* createIndexes, dropIndexes, listIndexes */
extern const struct command_family commands_list;     /* listCollections, listDatabases, collStats, dbStats, validate */
extern const struct command_family commands_shards;   /* addShard, listShards ... */
extern const struct command_family commands_sharding; /* enableSharding, shardCollection, split, moveChunk ... */
extern const struct command_family commands_balancer;
extern const struct command_family commands_metadata;  /* checkMetadataConsistency */
extern const struct command_family commands_failpoint; /* configureFailPoint */
extern const struct command_family commands_parameters; /* setParameter */

/* The whole table; the caller frees it with command_table_free. */
struct command_table *commands_table_new(bool test_commands);

/* The refusal of everything about search indexes. */
void index_search_refused(struct err *err);

#define COMMAND_FAMILY(array)                                                                                          \
    {                                                                                                                  \
        .commands = (array), .count = sizeof(array) / sizeof((array)[0])                                               \
    }

#endif
