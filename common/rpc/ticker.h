/* A thread that calls a function now and then: for deadlines, pings and pauses, none of which nng does for us. */
#ifndef SHERD_RPC_TICKER_H
#define SHERD_RPC_TICKER_H

#include <stdint.h>

struct ticker;

/* `tick(arg, now_ms)` returns when it wants to be called again (clock_now_ms() time; DEADLINE_NEVER: only when poked).
 * The first call comes at once. It may block for moments only. `name` as in base/thread.h. */
struct ticker *ticker_start(const char *name, int64_t (*tick)(void *arg, int64_t now_ms), void *arg);
/* Makes sure that tick is called at `at_ms` or before. Any thread, also from tick. */
void ticker_poke(struct ticker *ticker, int64_t at_ms);
/* Waits for a running tick; then frees. Not from tick. Accepts NULL. */
void ticker_stop(struct ticker *ticker);

#endif
