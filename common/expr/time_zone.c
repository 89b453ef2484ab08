#include "expr/time_zone.h"

#include "base/map.h"
#include "base/mem.h"
#include "expr/dates.h"

#include <pthread.h>
#include <string.h>
#include <unicode/ucal.h>

enum {
    FIRST_YEAR = 1800,  /* zones have local mean time before, without a change */
    LAST_YEAR = 2440,   /* changes are listed up to here; later years repeat with the calendar's period */
    MAX_CHANGES = 4096, /* of one place */
    MS_PER_DAY = 86400000,
};

/* From `from_ms` on the offset holds, up to the next change. */
struct change {
    int64_t from_ms;
    int64_t offset_ms;
};

struct time_zone_place {
    int64_t first_offset_ms; /* before the first change */
    size_t count;
    struct change changes[];
};

/* Tables by name; entries are never removed. */
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map places;

static int64_t year_start_ms(int64_t year)
{
    return date_days(year, 1, 1) * MS_PER_DAY;
}

static int64_t offset_at(UCalendar *calendar, double ms, UErrorCode *status)
{
    ucal_setMillis(calendar, ms, status);
    return (int64_t)ucal_get(calendar, UCAL_ZONE_OFFSET, status) + ucal_get(calendar, UCAL_DST_OFFSET, status);
}

static UCalendar *open_calendar(const char *name)
{
    UChar id[TIME_ZONE_MAX_NAME_BYTES + 1];
    UChar canonical[TIME_ZONE_MAX_NAME_BYTES * 2];
    UBool known = 0;
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = 0;
    for (; name[len] != 0; len++)
        id[len] = (UChar)(unsigned char)name[len];
    ucal_getCanonicalTimeZoneID(id, len, canonical, TIME_ZONE_MAX_NAME_BYTES * 2, &known, &status);
    if (U_FAILURE(status) || !known)
        return NULL;
    UCalendar *calendar = ucal_open(id, len, "en_US", UCAL_GREGORIAN, &status);
    if (U_SUCCESS(status))
        return calendar;
    if (calendar != NULL)
        ucal_close(calendar);
    return NULL;
}

/* NULL: no such place. */
static struct time_zone_place *read_place(const char *name)
{
    UErrorCode status = U_ZERO_ERROR;
    UCalendar *calendar = open_calendar(name);
    if (calendar == NULL)
        return NULL;
    struct time_zone_place *place = mem_alloc(sizeof *place + MAX_CHANGES * sizeof *place->changes);
    double end = (double)year_start_ms(LAST_YEAR);
    double at = (double)year_start_ms(FIRST_YEAR);
    int64_t offset = offset_at(calendar, at, &status);
    place->first_offset_ms = offset;
    while (U_SUCCESS(status) && place->count < MAX_CHANGES) {
        UDate next;
        ucal_setMillis(calendar, at, &status);
        if (!ucal_getTimeZoneTransitionDate(calendar, UCAL_TZ_TRANSITION_NEXT, &next, &status) || next > end)
            break;
        at = next;
        int64_t changed = offset_at(calendar, next, &status);
        if (changed != offset)
            place->changes[place->count++] = (struct change){.from_ms = (int64_t)next, .offset_ms = changed};
        offset = changed;
    }
    ucal_close(calendar);
    return mem_realloc(place, sizeof *place + place->count * sizeof *place->changes);
}

static const struct time_zone_place *find_place(const char *name, size_t len)
{
    pthread_mutex_lock(&places_lock);
    struct time_zone_place *place = map_get(&places, name, len);
    if (place == NULL && places.count < TIME_ZONE_MAX_PLACES) {
        place = read_place(name);
        if (place != NULL)
            map_put(&places, name, len, place);
    }
    pthread_mutex_unlock(&places_lock);
    return place;
}

static bool look_up(const char *name, size_t len, struct time_zone *out)
{
    char text[TIME_ZONE_MAX_NAME_BYTES + 1];
    int minutes;
    *out = (struct time_zone){0};
    if (date_parse_offset(name, len, &minutes)) {
        out->offset_ms = (int64_t)minutes * 60000;
        return true;
    }
    if (len == 0 || len > TIME_ZONE_MAX_NAME_BYTES || memchr(name, 0, len) != NULL)
        return false;
    memcpy(text, name, len);
    text[len] = 0;
    out->place = find_place(text, len);
    return out->place != NULL;
}

bool time_zone_find(const char *name, size_t len, struct time_zone *out)
{
    /* A pipeline asks for one zone again and again. */
    static _Thread_local char last_name[TIME_ZONE_MAX_NAME_BYTES];
    static _Thread_local size_t last_len;
    static _Thread_local struct time_zone last;
    if (len > 0 && len == last_len && memcmp(name, last_name, len) == 0) {
        *out = last;
        return true;
    }
    if (!look_up(name, len, out))
        return false;
    if (len <= sizeof last_name) {
        memcpy(last_name, name, len);
        last_len = len;
        last = *out;
    }
    return true;
}

int64_t time_zone_offset_ms(const struct time_zone *zone, int64_t utc_ms)
{
    const struct time_zone_place *place = zone->place;
    if (place == NULL)
        return zone->offset_ms;
    if (utc_ms >= year_start_ms(LAST_YEAR)) {
        /* The same day of the calendar's period, in the last one that is listed. */
        int64_t period = (int64_t)146097 * MS_PER_DAY;
        int64_t begin = year_start_ms(LAST_YEAR) - period;
        utc_ms = begin + (utc_ms - begin) % period;
    }
    size_t low = 0;
    size_t high = place->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (place->changes[middle].from_ms <= utc_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? place->first_offset_ms : place->changes[low - 1].offset_ms;
}

int64_t time_zone_to_utc(const struct time_zone *zone, int64_t local_ms)
{
    if (zone->place == NULL)
        return local_ms - zone->offset_ms;
    int64_t before = time_zone_offset_ms(zone, local_ms - MS_PER_DAY);
    int64_t after = time_zone_offset_ms(zone, local_ms + MS_PER_DAY);
    if (time_zone_offset_ms(zone, local_ms - before) == before)
        return local_ms - before;
    if (time_zone_offset_ms(zone, local_ms - after) == after)
        return local_ms - after;
    return local_ms - before;
}
