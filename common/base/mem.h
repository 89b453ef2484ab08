/* Heap memory. A small allocation that fails aborts the process here and nowhere else; sizes that come from outside are
 * bounded before they reach these functions. */
#ifndef SHERD_BASE_MEM_H
#define SHERD_BASE_MEM_H

#include <stddef.h>

#define MEM_WARN_UNUSED __attribute__((warn_unused_result))

/* Zeroed memory of `size` bytes; never NULL. The caller frees it with mem_free. */
void *mem_alloc(size_t size) MEM_WARN_UNUSED;
/* Zeroed array; aborts when count * size overflows. */
void *mem_alloc_array(size_t count, size_t size) MEM_WARN_UNUSED;
/* The same for a type with an alignment above malloc's (a struct with a bson_t inside: alignof it is 128). `align` is a
 * power of two; `size` a multiple of it, as sizeof is. */
void *mem_alloc_aligned(size_t count, size_t size, size_t align) MEM_WARN_UNUSED;
/* Like realloc; the new part is not zeroed. Never NULL unless size is 0. */
void *mem_realloc(void *memory, size_t size) MEM_WARN_UNUSED;
/* A heap copy of `size` bytes, or of a string. */
void *mem_copy(const void *source, size_t size) MEM_WARN_UNUSED;
char *mem_copy_str(const char *source) MEM_WARN_UNUSED;
/* A heap copy of the first `len` bytes of `source`, ended by a NUL. */
char *mem_copy_strn(const char *source, size_t len) MEM_WARN_UNUSED;
/* printf into a new heap string. */
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2))) MEM_WARN_UNUSED;
/* Accepts NULL. */
void mem_free(void *memory);

#endif
