/* collMod: what it may change in the options of a collection. The leader reads the command into a document of changes,
 * apply puts them into force. The log command DOCUMENT_KIND_COLL_MOD is namespace, $sherdVersion, changes. */
#ifndef SHERD_DOCUMENT_COLL_MOD_H
#define SHERD_DOCUMENT_COLL_MOD_H

#include "document/create_options.h"

/* Reads and checks all that doesn't depend on the collection. *changes lies in the arena: {index?, validator?,
 * validationLevel?, validationAction?, viewOn?, pipeline?, changeStreamPreAndPostImages?, expireAfterSeconds?,
 * timeseries?, cappedSize?, cappedMax?, dryRun?}. */
bool coll_mod_parse(struct arena *arena, const struct ns *ns, struct bdoc body, struct bdoc *changes,
                    struct err *err) ERR_WARN_UNUSED;
/* Whether the collection, as it is, can be changed so: ERR_InvalidOptions for options that its kind doesn't have. Pure.
 */
bool coll_mod_check(const struct collection *coll, struct bdoc changes, struct err *err) ERR_WARN_UNUSED;
/* The options document that `changes` make of the collection's; *same when nothing differs. Pure; checked before. */
bool coll_mod_options(const struct collection *coll, struct bdoc changes, bson_t *out, bool *same,
                      struct err *err) ERR_WARN_UNUSED;

#endif
