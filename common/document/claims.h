/* In-memory claims of the leader on documents that a proposed write has chosen: a second chooser takes another one, or
 * waits. Claims are only a courtesy that saves work: apply checks the filter again, so nothing depends on them after a
 * change of leader. Workers claim, the apply thread's completions release: any thread, short lock inside. */
#ifndef SHERD_DOCUMENT_CLAIMS_H
#define SHERD_DOCUMENT_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

struct document_claims;
struct document_claim;

/* What is claimed: a record of a collection, or the key that an upsert would insert. */
struct document_claim_key {
    uint64_t space; /* collection id; bit 63 set: `id` is a hash of an upsert's equality part */
    uint64_t id;    /* record id or hash */
};

#define DOCUMENT_CLAIM_UPSERT (UINT64_C(1) << 63)

/* One write's claims. Lives in the write; initialised to zero. */
struct document_claim_holder {
    struct document_claim *first;
};

/* Somebody who waits for a claim to end. Lives in the waiting write until `wake` was called. */
struct document_claim_waiter {
    struct document_claim_waiter *next;
    void (*wake)(void *arg); /* once, on the releasing thread; must not block */
    void *arg;
};

struct document_claims *document_claims_new(void);
/* Nobody may hold a claim. */
void document_claims_free(struct document_claims *claims);

/* True: `holder` now has it (also when it had it before). */
bool document_claims_try(struct document_claims *claims, struct document_claim_key key,
                         struct document_claim_holder *holder);
bool document_claims_is_held(struct document_claims *claims, struct document_claim_key key);
/* True: the waiter is queued and will be woken when the claim ends. False: nobody holds it (any more). */
bool document_claims_wait(struct document_claims *claims, struct document_claim_key key,
                          struct document_claim_waiter *waiter);
/* Ends all claims of the holder and wakes whoever waits for one of them. */
void document_claims_release(struct document_claims *claims, struct document_claim_holder *holder);

#endif
