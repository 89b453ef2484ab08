#include "base/arena.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    ARENA_FIRST_BLOCK = 4096,
    ARENA_BLOCK_MAX = 1 << 20,
};

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    bool borrowed; /* the caller's storage: not freed */
    alignas(max_align_t) unsigned char data[];
};

struct arena_cleanup {
    struct arena_cleanup *next;
    void (*run)(void *arg);
    void *arg;
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

void arena_init_in(struct arena *arena, void *storage, size_t size)
{
    CHECK(size > sizeof(struct arena_block));
    struct arena_block *block = storage;
    *block = (struct arena_block){.size = size - sizeof *block, .borrowed = true};
    *arena = (struct arena){.head = block};
}

static void run_cleanups(struct arena *arena)
{
    for (struct arena_cleanup *at = arena->cleanups; at != NULL; at = at->next)
        at->run(at->arg);
    arena->cleanups = NULL;
}

static void free_blocks(struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *next = block->next;
        if (!block->borrowed)
            mem_free(block);
        block = next;
    }
}

void arena_deinit(struct arena *arena)
{
    run_cleanups(arena);
    free_blocks(arena->head);
    arena_init(arena);
}

void arena_reset(struct arena *arena)
{
    run_cleanups(arena);
    if (arena->head != NULL) {
        free_blocks(arena->head->next);
        arena->head->next = NULL;
        arena->head->used = 0;
    }
    arena->used_bytes = 0;
}

void arena_on_deinit(struct arena *arena, void (*run)(void *arg), void *arg)
{
    struct arena_cleanup *cleanup = arena_alloc(arena, sizeof *cleanup);
    *cleanup = (struct arena_cleanup){.next = arena->cleanups, .run = run, .arg = arg};
    arena->cleanups = cleanup;
}

/* Blocks double up to a limit, so that a small command takes one block and a large one few. */
static struct arena_block *grow(struct arena *arena, size_t size)
{
    size_t block_size = arena->head == NULL || arena->head->borrowed ? ARENA_FIRST_BLOCK : arena->head->size * 2;
    if (block_size > ARENA_BLOCK_MAX)
        block_size = ARENA_BLOCK_MAX;
    if (block_size < size)
        block_size = size;
    struct arena_block *block = mem_realloc(NULL, sizeof *block + block_size);
    *block = (struct arena_block){.next = arena->head, .size = block_size};
    arena->head = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t aligned = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    CHECK(aligned >= size);
    struct arena_block *block = arena->head;
    if (block == NULL || block->size - block->used < aligned)
        block = grow(arena, aligned);
    void *memory = block->data + block->used;
    block->used += aligned;
    arena->used_bytes += aligned;
    memset(memory, 0, size);
    return memory;
}

void *arena_copy(struct arena *arena, const void *source, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (size > 0)
        memcpy(copy, source, size);
    return copy;
}

char *arena_copy_str(struct arena *arena, const char *source, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);
    memcpy(copy, source, len);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(len >= 0);
    char *text = arena_alloc(arena, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return text;
}
