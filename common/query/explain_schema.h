/* Which rules of a $jsonSchema a value breaks, for explain_failure.c. */
#ifndef SHERD_QUERY_EXPLAIN_SCHEMA_H
#define SHERD_QUERY_EXPLAIN_SCHEMA_H

#include "base/buf.h"
#include "query/schema.h"

/* Appends the field `name`: an array of {operatorName, specifiedAs, reason, ...}, one for each keyword that `val`
 * breaks. */
void schema_explain(const struct schema *schema, const struct bval *val, struct schema_test *test, const char *name,
                    struct buf *out);
/* Appends `title` and `description`, where the schema has them. */
void schema_explain_texts(const struct schema *schema, struct buf *out);

#endif
