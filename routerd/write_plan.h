/* Where the statements of a write batch go next: one round of requests that may run side by side. Pure but for the
 * context's arena; on a worker. */
#ifndef SHERD_ROUTERD_WRITE_PLAN_H
#define SHERD_ROUTERD_WRITE_PLAN_H

#include "command/write_fields.h"
#include "routerd/write_batch.h"

/* One request: statements for one shard. */
struct write_group {
    struct remote_set *set; /* a reference */
    uint32_t *items;        /* indexes into the batch */
    uint32_t count;
    uint32_t room;                  /* allocated for `items` */
    const struct key_range *ranges; /* what a range statement means on this shard; NULL: by key value, or unsharded */
    size_t range_count;
};

struct write_round {
    struct write_group *groups;
    size_t count;
    /* Instead of groups: a statement for a single document that any of several shards may hold. */
    struct write_item *anywhere;
    struct target anywhere_target;
    struct write_item *late; /* internal: first statement over ranges, and its target */
    struct target late_target;
};

/* Takes as many pending statements as may run now. A statement that can't be sent anywhere becomes an error of the
 * result. An empty round: nothing is pending. False: shards couldn't be found; err is ready for the client. */
bool write_plan(struct write_batch *batch, struct route *route, struct write_round *round,
                struct err *err) ERR_WARN_UNUSED;
void write_round_deinit(struct write_round *round);

/* An update or delete statement. */
bool write_statement_parse(enum write_kind kind, struct bdoc doc, struct write_fields *out,
                           struct err *err) ERR_WARN_UNUSED;

#endif
