/* The calendar: milliseconds since 1970 to and from year, month, day ... in the proleptic Gregorian calendar, with
 * fixed offsets from UTC. Pure; any thread. Algorithm for days: http://howardhinnant.github.io/date_algorithms.html */
#ifndef SHERD_EXPR_DATES_H
#define SHERD_EXPR_DATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct date_parts {
    int64_t year;
    int month;    /* 1..12 */
    int day;      /* 1..31 */
    int hour;     /* 0..23 */
    int minute;   /* 0..59 */
    int second;   /* 0..59 */
    int ms;       /* 0..999 */
    int weekday;  /* 0: Sunday */
    int year_day; /* 1..366 */
};

/* Days since 1970-01-01; month and day may be out of range and carry over. */
int64_t date_days(int64_t year, int64_t month, int64_t day);
void date_split(int64_t ms, struct date_parts *out);
/* ISO 8601 week and the year it belongs to. */
void date_iso_week(const struct date_parts *parts, int64_t *year, int *week);
/* "2024-05-06T07:08:09.010Z"; false outside years 0..9999 or when `size` is too small. */
bool date_print_iso(int64_t ms, char *text, size_t size);
/* Reads "2024-05-06", "2024-05-06T07:08:09.010Z", "...+02:00" and the like; without an offset it is UTC. */
bool date_parse_iso(const char *text, size_t len, int64_t *ms);
/* "+02:00", "-0330", "+05", "UTC", "GMT", "Z": minutes to add to UTC. False for names of places: there is no zone
 * database. */
bool date_parse_offset(const char *text, size_t len, int *minutes);

#endif
