/* How often each index served an operation on this member, for $indexStats. In memory only: a restart begins again.
 * Any thread. */
#ifndef SHERD_DOCUMENT_INDEX_USAGE_H
#define SHERD_DOCUMENT_INDEX_USAGE_H

#include "storage/catalog.h"

struct index_usage;

struct index_usage *index_usage_new(void);
void index_usage_free(struct index_usage *usage);
/* One operation used the index. Cheap: call it once an operation, not once an entry. */
void index_usage_note(struct index_usage *usage, uint32_t index_id);
/* Uses since *since_ms (milliseconds since 1970), when counting began. */
int64_t index_usage_get(struct index_usage *usage, uint32_t index_id, int64_t *since_ms);

#endif
