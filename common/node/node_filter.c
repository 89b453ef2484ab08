/* Filters of partial indexes: the store calls back to the query layer. */
#include "base/mem.h"
#include "node/node_internal.h"
#include "query/filter.h"

struct index_filter {
    struct arena arena;
    struct bdoc source; /* in the arena: the store's bytes may move */
    struct filter *filter;
};

static void free_filter(void *compiled)
{
    struct index_filter *index_filter = compiled;
    if (index_filter == NULL)
        return;
    arena_deinit(&index_filter->arena);
    mem_free(index_filter);
}

static void *compile(struct bdoc source, struct err *err)
{
    struct index_filter *index_filter = mem_alloc(sizeof *index_filter);
    arena_init(&index_filter->arena);
    index_filter->source =
        (struct bdoc){.data = arena_copy(&index_filter->arena, source.data, source.len), .len = source.len};
    if (!filter_compile(&index_filter->arena, index_filter->source, NULL, &index_filter->filter, err)) {
        free_filter(index_filter);
        return NULL;
    }
    if (!filter_is_deterministic(index_filter->filter)) {
        err_set(err, ERR_CannotCreateIndex, "unsupported expression in partial index");
        free_filter(index_filter);
        return NULL;
    }
    return index_filter;
}

static bool matches(const void *compiled, struct bdoc doc)
{
    const struct index_filter *index_filter = compiled;
    return filter_matches(index_filter->filter, doc);
}

struct store_filter_hooks node_filter_hooks(void)
{
    return (struct store_filter_hooks){.compile = compile, .matches = matches, .free = free_filter};
}
