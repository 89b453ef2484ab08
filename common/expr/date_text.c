#include "expr/date_text.h"

#include "expr/dates.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
    MS_PER_DAY = 86400000,
    MS_PER_HOUR = 3600000,
    MS_PER_MINUTE = 60000,
    SHORT_NAME = 3, /* letters of "Mon", "Jan" */
};

const char *const date_month_names[12] = {"January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December"};
static const char *const weekday_names[7] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                             "Thursday", "Friday", "Saturday"};

struct reader {
    const char *at;
    const char *end;
};

static size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

static bool take(struct reader *r, char wanted)
{
    if (r->at == r->end || *r->at != wanted)
        return false;
    r->at++;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (take(r, ' ') || take(r, ','))
        continue;
}

static bool is_digit(const struct reader *r)
{
    return r->at != r->end && *r->at >= '0' && *r->at <= '9';
}

/* Between `least` and `most` digits. */
static bool take_number(struct reader *r, int least, int most, int64_t *out)
{
    int count = 0;
    *out = 0;
    for (; count < most && is_digit(r); count++)
        *out = *out * 10 + (*r->at++ - '0');
    return count >= least;
}

static size_t digits_ahead(const struct reader *r)
{
    size_t count = 0;
    while (count < left(r) && isdigit((unsigned char)r->at[count]))
        count++;
    return count;
}

/* Which of the names the text begins with; a full name is preferred to its first letters. */
static int find_name(const char *const *names, int count, const char *text, size_t len, size_t *used)
{
    for (int i = 0; i < count; i++) {
        size_t full = strlen(names[i]);
        if (len >= full && strncasecmp(text, names[i], full) == 0) {
            *used = full;
            return i;
        }
    }
    for (int i = 0; i < count; i++) {
        if (len >= SHORT_NAME && strncasecmp(text, names[i], SHORT_NAME) == 0) {
            *used = SHORT_NAME;
            return i;
        }
    }
    return -1;
}

int date_month_name(const char *text, size_t len, size_t *used)
{
    return find_name(date_month_names, 12, text, len, used) + 1;
}

int date_weekday_name(const char *text, size_t len, size_t *used)
{
    return find_name(weekday_names, 7, text, len, used);
}

/* A date's parts as they were read. */
struct parts {
    int64_t year, month, day; /* year INT64_MIN: not read */
    int64_t year_day;         /* 0: not read */
    int64_t iso_year, iso_week, iso_day;
    bool has_iso;
    int64_t hour, minute, second, ms;
    bool has_zone;
    struct time_zone zone;
};

static bool days_of(const struct parts *p, int64_t *days)
{
    if (p->has_iso) {
        int64_t fourth = date_days(p->iso_year, 1, 4);
        int64_t weekday = (fourth + 3) % 7;
        weekday = weekday < 0 ? weekday + 7 : weekday;
        *days = fourth - weekday + (p->iso_week - 1) * 7 + p->iso_day - 1;
        return p->iso_week >= 1 && p->iso_week <= 53 && p->iso_day >= 1 && p->iso_day <= 7;
    }
    if (p->year == INT64_MIN)
        return false;
    if (p->year_day > 0) {
        *days = date_days(p->year, 1, 1) + p->year_day - 1;
        return p->year_day <= 366;
    }
    *days = date_days(p->year, p->month, p->day);
    return p->month >= 1 && p->month <= 12 && p->day >= 1 && *days < date_days(p->year, p->month + 1, 1);
}

static enum date_outcome finish(const struct parts *p, const struct time_zone *zone, int64_t *ms)
{
    struct time_zone utc = {0};
    int64_t days;
    if (p->has_zone && zone != NULL)
        return DATE_ZONE_TWICE;
    bool in_day = p->hour <= 24 && p->minute <= 59 && p->second <= 60;
    if (!in_day || !days_of(p, &days))
        return DATE_MALFORMED;
    int64_t local = days * MS_PER_DAY + p->hour * MS_PER_HOUR + p->minute * MS_PER_MINUTE + p->second * 1000 + p->ms;
    *ms = time_zone_to_utc(p->has_zone ? &p->zone : zone != NULL ? zone : &utc, local);
    return DATE_READ;
}

/* "2024-05-06", "2024-05", "2024/05/06", "20240506", "2024-127". */
static bool take_year_first(struct reader *r, struct parts *p)
{
    size_t digits = digits_ahead(r);
    if (digits == 8)
        return take_number(r, 4, 4, &p->year) && take_number(r, 2, 2, &p->month) && take_number(r, 2, 2, &p->day);
    if (digits != 4 || !take_number(r, 4, 4, &p->year))
        return false;
    char mark = r->at != r->end ? *r->at : 0;
    if (mark != '-' && mark != '/')
        return false;
    r->at++;
    if (mark == '-' && digits_ahead(r) == 3)
        return take_number(r, 3, 3, &p->year_day);
    if (!take_number(r, 1, 2, &p->month))
        return false;
    return !take(r, mark) || take_number(r, 1, 2, &p->day);
}

/* "05/06/2024": month, day, year. */
static bool take_slashes(struct reader *r, struct parts *p)
{
    return take_number(r, 1, 2, &p->month) && take(r, '/') && take_number(r, 1, 2, &p->day) && take(r, '/') &&
           take_number(r, 4, 4, &p->year);
}

static bool take_month_name(struct reader *r, struct parts *p)
{
    size_t used;
    int month = date_month_name(r->at, left(r), &used);
    if (month == 0)
        return false;
    p->month = month;
    r->at += used;
    while (take(r, '.') || take(r, '-') || take(r, ' ') || take(r, ','))
        continue;
    return true;
}

/* "1st", "2nd", "3rd", "4th". */
static void skip_ordinal(struct reader *r)
{
    static const char *const endings[] = {"st", "nd", "rd", "th"};
    for (size_t i = 0; i < 4; i++) {
        if (left(r) >= 2 && strncasecmp(r->at, endings[i], 2) == 0) {
            r->at += 2;
            return;
        }
    }
}

/* "May 6, 2024", "6 May 2024", "6-May-2024". */
static bool take_words(struct reader *r, struct parts *p)
{
    if (is_digit(r)) {
        if (!take_number(r, 1, 2, &p->day))
            return false;
        skip_ordinal(r);
        while (take(r, ' ') || take(r, '-'))
            continue;
        return take_month_name(r, p) && take_number(r, 4, 4, &p->year);
    }
    if (!take_month_name(r, p) || !take_number(r, 1, 2, &p->day))
        return false;
    skip_ordinal(r);
    skip_blanks(r);
    return take_number(r, 4, 4, &p->year);
}

static bool take_date(struct reader *r, struct parts *p)
{
    size_t used;
    const char *from = r->at;
    if (date_weekday_name(r->at, left(r), &used) >= 0) {
        r->at += used;
        skip_blanks(r);
        return take_words(r, p);
    }
    if (take_year_first(r, p))
        return true;
    r->at = from;
    *p = (struct parts){.month = 1, .day = 1};
    if (take_slashes(r, p))
        return true;
    r->at = from;
    return take_words(r, p);
}

static bool take_fraction(struct reader *r, int64_t *ms)
{
    int64_t unit = 100;
    *ms = 0;
    if (!is_digit(r))
        return false;
    for (; is_digit(r); r->at++) {
        *ms += (*r->at - '0') * unit;
        unit /= 10;
    }
    return true;
}

/* " am", "PM". */
static bool take_half_day(struct reader *r, struct parts *p)
{
    const char *from = r->at;
    skip_blanks(r);
    bool pm = left(r) >= 2 && strncasecmp(r->at, "pm", 2) == 0;
    if (!pm && !(left(r) >= 2 && strncasecmp(r->at, "am", 2) == 0)) {
        r->at = from;
        return true;
    }
    r->at += 2;
    if (p->hour < 1 || p->hour > 12)
        return false;
    p->hour = p->hour % 12 + (pm ? 12 : 0);
    return true;
}

static bool take_time(struct reader *r, struct parts *p)
{
    size_t digits = digits_ahead(r);
    if (digits == 6 || digits == 4) {
        if (!take_number(r, 2, 2, &p->hour) || !take_number(r, 2, 2, &p->minute))
            return false;
        if (digits == 6 && !take_number(r, 2, 2, &p->second))
            return false;
        return digits == 4 || !take(r, '.') || take_fraction(r, &p->ms);
    }
    if (!take_number(r, 1, 2, &p->hour))
        return false;
    if (take(r, ':')) {
        if (!take_number(r, 2, 2, &p->minute))
            return false;
        if (take(r, ':') && !take_number(r, 2, 2, &p->second))
            return false;
        if ((take(r, '.') || take(r, ',')) && !take_fraction(r, &p->ms))
            return false;
    }
    return take_half_day(r, p);
}

/* "GMT+2" and "UTC-0300" are offsets, too. */
static bool take_zone(struct reader *r, struct parts *p)
{
    skip_blanks(r);
    if (r->at == r->end)
        return true;
    bool prefixed = left(r) > 3 && (memcmp(r->at, "GMT", 3) == 0 || memcmp(r->at, "UTC", 3) == 0) &&
                    (r->at[3] == '+' || r->at[3] == '-');
    if (prefixed)
        r->at += 3;
    p->has_zone = true;
    bool found = time_zone_find(r->at, left(r), &p->zone);
    r->at = r->end;
    return found;
}

enum date_outcome date_text_read(const char *text, size_t len, const struct time_zone *zone, int64_t *ms)
{
    struct reader r = {text, text + len};
    struct parts p = {.month = 1, .day = 1};
    skip_blanks(&r);
    if (!take_date(&r, &p))
        return DATE_MALFORMED;
    bool separated = take(&r, 'T') || take(&r, 't');
    if (!separated && r.at != r.end && (*r.at == ' ' || *r.at == ',')) {
        skip_blanks(&r);
        separated = is_digit(&r);
    }
    if (separated && !take_time(&r, &p))
        return DATE_MALFORMED;
    if (!take_zone(&r, &p))
        return DATE_MALFORMED;
    return finish(&p, zone, ms);
}

static bool take_signed_minutes(struct reader *r, struct parts *p)
{
    int64_t minutes;
    bool negative = take(r, '-');
    if (!negative)
        take(r, '+');
    if (!take_number(r, 1, 4, &minutes))
        return false;
    p->has_zone = true;
    p->zone = (struct time_zone){.offset_ms = (negative ? -minutes : minutes) * MS_PER_MINUTE};
    return true;
}

/* "+0200", "+02:00", "Z". */
static bool take_offset(struct reader *r, struct parts *p)
{
    size_t len = 0;
    while (len < left(r) && len < 6 && (isdigit((unsigned char)r->at[len]) || strchr("+-:Z", r->at[len]) != NULL))
        len++;
    int minutes;
    if (len == 0 || !date_parse_offset(r->at, len, &minutes))
        return false;
    r->at += len;
    p->has_zone = true;
    p->zone = (struct time_zone){.offset_ms = (int64_t)minutes * MS_PER_MINUTE};
    return true;
}

static bool take_name_of_month(struct reader *r, struct parts *p)
{
    size_t used;
    p->month = date_month_name(r->at, left(r), &used);
    r->at += p->month > 0 ? used : 0;
    return p->month > 0;
}

static bool take_specifier(struct reader *r, char specifier, struct parts *p, bool *known)
{
    int64_t ignored;
    switch (specifier) {
    case 'Y':
        return take_number(r, 4, 4, &p->year);
    case 'm':
        return take_number(r, 2, 2, &p->month);
    case 'd':
        return take_number(r, 2, 2, &p->day);
    case 'H':
        return take_number(r, 2, 2, &p->hour);
    case 'M':
        return take_number(r, 2, 2, &p->minute);
    case 'S':
        return take_number(r, 2, 2, &p->second);
    case 'L':
        return take_number(r, 3, 3, &p->ms);
    case 'j':
        return take_number(r, 1, 3, &p->year_day) && p->year_day > 0;
    case 'G':
        p->has_iso = true;
        return take_number(r, 4, 4, &p->iso_year);
    case 'V':
        return take_number(r, 2, 2, &p->iso_week);
    case 'u':
        return take_number(r, 1, 1, &p->iso_day);
    case 'w':
        return take_number(r, 1, 1, &ignored);
    case 'U':
        return take_number(r, 2, 2, &ignored);
    case 'b':
    case 'B':
        return take_name_of_month(r, p);
    case 'z':
        return take_offset(r, p);
    case 'Z':
        return take_signed_minutes(r, p);
    case '%':
        return take(r, '%');
    default:
        *known = false;
        return false;
    }
}

enum date_outcome date_text_read_format(const char *text, size_t len, const char *format, const struct time_zone *zone,
                                        int64_t *ms)
{
    struct reader r = {text, text + len};
    struct parts p = {.year = INT64_MIN, .month = 1, .day = 1, .iso_week = 1, .iso_day = 1};
    bool known = true;
    for (const char *at = format; *at != 0; at++) {
        bool ok = *at == '%' ? at[1] != 0 && take_specifier(&r, *++at, &p, &known) : take(&r, *at);
        if (!known)
            return DATE_BAD_FORMAT;
        if (!ok)
            return DATE_MALFORMED;
    }
    return r.at == r.end ? finish(&p, zone, ms) : DATE_MALFORMED;
}
