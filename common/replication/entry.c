#include "replication/entry.h"

#include "base/check.h"
#include "replication/replica.h"

#include <string.h>

static void store_le16(void *to, uint16_t value)
{
    memcpy(to, &value, sizeof value);
}

static uint16_t load_le16(const void *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

void entry_begin(struct buf *out, enum entry_kind kind, uint64_t term, uint64_t origin, uint64_t sequence)
{
    CHECK(out->len == 0);
    buf_append_u8(out, ENTRY_VERSION);
    buf_append_u8(out, (uint8_t)kind);
    buf_append(out, "\0\0\0\0\0\0", 6);
    buf_append_le64(out, term);
    buf_append_le64(out, origin);
    buf_append_le64(out, sequence);
}

void entry_add_command(struct buf *out, const uint8_t *command, size_t len)
{
    CHECK(len > 0 && len <= ENTRY_FRAGMENT_BYTES);
    buf_append_le32(out, (uint32_t)len);
    buf_append(out, command, len);
}

/* Bytes of fragment `number` of a command that was cut in `count`; 0: there is no such fragment. */
static size_t fragment_len(uint64_t command_bytes, uint32_t number, uint32_t count)
{
    uint64_t each = (command_bytes + count - 1) / count;
    uint64_t from = number * each;
    if (from >= command_bytes)
        return 0;
    return command_bytes - from < each ? (size_t)(command_bytes - from) : (size_t)each;
}

void entry_add_fragment(struct buf *out, const uint8_t *command, size_t command_len, uint32_t number, uint32_t count)
{
    size_t each = (command_len + count - 1) / count;
    size_t len = fragment_len(command_len, number, count);
    CHECK(number < count && len > 0 && len <= ENTRY_FRAGMENT_BYTES);
    buf_append_le32(out, number);
    buf_append_le32(out, count);
    buf_append_le64(out, command_len);
    buf_append(out, command + number * each, len);
}

void entry_finish(struct buf *out, uint16_t count)
{
    store_le16(out->data + 2, count);
    store_le32(out->data + 4, (uint32_t)(out->len - ENTRY_HEADER_BYTES));
    while (out->len % 8 != 0)
        buf_append_u8(out, 0);
}

static bool parse_fragment(struct entry *entry, struct err *err)
{
    if (entry->payload_len < ENTRY_FRAGMENT_HEADER_BYTES || entry->count != 1)
        return err_set(err, ERR_InvalidLength, "a fragment without its header");
    entry->fragment_number = load_le32(entry->payload);
    entry->fragment_count = load_le32(entry->payload + 4);
    entry->command_bytes = load_le64(entry->payload + 8);
    entry->payload += ENTRY_FRAGMENT_HEADER_BYTES;
    entry->payload_len -= ENTRY_FRAGMENT_HEADER_BYTES;
    if (entry->command_bytes == 0 || entry->command_bytes > REPLICA_COMMAND_MAX_BYTES)
        return err_set(err, ERR_InvalidLength, "a fragment of a command of impossible size");
    if (entry->fragment_number >= entry->fragment_count || entry->payload_len == 0 ||
        entry->payload_len != fragment_len(entry->command_bytes, entry->fragment_number, entry->fragment_count))
        return err_set(err, ERR_InvalidLength, "a fragment whose number or size is wrong");
    return true;
}

static bool parse_commands(const struct entry *entry, struct err *err)
{
    size_t offset = 0, count = 0;
    while (offset < entry->payload_len) {
        if (entry->payload_len - offset < 4)
            return err_set(err, ERR_InvalidLength, "the length of a command is cut off");
        uint32_t len = load_le32(entry->payload + offset);
        offset += 4;
        if (len == 0 || len > entry->payload_len - offset)
            return err_set(err, ERR_InvalidLength, "a command is longer than its entry");
        offset += len;
        count++;
    }
    if (count == 0 || count != entry->count)
        return err_set(err, ERR_InvalidLength, "the number of commands is wrong");
    return true;
}

bool entry_parse(const uint8_t *data, size_t len, struct entry *entry, struct err *err)
{
    memset(entry, 0, sizeof *entry);
    if (len < ENTRY_HEADER_BYTES)
        return err_set(err, ERR_InvalidLength, "shorter than an entry's header");
    if (data[0] != ENTRY_VERSION)
        return err_set(err, ERR_UnsupportedFormat, "entry format version %u, this program knows %u", data[0],
                       (unsigned)ENTRY_VERSION);
    entry->count = load_le16(data + 2);
    entry->payload_len = load_le32(data + 4);
    entry->term = load_le64(data + 8);
    entry->origin = load_le64(data + 16);
    entry->sequence = load_le64(data + 24);
    entry->payload = data + ENTRY_HEADER_BYTES;
    size_t room = len - ENTRY_HEADER_BYTES;
    if (entry->payload_len > room || room - entry->payload_len >= 8)
        return err_set(err, ERR_InvalidLength, "the payload's length doesn't fit the entry");
    switch (data[1]) {
    case ENTRY_COMMANDS:
        entry->kind = ENTRY_COMMANDS;
        return parse_commands(entry, err);
    case ENTRY_FRAGMENT:
        entry->kind = ENTRY_FRAGMENT;
        return parse_fragment(entry, err);
    default:
        return err_set(err, ERR_UnsupportedFormat, "entry kind %u is unknown", data[1]);
    }
}

bool entry_next_command(const struct entry *entry, size_t *offset, const uint8_t **command, size_t *len)
{
    if (*offset >= entry->payload_len)
        return false;
    *len = load_le32(entry->payload + *offset);
    *command = entry->payload + *offset + 4;
    *offset += 4 + *len;
    return true;
}

void entry_assembly_reset(struct entry_assembly *assembly)
{
    buf_deinit(&assembly->bytes);
    *assembly = (struct entry_assembly){0};
}

static bool continues(const struct entry_assembly *assembly, const struct entry *entry, uint64_t index)
{
    return assembly->first_index != 0 && index == assembly->last_index + 1 && entry->origin == assembly->origin &&
           entry->term == assembly->term && entry->fragment_number == assembly->next_number &&
           entry->fragment_count == assembly->count && entry->command_bytes == assembly->command_bytes &&
           entry->sequence == assembly->first_sequence + entry->fragment_number;
}

bool entry_assembly_add(struct entry_assembly *assembly, const struct entry *entry, uint64_t index)
{
    if (!continues(assembly, entry, index)) {
        entry_assembly_reset(assembly);
        if (entry->fragment_number != 0)
            return false;
        assembly->origin = entry->origin;
        assembly->term = entry->term;
        assembly->first_sequence = entry->sequence;
        assembly->first_index = index;
        assembly->count = entry->fragment_count;
        assembly->command_bytes = entry->command_bytes;
    }
    buf_append(&assembly->bytes, entry->payload, entry->payload_len);
    assembly->last_index = index;
    assembly->next_number = entry->fragment_number + 1;
    return assembly->next_number == assembly->count;
}
