/* Dates: parts, construction, parsing and printing. Time zones are fixed offsets: there is no zone database. */
#include "expr/expr_tree.h"

#include "expr/dates.h"

#include <stdio.h>
#include <string.h>

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
    MS_PER_DAY = 86400000,
    MS_PER_MINUTE = 60000,
};

/* Milliseconds of a date, a timestamp or an ObjectId. */
static bool date_of(struct expr_scope *s, const struct bval *val, int64_t *ms)
{
    if (val->type == BT_DATE)
        *ms = bval_i64(val);
    else if (val->type == BT_TIMESTAMP)
        *ms = (int64_t)load_le32(val->data + 4) * 1000;
    else if (val->type == BT_OBJECT_ID)
        *ms = (int64_t)load_be32(val->data) * 1000;
    else
        return err_set(s->err, 16006, "can't convert from BSON type %s to Date", bval_type_name(val->type));
    return true;
}

/* The zone argument as minutes; *null when it is nullish but given. */
static bool zone_of(struct expr_scope *s, const struct expr *call, const struct bval *zone, int *minutes)
{
    uint32_t len;
    *minutes = 0;
    if (zone->type != BT_STRING)
        return err_set(s->err, 40517, "timezone must evaluate to a string, found %s", bval_type_name(zone->type));
    const char *text = bval_str(zone, &len);
    if (!date_parse_offset(text, len, minutes))
        return err_set(s->err, 40485, "unrecognized time zone identifier: \"%s\" (%s)", text, call->op->name);
    return true;
}

static int64_t part_value(int which, int64_t ms)
{
    struct date_parts p;
    int64_t iso_year;
    int iso_week;
    date_split(ms, &p);
    date_iso_week(&p, &iso_year, &iso_week);
    switch (which) {
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
    int minutes = 0;
    bool has_zone = call->arg_count > 1 && call->args[1] != NULL;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || (has_zone && expr_is_nullish(&args[1])))
        return true;
    if (!date_of(s, &args[0], &ms) || (has_zone && !zone_of(s, call, &args[1], &minutes)))
        return false;
    int64_t value = part_value(call->op->tag, ms + (int64_t)minutes * MS_PER_MINUTE);
    *out = call->op->tag == PART_ISO_YEAR ? make_i64(s->scratch, value) : make_i32(s->scratch, (int32_t)value);
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

/* Writes one conversion of a format string. */
static bool print_conversion(struct expr_scope *s, char conversion, int64_t local, int minutes, struct buf *to)
{
    static const struct {
        char letter;
        int part;
        int width;
    } table[] = {
        {'Y', PART_YEAR, 4},     {'m', PART_MONTH, 2},       {'d', PART_DAY, 2},  {'H', PART_HOUR, 2},
        {'M', PART_MINUTE, 2},   {'S', PART_SECOND, 2},      {'L', PART_MS, 3},   {'j', PART_YEAR_DAY, 3},
        {'w', PART_WEEKDAY, 1},  {'u', PART_ISO_WEEKDAY, 1}, {'U', PART_WEEK, 2}, {'V', PART_ISO_WEEK, 2},
        {'G', PART_ISO_YEAR, 4},
    };
    static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December"};
    char text[32];
    int away = minutes < 0 ? -minutes : minutes;
    int month = (int)part_value(PART_MONTH, local) - 1;
    if (conversion == '%')
        snprintf(text, sizeof text, "%%");
    else if (conversion == 'z')
        snprintf(text, sizeof text, "%c%02d%02d", minutes < 0 ? '-' : '+', away / 60, away % 60);
    else if (conversion == 'Z')
        snprintf(text, sizeof text, "%d", minutes);
    else if (conversion == 'B')
        snprintf(text, sizeof text, "%s", months[month]);
    else if (conversion == 'b')
        snprintf(text, sizeof text, "%.3s", months[month]);
    else {
        size_t i = 0;
        while (i < sizeof table / sizeof *table && table[i].letter != conversion)
            i++;
        if (i == sizeof table / sizeof *table)
            return err_set(s->err, 18536, "Invalid format character '%%%c' in format string", conversion);
        int64_t value = part_value(table[i].part, local);
        if (table[i].width == 4 && (value < 0 || value > 9999))
            return err_set(s->err, 18537, "$dateToString is only defined on year 0-9999, tried to use year %lld",
                           (long long)value);
        snprintf(text, sizeof text, "%0*lld", table[i].width, (long long)value);
    }
    buf_append(to, text, strlen(text));
    return true;
}

static bool print_format(struct expr_scope *s, const char *format, int64_t ms, int minutes, struct bval *out)
{
    struct buf buf = BUF_INIT;
    bool ok = true;
    int64_t local = ms + (int64_t)minutes * MS_PER_MINUTE;
    for (const char *at = format; ok && *at != 0; at++) {
        if (*at != '%') {
            buf_append_u8(&buf, (uint8_t)*at);
        } else if (at[1] == 0) {
            ok = err_set(s->err, 18535, "Unmatched '%%' at end of format string");
        } else {
            at++;
            ok = print_conversion(s, *at, local, minutes, &buf);
        }
    }
    if (ok)
        *out = make_str(s->scratch, (const char *)buf.data, buf.len);
    buf_deinit(&buf);
    return ok;
}

/* Arguments: date, format, timezone, onNull. */
static bool op_date_to_string(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t ms;
    int minutes = 0;
    uint32_t len;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0])) {
        if (call->args[3] != NULL)
            *out = args[3];
        return true;
    }
    if ((call->args[1] != NULL && expr_is_nullish(&args[1])) || (call->args[2] != NULL && expr_is_nullish(&args[2])))
        return true;
    if (!date_of(s, &args[0], &ms) || (call->args[2] != NULL && !zone_of(s, call, &args[2], &minutes)))
        return false;
    if (call->args[1] != NULL && args[1].type != BT_STRING)
        return err_set(s->err, 18533, "$dateToString requires that 'format' be a string, found: %s",
                       bval_type_name(args[1].type));
    const char *format = call->args[1] != NULL                   ? bval_str(&args[1], &len)
                         : call->args[2] != NULL && minutes != 0 ? "%Y-%m-%dT%H:%M:%S.%L"
                                                                 : "%Y-%m-%dT%H:%M:%S.%LZ";
    return print_format(s, format, ms, minutes, out);
}

/* Arguments: dateString, format, timezone, onError, onNull. */
static bool op_date_from_string(struct expr_scope *s, const struct expr *call, const struct bval *args,
                                struct bval *out)
{
    int64_t ms;
    int minutes = 0;
    uint32_t len;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0])) {
        if (call->args[4] != NULL)
            *out = args[4];
        return true;
    }
    if (call->args[2] != NULL && expr_is_nullish(&args[2]))
        return true;
    if (call->args[1] != NULL)
        return err_set(s->err, ERR_NotImplemented, "$dateFromString with 'format' is not supported");
    if (args[0].type != BT_STRING)
        return err_set(s->err, 241, "$dateFromString requires that 'dateString' be a string, found: %s",
                       bval_type_name(args[0].type));
    const char *text = bval_str(&args[0], &len);
    if (call->args[2] != NULL && !zone_of(s, call, &args[2], &minutes))
        return false;
    if (!date_parse_iso(text, len, &ms)) {
        if (call->args[3] != NULL) {
            *out = args[3];
            return true;
        }
        return err_set(s->err, 241, "Error parsing date string '%s'", text);
    }
    *out = make_date(s->scratch, ms - (int64_t)minutes * MS_PER_MINUTE);
    return true;
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

/* A part with its default; *null when it is nullish. */
static bool from_part(struct expr_scope *s, const struct expr *call, const struct bval *args, int which,
                      int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (call->args[which] == NULL)
        return true;
    if (!bval_is_number(&args[which]) || !bval_to_i64(&args[which], out))
        return err_set(s->err, 40515, "parameters of $dateFromParts must evaluate to an integer, found %s",
                       bval_type_name(args[which].type));
    if (*out < INT32_MIN || *out > INT32_MAX)
        return err_set(s->err, 31034, "a parameter of $dateFromParts is out of range");
    return true;
}

static bool op_date_from_parts(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t part[FROM_COUNT];
    int minutes = 0;
    bool iso = call->args[FROM_ISO_YEAR] != NULL;
    *out = BVAL_NULL;
    if (!iso && call->args[FROM_YEAR] == NULL)
        return err_set(s->err, 40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    for (int i = 0; i < FROM_COUNT; i++)
        if (call->args[i] != NULL && expr_is_nullish(&args[i]))
            return true;
    for (int i = 0; i < FROM_ZONE; i++)
        if (!from_part(s, call, args, i, i <= FROM_ISO_DAY ? 1 : 0, &part[i]))
            return false;
    int64_t year = part[iso ? FROM_ISO_YEAR : FROM_YEAR];
    if (year < 1 || year > 9999)
        return err_set(s->err, 40523, "'%s' must evaluate to an integer in the range 1 to 9999, found %lld",
                       iso ? "isoWeekYear" : "year", (long long)year);
    if (call->args[FROM_ZONE] != NULL && !zone_of(s, call, &args[FROM_ZONE], &minutes))
        return false;
    int64_t days;
    if (iso) {
        int64_t fourth = date_days(year, 1, 4);
        int64_t weekday = (fourth + 3) % 7;
        weekday = weekday < 0 ? weekday + 7 : weekday;
        days = fourth - weekday + (part[FROM_ISO_WEEK] - 1) * 7 + part[FROM_ISO_DAY] - 1;
    } else {
        days = date_days(year, part[FROM_MONTH], part[FROM_DAY]);
    }
    int64_t ms = days * MS_PER_DAY + part[FROM_HOUR] * 3600000 + (part[FROM_MINUTE] - minutes) * MS_PER_MINUTE +
                 part[FROM_SECOND] * 1000 + part[FROM_MS];
    *out = make_date(s->scratch, ms);
    return true;
}

/* Arguments: date, timezone, iso8601. */
static bool op_date_to_parts(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t ms;
    int minutes = 0;
    bool iso = false;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || (call->args[1] != NULL && expr_is_nullish(&args[1])) ||
        (call->args[2] != NULL && expr_is_nullish(&args[2])))
        return true;
    if (!date_of(s, &args[0], &ms) || (call->args[1] != NULL && !zone_of(s, call, &args[1], &minutes)))
        return false;
    if (call->args[2] != NULL) {
        if (args[2].type != BT_BOOL)
            return err_set(s->err, 40521, "iso8601 must evaluate to a bool, found %s", bval_type_name(args[2].type));
        iso = bval_bool(&args[2]);
    }
    int64_t local = ms + (int64_t)minutes * MS_PER_MINUTE;
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_i32(&buf, iso ? "isoWeekYear" : "year", (int32_t)part_value(iso ? PART_ISO_YEAR : PART_YEAR, local));
    write_i32(&buf, iso ? "isoWeek" : "month", (int32_t)part_value(iso ? PART_ISO_WEEK : PART_MONTH, local));
    write_i32(&buf, iso ? "isoDayOfWeek" : "day", (int32_t)part_value(iso ? PART_ISO_WEEKDAY : PART_DAY, local));
    write_i32(&buf, "hour", (int32_t)part_value(PART_HOUR, local));
    write_i32(&buf, "minute", (int32_t)part_value(PART_MINUTE, local));
    write_i32(&buf, "second", (int32_t)part_value(PART_SECOND, local));
    write_i32(&buf, "millisecond", (int32_t)part_value(PART_MS, local));
    write_end(&buf, start);
    *out = make_doc(s->scratch, &buf, BT_DOCUMENT);
    return true;
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
    {"$dateToString", 1, 1, false, op_date_to_string, "date format timezone onNull", NULL, 0},
    {"$dateFromString", 1, 1, false, op_date_from_string, "dateString format timezone onError onNull", NULL, 0},
    {"$dateFromParts", 0, 0, false, op_date_from_parts,
     "year isoWeekYear month isoWeek day isoDayOfWeek hour minute second millisecond timezone", NULL, 0},
    {"$dateToParts", 1, 1, false, op_date_to_parts, "date timezone iso8601", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
