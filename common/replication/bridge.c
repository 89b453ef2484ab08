/* Between the library's state machine calls, which come on the raft thread, and the apply thread. */
#include "base/check.h"
#include "base/log.h"
#include "replication/entry.h"
#include "replication/internal.h"
#include "replication/marker.h"

static bool more_fragments_follow(const uint8_t *data, size_t len)
{
    struct entry entry;
    return len > 1 && data[1] == ENTRY_FRAGMENT && entry_parse(data, len, &entry, NULL) &&
           entry.fragment_number + 1 < entry.fragment_count;
}

static int on_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct replica *replica = fsm->data;
    uint64_t index = raft_last_applied(&replica->raft) + 1;
    *result = NULL;
    if (index <= replica->start_applied)
        return 0;
    replica->fragment_index = more_fragments_follow(buf->base, buf->len) ? index : 0;
    struct apply_item *item = apply_item_new(index, buf->base, buf->len);
    item->proposals = propose_committed(replica, buf->base, buf->len);
    replica->queued_index = index;
    apply_push(replica, item);
    return 0;
}

/* A marker's data is here already: at start the state machine was opened before, later the put's wrapper saw to it. */
static int on_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct replica *replica = fsm->data;
    if (buf->len >= MARKER_BYTES) {
        uint64_t index = load_le64((const uint8_t *)buf->base + 8);
        if (index > replica->restore_index)
            replica->restore_index = index;
    }
    raft_free(buf->base);
    return 0;
}

void bridge_queue_index(struct replica *replica)
{
    uint64_t index = raft_last_applied(&replica->raft);
    if (index <= replica->queued_index)
        return;
    replica->queued_index = index;
    if (index > replica->start_applied)
        apply_push(replica, apply_item_new(index, NULL, 0));
}

void bridge_init(struct replica *replica)
{
    replica->fsm = (struct raft_fsm){
        .version = 1,
        .data = replica,
        .apply = on_apply,
        .snapshot = snapshot_take,
        .restore = on_restore,
    };
}
