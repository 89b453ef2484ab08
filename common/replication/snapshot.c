/* Snapshots, checkpoints and the length of the log.
 *
 * The library's snapshot is only a marker. When it wants to store one of its own, the wrapper around snapshot_put waits
 * until the state has reached the marker's index, makes the checkpoint on a worker thread, and then lets the library
 * write the marker and cut the log:
 *
 *   NONE -> WAIT_APPLIED -> CHECKPOINT -> LIBRARY -> NONE
 *
 * A received marker that the state already contains goes the same way. One that it lacks would need a copy of another
 * member's data: the process ends with REPLICA_EXIT_COPY, its log and votes untouched. */
#include "base/check.h"
#include "base/log.h"
#include "replication/internal.h"
#include "replication/marker.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static uint64_t applied(struct replica *replica)
{
    return atomic_load(&replica->apply.applied);
}

/* Bytes of log since the last snapshot. */
static uint64_t bytes_since(const struct replica *replica)
{
    return replica->log_bytes.total - replica->snapshot_total;
}

/* Entries to keep behind a snapshot taken now. */
static unsigned trailing_now(struct replica *replica)
{
    uint64_t entries = log_bytes_entries(&replica->log_bytes, REPLICA_TRAILING_BYTES, raft_last_index(&replica->raft));
    uint64_t most = replica->options.trailing_entries;
    if (entries > most)
        entries = most;
    return entries < 16 ? 16 : (unsigned)entries;
}

/* A leader keeps the log for a voter that would otherwise lose its place, within bounds. */
static bool hold_for_member(struct replica *replica, unsigned trailing)
{
    struct raft *raft = &replica->raft;
    uint64_t entries = raft_last_index(raft) - replica->snapshot_index;
    if (raft_state(raft) != RAFT_LEADER || bytes_since(replica) > replica->options.hold_bytes ||
        entries > 2ull * replica->options.trailing_entries)
        return false;
    for (unsigned i = 0; i < raft->configuration.n; i++) {
        const struct raft_server *server = &raft->configuration.servers[i];
        raft_index match;
        if (server->id != raft->id && server->role == RAFT_VOTER && raft_match_index(raft, server->id, &match) == 0 &&
            match + trailing / 2 < raft_last_index(raft))
            return true;
    }
    return false;
}

int snapshot_take(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *count)
{
    struct replica *replica = fsm->data;
    struct raft *raft = &replica->raft;
    uint64_t index = raft_last_applied(raft);
    unsigned trailing = trailing_now(replica);
    /* In the middle of a command's fragments the state machine stays behind the marker until the last one comes. */
    if (raft_commit_index(raft) != index || replica->fragment_index == index || replica->put.state != PUT_NONE ||
        replica->stop_deadline_ms != 0 || hold_for_member(replica, trailing))
        return RAFT_BUSY;
    raft_set_snapshot_trailing(raft, trailing);
    replica->snapshot_total = replica->log_bytes.total;
    replica->snapshot_index = index;
    bridge_queue_index(replica);
    uint8_t *marker = raft_calloc(1, MARKER_BYTES);
    *bufs = raft_calloc(1, sizeof **bufs);
    CHECK(marker != NULL && *bufs != NULL);
    store_le64(marker, MARKER_FORMAT);
    store_le64(marker + 8, index);
    (*bufs)[0] = (struct raft_buffer){.base = marker, .len = MARKER_BYTES};
    *count = 1;
    return 0;
}

static struct replica *of_io(struct raft_io *io)
{
    struct raft *raft = io->data;
    return raft->data;
}

static void cancel(struct put_job *put)
{
    put->state = PUT_NONE;
    put->cb(put->request, RAFT_CANCELED);
}

/* The library's own callback is passed on, so the end of a put shows only in its flags. */
static void notice_stored(struct replica *replica)
{
    if (replica->put.state == PUT_LIBRARY && !replica->raft.legacy.snapshot_taking &&
        !replica->raft.snapshot.installing)
        replica->put.state = PUT_NONE;
}

static void checkpoint_work(uv_work_t *work)
{
    struct replica *replica = work->data;
    struct replica_fsm *fsm = &replica->options.fsm;
    replica->put.failed = !fsm->checkpoint(fsm->arg, &replica->put.err);
}

static void checkpoint_done(uv_work_t *work, int status)
{
    struct replica *replica = work->data;
    struct put_job *put = &replica->put;
    if (put->failed)
        replica_die(replica, REPLICA_EXIT_DISK, "The checkpoint failed", put->err.msg);
    if (status != 0 || replica->closing) {
        cancel(put);
        return;
    }
    log_info("REPL", 3010, "Checkpoint made, cutting the log", LOG_I64("index", put->snapshot->index),
             LOG_I64("trailing", put->trailing));
    put->state = PUT_LIBRARY;
    int rv = replica->io_snapshot_put(&replica->io, put->trailing, put->request, put->snapshot, put->cb);
    if (rv != 0)
        replica_die(replica, REPLICA_EXIT_DISK, "The snapshot marker cannot be stored", replica->io.errmsg);
}

static void start_when_applied(struct replica *replica)
{
    struct put_job *put = &replica->put;
    if (put->state != PUT_WAIT_APPLIED || applied(replica) < put->snapshot->index)
        return;
    put->state = PUT_CHECKPOINT;
    put->work.data = replica;
    CHECK(uv_queue_work(&replica->loop, &put->work, checkpoint_work, checkpoint_done) == 0);
}

static void check_received(struct replica *replica, const struct raft_snapshot *snapshot)
{
    char what[160];
    if (snapshot->index <= applied(replica) || snapshot->index <= raft_last_applied(&replica->raft))
        return;
    snprintf(what, sizeof what, "its log ends at %llu, the others' logs begin after %llu",
             (unsigned long long)applied(replica), (unsigned long long)snapshot->index);
    replica_die(replica, REPLICA_EXIT_COPY,
                "This member lags behind the start of the others' logs and needs a copy of another member's data, "
                "which this version cannot make: replace it by a new member",
                what);
}

/* Never calls back from inside: the library expects that. */
static int on_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *request,
                  const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct replica *replica = of_io(io);
    struct put_job *put = &replica->put;
    bool received = trailing == 0;
    notice_stored(replica);
    if (received != replica->raft.snapshot.installing || received != replica->raft.legacy.snapshot_install ||
        put->state != PUT_NONE)
        replica_die(replica, REPLICA_EXIT_RAFT, "The library stores a snapshot out of turn", "");
    if (received)
        check_received(replica, snapshot);
    *put = (struct put_job){
        .state = PUT_WAIT_APPLIED, .trailing = trailing, .request = request, .snapshot = snapshot, .cb = cb};
    replica_wake(replica);
    return 0;
}

/* Entries that come faster than they are applied would pile up in memory: without them the message is a heartbeat, and
 * the leader sends them again. */
static void drop_entries(struct replica *replica, struct raft_append_entries *message)
{
    if (message->n_entries == 0 || apply_queued_bytes(replica) <= replica->options.apply_queue_bytes)
        return;
    raft_free(message->entries[0].batch);
    raft_free(message->entries);
    message->entries = NULL;
    message->n_entries = 0;
}

/* In 0.22.1 an InstallSnapshot that comes while the library takes a snapshot of its own ends in a NULL dereference. The
 * leader sends it again. */
static void on_receive(struct raft_io *io, struct raft_message *message)
{
    struct replica *replica = of_io(io);
    if (message->type == RAFT_INSTALL_SNAPSHOT && replica->raft.legacy.snapshot_taking) {
        raft_configuration_close(&message->install_snapshot.conf);
        raft_free(message->install_snapshot.data.base);
        return;
    }
    if (message->type == RAFT_APPEND_ENTRIES)
        drop_entries(replica, &message->append_entries);
    replica->io_recv(io, message);
}

static int on_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb receive)
{
    struct replica *replica = of_io(io);
    replica->io_recv = receive;
    return replica->io_start(io, msecs, tick, on_receive);
}

static int on_append(struct raft_io *io, struct raft_io_append *request, const struct raft_entry entries[],
                     unsigned count, raft_io_append_cb cb)
{
    struct replica *replica = of_io(io);
    for (unsigned i = 0; i < count; i++)
        replica->appended_bytes += entries[i].buf.len + LOG_BYTES_ENTRY_COST;
    return replica->io_append(io, request, entries, count, cb);
}

/* Closed segments are named by their first and last index. */
static bool segment_last_index(const char *name, uint64_t *last)
{
    unsigned long long from, to;
    int end = 0;
    if (sscanf(name, "%16llu-%16llu%n", &from, &to, &end) != 2 || name[end] != '\0' || end != 33)
        return false;
    *last = to;
    return true;
}

static int is_segment(const struct dirent *entry)
{
    uint64_t last;
    return segment_last_index(entry->d_name, &last);
}

void snapshot_count_loaded(struct replica *replica)
{
    struct dirent **segments;
    replica->snapshot_index = replica->restore_index;
    int count = scandir(replica->options.dir, &segments, is_segment, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat st;
        uint64_t last;
        snprintf(path, sizeof path, "%s/%s", replica->options.dir, segments[i]->d_name);
        if (segment_last_index(segments[i]->d_name, &last) && stat(path, &st) == 0) {
            log_bytes_add(&replica->log_bytes, (uint64_t)st.st_size, last);
            if (last <= replica->restore_index)
                replica->snapshot_total = replica->log_bytes.total;
        }
        free(segments[i]);
    }
    if (count >= 0)
        free(segments);
}

void snapshot_wrap(struct replica *replica)
{
    replica->io_start = replica->io.start;
    replica->io_append = replica->io.append;
    replica->io_snapshot_put = replica->io.snapshot_put;
    replica->io.start = on_start;
    replica->io.append = on_append;
    replica->io.snapshot_put = on_put;
}

void snapshot_step(struct replica *replica)
{
    notice_stored(replica);
    start_when_applied(replica);
    if (replica->appended_bytes > 0)
        log_bytes_add(&replica->log_bytes, replica->appended_bytes, raft_last_index(&replica->raft));
    replica->appended_bytes = 0;
    bool due = bytes_since(replica) > REPLICA_SNAPSHOT_BYTES;
    raft_set_snapshot_threshold(&replica->raft, due ? 1 : replica->options.snapshot_entries);
}

bool snapshot_cancel(struct replica *replica)
{
    struct put_job *put = &replica->put;
    if (put->state == PUT_CHECKPOINT)
        return false;
    if (put->state == PUT_WAIT_APPLIED)
        cancel(put);
    return true;
}
