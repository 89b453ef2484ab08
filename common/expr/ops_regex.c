/* $regexMatch, $regexFind, $regexFindAll. A constant pattern is compiled once, with the expression. */
#include "expr/expr_tree.h"
#include "expr/regex.h"

#include <string.h>

enum {
    ERR_INPUT_TYPE = 51104,
    ERR_REGEX_TYPE = 51105,
    ERR_OPTIONS_TYPE = 51106,
    ERR_OPTIONS_TWICE = 51107,
    ERR_REGEX_NUL = 51109,
    ERR_OPTIONS_NUL = 51110,
    ERR_BAD_REGEX = 51111,
    ERR_BAD_PATTERN = 51091,
    ERR_REGEX_LIMIT = 51156,
};

enum find_tag {
    FIND_MATCH,
    FIND_ONE,
    FIND_ALL,
};

static void free_regex(void *arg)
{
    regex_free(arg);
}

struct pattern {
    const char *text; /* NULL: it is nullish, and so is the answer */
    const char *flags;
};

/* Out of the arguments `regex` and `options` (BT_EOO: not given). */
static bool read_pattern(const struct expr *call, const struct bval *regex, const struct bval *options,
                         struct pattern *out, struct err *err)
{
    uint32_t len;
    const char *name = call->op->name;
    *out = (struct pattern){.flags = ""};
    if (!expr_is_nullish(options)) {
        if (options->type != BT_STRING)
            return err_set(err, ERR_OPTIONS_TYPE, "%s needs 'options' to be of type string", name);
        out->flags = bval_str(options, &len);
        if (strlen(out->flags) != len)
            return err_set(err, ERR_OPTIONS_NUL, "%s: regular expression options can't contain a null byte", name);
    }
    if (expr_is_nullish(regex))
        return true;
    if (regex->type == BT_REGEX) {
        const char *own;
        out->text = bval_regex(regex, &own);
        if (own[0] != 0 && !expr_is_nullish(options))
            return err_set(err, ERR_OPTIONS_TWICE, "%s found options in both 'regex' and 'options'", name);
        out->flags = own[0] != 0 ? own : out->flags;
        return true;
    }
    if (regex->type != BT_STRING)
        return err_set(err, ERR_REGEX_TYPE, "%s needs 'regex' to be of type string or regex", name);
    out->text = bval_str(regex, &len);
    if (strlen(out->text) != len)
        return err_set(err, ERR_REGEX_NUL, "%s: regular expression can't contain a null byte", name);
    return true;
}

/* The compiled pattern goes with `arena`; NULL when it is nullish. */
static bool make_regex(struct arena *arena, const struct expr *call, const struct bval *regex,
                       const struct bval *options, struct regex **out, struct err *err)
{
    struct pattern pattern;
    *out = NULL;
    if (!read_pattern(call, regex, options, &pattern, err))
        return false;
    if (pattern.text == NULL)
        return true;
    if (!regex_compile(pattern.text, pattern.flags, out, err)) {
        if (err->code == ERR_BAD_PATTERN)
            err->code = ERR_BAD_REGEX;
        return false;
    }
    arena_on_deinit(arena, free_regex, *out);
    return true;
}

static size_t count_points(const char *text, size_t from, size_t to)
{
    size_t count = 0;
    for (size_t i = from; i < to; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* The search through one input. */
struct search {
    const struct regex *regex;
    const char *text;
    size_t len;
    size_t at;     /* where the next search begins */
    size_t points; /* code points before `counted` */
    size_t counted;
    struct regex_span *spans;
};

/* {match, idx, captures}. */
static bool make_result(struct expr_scope *s, struct search *search, struct bval *out)
{
    static const struct expr_name names[] = {{"match", 5}, {"idx", 3}, {"captures", 8}};
    uint32_t groups = regex_group_count(search->regex);
    const struct regex_span *whole = &search->spans[0];
    struct bval *captures = arena_alloc(s->scratch, (groups + 1) * sizeof *captures);
    for (uint32_t i = 0; i < groups; i++) {
        const struct regex_span *span = &search->spans[i + 1];
        captures[i] = span->start == SIZE_MAX
                          ? BVAL_NULL
                          : make_str(s->scratch, search->text + span->start, span->end - span->start);
    }
    search->points += count_points(search->text, search->counted, whole->start);
    search->counted = whole->start;
    struct bval parts[3] = {make_str(s->scratch, search->text + whole->start, whole->end - whole->start),
                            make_i32(s->scratch, (int32_t)search->points), BVAL_MISSING};
    return expr_make_array(s, captures, groups, &parts[2]) && expr_make_document(s, names, parts, 3, out);
}

static bool find_next(struct expr_scope *s, const struct expr *call, struct search *search, bool *found)
{
    if (!regex_step(s->err))
        return false;
    enum regex_outcome outcome = regex_find(search->regex, search->text, search->len, search->at, search->spans);
    *found = outcome == REGEX_MATCH;
    if (outcome == REGEX_LIMIT)
        return err_set(s->err, ERR_REGEX_LIMIT, "%s: the regular expression needs too many steps", call->op->name);
    return true;
}

static bool find_all(struct expr_scope *s, const struct expr *call, struct search *search, struct bval *out)
{
    size_t capacity = 0;
    size_t count = 0;
    struct bval *results = NULL;
    bool found;
    do {
        if (!expr_check_scratch(s) || !find_next(s, call, search, &found))
            return false;
        if (!found)
            break;
        if (count == capacity) {
            capacity = capacity == 0 ? 8 : capacity * 2;
            struct bval *more = arena_alloc(s->scratch, capacity * sizeof *more);
            if (count > 0)
                memcpy(more, results, count * sizeof *more);
            results = more;
        }
        if (!make_result(s, search, &results[count++]))
            return false;
        search->at = search->spans[0].end;
        if (search->spans[0].start == search->spans[0].end) {
            search->at++;
            while (search->at < search->len && ((unsigned char)search->text[search->at] & 0xC0) == 0x80)
                search->at++;
        }
    } while (search->at < search->len);
    return expr_make_array(s, results, count, out);
}

/* Arguments: input, regex, options. */
static bool op_regex(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    uint32_t len = 0;
    int tag = call->op->tag;
    struct regex *regex = call->extra;
    *out = tag == FIND_MATCH ? make_bool(false) : BVAL_NULL;
    if (!expr_is_nullish(&args[0]) && args[0].type != BT_STRING)
        return err_set(s->err, ERR_INPUT_TYPE, "%s needs 'input' to be of type string", call->op->name);
    if (regex == NULL && !make_regex(s->scratch, call, &args[1], &args[2], &regex, s->err))
        return false;
    if (regex == NULL || args[0].type != BT_STRING)
        return tag != FIND_ALL || expr_make_array(s, NULL, 0, out);
    struct search search = {.regex = regex, .text = bval_str(&args[0], &len)};
    search.len = len;
    search.spans = arena_alloc(s->scratch, (regex_group_count(regex) + 1) * sizeof *search.spans);
    if (tag == FIND_ALL)
        return find_all(s, call, &search, out);
    bool found;
    if (!find_next(s, call, &search, &found))
        return false;
    if (tag == FIND_MATCH)
        *out = make_bool(found);
    else if (found)
        return make_result(s, &search, out);
    return true;
}

static bool compile_regex(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    if (!expr_compile_operand(c, call, operand))
        return false;
    const struct expr *regex = call->args[1];
    const struct expr *options = call->args[2];
    if (regex->kind != EXPR_CONSTANT || (options != NULL && options->kind != EXPR_CONSTANT))
        return true;
    struct regex *compiled;
    if (!make_regex(c->arena, call, &regex->value, options != NULL ? &options->value : &BVAL_MISSING, &compiled,
                    c->err))
        return false;
    call->extra = compiled;
    return true;
}

const struct expr_operator expr_ops_regex[] = {
    {"$regexMatch", 2, 3, false, op_regex, "input regex options", compile_regex, FIND_MATCH},
    {"$regexFind", 2, 3, false, op_regex, "input regex options", compile_regex, FIND_ONE},
    {"$regexFindAll", 2, 3, false, op_regex, "input regex options", compile_regex, FIND_ALL},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
