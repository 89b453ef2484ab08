#include "document/claims.h"

#include "base/check.h"
#include "base/mem.h"

#include <pthread.h>

enum {
    CLAIM_BUCKETS = 4096, /* a power of two; requests in flight are in the thousands */
};

struct document_claim {
    struct document_claim_key key;
    struct document_claim_holder *holder;
    struct document_claim *next_in_bucket;
    struct document_claim *next_of_holder;
    struct document_claim_waiter *waiters; /* newest first */
};

struct document_claims {
    pthread_mutex_t mutex; /* protects everything below and all claims */
    struct document_claim *buckets[CLAIM_BUCKETS];
};

struct document_claims *document_claims_new(void)
{
    struct document_claims *claims = mem_alloc(sizeof *claims);
    pthread_mutex_init(&claims->mutex, NULL);
    return claims;
}

void document_claims_free(struct document_claims *claims)
{
    if (claims == NULL)
        return;
    for (size_t i = 0; i < CLAIM_BUCKETS; i++)
        CHECK(claims->buckets[i] == NULL);
    pthread_mutex_destroy(&claims->mutex);
    mem_free(claims);
}

static struct document_claim **bucket_of(struct document_claims *claims, struct document_claim_key key)
{
    uint64_t mixed = (key.id + key.space * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return &claims->buckets[(mixed >> 40) & (CLAIM_BUCKETS - 1)];
}

static struct document_claim *find_locked(struct document_claims *claims, struct document_claim_key key)
{
    struct document_claim *claim = *bucket_of(claims, key);
    while (claim != NULL && (claim->key.id != key.id || claim->key.space != key.space))
        claim = claim->next_in_bucket;
    return claim;
}

bool document_claims_try(struct document_claims *claims, struct document_claim_key key,
                         struct document_claim_holder *holder)
{
    pthread_mutex_lock(&claims->mutex);
    struct document_claim *claim = find_locked(claims, key);
    bool mine = claim == NULL || claim->holder == holder;
    if (claim == NULL) {
        claim = mem_alloc(sizeof *claim);
        struct document_claim **bucket = bucket_of(claims, key);
        *claim = (struct document_claim){
            .key = key, .holder = holder, .next_in_bucket = *bucket, .next_of_holder = holder->first};
        *bucket = claim;
        holder->first = claim;
    }
    pthread_mutex_unlock(&claims->mutex);
    return mine;
}

bool document_claims_is_held(struct document_claims *claims, struct document_claim_key key)
{
    pthread_mutex_lock(&claims->mutex);
    bool held = find_locked(claims, key) != NULL;
    pthread_mutex_unlock(&claims->mutex);
    return held;
}

bool document_claims_wait(struct document_claims *claims, struct document_claim_key key,
                          struct document_claim_waiter *waiter)
{
    pthread_mutex_lock(&claims->mutex);
    struct document_claim *claim = find_locked(claims, key);
    if (claim != NULL) {
        waiter->next = claim->waiters;
        claim->waiters = waiter;
    }
    pthread_mutex_unlock(&claims->mutex);
    return claim != NULL;
}

static void unlink_locked(struct document_claims *claims, struct document_claim *claim)
{
    struct document_claim **place = bucket_of(claims, claim->key);
    while (*place != claim)
        place = &(*place)->next_in_bucket;
    *place = claim->next_in_bucket;
}

void document_claims_release(struct document_claims *claims, struct document_claim_holder *holder)
{
    if (holder->first == NULL)
        return;
    struct document_claim_waiter *oldest_first = NULL;
    pthread_mutex_lock(&claims->mutex);
    while (holder->first != NULL) {
        struct document_claim *claim = holder->first;
        holder->first = claim->next_of_holder;
        unlink_locked(claims, claim);
        while (claim->waiters != NULL) {
            struct document_claim_waiter *waiter = claim->waiters;
            claim->waiters = waiter->next;
            waiter->next = oldest_first;
            oldest_first = waiter;
        }
        mem_free(claim);
    }
    pthread_mutex_unlock(&claims->mutex);
    while (oldest_first != NULL) {
        struct document_claim_waiter *waiter = oldest_first;
        oldest_first = waiter->next;
        waiter->wake(waiter->arg);
    }
}
