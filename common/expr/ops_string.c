/* Strings: bytes and code points. */
#include "base/interrupt.h"
#include "expr/expr_tree.h"

#include <ctype.h>
#include <string.h>

struct text {
    const char *data;
    size_t len;
};

/* Where the code point after position `at` begins. */
static size_t next_point(struct text text, size_t at)
{
    at++;
    while (at < text.len && ((unsigned char)text.data[at] & 0xC0) == 0x80)
        at++;
    return at;
}

static size_t count_points(struct text text)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; at = next_point(text, at))
        count++;
    return count;
}

static struct text text_of(const struct bval *val)
{
    uint32_t len;
    const char *data = bval_str(val, &len);
    return (struct text){data, len};
}

/* Numbers and dates turn into strings where MongoDB lets them; null is empty. */
static bool coerce(struct expr_scope *s, const struct expr *call, const struct bval *arg, struct text *out)
{
    struct bval converted;
    *out = (struct text){"", 0};
    if (expr_is_nullish(arg))
        return true;
    if (arg->type == BT_STRING || arg->type == BT_SYMBOL || arg->type == BT_CODE) {
        *out = text_of(arg);
        return true;
    }
    bool printable = bval_is_number(arg) || arg->type == BT_DATE || arg->type == BT_TIMESTAMP;
    if (!printable)
        return err_set(s->err, 16007, "can't convert from BSON type %s to String (%s)", bval_type_name(arg->type),
                       call->op->name);
    if (!expr_to_string(s, arg, &converted))
        return false;
    *out = text_of(&converted);
    return true;
}

static bool need_string(struct expr_scope *s, const struct expr *call, const struct bval *arg, int code,
                        struct text *out)
{
    if (arg->type != BT_STRING)
        return err_set(s->err, code, "%s requires a string argument, found: %s", call->op->name,
                       bval_type_name(arg->type));
    *out = text_of(arg);
    return true;
}

static bool op_concat(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    size_t total = 0;
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i]))
            return true;
        if (args[i].type != BT_STRING)
            return err_set(s->err, 16702, "$concat only supports strings, not %s", bval_type_name(args[i].type));
        total += text_of(&args[i]).len;
    }
    if (!expr_check_size(s, total))
        return false;
    char *joined = arena_alloc(s->scratch, total + 1);
    size_t at = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        struct text text = text_of(&args[i]);
        memcpy(joined + at, text.data, text.len);
        at += text.len;
    }
    *out = make_str(s->scratch, joined, total);
    return true;
}

static bool op_case(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text text;
    if (!coerce(s, call, &args[0], &text))
        return false;
    char *changed = arena_alloc(s->scratch, text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char ch = (unsigned char)text.data[i];
        bool ascii = ch < 0x80;
        changed[i] = (char)(!ascii ? ch : call->op->tag == 0 ? tolower(ch) : toupper(ch));
    }
    *out = make_str(s->scratch, changed, text.len);
    return true;
}

static bool op_strcasecmp(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text a;
    struct text b;
    if (!coerce(s, call, &args[0], &a) || !coerce(s, call, &args[1], &b))
        return false;
    int order = 0;
    for (size_t i = 0; order == 0 && i < a.len && i < b.len; i++) {
        unsigned char x = (unsigned char)a.data[i];
        unsigned char y = (unsigned char)b.data[i];
        order = (x < 0x80 ? toupper(x) : x) - (y < 0x80 ? toupper(y) : y);
    }
    if (order == 0)
        order = (a.len > b.len) - (a.len < b.len);
    *out = make_i32(s->scratch, (order > 0) - (order < 0));
    return true;
}

static bool op_length(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text text;
    bool points = call->op->tag == 1;
    if (!need_string(s, call, &args[0], points ? 34471 : 34473, &text))
        return false;
    *out = make_i32(s->scratch, (int32_t)(points ? count_points(text) : text.len));
    return true;
}

static bool whole(const struct bval *val, int64_t *out)
{
    double number;
    if (!bval_is_number(val))
        return false;
    if (bval_to_i64(val, out))
        return true;
    if (!bval_to_f64(val, &number) || !(number > -9.2e18 && number < 9.2e18))
        return false;
    *out = (int64_t)number;
    return true;
}

static bool op_substr_bytes(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text text;
    int64_t start;
    int64_t length;
    if (!coerce(s, call, &args[0], &text))
        return false;
    if (!whole(&args[1], &start))
        return err_set(s->err, 16034, "%s: starting index must be a numeric type (is BSON type %s)", call->op->name,
                       bval_type_name(args[1].type));
    if (!whole(&args[2], &length))
        return err_set(s->err, 16035, "%s: length must be a numeric type (is BSON type %s)", call->op->name,
                       bval_type_name(args[2].type));
    if (start < 0)
        return err_set(s->err, 50752, "%s: starting index must be non-negative (got: %lld)", call->op->name,
                       (long long)start);
    size_t from = (uint64_t)start < text.len ? (size_t)start : text.len;
    size_t left = text.len - from;
    size_t take = length < 0 || (uint64_t)length > left ? left : (size_t)length;
    if (from < text.len && ((unsigned char)text.data[from] & 0xC0) == 0x80)
        return err_set(s->err, 28656, "%s: Invalid range, starting index is a UTF-8 continuation byte.",
                       call->op->name);
    if (from + take < text.len && ((unsigned char)text.data[from + take] & 0xC0) == 0x80)
        return err_set(s->err, 28657, "%s: Invalid range, ending index is in the middle of a UTF-8 character.",
                       call->op->name);
    *out = make_str(s->scratch, text.data + from, take);
    return true;
}

/* `code` is for what is no number, the next one for what is no 32-bit integer. */
static bool points_number(struct expr_scope *s, const struct expr *call, const struct bval *arg, int32_t code,
                          int64_t *out)
{
    if (!bval_is_number(arg))
        return err_set(s->err, code, "%s: index and length must be numeric (found %s)", call->op->name,
                       bval_type_name(arg->type));
    if (!bval_to_i64(arg, out) || *out < INT32_MIN || *out > INT32_MAX)
        return err_set(s->err, code + 1, "%s: index and length must be representable as 32-bit integers",
                       call->op->name);
    return true;
}

static bool op_substr_points(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text text;
    int64_t start;
    int64_t length;
    if (!coerce(s, call, &args[0], &text))
        return false;
    if (!points_number(s, call, &args[1], 34450, &start) || !points_number(s, call, &args[2], 34452, &length))
        return false;
    if (start < 0)
        return err_set(s->err, 34455, "%s: the starting index must be nonnegative integer.", call->op->name);
    if (length < 0)
        return err_set(s->err, 34454, "%s: length must be a nonnegative integer.", call->op->name);
    size_t from = 0;
    for (int64_t i = 0; i < start && from < text.len; i++)
        from = next_point(text, from);
    size_t to = from;
    for (int64_t i = 0; i < length && to < text.len; i++)
        to = next_point(text, to);
    *out = make_str(s->scratch, text.data + from, to - from);
    return true;
}

/* First place of `needle` in [from, to); SIZE_MAX: none. */
static size_t find_text(struct text text, struct text needle, size_t from, size_t to)
{
    if (needle.len == 0)
        return from <= to ? from : SIZE_MAX;
    if (from >= to)
        return SIZE_MAX;
    const char *found = memmem(text.data + from, to - from, needle.data, needle.len);
    return found == NULL ? SIZE_MAX : (size_t)(found - text.data);
}

static bool index_bound(struct expr_scope *s, const struct expr *call, const struct bval *arg, int64_t *out)
{
    if (!bval_is_number(arg) || !bval_to_i64(arg, out))
        return err_set(s->err, 40096, "%s requires an integral index, found a value of type: %s", call->op->name,
                       bval_type_name(arg->type));
    if (*out < 0)
        return err_set(s->err, 40097, "%s requires a nonnegative index, found: %lld", call->op->name, (long long)*out);
    return true;
}

/* Byte place of a code point. */
static size_t point_place(struct text text, int64_t index)
{
    size_t at = 0;
    for (int64_t i = 0; i < index && at < text.len; i++)
        at = next_point(text, at);
    return at;
}

static bool op_index_of(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool points = call->op->tag == 1;
    struct text text;
    struct text needle;
    int64_t start = 0;
    int64_t end = INT64_MAX;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (!need_string(s, call, &args[0], points ? 40093 : 40091, &text) ||
        !need_string(s, call, &args[1], points ? 40094 : 40092, &needle))
        return false;
    if (call->arg_count > 2 && !index_bound(s, call, &args[2], &start))
        return false;
    if (call->arg_count > 3 && !index_bound(s, call, &args[3], &end))
        return false;
    int64_t length = points ? (int64_t)count_points(text) : (int64_t)text.len;
    int32_t place = -1;
    bool nothing_left = points && length > 0 && start == length;
    if (start <= length && start <= end && !nothing_left) {
        end = end > length ? length : end;
        size_t from = points ? point_place(text, start) : (size_t)start;
        size_t to = points ? point_place(text, end) : (size_t)end;
        size_t found = find_text(text, needle, from, to);
        if (found != SIZE_MAX)
            place = (int32_t)(points ? count_points((struct text){text.data, found}) : found);
    }
    *out = make_i32(s->scratch, place);
    return true;
}

static bool op_split(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text text;
    struct text mark;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    if (!need_string(s, call, &args[0], 40085, &text) || !need_string(s, call, &args[1], 40086, &mark))
        return false;
    if (mark.len == 0)
        return err_set(s->err, 40087, "$split requires a non-empty separator");
    struct bval *parts = arena_alloc(s->scratch, (text.len / mark.len + 2) * sizeof *parts);
    size_t count = 0;
    size_t from = 0;
    for (;;) {
        size_t found = find_text(text, mark, from, text.len);
        size_t end = found == SIZE_MAX ? text.len : found;
        if (!interrupt_step(s->err) || !expr_check_scratch(s))
            return false;
        parts[count++] = make_str(s->scratch, text.data + from, end - from);
        if (found == SIZE_MAX)
            break;
        from = found + mark.len;
    }
    return expr_make_array(s, parts, count, out);
}

static bool in_set(struct text text, size_t at, size_t len, struct text set)
{
    for (size_t i = 0; i < set.len;) {
        size_t next = next_point(set, i);
        if (next - i == len && memcmp(set.data + i, text.data + at, len) == 0)
            return true;
        i = next;
    }
    return false;
}

static bool op_trim(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text text;
    struct text set = {" \t\n\v\f\r\0", 7};
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || (call->arg_count > 1 && call->args[1] != NULL && expr_is_nullish(&args[1])))
        return true;
    if (!need_string(s, call, &args[0], 50699, &text))
        return false;
    if (call->arg_count > 1 && call->args[1] != NULL && !need_string(s, call, &args[1], 50700, &set))
        return false;
    size_t from = 0;
    size_t to = text.len;
    while ((call->op->tag & 1) != 0 && from < to && in_set(text, from, next_point(text, from) - from, set))
        from = next_point(text, from);
    while ((call->op->tag & 2) != 0 && to > from) {
        size_t last = to - 1;
        while (last > from && ((unsigned char)text.data[last] & 0xC0) == 0x80)
            last--;
        if (!in_set(text, last, to - last, set))
            break;
        to = last;
    }
    *out = make_str(s->scratch, text.data + from, to - from);
    return true;
}

/* The next place of `find` and where the text behind it begins; an empty one is found before each code point and at
 * the end. */
static size_t next_found(struct text text, struct text find, size_t from, bool first, size_t *behind)
{
    size_t found = find_text(text, find, from, text.len);
    *behind = found + find.len;
    if (find.len > 0 || first)
        return found;
    found = from < text.len ? next_point(text, from) : SIZE_MAX;
    *behind = found;
    return found;
}

/* Arguments: input, find, replacement; tag 1: every place. */
static bool op_replace(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct text parts[3] = {0};
    bool null = false;
    *out = BVAL_NULL;
    for (int i = 0; i < 3; i++) {
        if (expr_is_nullish(&args[i]))
            null = true;
        else if (!need_string(s, call, &args[i], 51746 - i, &parts[i]))
            return false;
    }
    if (null)
        return true;
    struct buf buf = BUF_INIT;
    size_t from = 0;
    bool first = true;
    bool ok = true;
    while (ok && (first || call->op->tag == 1)) {
        size_t behind;
        size_t found = next_found(parts[0], parts[1], from, first, &behind);
        if (found == SIZE_MAX)
            break;
        first = false;
        buf_append(&buf, parts[0].data + from, found - from);
        buf_append(&buf, parts[2].data, parts[2].len);
        from = behind;
        ok = expr_check_size(s, buf.len) && interrupt_step(s->err);
    }
    buf_append(&buf, parts[0].data + from, parts[0].len - from);
    ok = ok && expr_check_size(s, buf.len);
    if (ok)
        *out = make_str(s->scratch, (const char *)buf.data, buf.len);
    buf_deinit(&buf);
    return ok;
}

const struct expr_operator expr_ops_string[] = {
    {"$concat", 0, -1, false, op_concat, NULL, NULL, 0},
    {"$toLower", 1, 1, false, op_case, NULL, NULL, 0},
    {"$toUpper", 1, 1, false, op_case, NULL, NULL, 1},
    {"$strcasecmp", 2, 2, false, op_strcasecmp, NULL, NULL, 0},
    {"$strLenBytes", 1, 1, false, op_length, NULL, NULL, 0},
    {"$strLenCP", 1, 1, false, op_length, NULL, NULL, 1},
    {"$substr", 3, 3, false, op_substr_bytes, NULL, NULL, 0},
    {"$substrBytes", 3, 3, false, op_substr_bytes, NULL, NULL, 0},
    {"$substrCP", 3, 3, false, op_substr_points, NULL, NULL, 0},
    {"$indexOfBytes", 2, 4, false, op_index_of, NULL, NULL, 0},
    {"$indexOfCP", 2, 4, false, op_index_of, NULL, NULL, 1},
    {"$split", 2, 2, false, op_split, NULL, NULL, 0},
    {"$trim", 1, 2, false, op_trim, "input chars", NULL, 3},
    {"$ltrim", 1, 2, false, op_trim, "input chars", NULL, 1},
    {"$rtrim", 1, 2, false, op_trim, "input chars", NULL, 2},
    {"$replaceOne", 3, 3, false, op_replace, "input find replacement", NULL, 0},
    {"$replaceAll", 3, 3, false, op_replace, "input find replacement", NULL, 1},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
