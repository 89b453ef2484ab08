/* The options of `create`: types, ranges, what excludes what, and the one form in which they are stored, compared and
 * listed. On the leader's worker. */
#ifndef SHERD_DOCUMENT_CREATE_OPTIONS_H
#define SHERD_DOCUMENT_CREATE_OPTIONS_H

#include "base/arena.h"
#include "command/namespace.h"
#include "document/traits.h"

enum {
    CREATE_CAPPED_MAX_DOCS = 2147483647,
    CREATE_BUCKET_MAX_SECS = 365 * 24 * 3600,
};

#define CREATE_CAPPED_MAX_BYTES (INT64_C(1) << 50)
#define CREATE_NOT_GIVEN        INT64_MIN /* a number that the command doesn't have */

/* What a create command asks for, checked; documents lie in the command or in the arena. */
struct create_request {
    struct bdoc options; /* the stored form */
    struct bdoc indexes; /* array of specifications to be built with the collection; data NULL: none */
    bool is_view;
};

/* Errors: 14, 40414, 40415, 51024 for types and ranges; ERR_InvalidOptions for options that exclude each other;
 * ERR_BadValue, ERR_InvalidIndexSpecificationOption; what filters, pipelines and collations say of themselves. */
bool create_request_parse(struct arena *arena, const struct ns *ns, struct bdoc body, struct create_request *out,
                          struct err *err) ERR_WARN_UNUSED;

/* ---- parts that collMod uses, too ---- */

/* A validator may stand here and can be compiled. */
bool create_check_validator(struct arena *arena, const struct ns *ns, struct bdoc validator,
                            struct err *err) ERR_WARN_UNUSED;
/* The words of validationLevel and validationAction; `text` NULL: not given. `command` is for the message. */
bool create_check_level(const char *command, const char *text, struct err *err) ERR_WARN_UNUSED;
bool create_check_action(const char *command, const char *text, struct err *err) ERR_WARN_UNUSED;
/* {enabled: bool}; *enabled is untouched when `images` has no data. */
bool create_read_images(struct bdoc images, bool *enabled, struct err *err) ERR_WARN_UNUSED;
/* Seconds after which documents of a clustered or time-series collection expire. */
bool create_check_expire(int64_t secs, struct err *err) ERR_WARN_UNUSED;
/* Up to the next multiple of 256, as MongoDB does. */
int64_t create_round_size(int64_t bytes);

/* The bucket options of a time series. CREATE_NOT_GIVEN and NULL: not given. */
struct create_timeseries {
    const char *time_field;
    const char *meta_field;
    const char *granularity;
    int64_t max_span_secs;
    int64_t rounding_secs;
};

/* Fills what follows from the rest; ERR_InvalidOptions for what doesn't go together. */
bool create_timeseries_complete(struct create_timeseries *ts, struct err *err) ERR_WARN_UNUSED;
/* {timeField, metaField?, granularity?, bucketMaxSpanSeconds, bucketRoundingSeconds?} */
void create_timeseries_append(const struct create_timeseries *ts, bson_t *to);

#endif
