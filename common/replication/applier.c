#include "replication/applier.h"

#include "base/check.h"

void applier_init(struct applier *applier, const struct replica_fsm *fsm)
{
    *applier = (struct applier){.fsm = *fsm};
    applier->applied = fsm->applied_index(fsm->arg);
    applier->seen = applier->applied;
}

void applier_deinit(struct applier *applier)
{
    CHECK(!applier->open);
    entry_assembly_reset(&applier->assembly);
    buf_deinit(&applier->scratch);
}

static void apply_command(struct applier *applier, uint64_t index, const uint8_t *command, size_t len,
                          struct buf *result)
{
    if (!applier->open) {
        applier->fsm.begin(applier->fsm.arg);
        applier->open = true;
    }
    if (result == NULL) {
        buf_clear(&applier->scratch);
        result = &applier->scratch;
    }
    applier->fsm.apply(applier->fsm.arg, index, command, len, result);
}

static void apply_fragment(struct applier *applier, uint64_t index, const struct entry *entry, applier_result_fn result,
                           void *arg)
{
    struct entry_assembly *assembly = &applier->assembly;
    if (!entry_assembly_add(assembly, entry, index))
        return;
    apply_command(applier, index, assembly->bytes.data, assembly->bytes.len, result == NULL ? NULL : result(arg, 0));
    entry_assembly_reset(assembly);
}

bool applier_add(struct applier *applier, const struct applier_entry *raw, applier_result_fn result, void *arg,
                 struct err *err)
{
    uint64_t index = raw->index;
    if (index <= applier->applied)
        return true;
    CHECK(index > applier->seen || raw->data == NULL);
    if (raw->data == NULL) {
        if (index > applier->seen)
            applier->seen = index;
        return true;
    }
    struct entry entry;
    if (!entry_parse(raw->data, raw->len, &entry, err))
        return false;
    applier->seen = index;
    if (entry.kind == ENTRY_FRAGMENT) {
        apply_fragment(applier, index, &entry, result, arg);
        return true;
    }
    entry_assembly_reset(&applier->assembly);
    const uint8_t *command;
    size_t command_len, offset = 0, number = 0;
    while (entry_next_command(&entry, &offset, &command, &command_len)) {
        apply_command(applier, index, command, command_len, result == NULL ? NULL : result(arg, number));
        number++;
    }
    return true;
}

void applier_commit(struct applier *applier)
{
    struct entry_assembly *assembly = &applier->assembly;
    /* Whatever follows directly is not a fragment of this command: it will never be complete. */
    if (assembly->first_index != 0 && applier->seen > assembly->last_index)
        entry_assembly_reset(assembly);
    uint64_t target = assembly->first_index == 0 ? applier->seen : assembly->first_index - 1;
    if (target <= applier->applied) {
        CHECK(!applier->open);
        return;
    }
    if (!applier->open)
        applier->fsm.begin(applier->fsm.arg);
    applier->fsm.commit(applier->fsm.arg, target);
    applier->open = false;
    applier->applied = target;
}
