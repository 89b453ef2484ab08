#include "tests/unit/replication/hash_fsm.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

void hash_state_apply(struct hash_state *state, uint64_t index, const uint8_t *command, size_t len)
{
    uint64_t digest = hash_bytes(command, len);
    uint64_t id = len < sizeof(uint64_t) ? 0 : load_le64(command);
    uint64_t *reg = &state->registers[digest % HASH_FSM_REGISTERS];
    *reg = *reg * 31 + digest + index;
    state->hash = (state->hash ^ digest) * 0x100000001b3ull + index;
    state->count++;
    state->times[id % HASH_FSM_IDS]++;
}

uint8_t *hash_fsm_command(uint64_t id, size_t len)
{
    CHECK(len >= sizeof id);
    uint8_t *command = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        command[i] = (uint8_t)(id * 7 + i);
    store_le64(command, id);
    return command;
}

static void begin(void *arg)
{
    struct hash_fsm *fsm = arg;
    CHECK(!fsm->open);
    fsm->open = true;
    fsm->next = fsm->state;
}

static void apply(void *arg, uint64_t index, const uint8_t *command, size_t len, struct buf *result)
{
    struct hash_fsm *fsm = arg;
    CHECK(fsm->open && index > fsm->state.applied);
    hash_state_apply(&fsm->next, index, command, len);
    buf_append_le64(result, len < sizeof(uint64_t) ? 0 : load_le64(command));
    buf_append_le64(result, fsm->next.count);
}

static void commit(void *arg, uint64_t last_index)
{
    struct hash_fsm *fsm = arg;
    CHECK(fsm->open && last_index > fsm->state.applied);
    fsm->next.applied = last_index;
    if (atomic_load(&fsm->delay_ms) > 0)
        clock_sleep_ms(atomic_load(&fsm->delay_ms));
    pthread_mutex_lock(&fsm->mutex);
    fsm->state = fsm->next;
    fsm->open = false;
    pthread_mutex_unlock(&fsm->mutex);
}

static uint64_t applied_index(void *arg)
{
    struct hash_fsm *fsm = arg;
    return fsm->state.applied;
}

static bool checkpoint(void *arg, struct err *err)
{
    struct hash_fsm *fsm = arg;
    struct hash_state *copy = mem_alloc(sizeof *copy);
    hash_fsm_get(fsm, copy);
    bool ok = fsm->path[0] == '\0' || file_replace(fsm->path, copy, sizeof *copy, err);
    mem_free(copy);
    pthread_mutex_lock(&fsm->mutex);
    fsm->checkpoints++;
    pthread_mutex_unlock(&fsm->mutex);
    return ok;
}

void hash_fsm_open(struct hash_fsm *fsm, const char *path)
{
    struct buf bytes = BUF_INIT;
    memset(fsm, 0, sizeof *fsm);
    pthread_mutex_init(&fsm->mutex, NULL);
    if (path == NULL)
        return;
    snprintf(fsm->path, sizeof fsm->path, "%s", path);
    if (file_read(path, sizeof fsm->state, &bytes, NULL)) {
        CHECK(bytes.len == sizeof fsm->state);
        memcpy(&fsm->state, bytes.data, bytes.len);
        fsm->loaded = fsm->state.applied;
    }
    buf_deinit(&bytes);
}

void hash_fsm_close(struct hash_fsm *fsm)
{
    pthread_mutex_destroy(&fsm->mutex);
}

struct replica_fsm hash_fsm_hooks(struct hash_fsm *fsm)
{
    return (struct replica_fsm){.arg = fsm,
                                .begin = begin,
                                .apply = apply,
                                .commit = commit,
                                .applied_index = applied_index,
                                .checkpoint = checkpoint};
}

void hash_fsm_get(struct hash_fsm *fsm, struct hash_state *state)
{
    pthread_mutex_lock(&fsm->mutex);
    *state = fsm->state;
    pthread_mutex_unlock(&fsm->mutex);
}

uint64_t hash_fsm_count(struct hash_fsm *fsm)
{
    pthread_mutex_lock(&fsm->mutex);
    uint64_t count = fsm->state.count;
    pthread_mutex_unlock(&fsm->mutex);
    return count;
}

unsigned hash_fsm_checkpoints(struct hash_fsm *fsm)
{
    pthread_mutex_lock(&fsm->mutex);
    unsigned count = fsm->checkpoints;
    pthread_mutex_unlock(&fsm->mutex);
    return count;
}

uint64_t hash_fsm_loaded(const struct hash_fsm *fsm)
{
    return fsm->loaded;
}

void hash_fsm_set_delay(struct hash_fsm *fsm, unsigned delay_ms)
{
    atomic_store(&fsm->delay_ms, delay_ms);
}
