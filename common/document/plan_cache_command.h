/* What users see of the plans that are remembered: the stage $planCacheStats (the command planCacheClear is in
 * document/commands.h). On a worker. */
#ifndef SHERD_DOCUMENT_PLAN_CACHE_COMMAND_H
#define SHERD_DOCUMENT_PLAN_CACHE_COMMAND_H

#include "document/cursor.h"

/* Adds a document for each remembered plan of the read's collection (NULL: there is none) to a list cursor. */
void plan_cache_list(struct document_cursor *cursor, const struct read_txn *read);

#endif
