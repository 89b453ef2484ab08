/* Why a document does not match a filter, as MongoDB tells it in `errInfo.details` of error 121. Called where a
 * validator refused a document, on any thread; slow, since it compiles parts of the filter again.
 * Shape: https://www.mongodb.com/docs/manual/core/schema-validation/handle-invalid-documents/ */
#ifndef SHERD_QUERY_EXPLAIN_FAILURE_H
#define SHERD_QUERY_EXPLAIN_FAILURE_H

#include "base/buf.h"
#include "query/filter.h"

/* Appends one document to `out`: {operatorName, specifiedAs, reason, consideredValue} of an operator, with
 * clausesNotSatisfied of a tree and schemaRulesNotSatisfied of $jsonSchema. `filter` didn't match `doc`. An
 * explanation that would be longer than `max_bytes` is cut to its operatorName and a reason that says so. */
void filter_explain_failure(const struct filter *filter, struct bdoc doc, size_t max_bytes, struct buf *out);

#endif
