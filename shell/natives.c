/* The functions that the JavaScript library calls: commands, files, printing. */
#include "shell/engine_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "bson/extjson.h"
#include "shell/interrupt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BATCH_MAX_DOCUMENTS = 1000,
    BATCH_MAX_BYTES = 8 * 1024 * 1024, /* a larger document travels alone */
    SLEEP_STEP_MS = 50,                /* how soon sleep() notices Ctrl-C */
};

/* One call from JavaScript. */
struct call {
    struct engine *engine;
    JSContextRef context;
    size_t count;
    const JSValueRef *arguments;
    JSValueRef *exception;
};

static JSValueRef undefined(const struct call *call)
{
    return JSValueMakeUndefined(call->context);
}

static JSValueRef argument(const struct call *call, size_t i)
{
    return i < call->count ? call->arguments[i] : undefined(call);
}

/* The argument as a C string in `out`. */
static const char *text_argument(const struct call *call, size_t i, struct buf *out)
{
    engine_append_text(call->context, argument(call, i), out);
    *buf_reserve(out, 1) = 0;
    return (const char *)out->data;
}

static JSValueRef throw_err(const struct call *call, const struct err *err)
{
    return engine_throw(call->context, call->exception, err);
}

/* --- commands --------------------------------------------------------------------------------------------------------
 */

static JSValueRef run(const struct call *call, const char *database, struct bdoc command,
                      const struct connection_sequence *sequence)
{
    struct err err;
    struct bdoc reply;
    if (call->engine->conn == NULL) {
        err_set(&err, ERR_HostUnreachable, "not connected: the shell was started with --nodb");
        return throw_err(call, &err);
    }
    if (!connection_run(call->engine->conn, database, command, sequence, &reply, &err)) {
        JSValueRef thrown = throw_err(call, &err);
        if ((err_categories(err.code) & ERR_CAT_NETWORK) != 0)
            engine_set(call->context, JSValueToObject(call->context, *call->exception, NULL), "name",
                       engine_string(call->context, "MongoNetworkError", 17));
        return thrown;
    }
    return convert_from_bson(call->engine, reply, call->exception);
}

/* runCommand(database, command) -> the reply, whatever it says */
static JSValueRef native_run_command(const struct call *call)
{
    bson_t command;
    if (!convert_to_bson(call->engine, argument(call, 1), &command, call->exception))
        return undefined(call);
    struct buf database = BUF_INIT;
    JSValueRef reply = run(call, text_argument(call, 0, &database), bdoc_of(&command), NULL);
    buf_deinit(&database);
    bson_destroy(&command);
    return reply;
}

/* Documents from the array's place `start` on into `out` until a batch is full; how many, or -1 with an exception. */
static long collect_batch(const struct call *call, JSObjectRef array, unsigned start, struct buf *out)
{
    unsigned length = (unsigned)JSValueToNumber(call->context, engine_get(call->context, array, "length"), NULL);
    unsigned i = start;
    for (; i < length && i - start < BATCH_MAX_DOCUMENTS; i++) {
        bson_t doc;
        JSValueRef value = JSObjectGetPropertyAtIndex(call->context, array, i, call->exception);
        if (*call->exception != NULL || !convert_to_bson(call->engine, value, &doc, call->exception))
            return -1;
        bool full = i > start && out->len + doc.len > BATCH_MAX_BYTES;
        if (!full)
            buf_append(out, bson_get_data(&doc), doc.len);
        bson_destroy(&doc);
        if (full)
            break;
    }
    return (long)(i - start);
}

/* runBatch(database, command, sequenceName, array, start) -> {reply, count} */
static JSValueRef native_run_batch(const struct call *call)
{
    JSObjectRef array = JSValueToObject(call->context, argument(call, 3), call->exception);
    bson_t command;
    if (array == NULL || !convert_to_bson(call->engine, argument(call, 1), &command, call->exception))
        return undefined(call);
    struct buf database = BUF_INIT;
    struct buf name = BUF_INIT;
    struct buf documents = BUF_INIT;
    JSValueRef out = undefined(call);
    long count =
        collect_batch(call, array, (unsigned)JSValueToNumber(call->context, argument(call, 4), NULL), &documents);
    if (count >= 0) {
        struct connection_sequence sequence = {
            .name = text_argument(call, 2, &name), .data = documents.data, .len = documents.len};
        JSValueRef reply = run(call, text_argument(call, 0, &database), bdoc_of(&command), &sequence);
        JSObjectRef box = JSObjectMake(call->context, NULL, NULL);
        engine_set(call->context, box, "reply", reply);
        engine_set(call->context, box, "count", JSValueMakeNumber(call->context, (double)count));
        out = box;
    }
    buf_deinit(&documents);
    buf_deinit(&name);
    buf_deinit(&database);
    bson_destroy(&command);
    return out;
}

static JSValueRef native_address(const struct call *call)
{
    const char *address = call->engine->conn != NULL ? connection_address(call->engine->conn) : "";
    return engine_string(call->context, address, strlen(address));
}

/* --- documents
 * --------------------------------------------------------------------------------------------------------- */

/* toJson(document, relaxed) */
static JSValueRef native_to_json(const struct call *call)
{
    bson_t doc;
    if (!convert_to_bson(call->engine, argument(call, 0), &doc, call->exception))
        return undefined(call);
    struct buf text = BUF_INIT;
    bool relaxed = JSValueToBoolean(call->context, argument(call, 1));
    extjson_print(&text, bdoc_of(&doc), relaxed ? EXTJSON_RELAXED : EXTJSON_CANONICAL);
    JSValueRef out = engine_string(call->context, (const char *)text.data, text.len);
    buf_deinit(&text);
    bson_destroy(&doc);
    return out;
}

/* fromJson(text) -> document */
static JSValueRef native_from_json(const struct call *call)
{
    struct buf text = BUF_INIT;
    struct err err;
    bson_t doc;
    text_argument(call, 0, &text);
    JSValueRef out;
    if (extjson_parse((const char *)text.data, text.len, &doc, &err)) {
        out = convert_from_bson(call->engine, bdoc_of(&doc), call->exception);
        bson_destroy(&doc);
    } else {
        out = throw_err(call, &err);
    }
    buf_deinit(&text);
    return out;
}

static JSValueRef native_bson_size(const struct call *call)
{
    bson_t doc;
    if (!convert_to_bson(call->engine, argument(call, 0), &doc, call->exception))
        return undefined(call);
    double size = doc.len;
    bson_destroy(&doc);
    return JSValueMakeNumber(call->context, size);
}

static JSValueRef native_new_object_id(const struct call *call)
{
    bson_oid_t oid;
    char hex[25];
    bson_oid_init(&oid, NULL);
    bson_oid_to_string(&oid, hex);
    return engine_string(call->context, hex, 24);
}

static JSValueRef native_new_uuid(const struct call *call)
{
    uint8_t uuid[16];
    char text[40];
    size_t len = 0;
    random_uuid(uuid);
    for (int i = 0; i < 16; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%02x",
                                i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    return engine_string(call->context, text, len);
}

/* The text of a decimal in its own notation, or null. */
static JSValueRef native_decimal(const struct call *call)
{
    struct buf text = BUF_INIT;
    bson_decimal128_t decimal;
    char out[BSON_DECIMAL128_STRING];
    bool ok = bson_decimal128_from_string(text_argument(call, 0, &text), &decimal);
    buf_deinit(&text);
    if (!ok)
        return JSValueMakeNull(call->context);
    bson_decimal128_to_string(&decimal, out);
    return engine_string(call->context, out, strlen(out));
}

/* --- the outside
 * ------------------------------------------------------------------------------------------------------- */

static JSValueRef native_print(const struct call *call)
{
    struct buf text = BUF_INIT;
    engine_append_text(call->context, argument(call, 0), &text);
    fwrite(text.data, 1, text.len, stdout);
    putchar('\n');
    buf_deinit(&text);
    return undefined(call);
}

static JSValueRef native_print_error(const struct call *call)
{
    struct buf text = BUF_INIT;
    fflush(stdout);
    fprintf(stderr, "%s\n", text_argument(call, 0, &text));
    buf_deinit(&text);
    return undefined(call);
}

static JSValueRef native_read_file(const struct call *call)
{
    struct buf path = BUF_INIT;
    struct buf content = BUF_INIT;
    struct err err;
    JSValueRef out;
    FILE *file = fopen(text_argument(call, 0, &path), "re");
    if (file == NULL) {
        err_set_errno(&err, ERR_OperationFailed, errno, "%s", (const char *)path.data);
        out = throw_err(call, &err);
    } else {
        size_t n;
        while ((n = fread(buf_reserve(&content, 65536), 1, 65536, file)) > 0)
            content.len += n;
        fclose(file);
        out = engine_string(call->context, content.len > 0 ? (const char *)content.data : "", content.len);
    }
    buf_deinit(&content);
    buf_deinit(&path);
    return out;
}

/* writeFile(path, text, append) */
static JSValueRef native_write_file(const struct call *call)
{
    struct buf path = BUF_INIT;
    struct buf content = BUF_INIT;
    struct err err;
    bool append = JSValueToBoolean(call->context, argument(call, 2));
    engine_append_text(call->context, argument(call, 1), &content);
    FILE *file = fopen(text_argument(call, 0, &path), append ? "ae" : "we");
    bool ok = file != NULL && fwrite(content.data, 1, content.len, file) == content.len;
    ok = (file == NULL || fclose(file) == 0) && ok;
    if (!ok) {
        err_set_errno(&err, ERR_OperationFailed, errno, "%s", (const char *)path.data);
        throw_err(call, &err);
    }
    buf_deinit(&content);
    buf_deinit(&path);
    return undefined(call);
}

static JSValueRef native_sleep(const struct call *call)
{
    double wanted_ms = JSValueToNumber(call->context, argument(call, 0), NULL);
    int64_t end_ms = deadline_after_ms(wanted_ms > 0 ? (int64_t)wanted_ms : 0);
    while (!deadline_passed(end_ms) && !interrupt_pending()) {
        int64_t left_ms = deadline_remaining_ms(end_ms);
        clock_sleep_ms(left_ms < SLEEP_STEP_MS ? left_ms : SLEEP_STEP_MS);
    }
    if (interrupt_pending()) {
        struct err err;
        err_set(&err, ERR_Interrupted, "interrupted");
        return throw_err(call, &err);
    }
    return undefined(call);
}

static JSValueRef throw_quit(const struct call *call)
{
    struct err err;
    err_set(&err, ERR_Interrupted, "quit");
    return throw_err(call, &err);
}

/* Ends the script; the host ends the process once it is back in its own code. A script that catches the exception gets
 * no further than its next call, or than the engine's next look at the clock. */
static JSValueRef native_quit(const struct call *call)
{
    double code = JSValueToNumber(call->context, argument(call, 0), NULL);
    call->engine->has_quit = true;
    call->engine->exit_code = code == code ? (int)code : 0;
    return throw_quit(call);
}

static JSValueRef native_environment(const struct call *call)
{
    struct buf name = BUF_INIT;
    const char *value = getenv(text_argument(call, 0, &name));
    buf_deinit(&name);
    return value == NULL ? undefined(call) : engine_string(call->context, value, strlen(value));
}

static JSValueRef native_cwd(const struct call *call)
{
    char path[4096];
    const char *cwd = getcwd(path, sizeof path) != NULL ? path : ".";
    return engine_string(call->context, cwd, strlen(cwd));
}

/* --- the table
 * ---------------------------------------------------------------------------------------------------------- */

struct native {
    const char *name;
    JSValueRef (*run)(const struct call *call);
};

static const struct native natives[] = {
    {"runCommand", native_run_command},
    {"runBatch", native_run_batch},
    {"address", native_address},
    {"toJson", native_to_json},
    {"fromJson", native_from_json},
    {"bsonSize", native_bson_size},
    {"newObjectId", native_new_object_id},
    {"newUuid", native_new_uuid},
    {"decimal", native_decimal},
    {"print", native_print},
    {"printError", native_print_error},
    {"readFile", native_read_file},
    {"writeFile", native_write_file},
    {"sleep", native_sleep},
    {"quit", native_quit},
    {"environment", native_environment},
    {"cwd", native_cwd},
};

/* Every native function is an object of one class, with its table entry as private data. */
static JSValueRef call_native(JSContextRef context, JSObjectRef function, JSObjectRef this_object, size_t count,
                              const JSValueRef arguments[], JSValueRef *exception)
{
    (void)this_object;
    const struct native *native = JSObjectGetPrivate(function);
    const struct call call = {engine_of(context), context, count, arguments, exception};
    return call.engine->has_quit ? throw_quit(&call) : native->run(&call);
}

JSObjectRef natives_new(struct engine *engine)
{
    JSClassDefinition definition = kJSClassDefinitionEmpty;
    definition.className = "NativeFunction";
    definition.callAsFunction = call_native;
    JSClassRef class = JSClassCreate(&definition);
    JSObjectRef out = JSObjectMake(engine->context, NULL, NULL);
    for (size_t i = 0; i < sizeof natives / sizeof *natives; i++)
        engine_set(engine->context, out, natives[i].name,
                   JSObjectMake(engine->context, class, (void *)(uintptr_t)&natives[i]));
    JSClassRelease(class);
    engine_set(engine->context, out, "version", engine_string(engine->context, SHERD_VERSION, strlen(SHERD_VERSION)));
    return out;
}
