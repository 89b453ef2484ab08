/* Dates out of text, as $dateFromString, $toDate and $convert read them. Any thread. */
#ifndef SHERD_EXPR_DATE_TEXT_H
#define SHERD_EXPR_DATE_TEXT_H

#include "expr/time_zone.h"

enum date_outcome {
    DATE_READ,
    DATE_MALFORMED,
    DATE_ZONE_TWICE, /* a zone in the text and another one given */
    DATE_BAD_FORMAT, /* an unknown specifier in the format */
};

/* Without a format: "2024-05-06", "2024-05-06T07:08:09.010Z", "20240506T070809", "05/06/2024 7:08 pm",
 * "Mon, 6 May 2024 07:08:09 +0200", "May 6, 2024", each with an offset or a place behind it. `zone` is the zone that
 * was given beside the text; NULL: none, then UTC. */
enum date_outcome date_text_read(const char *text, size_t len, const struct time_zone *zone, int64_t *ms);
/* With a format of %Y %m %d %H %M %S %L %j %G %V %u %w %U %b %B %z %Z %%. */
enum date_outcome date_text_read_format(const char *text, size_t len, const char *format, const struct time_zone *zone,
                                        int64_t *ms);
/* The month (1..12) that `text` begins with, in full or by its first three letters, in any case; *used: its length. 0:
 * none. */
int date_month_name(const char *text, size_t len, size_t *used);
/* "Monday" or "Mon", in any case: 0 is Sunday. -1: none. */
int date_weekday_name(const char *text, size_t len, size_t *used);
extern const char *const date_month_names[12];

#endif
