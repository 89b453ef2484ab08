/* Shared by the appliers of document log commands. Apply thread only. */
#ifndef SHERD_DOCUMENT_APPLY_INTERNAL_H
#define SHERD_DOCUMENT_APPLY_INTERNAL_H

#include "document/apply.h"
#include "document/codec.h"
#include "document/traits.h"
#include "storage/catalog.h"
#include "storage/records.h"

/* The collection that a write goes to, with the ownership that is in force at this log position. */
struct apply_target {
    struct document_apply *apply;
    const struct collection *coll;
    const struct document_ownership *ownership;
    const struct collection_traits *traits; /* of coll; those of a plain collection when there is none */
    struct document_view *view;             /* NULL: everything is owned */
    struct buf range;           /* scratch for names of ranges */
    struct buf old_range;
};

/* Checks the version, finds the collection; with `create_uuid` a missing one is made, else *coll is NULL. The caller
 * ends with apply_target_close. */
bool apply_target_open(struct apply_target *target, struct document_apply *apply, const char *ns, struct bdoc version,
                       const uint8_t *create_uuid, struct err *err) ERR_WARN_UNUSED;
void apply_target_close(struct apply_target *target);
/* Whether the leader tested what it wants stored with the validator in force. ERR_WriteConflict, the answer of no other
 * log command as a whole: the leader tests again. */
bool apply_target_check_tested(const struct apply_target *target, uint64_t tested, bool only_deletes,
                               struct err *err) ERR_WARN_UNUSED;
/* For commands that write documents or indexes: a view has none. ERR_CommandNotSupportedOnView. */
bool apply_target_check_writable(const struct apply_target *target, struct err *err) ERR_WARN_UNUSED;

/* The writes with ownership checks and range counters. On an error nothing was changed. */
bool apply_target_insert(struct apply_target *target, struct bdoc doc, struct err *err) ERR_WARN_UNUSED;
/* `before` is the stored document; it may lie in the store's memory. */
bool apply_target_replace(struct apply_target *target, uint64_t record_id, struct bdoc before, struct bdoc after,
                          struct err *err) ERR_WARN_UNUSED;
bool apply_target_erase(struct apply_target *target, uint64_t record_id, struct bdoc before,
                        struct err *err) ERR_WARN_UNUSED;
/* False for a document that lies here but isn't owned. */
bool apply_target_visible(const struct apply_target *target, struct bdoc doc);

/* The appliers: document_apply_command's contract. */
bool apply_insert(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_update(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_create(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_drop(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_drop_database(struct document_apply *apply, struct codec_reader *reader, struct buf *result,
                         struct err *err);
bool apply_rename(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_convert_to_capped(struct document_apply *apply, struct codec_reader *reader, struct buf *result,
                             struct err *err);
bool apply_coll_mod(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_set_parameter(struct document_apply *apply, struct codec_reader *reader, struct buf *result,
                         struct err *err);
bool apply_create_indexes(struct document_apply *apply, struct codec_reader *reader, struct buf *result,
                          struct err *err);
bool apply_build_step(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_build_end(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_drop_indexes(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);
bool apply_erase_step(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err);

/* Accepts NULL. Drops the collection, its document in system.views if it is a view, and wakes who waits for it. */
void apply_drop_one(struct document_apply *apply, const struct collection *coll);
/* What the daemon knows of the namespace or database is out of date: it was dropped. */
void apply_tell_dropped(struct document_apply *apply, const char *ns);

/* A log command that can't be read: the log is damaged or newer than this program. */
bool apply_damaged(struct err *err);

#endif
