#include "shell/engine_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "shell/interrupt.h"
#include "shell/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The engine reserves about 5 GB of address space at least, and aborts without them. */
#define ADDRESS_SPACE_MIN_BYTES (UINT64_C(6) << 30)

enum { INTERRUPT_CHECK_MS = 50 };

/* Exported by the library, declared in a header of its own that isn't installed. The callback returns true to end the
 * script. */
extern void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double limit_seconds,
                                                bool (*callback)(JSContextRef context, void *arg), void *arg);

static struct engine *only; /* the process's one engine */

/* --- strings and properties
 * -------------------------------------------------------------------------------------------- */

struct engine *engine_of(JSContextRef context)
{
    (void)context;
    return only;
}

/* UTF-8 to UTF-16; `out` has room for `len` units. Bytes come from validated documents or our own sources; anything
 * else becomes U+FFFD. */
static size_t utf16_of(const char *text, size_t len, JSChar *out)
{
    size_t units = 0;
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + len;
    while (at < end) {
        uint32_t code = *at++;
        int more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : code >= 0xc0 ? 1 : 0;
        if (code >= 0x80)
            code = more == 0 || end - at < more ? 0xfffd : code & (0x3fu >> more);
        for (; code != 0xfffd && more > 0; more--)
            code = code << 6 | (*at++ & 0x3fu);
        if (code >= 0x10000) {
            out[units++] = (JSChar)(0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        out[units++] = (JSChar)code;
    }
    return units;
}

static JSStringRef js_string(const char *text, size_t len)
{
    JSChar small[256] = {0};
    JSChar *units = len <= 256 ? small : mem_alloc_array(len, sizeof *units);
    size_t count = utf16_of(text, len, units);
    JSStringRef string = JSStringCreateWithCharacters(units, count);
    if (units != small)
        mem_free(units);
    return string;
}

JSValueRef engine_string(JSContextRef context, const char *text, size_t len)
{
    JSStringRef string = js_string(text, len);
    JSValueRef value = JSValueMakeString(context, string);
    JSStringRelease(string);
    return value;
}

static size_t put_code(uint8_t *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3f));
    out[0] = (uint8_t)((0xf00u >> len) | code);
    return len;
}

void engine_append_js_string(JSStringRef string, struct buf *to)
{
    size_t len = JSStringGetLength(string);
    const JSChar *units = JSStringGetCharactersPtr(string);
    uint8_t *out = buf_reserve(to, 3 * len + 1);
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t code = units[i];
        bool high = code >= 0xd800 && code < 0xdc00;
        if (high && i + 1 < len && units[i + 1] >= 0xdc00 && units[i + 1] < 0xe000)
            code = 0x10000 + ((code - 0xd800) << 10) + (uint32_t)(units[++i] - 0xdc00);
        else if (code >= 0xd800 && code < 0xe000)
            code = 0xfffd;
        used += put_code(out + used, code);
    }
    to->len += used;
}

void engine_append_text(JSContextRef context, JSValueRef value, struct buf *to)
{
    JSStringRef string = JSValueToStringCopy(context, value, NULL);
    if (string == NULL)
        return;
    engine_append_js_string(string, to);
    JSStringRelease(string);
}

JSValueRef engine_get(JSContextRef context, JSObjectRef object, const char *name)
{
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSValueRef value = JSObjectGetProperty(context, object, key, NULL);
    JSStringRelease(key);
    return value != NULL ? value : JSValueMakeUndefined(context);
}

void engine_set(JSContextRef context, JSObjectRef object, const char *name, JSValueRef value)
{
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSObjectSetProperty(context, object, key, value, kJSPropertyAttributeNone, NULL);
    JSStringRelease(key);
}

JSValueRef engine_throw(JSContextRef context, JSValueRef *exception, const struct err *err)
{
    JSValueRef message = engine_string(context, err->msg, strlen(err->msg));
    JSObjectRef error = JSObjectMakeError(context, 1, &message, NULL);
    engine_set(context, error, "code", JSValueMakeNumber(context, err->code));
    char scratch[ERR_NAME_MAX];
    const char *name = err_name(err->code, scratch);
    engine_set(context, error, "codeName", engine_string(context, name, strlen(name)));
    *exception = error;
    return JSValueMakeUndefined(context);
}

/* --- start
 * --------------------------------------------------------------------------------------------------------------- */

/* Ends a script on Ctrl-C, and one that goes on after quit(). Must re-arm itself: returning false alone never fires
 * again. */
static bool check_interrupt(JSContextRef context, void *arg)
{
    if (interrupt_pending() || only->has_quit)
        return true;
    JSContextGroupSetExecutionTimeLimit(JSContextGetGroup(context), INTERRUPT_CHECK_MS / 1000.0, check_interrupt, arg);
    return false;
}

static JSValueRef evaluate(struct engine *engine, const char *text, size_t len, const char *name, JSValueRef *exception)
{
    JSStringRef script = js_string(text, len);
    JSStringRef url = JSStringCreateWithUTF8CString(name);
    JSContextGroupSetExecutionTimeLimit(JSContextGetGroup(engine->context), INTERRUPT_CHECK_MS / 1000.0,
                                        check_interrupt, NULL);
    JSValueRef value = JSEvaluateScript(engine->context, script, NULL, url, 1, exception);
    JSStringRelease(url);
    JSStringRelease(script);
    return value;
}

static bool load_library(struct engine *engine, struct err *err)
{
    for (const struct library_file *file = library_files; file->name != NULL; file++) {
        JSValueRef exception = NULL;
        evaluate(engine, (const char *)file->data, file->len, file->name, &exception);
        if (exception == NULL)
            continue;
        struct buf text = BUF_INIT;
        engine_append_text(engine->context, exception, &text);
        err_set(err, ERR_InternalError, "%s: %.*s", file->name, (int)text.len, (const char *)text.data);
        buf_deinit(&text);
        return false;
    }
    return true;
}

static void take_makers(struct engine *engine, JSObjectRef table)
{
    static const char *const names[MAKE_COUNT] = {
        [MAKE_OBJECT_ID] = "ObjectId", [MAKE_LONG] = "Long",           [MAKE_DECIMAL] = "Decimal128",
        [MAKE_BINARY] = "Binary",      [MAKE_TIMESTAMP] = "Timestamp", [MAKE_REGEX] = "RegExp",
        [MAKE_CODE] = "Code",          [MAKE_SYMBOL] = "BSONSymbol",   [MAKE_DB_POINTER] = "DBPointer",
        [MAKE_MIN_KEY] = "MinKey",     [MAKE_MAX_KEY] = "MaxKey",      [MAKE_FIELD] = "field",
    };
    for (int i = 0; i < MAKE_COUNT; i++) {
        JSValueRef maker = engine_get(engine->context, table, names[i]);
        engine->makers[i] = JSValueToObject(engine->context, maker, NULL);
        JSValueProtect(engine->context, engine->makers[i]);
    }
}

static bool address_space_suffices(struct err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= ADDRESS_SPACE_MIN_BYTES)
        return true;
    return err_set(err, ERR_BadValue,
                   "the address-space limit (ulimit -v) is %llu MB; the JavaScript engine reserves more: set it to "
                   "%llu MB or unlimited",
                   (unsigned long long)(limit.rlim_cur >> 20), (unsigned long long)(ADDRESS_SPACE_MIN_BYTES >> 20));
}

struct engine *engine_new(struct connection *conn, const char *database, struct err *err)
{
    if (!address_space_suffices(err))
        return NULL;
    setenv("JSC_useJIT", "0", 0);
    struct engine *engine = mem_alloc(sizeof *engine);
    engine->conn = conn;
    engine->context = JSGlobalContextCreate(NULL);
    engine->bson_type = JSStringCreateWithUTF8CString("_bsontype");
    engine->value_key = JSStringCreateWithUTF8CString("value");
    only = engine;
    JSObjectRef global = JSContextGetGlobalObject(engine->context);
    JSObjectRef make = JSObjectMake(engine->context, NULL, NULL);
    engine_set(engine->context, global, "__make", make);
    engine_set(engine->context, global, "__native", natives_new(engine));
    engine_set(engine->context, global, "__database", engine_string(engine->context, database, strlen(database)));
    if (!load_library(engine, err)) {
        engine_free(engine);
        return NULL;
    }
    take_makers(engine, make);
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine == NULL)
        return;
    for (int i = 0; i < MAKE_COUNT; i++) {
        if (engine->makers[i] != NULL)
            JSValueUnprotect(engine->context, engine->makers[i]);
    }
    JSStringRelease(engine->bson_type);
    JSStringRelease(engine->value_key);
    JSGlobalContextRelease(engine->context);
    only = NULL;
    mem_free(engine);
}

bool engine_has_quit(const struct engine *engine, int *exit_code)
{
    *exit_code = engine->exit_code;
    return engine->has_quit;
}

/* --- running
 * ---------------------------------------------------------------------------------------------------------------- */

/* Calls __shell[function]; the microtasks that the call leaves behind have run when it returns. */
static JSValueRef call_library(struct engine *engine, const char *function, size_t count, const JSValueRef *arguments,
                               JSValueRef *exception)
{
    JSObjectRef global = JSContextGetGlobalObject(engine->context);
    JSObjectRef shell = JSValueToObject(engine->context, engine_get(engine->context, global, "__shell"), exception);
    if (shell == NULL)
        return NULL;
    JSValueRef callee = engine_get(engine->context, shell, function);
    JSContextGroupSetExecutionTimeLimit(JSContextGetGroup(engine->context), INTERRUPT_CHECK_MS / 1000.0,
                                        check_interrupt, NULL);
    return JSObjectCallAsFunction(engine->context, JSValueToObject(engine->context, callee, exception), shell, count,
                                  arguments, exception);
}

/* The message for an uncaught exception. The library formats it, unless that fails as well (the script was
 * interrupted). */
static void append_error(struct engine *engine, JSValueRef error, struct buf *text)
{
    if (interrupt_pending()) {
        buf_append(text, "interrupted", 11);
        return;
    }
    JSValueRef exception = NULL;
    JSValueRef formatted = call_library(engine, "formatError", 1, &error, &exception);
    engine_append_text(engine->context, exception == NULL && formatted != NULL ? formatted : error, text);
}

static bool check_syntax(struct engine *engine, const char *text, size_t len, JSValueRef *exception)
{
    JSStringRef script = js_string(text, len);
    bool ok = JSCheckScriptSyntax(engine->context, script, NULL, 1, exception);
    JSStringRelease(script);
    return ok;
}

/* True when the syntax error of `text` contains `sign`. */
static bool syntax_error_says(struct engine *engine, const char *text, size_t len, const char *sign)
{
    JSValueRef exception = NULL;
    if (check_syntax(engine, text, len, &exception))
        return false;
    struct buf message = BUF_INIT;
    engine_append_text(engine->context, exception, &message);
    buf_append_u8(&message, 0);
    bool says = strstr((const char *)message.data, sign) != NULL;
    buf_deinit(&message);
    return says;
}

static const char text_is_open[] = "Unexpected EOF";

/* The engine says the same of an open template, which may go on, and of a string, which ends with its line: only the
 * string is mended by one more quote. */
static bool ends_in_string(struct engine *engine, const char *source)
{
    static const char quotes[] = {'"', '\''};
    bool mended = false;
    struct buf text = BUF_INIT;
    size_t len = strlen(source);
    while (len > 0 && (source[len - 1] == '\n' || source[len - 1] == '\r'))
        len--;
    for (size_t i = 0; i < sizeof quotes && !mended; i++) {
        buf_clear(&text);
        buf_append(&text, source, len);
        buf_append_u8(&text, (uint8_t)quotes[i]);
        mended = !syntax_error_says(engine, (const char *)text.data, text.len, text_is_open);
    }
    buf_deinit(&text);
    return mended;
}

bool engine_is_incomplete(struct engine *engine, const char *source)
{
    size_t len = strlen(source);
    if (syntax_error_says(engine, source, len, text_is_open))
        return !ends_in_string(engine, source);
    return syntax_error_says(engine, source, len, "Unexpected end of script") ||
           syntax_error_says(engine, source, len, "Multiline comment");
}

/* Lets the library put the source into a form that can be evaluated: top-level await, an object literal at the prompt,
 * a repeated declaration. `text` receives it. */
static void rewrite(struct engine *engine, const struct engine_source *source, struct buf *text)
{
    static const char *const modes[] = {"script", "eval", "interactive"};
    JSValueRef exception = NULL;
    JSValueRef arguments[2] = {engine_string(engine->context, source->text, strlen(source->text)),
                               engine_string(engine->context, modes[source->mode], strlen(modes[source->mode]))};
    JSValueRef rewritten = call_library(engine, "rewrite", 2, arguments, &exception);
    if (exception == NULL && rewritten != NULL)
        engine_append_text(engine->context, rewritten, text);
    else
        buf_append(text, source->text, strlen(source->text));
}

/* Runs timers until none is left that has to be waited for, and until the promise, if `value` is one, is settled. */
static JSValueRef settle(struct engine *engine, JSValueRef value, JSValueRef *exception)
{
    JSValueRef box_value = call_library(engine, "settle", 1, &value, exception);
    if (*exception != NULL || box_value == NULL)
        return value;
    JSObjectRef box = JSValueToObject(engine->context, box_value, exception);
    JSValueProtect(engine->context, box);
    for (;;) {
        JSValueRef wait = call_library(engine, "runTimers", 0, NULL, exception);
        if (*exception != NULL || interrupt_pending())
            break;
        double wait_ms = JSValueToNumber(engine->context, wait, NULL);
        if (wait_ms < 0) /* no timer is left */
            break;
        clock_sleep_ms((int64_t)wait_ms);
    }
    JSValueRef out = engine_get(engine->context, box, "value");
    if (*exception == NULL && JSValueToBoolean(engine->context, engine_get(engine->context, box, "failed")))
        *exception = engine_get(engine->context, box, "error");
    JSValueUnprotect(engine->context, box);
    return out;
}

static JSValueRef run(struct engine *engine, const struct engine_source *source, JSValueRef *exception)
{
    struct buf text = BUF_INIT;
    rewrite(engine, source, &text);
    JSValueRef value = evaluate(engine, (const char *)text.data, text.len, source->name, exception);
    buf_deinit(&text);
    return *exception != NULL ? NULL : settle(engine, value, exception);
}

bool engine_run(struct engine *engine, const struct engine_source *source, struct buf *text)
{
    JSValueRef exception = NULL;
    interrupt_clear();
    JSValueRef value = run(engine, source, &exception);
    if (engine->has_quit)
        return true;
    if (exception == NULL && source->mode != ENGINE_SCRIPT) {
        JSValueRef formatted = call_library(engine, "format", 1, &value, &exception);
        if (exception == NULL)
            engine_append_text(engine->context, formatted, text);
    }
    if (exception == NULL)
        return true;
    buf_clear(text);
    append_error(engine, exception, text);
    return engine->has_quit;
}

bool engine_call(struct engine *engine, const char *function, const char *argument, struct buf *text)
{
    JSValueRef exception = NULL;
    JSValueRef value = engine_string(engine->context, argument, strlen(argument));
    interrupt_clear();
    JSValueRef result = call_library(engine, function, 1, &value, &exception);
    if (exception != NULL) {
        append_error(engine, exception, text);
        return false;
    }
    engine_append_text(engine->context, result, text);
    return true;
}
