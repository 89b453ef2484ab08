/* MongoDB's wire protocol, one message at a time: the same codec serves drivers' sockets and the connections between
 * daemons. Parsing makes views into the bytes and allocates nothing. Any thread; no shared state.
 * Format: https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/ and the specification
 * https://github.com/mongodb/specifications/blob/master/source/message/OP_MSG.md */
#ifndef SHERD_WIRE_MESSAGE_H
#define SHERD_WIRE_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "bson/value.h"
#include "wire/frame.h"

enum wire_opcode {
    WIRE_OP_REPLY = 1,
    WIRE_OP_UPDATE = 2001, /* 2001-2007 but OP_QUERY are refused */
    WIRE_OP_INSERT = 2002,
    WIRE_OP_QUERY = 2004, /* only for the handshake, on <db>.$cmd */
    WIRE_OP_GET_MORE = 2005,
    WIRE_OP_DELETE = 2006,
    WIRE_OP_KILL_CURSORS = 2007,
    WIRE_OP_COMPRESSED = 2012,
    WIRE_OP_MSG = 2013,
};

enum wire_flag {
    WIRE_CHECKSUM_PRESENT = 1 << 0, /* a CRC-32C of all bytes before it ends the message */
    WIRE_MORE_TO_COME = 1 << 1,     /* in a request: no reply is wanted */
    WIRE_EXHAUST_ALLOWED = 1 << 16, /* several replies would be accepted; ignored */
};

enum {
    WIRE_HEADER_BYTES = 16,
    WIRE_MAX_MESSAGE_BYTES = 48000000, /* of a client, as hello announces */
    /* Between daemons: a router adds to what a full message of a client holds (_ids, versions, the deadline). */
    WIRE_MAX_INTERNAL_BYTES = WIRE_MAX_MESSAGE_BYTES + (4 << 20),
    WIRE_MAX_SEQUENCES = 4, /* kind-1 sections in one message; bulkWrite has two */
    WIRE_MAX_NS_BYTES = 255,
};

struct wire_header {
    uint32_t length; /* of the whole message, this header included */
    uint32_t request_id;
    uint32_t response_to; /* in a reply: the request's request_id */
    uint32_t opcode;      /* enum wire_opcode, or anything */
};

/* A kind-1 section: documents end to end. */
struct wire_sequence {
    const char *name; /* "documents", "updates", "deletes" ...; ended by a NUL inside the message */
    const uint8_t *data;
    uint32_t len;   /* of all documents together */
    uint32_t count; /* documents */
};

/* A parsed OP_MSG, OP_QUERY or OP_REPLY; views into the message's bytes. */
struct wire_msg {
    struct wire_header header;
    uint32_t flags;   /* enum wire_flag (OP_MSG), the query's or the reply's own flags otherwise */
    struct bdoc body; /* kind-0 document; the query; the one document of an OP_REPLY */
    unsigned sequence_count;
    struct wire_sequence sequences[WIRE_MAX_SEQUENCES];
    const char *query_ns; /* OP_QUERY: "admin.$cmd"; NULL otherwise */
};

enum wire_parse {
    WIRE_PARSE_CHECKED = 0, /* every document is validated: bytes from anywhere */
    WIRE_PARSE_TRUSTED = 1, /* only the message's own structure is: bytes that a daemon of ours has sent */
};

/* Reads the header from the first WIRE_HEADER_BYTES of `data` and refuses a length below the header's or over
 * WIRE_MAX_INTERNAL_BYTES: called before memory is taken for the rest. ERR_ProtocolError. */
bool wire_header_parse(const uint8_t *data, struct wire_header *out, struct err *err) ERR_WARN_UNUSED;
/* Parses one whole message of an opcode in {OP_MSG, OP_QUERY, OP_REPLY}; OP_COMPRESSED must have been undone
 * (wire/compress.h). `out` borrows `data`. Errors: ERR_ProtocolError for broken framing, a wrong checksum, unknown
 * required flag bits (0-15) or a legacy opcode; ERR_InvalidBSON for a broken document. */
bool wire_msg_parse(const uint8_t *data, size_t len, enum wire_parse how, struct wire_msg *out,
                    struct err *err) ERR_WARN_UNUSED;
/* NULL when the message has no kind-1 section of that name. */
const struct wire_sequence *wire_msg_sequence(const struct wire_msg *msg, const char *name);
/* Walks the documents of a sequence: *offset starts at 0; false at the end. */
bool wire_sequence_next(const struct wire_sequence *sequence, uint32_t *offset, struct bdoc *out);

/* Appends a message to `out` bit by bit; returns where it starts, for wire_msg_end. Request ids are filled in by
 * whoever sends it (rpc, the client server) unless given here. */
size_t wire_msg_begin(struct buf *out, uint32_t request_id, uint32_t response_to, uint32_t flags);
void wire_msg_body(struct buf *out, struct bdoc body);
/* A kind-1 section: begin, append whole documents to `out`, end with what begin has returned. */
size_t wire_msg_sequence_begin(struct buf *out, const char *name);
void wire_msg_sequence_end(struct buf *out, size_t at);
/* Fills in the length; with WIRE_CHECKSUM_PRESENT in the flags also appends the checksum. */
void wire_msg_end(struct buf *out, size_t start);
/* Appends an OP_REPLY with one document (flags 8), the answer to an OP_QUERY. */
void wire_reply_append(struct buf *out, uint32_t response_to, struct bdoc body);
/* Overwrites the ids of a message that is complete (and has no checksum). */
void wire_set_ids(uint8_t *message, uint32_t request_id, uint32_t response_to);

/* A whole OP_MSG with just a body, in a frame of its own; ids are 0. The caller owns the reference. */
struct wire_frame *wire_frame_of_doc(struct bdoc body);

#endif
