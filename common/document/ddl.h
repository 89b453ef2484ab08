/* Log commands that define collections and indexes, for their writers and appliers, and for daemons that issue them. */
#ifndef SHERD_DOCUMENT_DDL_H
#define SHERD_DOCUMENT_DDL_H

#include "command/table.h"
#include "document/codec.h"
#include "document/log.h"

struct document_engine;

struct create_header {
    const char *ns;
    const uint8_t *uuid; /* 16 bytes */
    bool exact_uuid;     /* an existing collection must have this uuid; else the same options are enough */
    struct bdoc version; /* $sherdVersion; data NULL: none */
    struct bdoc options; /* data NULL: none */
    struct bdoc indexes; /* array of specifications to be built at once; data NULL: none */
};

void create_header_encode(struct buf *out, const struct create_header *header);
void create_header_decode(struct codec_reader *reader, struct create_header *out);
/* Whether this program can make what another shard has made, before it comes into the log, where a member that can't
 * ends. Above all ERR_IncompatibleCollationVersion, when the other one has another ICU. */
bool create_header_check(const struct document_engine *engine, const struct create_header *header,
                         struct err *err) ERR_WARN_UNUSED;

struct create_indexes_header {
    const char *ns;
    const uint8_t *create_uuid; /* of the collection, should it have to be made */
    struct bdoc version;
    struct bdoc specs; /* array */
};

void create_indexes_header_encode(struct buf *out, const struct create_indexes_header *header);
void create_indexes_header_decode(struct codec_reader *reader, struct create_indexes_header *out);

/* Starts a log command of that kind. */
void ddl_command_begin(struct buf *out, uint8_t kind);

/* Proposes and parks the request: `finish` is called on the apply thread when the command was applied without an error,
 * and ends in command_finish; every other outcome is answered with its error. Takes the bytes of `command`. */
enum command_status ddl_propose(struct command_ctx *ctx, struct buf *command,
                                void (*finish)(struct command_ctx *ctx, const struct document_result *result));

#endif
