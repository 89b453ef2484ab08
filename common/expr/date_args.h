/* What the date operators have in common: reading dates, zones and units out of arguments, and the parts of a date. */
#ifndef SHERD_EXPR_DATE_ARGS_H
#define SHERD_EXPR_DATE_ARGS_H

#include "expr/dates.h"
#include "expr/expr_tree.h"
#include "expr/time_zone.h"

enum date_part {
    PART_YEAR,
    PART_MONTH,
    PART_DAY,
    PART_HOUR,
    PART_MINUTE,
    PART_SECOND,
    PART_MS,
    PART_WEEKDAY,
    PART_YEAR_DAY,
    PART_WEEK,
    PART_ISO_WEEK,
    PART_ISO_YEAR,
    PART_ISO_WEEKDAY,
};

enum {
    MS_PER_SECOND = 1000,
    MS_PER_MINUTE = 60000,
    MS_PER_HOUR = 3600000,
    MS_PER_DAY = 86400000,
};

/* Milliseconds of a date, a timestamp or an ObjectId; `code` for other types. Dates that leave no room for an offset
 * are refused, too (15). */
bool date_arg(struct expr_scope *s, const struct expr *call, const struct bval *val, int32_t code, int64_t *ms);
/* A zone by name; `code` when it is no string, 40485 when there is none of that name. */
bool date_zone_arg(struct expr_scope *s, const struct expr *call, const struct bval *val, int32_t code,
                   struct time_zone *out);
/* Part of a local time. */
int64_t date_part_value(enum date_part part, int64_t local_ms);

#endif
