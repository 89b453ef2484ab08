/* The open cursors of a node, by id. A request takes a cursor out, works with it alone, and gives it back. Any thread.
 */
#ifndef SHERD_DOCUMENT_CURSORS_H
#define SHERD_DOCUMENT_CURSORS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct document_cursor;
struct document_cursors;

enum {
    CURSOR_IN_USE = 12051, /* MongoDB's CursorInUse */
};

struct document_cursors *document_cursors_new(void);
/* Closes all. */
void document_cursors_free(struct document_cursors *cursors);

/* Takes the cursor, gives it an id (*id: by then somebody may have closed it) and keeps it, not in use.
 * ERR_ExceededMemoryLimit when there are too many; it is still the caller's. */
bool document_cursors_add(struct document_cursors *cursors, struct document_cursor *cursor, int64_t *id,
                          struct err *err) ERR_WARN_UNUSED;
/* Marks it in use. ERR_CursorNotFound (43), CURSOR_IN_USE. */
bool document_cursors_take(struct document_cursors *cursors, int64_t id, struct document_cursor **out,
                           struct err *err) ERR_WARN_UNUSED;
/* For a cursor in use: what it holds by now, a sort's documents for instance, may be kept. Else
 * ERR_ExceededMemoryLimit, and it should be closed. */
bool document_cursors_may_keep(struct document_cursors *cursors, const struct document_cursor *cursor,
                               struct err *err) ERR_WARN_UNUSED;
/* Ends the use. `close`, or a kill meanwhile, frees the cursor. */
void document_cursors_give_back(struct document_cursors *cursors, struct document_cursor *cursor, bool close);
/* True when there was one. One in use is freed when its user gives it back. */
bool document_cursors_kill(struct document_cursors *cursors, int64_t id);
/* Somebody has killed a cursor that is in use. */
bool document_cursors_is_killed(struct document_cursors *cursors, const struct document_cursor *cursor);
/* Closes cursors that were idle for DOCUMENT_CURSOR_IDLE_MS. */
void document_cursors_expire(struct document_cursors *cursors);
uint32_t document_cursors_count(struct document_cursors *cursors);

#endif
