/* Random documents and queries as extended JSON, for test_random.c. */
#ifndef SHERD_TESTS_UNIT_PLAN_RANDOM_QUERY_H
#define SHERD_TESTS_UNIT_PLAN_RANDOM_QUERY_H

#include "base/random.h"

#include <stdbool.h>
#include <stddef.h>

enum { RANDOM_COMMAND_MAX = 8192 };

struct random_query {
    char filter[4096];
    char sort[200];       /* "" or ", "sort": {...}" */
    char projection[100]; /* likewise */
    char collation[100];  /* likewise */
    bool total_order;
    int limit;
    int skip;
    int batch_size;
};

void random_document(struct prng *prng, int id, char *out, size_t size);
void random_query_make(struct prng *prng, struct random_query *out);
/* As a find on collection c<coll>. */
void random_query_find(const struct random_query *query, int coll, char *out, size_t size);

#endif
