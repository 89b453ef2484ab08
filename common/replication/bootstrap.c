/* The one-time preparation of a first member. */
#include "base/file.h"
#include "base/log.h"
#include "replication/address.h"
#include "replication/internal.h"

#include <stdio.h>

static void on_closed(struct raft *raft)
{
    (void)raft;
}

static int no_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    (void)fsm;
    (void)buf;
    *result = NULL;
    return 0;
}

static bool fill(struct raft_configuration *configuration, const struct replica_member *members, size_t count,
                 struct err *err)
{
    struct address parsed;
    char address[REPLICA_ADDRESS_MAX];
    for (size_t i = 0; i < count; i++) {
        if (!address_parse(members[i].address, &parsed, err))
            return false;
        if (!address_format(&parsed, address, sizeof address))
            return err_set(err, ERR_BadValue, "the address of member %llu is too long",
                           (unsigned long long)members[i].id);
        int rv = raft_configuration_add(configuration, members[i].id, address, RAFT_VOTER);
        if (rv != 0)
            return err_set(err, ERR_BadValue, "member %llu at '%s': %s", (unsigned long long)members[i].id, address,
                           raft_strerror(rv));
    }
    return true;
}

static bool write_log(const char *dir, uint64_t id, const struct raft_configuration *configuration, struct err *err)
{
    uv_loop_t loop;
    struct transport transport;
    struct raft raft = {0};
    struct raft_io io = {0};
    struct raft_fsm fsm = {.version = 1, .apply = no_apply};
    struct transport_hooks hooks = {0};
    if (uv_loop_init(&loop) != 0)
        return err_set(err, ERR_InternalError, "no event loop");
    transport_init(&transport, &loop, "", NULL, &hooks);
    bool ok = false;
    int rv = raft_uv_init(&io, &loop, dir, &transport.base);
    if (rv != 0) {
        err_set(err, ERR_OperationFailed, "the log directory %s: %s", dir, io.errmsg);
        goto out;
    }
    rv = raft_init(&raft, &io, &fsm, id, "127.0.0.1:1:1");
    if (rv != 0) {
        err_set(err, ERR_OperationFailed, "the log directory %s: %s", dir, raft_errmsg(&raft));
        raft_uv_close(&io);
        goto out;
    }
    rv = raft_bootstrap(&raft, configuration);
    ok = rv == 0;
    if (rv == RAFT_CANTBOOTSTRAP)
        err_set(err, ERR_AlreadyInitialized, "%s is already initialised", dir);
    else if (rv != 0)
        err_set(err, ERR_OperationFailed, "the log directory %s: %s", dir, io.errmsg);
    raft_close(&raft, on_closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    raft_uv_close(&io);
out:
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_loop_close(&loop);
    return ok;
}

bool replica_bootstrap(const char *dir, uint64_t id, const struct replica_member *members, size_t count,
                       struct err *err)
{
    if (count == 0 || count > REPLICA_MEMBERS_MAX || count % 2 == 0)
        return err_set(err, ERR_BadValue, "a set starts with 1, 3, 5 or 7 members, not %zu", count);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (members[i].id == 0)
            return err_set(err, ERR_BadValue, "0 is not a member id");
        found = found || members[i].id == id;
    }
    if (!found)
        return err_set(err, ERR_BadValue, "member %llu is not in the list of members", (unsigned long long)id);
    if (!file_make_dir(dir, err))
        return false;
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    bool ok = fill(&configuration, members, count, err) && write_log(dir, id, &configuration, err);
    raft_configuration_close(&configuration);
    return ok;
}
