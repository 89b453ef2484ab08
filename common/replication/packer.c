#include "replication/packer.h"

#include "base/check.h"
#include "base/mem.h"
#include "replication/entry.h"

struct proposal *proposal_new(uint8_t *command, size_t len, replica_done_cb done, void *arg)
{
    struct proposal *proposal = mem_alloc(sizeof *proposal);
    proposal->command = command;
    proposal->len = len;
    proposal->done = done;
    proposal->arg = arg;
    return proposal;
}

void proposal_free(struct proposal *proposal)
{
    mem_free(proposal->command);
    buf_deinit(&proposal->result);
    mem_free(proposal);
}

void proposal_list_push(struct proposal_list *list, struct proposal *proposal)
{
    proposal->next = NULL;
    if (list->tail == NULL)
        list->head = proposal;
    else
        list->tail->next = proposal;
    list->tail = proposal;
}

struct proposal *proposal_list_pop(struct proposal_list *list)
{
    struct proposal *proposal = list->head;
    if (proposal == NULL)
        return NULL;
    list->head = proposal->next;
    if (list->head == NULL)
        list->tail = NULL;
    proposal->next = NULL;
    return proposal;
}

void proposal_list_append(struct proposal_list *to, struct proposal_list *from)
{
    if (from->head == NULL)
        return;
    if (to->tail == NULL)
        to->head = from->head;
    else
        to->tail->next = from->head;
    to->tail = from->tail;
    *from = (struct proposal_list){0};
}

void proposal_list_finish(struct proposal_list *list, enum replica_outcome outcome)
{
    for (struct proposal *proposal; (proposal = proposal_list_pop(list)) != NULL;) {
        bool applied = outcome == REPLICA_APPLIED;
        proposal->done(proposal->arg, outcome, applied ? proposal->index : 0, applied ? proposal->result.data : NULL,
                       applied ? proposal->result.len : 0);
        proposal_free(proposal);
    }
}

static size_t fragment_bytes(const struct packer *packer)
{
    return packer->fragment_bytes == 0 ? ENTRY_FRAGMENT_BYTES : packer->fragment_bytes;
}

/* The commands that the next entry takes, when the first isn't cut. */
static size_t next_commands(const struct packer *packer, size_t *bytes)
{
    size_t count = 0;
    *bytes = 0;
    for (const struct proposal *p = packer->pending.head; p != NULL; p = p->next) {
        if (count > 0 &&
            (*bytes + p->len > PACKER_ENTRY_BYTES || p->len > fragment_bytes(packer) || count == PACKER_ENTRY_COMMANDS))
            break;
        *bytes += p->len;
        count++;
    }
    return count;
}

size_t packer_next_bytes(const struct packer *packer)
{
    size_t bytes;
    (void)next_commands(packer, &bytes);
    return bytes < fragment_bytes(packer) ? bytes : fragment_bytes(packer);
}

static void next_fragment(struct packer *packer, uint64_t term, struct buf *out, struct proposal_list *logged)
{
    struct proposal *head = packer->pending.head;
    uint32_t count = (uint32_t)((head->len + fragment_bytes(packer) - 1) / fragment_bytes(packer));
    buf_reserve(out, ENTRY_HEADER_BYTES + ENTRY_FRAGMENT_HEADER_BYTES + fragment_bytes(packer) + ENTRY_PADDING_MAX);
    entry_begin(out, ENTRY_FRAGMENT, term, packer->origin, ++packer->sequence);
    entry_add_fragment(out, head->command, head->len, packer->fragments_sent, count);
    entry_finish(out, 1);
    packer->fragments_sent++;
    if (packer->fragments_sent < count)
        return;
    packer->fragments_sent = 0;
    proposal_list_push(logged, proposal_list_pop(&packer->pending));
}

void packer_next(struct packer *packer, uint64_t term, struct buf *out, struct proposal_list *logged)
{
    CHECK(packer->pending.head != NULL);
    if (packer->pending.head->len > fragment_bytes(packer)) {
        next_fragment(packer, term, out, logged);
        return;
    }
    size_t bytes, count = next_commands(packer, &bytes);
    buf_reserve(out, ENTRY_HEADER_BYTES + bytes + count * sizeof(uint32_t) + ENTRY_PADDING_MAX);
    entry_begin(out, ENTRY_COMMANDS, term, packer->origin, ++packer->sequence);
    for (size_t i = 0; i < count; i++) {
        struct proposal *proposal = proposal_list_pop(&packer->pending);
        entry_add_command(out, proposal->command, proposal->len);
        proposal_list_push(logged, proposal);
    }
    entry_finish(out, (uint16_t)count);
}

void packer_undo(struct packer *packer, const struct packer *before, struct proposal_list *logged)
{
    proposal_list_append(logged, &packer->pending);
    packer->pending = *logged;
    *logged = (struct proposal_list){0};
    packer->fragments_sent = before->fragments_sent;
    packer->sequence = before->sequence;
}

void packer_restart(struct packer *packer)
{
    packer->fragments_sent = 0;
}
