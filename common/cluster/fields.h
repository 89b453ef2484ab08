/* Typed fields of metadata documents and internal requests. Missing: ERR_NoSuchKey; another type: ERR_TypeMismatch; the
 * message names the field. Views borrow from the document. Pure, any thread. */
#ifndef SHERD_CLUSTER_FIELDS_H
#define SHERD_CLUSTER_FIELDS_H

#include "cluster/version.h"

/* Copies the string and its NUL into out[0..cap); a longer one, an empty one or one with a NUL inside is ERR_BadValue.
 */
bool field_str(struct bdoc doc, const char *name, char *out, size_t cap, struct err *err) ERR_WARN_UNUSED;
bool field_uuid(struct bdoc doc, const char *name, uint8_t out[CLUSTER_UUID_BYTES], struct err *err) ERR_WARN_UNUSED;
bool field_oid(struct bdoc doc, const char *name, bson_oid_t *out, struct err *err) ERR_WARN_UNUSED;
/* Any number that stands for a whole one. */
bool field_i64(struct bdoc doc, const char *name, int64_t *out, struct err *err) ERR_WARN_UNUSED;
bool field_timestamp(struct bdoc doc, const char *name, uint64_t *out, struct err *err) ERR_WARN_UNUSED;
bool field_date(struct bdoc doc, const char *name, int64_t *out_ms, struct err *err) ERR_WARN_UNUSED;
bool field_doc(struct bdoc doc, const char *name, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
bool field_array(struct bdoc doc, const char *name, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
/* Absent is false. Accepts what bval_truthy does. */
bool field_flag(struct bdoc doc, const char *name);

void append_uuid(bson_t *to, const char *name, const uint8_t uuid[CLUSTER_UUID_BYTES]);
void append_timestamp(bson_t *to, const char *name, uint64_t timestamp);
void append_bdoc(bson_t *to, const char *name, struct bdoc doc);
void append_array(bson_t *to, const char *name, struct bdoc array);

#endif
