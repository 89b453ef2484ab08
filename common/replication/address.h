/* A member's address: "host:port:raftport", where host is a name, an IPv4 address or an IPv6 address in brackets, port
 * serves requests and raftport the group's own traffic. "host:port" means raftport = port + 1000. Pure. */
#ifndef SHERD_REPLICATION_ADDRESS_H
#define SHERD_REPLICATION_ADDRESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ADDRESS_HOST_MAX = 256, /* with the NUL */
    ADDRESS_RAFT_PORT_OFFSET = 1000,
};

struct address {
    char host[ADDRESS_HOST_MAX]; /* without brackets */
    uint16_t port;
    uint16_t raft_port;
};

bool address_parse(const char *text, struct address *address, struct err *err) ERR_WARN_UNUSED;
/* "host:port:raftport" into `out`; false when it doesn't fit. */
bool address_format(const struct address *address, char *out, size_t size) ERR_WARN_UNUSED;
/* "host:port", what a client connects to. */
bool address_format_client(const struct address *address, char *out, size_t size) ERR_WARN_UNUSED;

#endif
