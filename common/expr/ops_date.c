/* Dates taken apart and put together. */
#include "expr/date_args.h"

#include <string.h>

enum {
    ERR_DATE_TYPE = 16006,
    ERR_ZONE_NAME = 40485,
    DATE_MARGIN_MS = 4 * 86400000, /* what is left free at both ends of the range, for offsets */
};

bool date_arg(struct expr_scope *s, const struct expr *call, const struct bval *val, int32_t code, int64_t *ms)
{
    if (val->type == BT_DATE)
        *ms = bval_i64(val);
    else if (val->type == BT_TIMESTAMP)
        *ms = (int64_t)load_le32(val->data + 4) * 1000;
    else if (val->type == BT_OBJECT_ID)
        *ms = (int64_t)(int32_t)load_be32(val->data) * 1000;
    else
        return err_set(s->err, code, "%s can't convert from BSON type %s to Date", call->op->name,
                       bval_type_name(val->type));
    if (*ms > INT64_MAX - DATE_MARGIN_MS || *ms < INT64_MIN + DATE_MARGIN_MS)
        return err_set(s->err, ERR_Overflow, "%s: the date is out of range", call->op->name);
    return true;
}

bool date_zone_arg(struct expr_scope *s, const struct expr *call, const struct bval *val, int32_t code,
                   struct time_zone *out)
{
    uint32_t len;
    if (val->type != BT_STRING)
        return err_set(s->err, code, "%s: timezone must evaluate to a string, found %s", call->op->name,
                       bval_type_name(val->type));
    const char *text = bval_str(val, &len);
    if (!time_zone_find(text, len, out))
        return err_set(s->err, ERR_ZONE_NAME, "unrecognized time zone identifier: \"%.64s\" (%s)", text,
                       call->op->name);
    return true;
}

int64_t date_part_value(enum date_part part, int64_t local_ms)
{
    struct date_parts p;
    int64_t iso_year;
    int iso_week;
    date_split(local_ms, &p);
    date_iso_week(&p, &iso_year, &iso_week);
    switch (part) {
    case PART_YEAR:
        return p.year;
    case PART_MONTH:
        return p.month;
    case PART_DAY:
        return p.day;
    case PART_HOUR:
        return p.hour;
    case PART_MINUTE:
        return p.minute;
    case PART_SECOND:
        return p.second;
    case PART_MS:
        return p.ms;
    case PART_WEEKDAY:
        return p.weekday + 1;
    case PART_YEAR_DAY:
        return p.year_day;
    case PART_WEEK:
        return (p.year_day - 1 + 7 - p.weekday) / 7;
    case PART_ISO_WEEK:
        return iso_week;
    case PART_ISO_YEAR:
        return iso_year;
    default:
        return p.weekday == 0 ? 7 : p.weekday;
    }
}

static bool op_part(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t ms;
    struct time_zone zone = {0};
    bool has_zone = expr_has_arg(call, 1);
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || (has_zone && expr_is_nullish(&args[1])))
        return true;
    if (!date_arg(s, call, &args[0], ERR_DATE_TYPE, &ms) ||
        (has_zone && !date_zone_arg(s, call, &args[1], 40533, &zone)))
        return false;
    enum date_part part = (enum date_part)call->op->tag;
    int64_t value = date_part_value(part, ms + time_zone_offset_ms(&zone, ms));
    *out = part == PART_ISO_YEAR ? make_i64(s->scratch, value) : make_i32(s->scratch, (int32_t)value);
    return true;
}

/* {$year: "$d"}, {$year: ["$d"]}, {$year: {date: "$d", timezone: "+01"}}; any other document is an expression. */
static bool compile_part(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct bval date = *operand;
    struct bval zone = BVAL_MISSING;
    struct biter iter;
    struct belem elem;
    if (operand->type == BT_ARRAY) {
        if (bdoc_count(bval_doc(operand)) != 1)
            return err_set(c->err, 40536, "%s accepts exactly one argument if given an array, but was given %u",
                           call->op->name, bdoc_count(bval_doc(operand)));
        bdoc_find(bval_doc(operand), "0", &date);
    } else if (operand->type == BT_DOCUMENT) {
        biter_init(&iter, bval_doc(operand));
        bool plain = !biter_next(&iter, &elem) || elem.key[0] != '$';
        if (plain) {
            date = BVAL_MISSING;
            biter_init(&iter, bval_doc(operand));
            while (biter_next(&iter, &elem)) {
                if (strcmp(elem.key, "date") == 0)
                    date = elem.val;
                else if (strcmp(elem.key, "timezone") == 0)
                    zone = elem.val;
                else
                    return err_set(c->err, 40535, "unrecognized option to %s: \"%s\"", call->op->name, elem.key);
            }
            if (date.type == BT_EOO)
                return err_set(c->err, 40539, "missing 'date' argument to %s", call->op->name);
        }
    }
    expr_reserve_args(c, call, 2);
    if (!expr_compile_arg(c, call, 0, &date))
        return false;
    return zone.type == BT_EOO || expr_compile_arg(c, call, 1, &zone);
}

enum {
    FROM_YEAR,
    FROM_ISO_YEAR,
    FROM_MONTH,
    FROM_ISO_WEEK,
    FROM_DAY,
    FROM_ISO_DAY,
    FROM_HOUR,
    FROM_MINUTE,
    FROM_SECOND,
    FROM_MS,
    FROM_ZONE,
    FROM_COUNT,
};

static const char *const from_names[] = {"year",         "isoWeekYear", "month",  "isoWeek", "day",
                                         "isoDayOfWeek", "hour",        "minute", "second",  "millisecond"};

static bool from_part(struct expr_scope *s, const struct expr *call, const struct bval *args, int which,
                      int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (call->args[which] == NULL)
        return true;
    if (!bval_is_number(&args[which]) || !bval_to_i64(&args[which], out) || *out < INT32_MIN || *out > INT32_MAX)
        return err_set(s->err, 40515, "'%s' must evaluate to an integer, found %s", from_names[which],
                       bval_type_name(args[which].type));
    bool year = which == FROM_YEAR || which == FROM_ISO_YEAR;
    if (year && (*out < 1 || *out > 9999))
        return err_set(s->err, 40523, "'%s' must evaluate to an integer in the range 1 to 9999, found %lld",
                       from_names[which], (long long)*out);
    if (!year && which < FROM_SECOND && (*out < INT16_MIN || *out > INT16_MAX))
        return err_set(s->err, 31034, "'%s' must evaluate to a value in the range [-32768, 32767]; value %lld is not",
                       from_names[which], (long long)*out);
    return true;
}

static int64_t days_of_parts(const int64_t *part, bool iso)
{
    if (!iso)
        return date_days(part[FROM_YEAR], part[FROM_MONTH], part[FROM_DAY]);
    int64_t fourth = date_days(part[FROM_ISO_YEAR], 1, 4);
    int64_t weekday = (fourth + 3) % 7;
    weekday = weekday < 0 ? weekday + 7 : weekday;
    return fourth - weekday + (part[FROM_ISO_WEEK] - 1) * 7 + part[FROM_ISO_DAY] - 1;
}

static bool op_date_from_parts(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t part[FROM_COUNT];
    struct time_zone zone = {0};
    *out = BVAL_NULL;
    for (int i = 0; i < FROM_COUNT; i++)
        if (call->args[i] != NULL && expr_is_nullish(&args[i]))
            return true;
    for (int i = 0; i < FROM_ZONE; i++)
        if (!from_part(s, call, args, i, i <= FROM_ISO_DAY ? 1 : 0, &part[i]))
            return false;
    if (call->args[FROM_ZONE] != NULL && !date_zone_arg(s, call, &args[FROM_ZONE], 40517, &zone))
        return false;
    int64_t days = days_of_parts(part, call->args[FROM_ISO_YEAR] != NULL);
    int64_t local = days * MS_PER_DAY + part[FROM_HOUR] * MS_PER_HOUR + part[FROM_MINUTE] * MS_PER_MINUTE +
                    part[FROM_SECOND] * MS_PER_SECOND + part[FROM_MS];
    *out = make_date(s->scratch, time_zone_to_utc(&zone, local));
    return true;
}

/* Parts of the calendar and of ISO weeks can't be mixed. */
static bool compile_from_parts(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    if (!expr_compile_operand(c, call, operand))
        return false;
    bool year = call->args[FROM_YEAR] != NULL;
    bool iso_year = call->args[FROM_ISO_YEAR] != NULL;
    if (!year && !iso_year)
        return err_set(c->err, 40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    if (year && (iso_year || call->args[FROM_ISO_WEEK] != NULL || call->args[FROM_ISO_DAY] != NULL))
        return err_set(c->err, 40489, "$dateFromParts does not allow mixing natural dates with ISO dates");
    if (iso_year && (call->args[FROM_MONTH] != NULL || call->args[FROM_DAY] != NULL))
        return err_set(c->err, 40525, "$dateFromParts does not allow mixing ISO dates with natural dates");
    return true;
}

/* Arguments: date, timezone, iso8601. */
static bool op_date_to_parts(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    static const struct expr_name names[2][7] = {
        {{"year", 4}, {"month", 5}, {"day", 3}, {"hour", 4}, {"minute", 6}, {"second", 6}, {"millisecond", 11}},
        {{"isoWeekYear", 11},
         {"isoWeek", 7},
         {"isoDayOfWeek", 12},
         {"hour", 4},
         {"minute", 6},
         {"second", 6},
         {"millisecond", 11}},
    };
    static const enum date_part parts[2][7] = {
        {PART_YEAR, PART_MONTH, PART_DAY, PART_HOUR, PART_MINUTE, PART_SECOND, PART_MS},
        {PART_ISO_YEAR, PART_ISO_WEEK, PART_ISO_WEEKDAY, PART_HOUR, PART_MINUTE, PART_SECOND, PART_MS},
    };
    int64_t ms;
    struct time_zone zone = {0};
    struct bval values[7];
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < 3; i++)
        if (i == 0 ? expr_is_nullish(&args[i]) : call->args[i] != NULL && expr_is_nullish(&args[i]))
            return true;
    if (call->args[2] != NULL && args[2].type != BT_BOOL)
        return err_set(s->err, 40521, "iso8601 must evaluate to a bool, found %s", bval_type_name(args[2].type));
    if (!date_arg(s, call, &args[0], ERR_DATE_TYPE, &ms) ||
        (call->args[1] != NULL && !date_zone_arg(s, call, &args[1], 40517, &zone)))
        return false;
    bool iso = call->args[2] != NULL && bval_bool(&args[2]);
    int64_t local = ms + time_zone_offset_ms(&zone, ms);
    for (int i = 0; i < 7; i++)
        values[i] = make_i32(s->scratch, (int32_t)date_part_value(parts[iso][i], local));
    return expr_make_document(s, names[iso], values, 7, out);
}

const struct expr_operator expr_ops_date[] = {
    {"$year", 1, 1, false, op_part, NULL, compile_part, PART_YEAR},
    {"$month", 1, 1, false, op_part, NULL, compile_part, PART_MONTH},
    {"$dayOfMonth", 1, 1, false, op_part, NULL, compile_part, PART_DAY},
    {"$hour", 1, 1, false, op_part, NULL, compile_part, PART_HOUR},
    {"$minute", 1, 1, false, op_part, NULL, compile_part, PART_MINUTE},
    {"$second", 1, 1, false, op_part, NULL, compile_part, PART_SECOND},
    {"$millisecond", 1, 1, false, op_part, NULL, compile_part, PART_MS},
    {"$dayOfWeek", 1, 1, false, op_part, NULL, compile_part, PART_WEEKDAY},
    {"$dayOfYear", 1, 1, false, op_part, NULL, compile_part, PART_YEAR_DAY},
    {"$week", 1, 1, false, op_part, NULL, compile_part, PART_WEEK},
    {"$isoWeek", 1, 1, false, op_part, NULL, compile_part, PART_ISO_WEEK},
    {"$isoWeekYear", 1, 1, false, op_part, NULL, compile_part, PART_ISO_YEAR},
    {"$isoDayOfWeek", 1, 1, false, op_part, NULL, compile_part, PART_ISO_WEEKDAY},
    {"$dateFromParts", 0, 0, false, op_date_from_parts,
     "year isoWeekYear month isoWeek day isoDayOfWeek hour minute second millisecond timezone", compile_from_parts, 0},
    {"$dateToParts", 1, 1, false, op_date_to_parts, "date timezone iso8601", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
