/* The state machine of the group: the store, changed by the appliers. All but checkpoint on the apply thread. */
#include "base/check.h"
#include "base/log.h"
#include "node/node_internal.h"

#include <stdlib.h>
#include <unistd.h>

static void begin(void *arg)
{
    struct node *node = arg;
    struct err err;
    if (store_write_begin(node->store, &node->apply.txn, &err))
        return;
    log_error("NODE", 5201, "The store can't be written; the process ends", LOG_STR("error", err.msg));
    _exit(REPLICA_EXIT_DISK);
}

static const struct node_applier *find_applier(const struct node *node, uint8_t kind)
{
    for (size_t i = 0; i < node->program->applier_count; i++) {
        if (node->program->appliers[i].kind == kind)
            return &node->program->appliers[i];
    }
    return NULL;
}

/* Only a newer program logs such a command. Its members execute it: one that passed over it would differ from them. */
static _Noreturn void stop_at_unknown(uint64_t index, uint8_t kind)
{
    log_error("NODE", 5202, "The log holds a command that this program doesn't know; use the newer program",
              LOG_I64("index", index), LOG_I64("kind", kind));
    _exit(REPLICA_EXIT_LOG);
}

static bool apply_kind(struct node *node, struct document_apply *apply, const uint8_t *command, size_t len,
                       struct buf *result, struct err *err)
{
    uint8_t kind = command[0];
    if (kind < DOCUMENT_KIND_LIMIT && document_kind_is_known(kind))
        return document_apply_command(apply, kind, command + 1, len - 1, result, err);
    const struct node_applier *applier = find_applier(node, kind);
    if (applier == NULL)
        stop_at_unknown(apply->index, kind);
    return applier->apply(node->plugin, apply, command + 1, len - 1, result, err);
}

static void apply(void *arg, uint64_t index, const uint8_t *command, size_t len, struct buf *result)
{
    struct node *node = arg;
    struct err err;
    CHECK(len > 0);
    struct document_apply apply = {
        .engine = node->host.engine, .txn = node->apply.txn, .arena = &node->apply.arena, .index = index};
    document_result_encode_ok_header(result);
    if (!apply_kind(node, &apply, command, len, result, &err)) {
        buf_clear(result);
        document_result_encode_err(result, &err);
    }
    arena_reset(&node->apply.arena);
}

static void commit(void *arg, uint64_t last_index)
{
    struct node *node = arg;
    store_write_commit(node->apply.txn, last_index);
    node->apply.txn = NULL;
    document_engine_committed(node->host.engine);
}

static uint64_t applied_index(void *arg)
{
    const struct node *node = arg;
    return store_applied_index(node->store);
}

static bool checkpoint(void *arg, struct err *err)
{
    struct node *node = arg;
    return store_checkpoint(node->store, NULL, err);
}

struct replica_fsm node_fsm(struct node *node)
{
    return (struct replica_fsm){
        .arg = node,
        .begin = begin,
        .apply = apply,
        .commit = commit,
        .applied_index = applied_index,
        .checkpoint = checkpoint,
    };
}
