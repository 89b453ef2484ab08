/* An aggregation as a stream of documents: opened on the shards that own what it reads, the rest of the pipeline and
 * whatever it reads of other collections run here. Clients' aggregates, reads behind views, $lookup's reads and the
 * source of $out and $merge all come this way. On a worker; blocks. */
#ifndef SHERD_ROUTERD_AGGREGATE_OPEN_H
#define SHERD_ROUTERD_AGGREGATE_OPEN_H

#include "routerd/cursors.h"
#include "routerd/route.h"
#include "routerd/scatter.h"
#include "routerd/view.h"

/* An aggregate command, read: views into its body. */
struct aggregate_request {
    struct ns ns;         /* ns.coll is "" for {aggregate: 1} */
    struct bdoc body;     /* the command; its other fields go to the shards */
    struct bdoc stages;   /* array */
    int64_t batch_size;   /* -1: not given */
    const char *shown_ns; /* of the reply's cursor; NULL: ns */
    bool single_batch;    /* no cursor stays open */
    unsigned depth;       /* of views and of pipelines in pipelines; 0: the client's own */
};

/* `ns` is copied. Errors: those of a malformed command. Pure. */
bool aggregate_request_parse(struct bdoc body, const struct ns *ns, struct aggregate_request *out,
                             struct err *err) ERR_WARN_UNUSED;

/* Opens it: *out gives the documents (router_cursor_next) and ends with router_cursor_close or in the cursor table.
 * Instead, when `whole` is not NULL and one shard can do everything, its answer is left there, ok, and *out is NULL;
 * the caller deinits it. */
bool aggregate_open(struct command_ctx *ctx, const struct aggregate_request *request, struct router_cursor **out,
                    struct remote_request *whole, struct err *err) ERR_WARN_UNUSED;
/* The whole command: opens it and puts the first batch into the reply; with a final $out or $merge writes all. */
enum command_status aggregate_reply(struct command_ctx *ctx, const struct aggregate_request *request, struct err *err);

/* Whether a stage at any depth reads another collection. Pure. */
bool aggregate_reads_others(struct bdoc stages);

#endif
