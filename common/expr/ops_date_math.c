/* $dateAdd, $dateSubtract, $dateDiff, $dateTrunc. Days and longer units follow the local calendar, hours and shorter
 * ones the clock. */
#include "expr/date_args.h"

#include "expr/date_text.h"

#include <string.h>
#include <strings.h>

enum time_unit {
    UNIT_YEAR,
    UNIT_QUARTER,
    UNIT_MONTH,
    UNIT_WEEK,
    UNIT_DAY,
    UNIT_HOUR,
    UNIT_MINUTE,
    UNIT_SECOND,
    UNIT_MS,
    UNIT_COUNT,
};

enum {
    ERR_UNIT_TYPE = 5439013,
    ERR_WEEK_START_TYPE = 5439015,
    ERR_WEEK_START = 5439016,
    REFERENCE_YEAR = 2000, /* bins of $dateTrunc are counted from its first day on, a Saturday */
    SUNDAY = 0,
    SATURDAY = 6,
};

/* Months that a unit of the calendar spans; milliseconds of the others. */
static const int unit_months[UNIT_COUNT] = {[UNIT_YEAR] = 12, [UNIT_QUARTER] = 3, [UNIT_MONTH] = 1};
static const int64_t unit_ms[UNIT_COUNT] = {
    [UNIT_WEEK] = (int64_t)7 * MS_PER_DAY, [UNIT_DAY] = MS_PER_DAY,       [UNIT_HOUR] = MS_PER_HOUR,
    [UNIT_MINUTE] = MS_PER_MINUTE,         [UNIT_SECOND] = MS_PER_SECOND, [UNIT_MS] = 1};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

static bool unit_arg(struct expr_scope *s, const struct expr *call, const struct bval *val, int32_t type_code,
                     enum time_unit *out)
{
    static const char *const names[UNIT_COUNT] = {"year", "quarter", "month",  "week",       "day",
                                                  "hour", "minute",  "second", "millisecond"};
    if (val->type != BT_STRING)
        return err_set(s->err, type_code, "%s requires 'unit' to be a string, but got %s", call->op->name,
                       bval_type_name(val->type));
    for (int i = 0; i < UNIT_COUNT; i++) {
        if (bval_is_str(val, names[i])) {
            *out = (enum time_unit)i;
            return true;
        }
    }
    return err_set(s->err, ERR_FailedToParse, "%s: unknown time unit value", call->op->name);
}

static bool week_start_arg(struct expr_scope *s, const struct expr *call, const struct bval *val, int *weekday)
{
    uint32_t len;
    size_t used = 0;
    if (val->type != BT_STRING)
        return err_set(s->err, ERR_WEEK_START_TYPE, "%s requires 'startOfWeek' to be a string, but got %s",
                       call->op->name, bval_type_name(val->type));
    const char *text = bval_str(val, &len);
    *weekday = date_weekday_name(text, len, &used);
    if (*weekday < 0 || used != len)
        return err_set(s->err, ERR_WEEK_START, "%s: 'startOfWeek' is no day of a week", call->op->name);
    return true;
}

/* Local time with so many months more; a day that the month doesn't have becomes its last. */
static int64_t plus_months(int64_t local_ms, int64_t months)
{
    struct date_parts p;
    date_split(local_ms, &p);
    int64_t month = p.year * 12 + p.month - 1 + months;
    int64_t year = floor_div(month, 12);
    int64_t of_year = month - year * 12 + 1;
    int64_t first = date_days(year, of_year, 1);
    int64_t last = date_days(year, of_year + 1, 1) - first;
    int64_t days = first + (p.day > last ? last : p.day) - 1;
    int64_t in_day = local_ms - floor_div(local_ms, MS_PER_DAY) * MS_PER_DAY;
    return days * MS_PER_DAY + in_day;
}

/* So many units, as $dateAdd adds them. */
struct span {
    enum time_unit unit;
    int64_t amount;
    struct time_zone zone;
};

/* The amount is so large that no date remains a date. */
static bool is_too_much(const struct span *span)
{
    int64_t bound = INT64_MAX / 4;
    int64_t ms = unit_ms[span->unit] != 0 ? unit_ms[span->unit] : (int64_t)31 * MS_PER_DAY * unit_months[span->unit];
    int64_t product;
    return __builtin_mul_overflow(span->amount, ms, &product) || product > bound || product < -bound;
}

static bool date_add(struct expr_scope *s, const struct expr *call, int64_t ms, const struct span *span, int64_t *out)
{
    enum time_unit unit = span->unit;
    if (is_too_much(span))
        return err_set(s->err, 5976500, "invalid %s 'amount' parameter value: %lld", call->op->name,
                       (long long)span->amount);
    if (ms > INT64_MAX / 2 || ms < INT64_MIN / 2)
        return err_set(s->err, 5166406, "%s overflowed", call->op->name);
    if (unit >= UNIT_HOUR) {
        *out = ms + span->amount * unit_ms[unit];
        return true;
    }
    int64_t local = ms + time_zone_offset_ms(&span->zone, ms);
    local = unit_months[unit] != 0 ? plus_months(local, span->amount * unit_months[unit])
                                   : local + span->amount * unit_ms[unit];
    *out = time_zone_to_utc(&span->zone, local);
    return true;
}

/* Arguments: startDate, unit, amount, timezone; tag -1 subtracts. */
static bool op_date_add(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t ms;
    struct span span = {.unit = UNIT_MS};
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < 4; i++)
        if (call->args[i] != NULL && expr_is_nullish(&args[i]))
            return true;
    if (!date_arg(s, call, &args[0], 5166403, &ms) || !unit_arg(s, call, &args[1], 5166404, &span.unit))
        return false;
    if (!bval_is_number(&args[2]) || !bval_to_i64(&args[2], &span.amount))
        return err_set(s->err, 5166405, "%s expects integer amount of time units", call->op->name);
    if (call->args[3] != NULL && !date_zone_arg(s, call, &args[3], 40517, &span.zone))
        return false;
    if (call->op->tag < 0) {
        if (span.amount == INT64_MIN)
            return err_set(s->err, 6045000, "invalid $dateSubtract 'amount' parameter value");
        span.amount = -span.amount;
    }
    if (!date_add(s, call, ms, &span, &ms))
        return false;
    *out = make_date(s->scratch, ms);
    return true;
}

static int64_t month_number(int64_t local_ms)
{
    return date_part_value(PART_YEAR, local_ms) * 12 + date_part_value(PART_MONTH, local_ms) - 1;
}

/* How many boundaries of the unit lie between two moments. */
static int64_t date_diff(int64_t start, int64_t end, enum time_unit unit, int week_start, const struct time_zone *zone)
{
    int64_t start_offset = time_zone_offset_ms(zone, start);
    int64_t end_offset = time_zone_offset_ms(zone, end);
    int64_t a = start + start_offset;
    int64_t b = end + end_offset;
    if (unit_months[unit] != 0)
        return floor_div(month_number(b), unit_months[unit]) - floor_div(month_number(a), unit_months[unit]);
    int64_t days_a = floor_div(a, MS_PER_DAY);
    int64_t days_b = floor_div(b, MS_PER_DAY);
    if (unit == UNIT_DAY)
        return days_b - days_a;
    if (unit == UNIT_WEEK) /* 1970-01-01 is a Thursday, day 4 */
        return floor_div(days_b + 4 - week_start, 7) - floor_div(days_a + 4 - week_start, 7);
    int64_t clock = (end_offset - start_offset) / unit_ms[unit];
    return floor_div(b, unit_ms[unit]) - floor_div(a, unit_ms[unit]) - clock;
}

/* What $dateDiff and $dateTrunc read after their own arguments. */
struct calendar {
    struct time_zone zone;
    int week_start;
    bool null; /* startOfWeek is, and counts */
};

/* One of the first four is null: so is the result. */
static bool lacks_argument(const struct expr *call, const struct bval *args)
{
    for (uint32_t i = 0; i < 4; i++)
        if (call->args[i] != NULL && expr_is_nullish(&args[i]))
            return true;
    return false;
}

/* timezone and, for weeks only, startOfWeek: arguments 3 and 4. */
static bool calendar_args(struct expr_scope *s, const struct expr *call, const struct bval *args, enum time_unit unit,
                          struct calendar *out)
{
    *out = (struct calendar){.week_start = SUNDAY};
    if (call->args[3] != NULL && !date_zone_arg(s, call, &args[3], 40517, &out->zone))
        return false;
    if (call->args[4] == NULL || unit != UNIT_WEEK)
        return true;
    out->null = expr_is_nullish(&args[4]);
    return out->null || week_start_arg(s, call, &args[4], &out->week_start);
}

/* Arguments: startDate, endDate, unit, timezone, startOfWeek. */
static bool op_date_diff(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t start;
    int64_t end;
    enum time_unit unit = UNIT_MS;
    struct calendar calendar;
    *out = BVAL_NULL;
    if (lacks_argument(call, args))
        return true;
    if (!date_arg(s, call, &args[0], 5166307, &start) || !date_arg(s, call, &args[1], 5166307, &end) ||
        !unit_arg(s, call, &args[2], ERR_UNIT_TYPE, &unit))
        return false;
    if (!calendar_args(s, call, args, unit, &calendar))
        return false;
    if (calendar.null)
        return true;
    int64_t span;
    if (__builtin_sub_overflow(end, start, &span))
        return err_set(s->err, 5166308, "$dateDiff overflowed");
    *out = make_i64(s->scratch, date_diff(start, end, unit, calendar.week_start, &calendar.zone));
    return true;
}

/* The last boundary of bins of `size` units at or before the local time; bins are counted from 2000-01-01 (weeks: from
 * the first start of a week after it). False: no such date. */
static bool trunc_local(int64_t local, enum time_unit unit, int64_t size, int week_start, int64_t *out)
{
    int64_t reference = date_days(REFERENCE_YEAR, 1, 1);
    int64_t bin;
    if (unit_months[unit] != 0) {
        if (__builtin_mul_overflow(size, unit_months[unit], &bin))
            bin = INT64_MAX;
        int64_t months = month_number(local) - (int64_t)REFERENCE_YEAR * 12;
        int64_t begin;
        if (__builtin_mul_overflow(floor_div(months, bin), bin, &begin) || begin < -INT32_MAX)
            return false;
        *out = date_days(REFERENCE_YEAR, begin + 1, 1) * MS_PER_DAY;
        return true;
    }
    if (unit == UNIT_WEEK)
        reference += (week_start - SATURDAY + 7) % 7;
    if (__builtin_mul_overflow(size, unit_ms[unit], &bin))
        bin = INT64_MAX;
    int64_t begin;
    int64_t from = reference * MS_PER_DAY;
    return !__builtin_sub_overflow(local, from, &begin) &&
           !__builtin_mul_overflow(floor_div(begin, bin), bin, &begin) && !__builtin_add_overflow(begin, from, out);
}

static bool bin_size_arg(struct expr_scope *s, const struct bval *val, int64_t *out)
{
    if (!bval_is_number(val) || !bval_to_i64(val, out))
        return err_set(s->err, 5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer");
    if (*out <= 0)
        return err_set(s->err, 5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got %lld",
                       (long long)*out);
    return true;
}

/* Arguments: date, unit, binSize, timezone, startOfWeek. */
static bool op_date_trunc(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t ms;
    int64_t size = 1;
    enum time_unit unit = UNIT_MS;
    struct calendar calendar;
    *out = BVAL_NULL;
    if (lacks_argument(call, args))
        return true;
    if (!date_arg(s, call, &args[0], 5439012, &ms) || !unit_arg(s, call, &args[1], ERR_UNIT_TYPE, &unit))
        return false;
    if (call->args[2] != NULL && !bin_size_arg(s, &args[2], &size))
        return false;
    if (!calendar_args(s, call, args, unit, &calendar))
        return false;
    if (calendar.null)
        return true;
    int64_t offset = time_zone_offset_ms(&calendar.zone, ms);
    int64_t local = 0;
    if (!trunc_local(ms + offset, unit, size, calendar.week_start, &local) || local < INT64_MIN / 2)
        return err_set(s->err, 5439014, "$dateTrunc overflowed");
    *out = make_date(s->scratch, unit >= UNIT_HOUR ? local - offset : time_zone_to_utc(&calendar.zone, local));
    return true;
}

const struct expr_operator expr_ops_date_math[] = {
    {"$dateAdd", 3, 4, false, op_date_add, "startDate unit amount timezone", NULL, 1},
    {"$dateSubtract", 3, 4, false, op_date_add, "startDate unit amount timezone", NULL, -1},
    {"$dateDiff", 3, 5, false, op_date_diff, "startDate endDate unit timezone startOfWeek", NULL, 0},
    {"$dateTrunc", 2, 5, false, op_date_trunc, "date unit binSize timezone startOfWeek", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
