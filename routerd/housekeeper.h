/* The router's own thread for what has to happen now and then: its sign of life in config.mongos, idle cursors. */
#ifndef SHERD_ROUTERD_HOUSEKEEPER_H
#define SHERD_ROUTERD_HOUSEKEEPER_H

#include "routerd/router.h"

struct housekeeper;

enum {
    HOUSEKEEPER_PING_MS = 10000,
    HOUSEKEEPER_TICK_MS = 1000,
};

struct housekeeper *housekeeper_start(struct router *router);
/* Blocks until a ping under way has ended: some seconds at most. Frees it. */
void housekeeper_stop(struct housekeeper *housekeeper);

#endif
