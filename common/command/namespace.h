/* Names of databases and collections: splitting and checking (73 InvalidNamespace). */
#ifndef SHERD_COMMAND_NAMESPACE_H
#define SHERD_COMMAND_NAMESPACE_H

#include "base/err.h"
#include "command/context.h"

/* A namespace in the caller's storage. */
struct ns {
    char full[COMMAND_NS_MAX + 1]; /* "db.collection" */
    char db[COMMAND_DB_MAX + 1];
    const char *coll; /* inside `full`; "" when there is none */
};

/* 1-63 bytes, none of / \ . space " $ NUL */
bool ns_check_db(const char *db, struct err *err) ERR_WARN_UNUSED;
/* Not empty, no leading dot, no $, no NUL; "db.coll" at most 255 bytes. */
bool ns_check_coll(const char *db, const char *coll, struct err *err) ERR_WARN_UNUSED;
/* Joins and checks. */
bool ns_make(struct ns *out, const char *db, const char *coll, struct err *err) ERR_WARN_UNUSED;
/* Splits "db.coll.with.dots" at the first dot and checks both. */
bool ns_parse(struct ns *out, const char *full, struct err *err) ERR_WARN_UNUSED;
/* ctx->db and the command's own value, which must be a string and a valid collection (73 for both). */
bool command_ns(const struct command_ctx *ctx, struct ns *out, struct err *err) ERR_WARN_UNUSED;
/* Also takes a number (aggregate: 1): then ns.coll is "". */
bool command_ns_or_db(const struct command_ctx *ctx, struct ns *out, struct err *err) ERR_WARN_UNUSED;
/* A namespace that a client may write to: not one of system.*, except system.js (73). Rights to the reserved databases
 * are another matter. */
bool ns_check_write(const struct ns *ns, struct err *err) ERR_WARN_UNUSED;
/* system.* collections, and any in local, config or admin. */
bool ns_is_system(const struct ns *ns);
bool ns_is_reserved_db(const char *db);

#endif
