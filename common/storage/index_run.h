/* Inside storage only: index entries whose keys are longer than LMDB takes and begin with the same ENTRY_PREFIX bytes.
 * LMDB has them in the order of a hash; a run gives them in the order of their full keys. Bounded memory: of a large
 * run it holds the next RUN_HELD_MAX entries and reads the rest again when it comes to them. */
#ifndef SHERD_STORAGE_INDEX_RUN_H
#define SHERD_STORAGE_INDEX_RUN_H

#include "storage/entries.h"

enum { RUN_HELD_MAX = 4096 };

struct index_run;

/* Views of the pages: valid while the transaction's data doesn't change. */
struct run_item {
    const uint8_t *rest; /* the key beyond the prefix */
    uint32_t rest_len;
    uint64_t record_id;
};

/* `entry` is one of the run. */
struct index_run *index_run_new(uint32_t index_id, const struct entry_view *entry, bool backward);
/* Accepts NULL. */
void index_run_free(struct index_run *run);
/* The shared ENTRY_PREFIX bytes. */
const uint8_t *index_run_prefix(const struct index_run *run);
/* Moves the cursor about. False at the end of the run. */
bool index_run_next(struct index_run *run, MDB_cursor *cursor, struct run_item *out);
/* Stands the cursor behind the run in the direction of travel, on the next entry; false: there is none. */
bool index_run_leave(const struct index_run *run, MDB_cursor *cursor, MDB_val *key, MDB_val *value);

#endif
