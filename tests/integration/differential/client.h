/* Runs one command on one collection and brings the reply into a form that may be compared byte by byte. */
#ifndef SHERD_TESTS_INTEGRATION_DIFFERENTIAL_CLIENT_H
#define SHERD_TESTS_INTEGRATION_DIFFERENTIAL_CLIENT_H

#include <mongoc/mongoc.h>

struct collection_target {
    const char *name;        /* of the collection; also how reports call it */
    mongoc_client_t *client; /* borrowed */
    const char *db;
    char *hint; /* an index to be hinted in find, count, distinct and aggregate; NULL: none. Owned */
    bool view;  /* reads go to the view of the collection */
};

/* What is compared: {code} or {documents: [...]}, {values: [...]}, {n: ...} ... */
enum reply_shape {
    REPLY_CURSOR,           /* in the cursor's order */
    REPLY_CURSOR_ANY_ORDER, /* documents sorted by their bytes */
    REPLY_CURSOR_BY_VALUE,  /* likewise, with all numbers as doubles of their value */
    REPLY_VALUES,           /* of distinct: numbers by value, sorted by their bytes */
    REPLY_VALUE_COUNT,      /* of distinct: how many values */
    REPLY_COUNTS,           /* n, nModified, upserted, code of the first write error, value */
};

/* Runs `command` with its first field's value replaced by the target's collection (or `{getMore}` until the cursor
 * ends), and fills `out`, which the caller destroys. A connection that fails ends the program. */
void client_run(const struct collection_target *target, const bson_t *command, enum reply_shape shape, bson_t *out);
/* A find with small batches and one of `writes` after each; all that are left at the end. `out` is {documents: [...]}.
 */
void client_run_moving(const struct collection_target *target, const bson_t *find, bson_t *const *writes, int count,
                       bson_t *out);
/* For set-up: an error ends the program with its text. */
void client_must(mongoc_client_t *client, const char *db, const bson_t *command);
/* The same, of JSON. */
void client_must_json(mongoc_client_t *client, const char *db, const char *json);

#endif
