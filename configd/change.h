/* One change of cluster metadata under construction: planned on a view by the leader, shipped as one `commit` log
 * command that applies only if the metadata is still what the plan was made on. One thread, on the stack. */
#ifndef SHERD_CONFIGD_CHANGE_H
#define SHERD_CONFIGD_CHANGE_H

#include "configd/view.h"

/* Owns its documents until change_deinit. */
struct change {
    const struct metadata_view *view;
    const char *server; /* "host:port" of this member, for the changelog */
    int64_t now_ms;     /* wall clock, read once */
    int64_t sequence;   /* of the view */
    bson_t writes;      /* array of writes, see commit.h */
    uint32_t write_count;
    bson_t reply; /* what the command answers once the change is applied, or at once when there is no write */
};

/* Plans one command: fills writes and reply from what the view says, or refuses. */
typedef bool change_plan_cb(struct change *change, struct bdoc request, struct err *err);

void change_init(struct change *change, const struct metadata_view *view, const char *server, int64_t now_ms);
void change_deinit(struct change *change);

/* Inserts the document or replaces the one of the same _id. */
void change_put(struct change *change, const char *ns, const bson_t *doc);
void change_erase(struct change *change, const char *ns, const struct bval *id);
void change_erase_str(struct change *change, const char *ns, const char *id);
/* Every chunk of a collection that goes away in the same change. */
void change_erase_chunks(struct change *change, const uint8_t uuid[CLUSTER_UUID_BYTES]);
/* An entry of config.changelog; `details` may be NULL. */
void change_log(struct change *change, const char *what, const char *ns, const bson_t *details);
/* A BSON timestamp of now that no other change gets. */
uint64_t change_timestamp(const struct change *change);
/* The payload of the log command. `guarded`: checked against the sequence (all but pings). */
void change_encode(const struct change *change, bool guarded, struct buf *out);

#endif
