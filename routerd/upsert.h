/* Upserts on a sharded collection whose filter doesn't say to which shard the new document belongs: once no shard has a
 * match, the document is made here and inserted where its shard key belongs (fields that it lacks count as null). On a
 * worker; blocks. */
#ifndef SHERD_ROUTERD_UPSERT_H
#define SHERD_ROUTERD_UPSERT_H

#include "command/namespace.h"
#include "command/write_fields.h"
#include "routerd/route.h"

enum { UPSERT_TRIES_MAX = 3 }; /* searches after a unique key was found taken */

/* What would be updated. */
struct upsert {
    struct bdoc filter;
    struct bval update;        /* document or pipeline */
    struct bdoc array_filters; /* data NULL: none, as in the members below */
    struct bdoc constants;     /* of a pipeline; data NULL: none */
    struct bdoc collation;     /* as given; data NULL: the collection's */
    bool supplied;             /* constants.new is the document */
};

/* That of an update statement. */
struct upsert upsert_of_fields(const struct write_fields *fields);
/* The document to insert, with its _id, in the context's arena. Errors: those of updates. */
bool upsert_build(const struct route *route, const struct upsert *upsert, struct bdoc *out,
                  struct err *err) ERR_WARN_UNUSED;
/* Whether the document that it would insert belongs to another shard than `shard`, where its filter's key points. False
 * also for an update that is malformed: the shard says so. */
bool upsert_leaves(const struct route *route, const struct upsert *upsert, size_t shard);
/* Inserts it; `body` is the client's command. 11000 when a unique key is taken: look again for a match. *unknown: it
 * may or may not have happened. */
bool upsert_insert(struct route *route, const struct ns *ns, struct bdoc body, struct bdoc doc, bool *unknown,
                   struct err *err) ERR_WARN_UNUSED;

#endif
