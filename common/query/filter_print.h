/* A compiled filter written back as a query in MongoDB's normal form ({a: 1} becomes {a: {$eq: 1}}, several predicates
 * an $and): what explain shows as parsedQuery and as the filter of a stage. On any thread; pure. */
#ifndef SHERD_QUERY_FILTER_PRINT_H
#define SHERD_QUERY_FILTER_PRINT_H

#include "query/filter.h"

/* Appends the fields of the normal form to `out`; none for an empty filter. */
void filter_append_parsed(const struct filter *filter, bson_t *out);

#endif
