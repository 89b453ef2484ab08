/* The statements of update, delete and bulkWrite as clients write them: their fields with the right types. What is
 * malformed refuses the whole command before anything of it is done, so the router checks all statements of a command
 * first; a shard reads them again. What a filter, an update or a collation means is not looked at here. Any thread;
 * views into the statement. */
#ifndef SHERD_COMMAND_WRITE_FIELDS_H
#define SHERD_COMMAND_WRITE_FIELDS_H

#include "base/err.h"
#include "bson/value.h"

struct write_fields {
    struct bdoc q;
    struct bval u;             /* document or array; BT_EOO for a delete */
    struct bdoc constants;     /* `c`, variables of a pipeline; data NULL: none */
    struct bdoc sort;          /* data NULL: none */
    struct bdoc array_filters; /* array of documents; data NULL: none */
    struct bdoc collation;     /* data NULL: none */
    struct bval hint;          /* string or document; BT_EOO: none */
    bool multi;
    bool upsert;
    bool upsert_supplied; /* an upsert inserts constants.new */
};

/* {q, u, ...}. Errors: field_spec.h's. */
bool write_fields_read_update(struct bdoc statement, struct write_fields *out, struct err *err) ERR_WARN_UNUSED;
/* {q, limit, ...} */
bool write_fields_read_delete(struct bdoc statement, struct write_fields *out, struct err *err) ERR_WARN_UNUSED;

#endif
