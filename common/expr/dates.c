#include "expr/dates.h"

#include <stdio.h>
#include <string.h>

enum {
    MS_PER_DAY = 86400000,
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

int64_t date_days(int64_t year, int64_t month, int64_t day)
{
    year += floor_div(month - 1, 12);
    month = month - 1 - floor_div(month - 1, 12) * 12 + 1;
    year -= month <= 2 ? 1 : 0;
    int64_t era = floor_div(year, 400);
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    return era * 146097 + days - 719468;
}

void date_split(int64_t ms, struct date_parts *out)
{
    int64_t days = floor_div(ms, MS_PER_DAY);
    int64_t rest = ms % MS_PER_DAY + (ms % MS_PER_DAY < 0 ? MS_PER_DAY : 0);
    int64_t shifted = days + 719468;
    int64_t era = floor_div(shifted, 146097);
    int64_t of_era = shifted - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * of_year + 2) / 153;
    out->day = (int)(of_year - (153 * month + 2) / 5 + 1);
    out->month = (int)(month < 10 ? month + 3 : month - 9);
    out->year = year_of_era + era * 400 + (out->month <= 2 ? 1 : 0);
    out->hour = (int)(rest / 3600000);
    out->minute = (int)(rest / 60000 % 60);
    out->second = (int)(rest / 1000 % 60);
    out->ms = (int)(rest % 1000);
    out->weekday = (int)(days + 4 - floor_div(days + 4, 7) * 7);
    out->year_day = (int)(days - date_days(out->year, 1, 1)) + 1;
}

void date_iso_week(const struct date_parts *parts, int64_t *year, int *week)
{
    /* The week belongs to the year of its Thursday. */
    int iso_weekday = parts->weekday == 0 ? 7 : parts->weekday;
    int64_t thursday = date_days(parts->year, parts->month, parts->day) + 4 - iso_weekday;
    struct date_parts at;
    date_split(thursday * MS_PER_DAY, &at);
    *year = at.year;
    *week = (at.year_day - 1) / 7 + 1;
}

bool date_print_iso(int64_t ms, char *text, size_t size)
{
    struct date_parts parts;
    date_split(ms, &parts);
    if (parts.year < 0 || parts.year > 9999)
        return false;
    int len = snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)parts.year, parts.month, parts.day,
                       parts.hour, parts.minute, parts.second, parts.ms);
    return len > 0 && (size_t)len < size;
}

/* Exactly `digits` digits. */
static bool read_digits(const char **at, const char *end, int digits, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++) {
        if (*at == end || **at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
        (*at)++;
    }
    return true;
}

static bool read_char(const char **at, const char *end, char wanted)
{
    if (*at == end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

bool date_parse_offset(const char *text, size_t len, int *minutes)
{
    const char *at = text;
    const char *end = text + len;
    int64_t hours;
    int64_t rest = 0;
    *minutes = 0;
    if ((len == 3 && (memcmp(text, "UTC", 3) == 0 || memcmp(text, "GMT", 3) == 0)) || (len == 1 && text[0] == 'Z'))
        return true;
    if (len == 0 || (text[0] != '+' && text[0] != '-'))
        return false;
    at++;
    if (!read_digits(&at, end, 2, &hours))
        return false;
    read_char(&at, end, ':');
    if (at != end && !read_digits(&at, end, 2, &rest))
        return false;
    if (at != end)
        return false;
    *minutes = (int)(hours * 60 + rest) * (text[0] == '-' ? -1 : 1);
    return true;
}

/* Fraction of a second, any number of digits. */
static bool read_fraction(const char **at, const char *end, int64_t *ms)
{
    int64_t unit = 100;
    *ms = 0;
    if (*at == end || **at < '0' || **at > '9')
        return false;
    for (; *at != end && **at >= '0' && **at <= '9'; (*at)++) {
        *ms += (**at - '0') * unit;
        unit /= 10;
    }
    return true;
}

static bool read_time(const char **at, const char *end, int64_t *ms)
{
    int64_t hour;
    int64_t minute = 0;
    int64_t second = 0;
    int64_t fraction = 0;
    if (!read_digits(at, end, 2, &hour))
        return false;
    if (read_char(at, end, ':')) {
        if (!read_digits(at, end, 2, &minute))
            return false;
        if (read_char(at, end, ':') && !read_digits(at, end, 2, &second))
            return false;
        if (read_char(at, end, '.') && !read_fraction(at, end, &fraction))
            return false;
    }
    if (hour > 24 || minute > 59 || second > 60)
        return false;
    *ms = hour * 3600000 + minute * 60000 + second * 1000 + fraction;
    return true;
}

bool date_parse_iso(const char *text, size_t len, int64_t *ms)
{
    const char *at = text;
    const char *end = text + len;
    int64_t year;
    int64_t month = 1;
    int64_t day = 1;
    int64_t time = 0;
    int offset = 0;
    if (!read_digits(&at, end, 4, &year) || !read_char(&at, end, '-') || !read_digits(&at, end, 2, &month))
        return false;
    if (read_char(&at, end, '-') && !read_digits(&at, end, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || date_days(year, month, day) >= date_days(year, month + 1, 1))
        return false;
    if ((read_char(&at, end, 'T') || read_char(&at, end, ' ')) && !read_time(&at, end, &time))
        return false;
    while (read_char(&at, end, ' '))
        continue;
    if (at != end && !date_parse_offset(at, (size_t)(end - at), &offset))
        return false;
    *ms = date_days(year, month, day) * MS_PER_DAY + time - (int64_t)offset * 60000;
    return true;
}
