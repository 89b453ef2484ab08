/* $dateToString and $dateFromString. */
#include "expr/date_args.h"
#include "expr/date_text.h"

#include <stdio.h>
#include <string.h>

enum {
    ERR_CONVERSION = 241,
    ERR_FORMAT_END = 18535,
    ERR_FORMAT_SPECIFIER = 18536,
    ERR_YEAR_RANGE = 18537,
    FORMAT_MAX_BYTES = 64 * 1024,
};

static const char print_specifiers[] = "YmdHMSLjwuUVGzZbB%";
static const char read_specifiers[] = "YmdHMSLjGVuwUzZbB%";

static bool check_format(struct expr_scope *s, const char *format, const char *specifiers)
{
    if (strlen(format) > FORMAT_MAX_BYTES)
        return err_set(s->err, ERR_BSONObjectTooLarge, "a date format is longer than %d bytes", FORMAT_MAX_BYTES);
    for (const char *at = format; *at != 0; at++) {
        if (*at != '%')
            continue;
        at++;
        if (*at == 0)
            return err_set(s->err, ERR_FORMAT_END, "Unmatched '%%' at end of format string");
        if (strchr(specifiers, *at) == NULL)
            return err_set(s->err, ERR_FORMAT_SPECIFIER, "Invalid format character '%%%c' in format string", *at);
    }
    return true;
}

/* A date to print. */
struct printer {
    int64_t local_ms;
    int64_t offset_minutes;
    struct buf out;
};

static bool print_number(struct expr_scope *s, char specifier, struct printer *p)
{
    static const struct {
        char letter;
        enum date_part part;
        int width;
    } table[] = {
        {'Y', PART_YEAR, 4},     {'m', PART_MONTH, 2},       {'d', PART_DAY, 2},  {'H', PART_HOUR, 2},
        {'M', PART_MINUTE, 2},   {'S', PART_SECOND, 2},      {'L', PART_MS, 3},   {'j', PART_YEAR_DAY, 3},
        {'w', PART_WEEKDAY, 1},  {'u', PART_ISO_WEEKDAY, 1}, {'U', PART_WEEK, 2}, {'V', PART_ISO_WEEK, 2},
        {'G', PART_ISO_YEAR, 4},
    };
    size_t i = 0;
    while (table[i].letter != specifier)
        i++;
    int64_t value = date_part_value(table[i].part, p->local_ms);
    if (table[i].width == 4 && (value < 0 || value > 9999))
        return err_set(s->err, ERR_YEAR_RANGE, "$dateToString is only defined on year 0-9999, tried to use year %lld",
                       (long long)value);
    char text[32];
    int len = snprintf(text, sizeof text, "%0*lld", table[i].width, (long long)value);
    buf_append(&p->out, text, (size_t)len);
    return true;
}

static bool print_specifier(struct expr_scope *s, char specifier, struct printer *p)
{
    char text[32] = "%";
    long long minutes = p->offset_minutes;
    long long away = minutes < 0 ? -minutes : minutes;
    const char *month = date_month_names[date_part_value(PART_MONTH, p->local_ms) - 1];
    switch (specifier) {
    case '%':
        break;
    case 'z':
        snprintf(text, sizeof text, "%c%02lld%02lld", minutes < 0 ? '-' : '+', away / 60, away % 60);
        break;
    case 'Z':
        snprintf(text, sizeof text, "%lld", minutes);
        break;
    case 'B':
        snprintf(text, sizeof text, "%s", month);
        break;
    case 'b':
        snprintf(text, sizeof text, "%.3s", month);
        break;
    default:
        return print_number(s, specifier, p);
    }
    buf_append(&p->out, text, strlen(text));
    return true;
}

static bool print_date(struct expr_scope *s, const char *format, struct printer *p, struct bval *out)
{
    bool ok = check_format(s, format, print_specifiers);
    for (const char *at = format; ok && *at != 0; at++) {
        if (*at == '%')
            ok = print_specifier(s, *++at, p);
        else
            buf_append_u8(&p->out, (uint8_t)*at);
    }
    if (ok)
        *out = make_str(s->scratch, (const char *)p->out.data, p->out.len);
    buf_deinit(&p->out);
    return ok;
}

/* Arguments: date, format, timezone, onNull. */
static bool op_date_to_string(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t ms;
    struct time_zone zone = {0};
    uint32_t len;
    bool has_format = call->args[1] != NULL;
    bool has_zone = call->args[2] != NULL;
    *out = BVAL_NULL;
    if (has_format && !expr_is_nullish(&args[1]) && args[1].type != BT_STRING)
        return err_set(s->err, 18533, "$dateToString requires that 'format' be a string, found: %s",
                       bval_type_name(args[1].type));
    if (has_zone && !expr_is_nullish(&args[2]) && !date_zone_arg(s, call, &args[2], 40517, &zone))
        return false;
    if (expr_is_nullish(&args[0])) {
        if (call->args[3] != NULL)
            *out = args[3];
        return true;
    }
    if ((has_format && expr_is_nullish(&args[1])) || (has_zone && expr_is_nullish(&args[2])))
        return true;
    if (!date_arg(s, call, &args[0], 16006, &ms))
        return false;
    bool utc = zone.place == NULL && zone.offset_ms == 0;
    const char *format = has_format ? bval_str(&args[1], &len) : utc ? "%Y-%m-%dT%H:%M:%S.%LZ" : "%Y-%m-%dT%H:%M:%S.%L";
    int64_t offset = time_zone_offset_ms(&zone, ms);
    struct printer printer = {.local_ms = ms + offset, .offset_minutes = offset / MS_PER_MINUTE};
    return print_date(s, format, &printer, out);
}

static bool read_date(struct expr_scope *s, const struct bval *text_val, const char *format,
                      const struct time_zone *zone, struct bval *out)
{
    uint32_t len;
    int64_t ms;
    if (text_val->type != BT_STRING)
        return err_set(s->err, ERR_CONVERSION, "$dateFromString requires that 'dateString' be a string, found: %s",
                       bval_type_name(text_val->type));
    const char *text = bval_str(text_val, &len);
    enum date_outcome outcome =
        format != NULL ? date_text_read_format(text, len, format, zone, &ms) : date_text_read(text, len, zone, &ms);
    if (outcome == DATE_ZONE_TWICE)
        return err_set(s->err, ERR_CONVERSION,
                       "'%.64s' has a time zone of its own and can't be read with a timezone argument", text);
    if (outcome != DATE_READ)
        return err_set(s->err, ERR_CONVERSION, "Error parsing date string '%.64s'", text);
    *out = make_date(s->scratch, ms);
    return true;
}

/* Arguments: dateString, format, timezone, onError, onNull. */
static bool op_date_from_string(struct expr_scope *s, const struct expr *call, const struct bval *args,
                                struct bval *out)
{
    struct time_zone zone = {0};
    uint32_t len;
    const char *format = NULL;
    bool has_zone = call->args[2] != NULL;
    *out = BVAL_NULL;
    if (call->args[1] != NULL && !expr_is_nullish(&args[1])) {
        if (args[1].type != BT_STRING)
            return err_set(s->err, 40684, "$dateFromString requires that 'format' be a string, found: %s",
                           bval_type_name(args[1].type));
        format = bval_str(&args[1], &len);
        if (!check_format(s, format, read_specifiers))
            return false;
    }
    if (has_zone && !expr_is_nullish(&args[2]) && !date_zone_arg(s, call, &args[2], 40517, &zone))
        return false;
    if (expr_is_nullish(&args[0])) {
        if (call->args[4] != NULL)
            *out = args[4];
        return true;
    }
    if ((call->args[1] != NULL && format == NULL) || (has_zone && expr_is_nullish(&args[2])))
        return true;
    if (read_date(s, &args[0], format, has_zone ? &zone : NULL, out))
        return true;
    if (call->args[3] == NULL)
        return false;
    *out = args[3];
    return true;
}

const struct expr_operator expr_ops_date_text[] = {
    {"$dateToString", 1, 1, false, op_date_to_string, "date format timezone onNull", NULL, 0},
    {"$dateFromString", 1, 1, false, op_date_from_string, "dateString format timezone onError onNull", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
