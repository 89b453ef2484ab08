#include "wire/message.h"

#include "base/check.h"
#include "base/crc32c.h"

#include <string.h>

enum {
    SECTION_BODY = 0,
    SECTION_SEQUENCE = 1,
    CHECKSUM_BYTES = 4,
    REQUIRED_FLAGS = 0xffff, /* a receiver must know every one of these bits */
    BDOC_MIN_BYTES = 5,
};

/* The part of a message that is not parsed yet. */
struct cursor {
    const uint8_t *pos;
    const uint8_t *end;
    enum wire_parse how;
};

bool wire_header_parse(const uint8_t *data, struct wire_header *out, struct err *err)
{
    out->length = load_le32(data);
    out->request_id = load_le32(data + 4);
    out->response_to = load_le32(data + 8);
    out->opcode = load_le32(data + 12);
    if (out->length < WIRE_HEADER_BYTES || out->length > WIRE_MAX_INTERNAL_BYTES)
        return err_set(err, ERR_ProtocolError, "message length %u is not between %d and %d", out->length,
                       WIRE_HEADER_BYTES, WIRE_MAX_INTERNAL_BYTES);
    return true;
}

static size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->pos);
}

static bool cursor_le32(struct cursor *cursor, uint32_t *out, struct err *err)
{
    if (cursor_left(cursor) < sizeof *out)
        return err_set(err, ERR_ProtocolError, "message ends inside a number");
    *out = load_le32(cursor->pos);
    cursor->pos += sizeof *out;
    return true;
}

static bool cursor_str(struct cursor *cursor, const char **out, struct err *err)
{
    const uint8_t *nul = memchr(cursor->pos, 0, cursor_left(cursor));
    if (nul == NULL)
        return err_set(err, ERR_ProtocolError, "message ends inside a string");
    *out = (const char *)cursor->pos;
    cursor->pos = nul + 1;
    return true;
}

static bool cursor_doc(struct cursor *cursor, struct bdoc *out, struct err *err)
{
    size_t left = cursor_left(cursor);
    uint32_t len = left >= BDOC_MIN_BYTES ? load_le32(cursor->pos) : 0;
    if (len < BDOC_MIN_BYTES || len > left)
        return err_set(err, ERR_InvalidBSON, "a document of %u bytes where %zu are left", len, left);
    if (cursor->how == WIRE_PARSE_CHECKED) {
        if (!bdoc_validate(cursor->pos, len, BDOC_MAX_WIRE_DEPTH, err))
            return false;
    } else if (cursor->pos[len - 1] != 0) {
        return err_set(err, ERR_InvalidBSON, "a document does not end in a NUL");
    }
    *out = (struct bdoc){.data = cursor->pos, .len = len};
    cursor->pos += len;
    return true;
}

static bool parse_sequence(struct cursor *cursor, struct wire_msg *out, struct err *err)
{
    size_t left = cursor_left(cursor);
    uint32_t size = 0;
    if (!cursor_le32(cursor, &size, err))
        return false;
    if (size < sizeof size || size > left)
        return err_set(err, ERR_ProtocolError, "a document sequence of %u bytes where %zu are left", size, left);
    if (out->sequence_count == WIRE_MAX_SEQUENCES)
        return err_set(err, ERR_ProtocolError, "more than %d document sequences", WIRE_MAX_SEQUENCES);
    struct cursor part = {.pos = cursor->pos, .end = cursor->pos + size - sizeof size, .how = cursor->how};
    struct wire_sequence sequence = {0};
    if (!cursor_str(&part, &sequence.name, err))
        return false;
    if (wire_msg_sequence(out, sequence.name) != NULL)
        return err_set(err, ERR_ProtocolError, "two document sequences are named '%s'", sequence.name);
    sequence.data = part.pos;
    sequence.len = (uint32_t)cursor_left(&part);
    while (part.pos < part.end) {
        struct bdoc doc;
        if (!cursor_doc(&part, &doc, err))
            return false;
        sequence.count++;
    }
    out->sequences[out->sequence_count++] = sequence;
    cursor->pos = part.end;
    return true;
}

static bool parse_checksum(const uint8_t *data, struct cursor *cursor, struct err *err)
{
    if (cursor_left(cursor) < CHECKSUM_BYTES)
        return err_set(err, ERR_ProtocolError, "message is too short for its checksum");
    cursor->end -= CHECKSUM_BYTES;
    if (crc32c(0, data, (size_t)(cursor->end - data)) != load_le32(cursor->end))
        return err_set(err, ERR_ProtocolError, "message checksum does not match");
    return true;
}

static bool parse_op_msg(const uint8_t *data, struct cursor *cursor, struct wire_msg *out, struct err *err)
{
    if (!cursor_le32(cursor, &out->flags, err))
        return false;
    uint32_t unknown = out->flags & REQUIRED_FLAGS & ~(uint32_t)(WIRE_CHECKSUM_PRESENT | WIRE_MORE_TO_COME);
    if (unknown != 0)
        return err_set(err, ERR_ProtocolError, "unknown flag bits 0x%x in OP_MSG", unknown);
    if ((out->flags & WIRE_CHECKSUM_PRESENT) != 0 && !parse_checksum(data, cursor, err))
        return false;
    while (cursor->pos < cursor->end) {
        uint8_t kind = *cursor->pos++;
        if (kind == SECTION_BODY) {
            if (out->body.data != NULL)
                return err_set(err, ERR_ProtocolError, "OP_MSG has two bodies");
            if (!cursor_doc(cursor, &out->body, err))
                return false;
        } else if (kind == SECTION_SEQUENCE) {
            if (!parse_sequence(cursor, out, err))
                return false;
        } else {
            return err_set(err, ERR_ProtocolError, "unknown section kind %u in OP_MSG", kind);
        }
    }
    if (out->body.data == NULL)
        return err_set(err, ERR_ProtocolError, "OP_MSG has no body");
    return true;
}

static bool is_command_ns(const char *ns)
{
    static const char suffix[] = ".$cmd";
    size_t len = strlen(ns);
    return len >= sizeof suffix && len <= WIRE_MAX_NS_BYTES && strcmp(ns + len - (sizeof suffix - 1), suffix) == 0;
}

static bool parse_op_query(struct cursor *cursor, struct wire_msg *out, struct err *err)
{
    uint32_t skip = 0;
    uint32_t limit;
    if (!cursor_le32(cursor, &out->flags, err) || !cursor_str(cursor, &out->query_ns, err) ||
        !cursor_le32(cursor, &skip, err) || !cursor_le32(cursor, &limit, err))
        return false;
    if (!is_command_ns(out->query_ns))
        return err_set(err, ERR_ProtocolError, "OP_QUERY is only supported for commands; use OP_MSG");
    struct bdoc fields;
    if (!cursor_doc(cursor, &out->body, err))
        return false;
    if (cursor->pos < cursor->end && !cursor_doc(cursor, &fields, err))
        return false;
    if (cursor->pos != cursor->end)
        return err_set(err, ERR_ProtocolError, "bytes after the end of OP_QUERY");
    return true;
}

static bool parse_op_reply(struct cursor *cursor, struct wire_msg *out, struct err *err)
{
    uint32_t cursor_id_low;
    uint32_t cursor_id_high;
    uint32_t from;
    uint32_t count = 0;
    if (!cursor_le32(cursor, &out->flags, err) || !cursor_le32(cursor, &cursor_id_low, err) ||
        !cursor_le32(cursor, &cursor_id_high, err) || !cursor_le32(cursor, &from, err) ||
        !cursor_le32(cursor, &count, err))
        return false;
    if (count != 1)
        return err_set(err, ERR_ProtocolError, "OP_REPLY with %u documents", count);
    if (!cursor_doc(cursor, &out->body, err))
        return false;
    if (cursor->pos != cursor->end)
        return err_set(err, ERR_ProtocolError, "bytes after the end of OP_REPLY");
    return true;
}

bool wire_msg_parse(const uint8_t *data, size_t len, enum wire_parse how, struct wire_msg *out, struct err *err)
{
    *out = (struct wire_msg){0};
    if (len < WIRE_HEADER_BYTES)
        return err_set(err, ERR_ProtocolError, "a message of %zu bytes", len);
    if (!wire_header_parse(data, &out->header, err))
        return false;
    if (out->header.length != len)
        return err_set(err, ERR_ProtocolError, "message says %u bytes and has %zu", out->header.length, len);
    struct cursor cursor = {.pos = data + WIRE_HEADER_BYTES, .end = data + len, .how = how};
    switch (out->header.opcode) {
    case WIRE_OP_MSG:
        return parse_op_msg(data, &cursor, out, err);
    case WIRE_OP_QUERY:
        return parse_op_query(&cursor, out, err);
    case WIRE_OP_REPLY:
        return parse_op_reply(&cursor, out, err);
    default:
        return err_set(err, ERR_ProtocolError, "unsupported opcode %u: use OP_MSG", out->header.opcode);
    }
}

const struct wire_sequence *wire_msg_sequence(const struct wire_msg *msg, const char *name)
{
    for (unsigned i = 0; i < msg->sequence_count; i++)
        if (strcmp(msg->sequences[i].name, name) == 0)
            return &msg->sequences[i];
    return NULL;
}

bool wire_sequence_next(const struct wire_sequence *sequence, uint32_t *offset, struct bdoc *out)
{
    if (*offset >= sequence->len)
        return false;
    out->data = sequence->data + *offset;
    out->len = load_le32(out->data);
    *offset += out->len;
    return true;
}
