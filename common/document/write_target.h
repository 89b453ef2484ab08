/* What a write command has to know of its collection before it begins: that it may be written, that it is the one the
 * client means, and how its strings compare. Called by workers; does not block but on LMDB. */
#ifndef SHERD_DOCUMENT_WRITE_TARGET_H
#define SHERD_DOCUMENT_WRITE_TARGET_H

#include "base/arena.h"
#include "command/namespace.h"
#include "document/engine.h"

struct bval_order;

/* *order is the collection's default collation, which lives as long as the arena; NULL: strings by bytes. `uuid` is the
 * command's collectionUUID (16 bytes), or NULL. Errors: 166 for a view, 361 CollectionUUIDMismatch with {db,
 * collectionUUID, expectedCollection, actualCollection}. */
bool write_target_look(struct document_engine *engine, const struct ns *ns, const uint8_t *uuid, struct arena *arena,
                       const struct bval_order **order, struct err *err) ERR_WARN_UNUSED;

#endif
