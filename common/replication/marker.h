/* The data of the group's snapshots: a marker that only names the index. The state itself is made durable by the state
 * machine's checkpoint before the marker is stored. */
#ifndef SHERD_REPLICATION_MARKER_H
#define SHERD_REPLICATION_MARKER_H

enum {
    MARKER_FORMAT = 1,
    MARKER_BYTES = 16, /* u64 format, u64 index, little-endian */
};

#endif
