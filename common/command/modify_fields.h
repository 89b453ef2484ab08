/* The fields of findAndModify, read and checked against each other: by the router before it sends the command, by the
 * shard that runs it. Any thread; views into the command. */
#ifndef SHERD_COMMAND_MODIFY_FIELDS_H
#define SHERD_COMMAND_MODIFY_FIELDS_H

#include "command/write_fields.h"

struct modify_fields {
    struct bdoc query;         /* empty when not given */
    struct bval update;        /* document or array; BT_EOO with remove */
    struct bdoc sort;          /* data NULL: none, as in the members below */
    struct bdoc fields;        /* projection */
    struct bdoc array_filters; /* array of documents */
    struct bdoc collation;
    struct bdoc let;
    struct bval hint;    /* string or document; BT_EOO: none */
    const uint8_t *uuid; /* collectionUUID, 16 bytes; NULL: none */
    bool remove;
    bool want_new;
    bool upsert;
    bool bypass_validation;
};

/* Errors: field_spec.h's, and 9 FailedToParse for options that exclude each other. */
bool modify_fields_read(struct bdoc body, struct modify_fields *out, struct err *err) ERR_WARN_UNUSED;
/* The same as the fields of an update statement, or of a delete's with remove. */
struct write_fields modify_fields_statement(const struct modify_fields *fields);

#endif
