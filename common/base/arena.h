/* Memory that lives as long as one command: allocated piece by piece, freed all at once. One thread at a time. */
#ifndef SHERD_BASE_ARENA_H
#define SHERD_BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena_cleanup;

struct arena {
    struct arena_block *head;       /* newest block; NULL when nothing was allocated */
    struct arena_cleanup *cleanups; /* newest first */
    size_t used_bytes;              /* all that was handed out, for limits */
};

void arena_init(struct arena *arena);
/* The same with a first block in the caller's storage (on the stack, aligned for any type), which outlives the arena:
 * what fits there needs no heap. */
void arena_init_in(struct arena *arena, void *storage, size_t size);
/* Frees every block; the arena may be used again. */
void arena_deinit(struct arena *arena);
/* As deinit, but keeps the newest block for what comes next: for scratch memory of a loop. */
void arena_reset(struct arena *arena);
/* Calls run(arg) when the arena is reset or deinitialised, before its memory goes; the newest first. For what an object
 * in the arena holds outside of it. */
void arena_on_deinit(struct arena *arena, void (*run)(void *arg), void *arg);
/* Zeroed, aligned for any type, never NULL. Valid until arena_deinit. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_copy(struct arena *arena, const void *source, size_t size);
/* Copies `len` bytes and adds a NUL. */
char *arena_copy_str(struct arena *arena, const char *source, size_t len);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
