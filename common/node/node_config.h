/* What a node is told at start, and what it remembers of its set in DBPATH/node.json. Used by main only, before any
 * thread exists. */
#ifndef SHERD_NODE_NODE_CONFIG_H
#define SHERD_NODE_NODE_CONFIG_H

#include "base/err.h"
#include "config/options.h"
#include "replication/replica.h"

#include <stdbool.h>

enum {
    NODE_FORMAT_VERSION = 1, /* of node.json and what stands around it; a newer one is refused */
    NODE_JSON_MAX_BYTES = 64 * 1024,
};

struct node_config {
    /* Options; strings are heap, NULL when not given. */
    char *dbpath;
    char *bind;
    int64_t port;      /* 0: as in node.json, or the program's default with --init */
    int64_t raft_port; /* 0: port + 1000 */
    char *set;
    int64_t id;
    char *members; /* "1@host:port,2@host:port" */
    bool init;
    char *log_level;
    bool test_commands;
    char *faults;
    int64_t max_data_gib; /* the most that the data file may become; 0: the store's default */

    /* The set: from --members or from node.json. */
    char set_name[REPLICA_SET_NAME_MAX];
    uint64_t member_id;
    size_t member_count;
    char addresses[REPLICA_MEMBERS_MAX][REPLICA_ADDRESS_MAX]; /* "host:port:raftport" */
    struct replica_member member[REPLICA_MEMBERS_MAX];        /* addresses point into the array above */
    const char *own_address;                                  /* one of them */
};

/* Reads the command line. OPTIONS_OK, or what main has to end with. */
enum options_result node_config_parse(struct node_config *config, const char *program, const char *summary, int argc,
                                      char **argv, struct err *err);
void node_config_deinit(struct node_config *config);
/* With --init: makes the member list from the options. */
bool node_config_from_options(struct node_config *config, int default_port, struct err *err) ERR_WARN_UNUSED;
/* Reads DBPATH/node.json: ERR_NotYetInitialized when there is none, ERR_UnsupportedFormat for a newer one; `role` must
 * be the stored one. */
bool node_config_load(struct node_config *config, const char *role, struct err *err) ERR_WARN_UNUSED;
bool node_config_save(const struct node_config *config, const char *role, struct err *err) ERR_WARN_UNUSED;
bool node_config_exists(const struct node_config *config);

#endif
