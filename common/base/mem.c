#include "base/mem.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory == NULL)
        check_failed(__FILE__, __LINE__, "out of memory");
    return memory;
}

void *mem_alloc(size_t size)
{
    return must(calloc(1, size > 0 ? size : 1));
}

void *mem_alloc_array(size_t count, size_t size)
{
    return must(calloc(count > 0 ? count : 1, size > 0 ? size : 1));
}

void *mem_alloc_aligned(size_t count, size_t size, size_t align)
{
    size_t total = (count > 0 ? count : 1) * size;
    CHECK(size > 0 && total / size >= count);
    return memset(must(aligned_alloc(align, total)), 0, total);
}

void *mem_realloc(void *memory, size_t size)
{
    return must(realloc(memory, size > 0 ? size : 1));
}

void *mem_copy(const void *source, size_t size)
{
    void *copy = must(malloc(size > 0 ? size : 1));
    if (size > 0)
        memcpy(copy, source, size);
    return copy;
}

char *mem_copy_str(const char *source)
{
    return mem_copy(source, strlen(source) + 1);
}

char *mem_copy_strn(const char *source, size_t len)
{
    char *copy = must(malloc(len + 1));
    memcpy(copy, source, len);
    copy[len] = '\0';
    return copy;
}

char *mem_printf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    CHECK(len >= 0);
    return must(text);
}

void mem_free(void *memory)
{
    free(memory);
}
