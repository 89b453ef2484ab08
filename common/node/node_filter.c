/* Filters of partial indexes: the store calls back to the query layer. */
#include "base/mem.h"
#include "node/node_internal.h"
#include "query/filter.h"

struct index_filter {
    struct arena arena;
    struct bdoc source;  /* in the arena: the store's bytes may move */
    struct expr_env env; /* the index's collation */
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

/* What may stand in an index at all is the store's business; these are refused by name as MongoDB does. */
static bool check_features(struct bdoc source, struct err *err)
{
    static const char *const banned[] = {"$expr", "$jsonSchema", "$where", "$text"};
    for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++) {
        if (bdoc_has(source, banned[i]))
            return err_set(err, ERR_QueryFeatureNotAllowed, "%s is not allowed in this context", banned[i]);
    }
    return true;
}

static void *compile(struct bdoc source, const struct bval_order *order, struct err *err)
{
    if (!check_features(source, err))
        return NULL;
    struct index_filter *index_filter = mem_alloc(sizeof *index_filter);
    arena_init(&index_filter->arena);
    index_filter->env.order = order;
    index_filter->source =
        (struct bdoc){.data = arena_copy(&index_filter->arena, source.data, source.len), .len = source.len};
    if (filter_compile(&index_filter->arena, index_filter->source, &index_filter->env, &index_filter->filter, err))
        return index_filter;
    free_filter(index_filter);
    return NULL;
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
