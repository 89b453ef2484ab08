/* Reading a command's fields with MongoDB's error codes: 14 TypeMismatch, 40414 for a missing one, 40415 for one that
 * is unknown, 51024 for one out of range, 2 BadValue or 9 FailedToParse for a bad value. Results are views into the
 * command's body.
 *
 *   static const char *const known[] = {"find", "filter", "limit", NULL};
 *   if (!fields_check_known(ctx->body, "find", known, err) || !field_get_doc(ctx->body, "filter", &filter, err)) ... */
#ifndef SHERD_COMMAND_FIELDS_H
#define SHERD_COMMAND_FIELDS_H

#include "base/err.h"
#include "bson/value.h"

enum {
    COMMAND_ERR_FIELD_TWICE = 40413,
    COMMAND_ERR_FIELD_MISSING = 40414,
    COMMAND_ERR_FIELD_UNKNOWN = 40415,
    COMMAND_ERR_DB_MISSING = 40571, /* OP_MSG without $db */
    COMMAND_ERR_OUT_OF_RANGE = 51024,
};

/* Refuses fields that are neither in `known` (ended by NULL) nor generic arguments that every command takes ($db, lsid,
 * maxTimeMS, comment, readConcern, writeConcern, $readPreference, $clusterTime, apiVersion, $sherd..., ...). */
bool fields_check_known(struct bdoc doc, const char *command, const char *const *known,
                        struct err *err) ERR_WARN_UNUSED;
/* The same for a command's body, whose first field is the command's name in any of its spellings. */
bool fields_check_arguments(struct bdoc body, const char *command, const char *const *known,
                            struct err *err) ERR_WARN_UNUSED;
bool field_is_generic(const char *name);

/* Each: a missing field leaves *out untouched and succeeds; null counts as missing; a wrong type is 14. */
bool field_get_doc(struct bdoc doc, const char *name, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
bool field_get_array(struct bdoc doc, const char *name, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
/* NUL-terminated; a string with a NUL inside is 2. */
bool field_get_str(struct bdoc doc, const char *name, const char **out, struct err *err) ERR_WARN_UNUSED;
/* Any number that stands for a whole one; 14 for another type, 9 for a fraction or one out of range. */
bool field_get_i64(struct bdoc doc, const char *name, int64_t *out, struct err *err) ERR_WARN_UNUSED;
/* The same within min..max (51024 outside). */
bool field_get_i64_in(struct bdoc doc, const char *name, int64_t min, int64_t max, int64_t *out,
                      struct err *err) ERR_WARN_UNUSED;
/* A bool, or a number (not 0 is true). */
bool field_get_bool(struct bdoc doc, const char *name, bool *out, struct err *err) ERR_WARN_UNUSED;
/* subtype 4, 16 bytes; *out points at them. */
bool field_get_uuid(struct bdoc doc, const char *name, const uint8_t **out, struct err *err) ERR_WARN_UNUSED;
bool field_get_oid(struct bdoc doc, const char *name, const bson_oid_t **out, struct err *err) ERR_WARN_UNUSED;
bool field_get_timestamp(struct bdoc doc, const char *name, uint64_t *out, struct err *err) ERR_WARN_UNUSED;
bool field_get_date(struct bdoc doc, const char *name, int64_t *out_ms, struct err *err) ERR_WARN_UNUSED;
/* A string or a document; an empty one counts as missing. 9 FailedToParse for anything else. */
bool field_get_hint(struct bdoc doc, struct bval *out, struct err *err) ERR_WARN_UNUSED;
/* The option `cursor: {batchSize}` of a command. *given: it is there; *batch_size is untouched when not named. 14, 40415
 * for another name in it, 51024 below 0. */
bool field_get_cursor(struct bdoc body, const char *command, bool *given, int64_t *batch_size,
                      struct err *err) ERR_WARN_UNUSED;
/* The field must be there and not null: 40414 otherwise. Then read it with field_get_*. */
bool field_require(struct bdoc doc, const char *name, struct err *err) ERR_WARN_UNUSED;

#endif
