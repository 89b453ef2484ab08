/* What engine.c, convert.c and natives.c share. The only header that shows the engine's own types (JavaScriptCore's C
 * API). */
#ifndef SHERD_SHELL_ENGINE_INTERNAL_H
#define SHERD_SHELL_ENGINE_INTERNAL_H

#include "bson/value.h"
#include "shell/engine.h"

#include <JavaScriptCore/JavaScript.h>

/* Constructors that js/bson.js puts into `__make`, for values that JavaScript has no type for. */
enum engine_maker {
    MAKE_OBJECT_ID,
    MAKE_LONG,
    MAKE_DECIMAL,
    MAKE_BINARY,
    MAKE_TIMESTAMP,
    MAKE_REGEX,
    MAKE_CODE,
    MAKE_SYMBOL,
    MAKE_DB_POINTER,
    MAKE_MIN_KEY,
    MAKE_MAX_KEY,
    MAKE_FIELD, /* sets a field that an assignment would not, such as __proto__ */
    MAKE_COUNT,
};

struct engine {
    JSGlobalContextRef context;
    struct connection *conn;        /* borrowed; NULL without a server */
    JSObjectRef makers[MAKE_COUNT]; /* protected */
    JSStringRef bson_type;          /* "_bsontype" */
    JSStringRef value_key;          /* "value" */
    bool has_quit;
    int exit_code;
};

/* --- engine.c: strings and properties --- */

/* The engine that a context belongs to. */
struct engine *engine_of(JSContextRef context);
JSValueRef engine_string(JSContextRef context, const char *text, size_t len);
/* Appends the value's string form as UTF-8, NULs inside included; halves of surrogate pairs become U+FFFD. */
void engine_append_text(JSContextRef context, JSValueRef value, struct buf *to);
void engine_append_js_string(JSStringRef string, struct buf *to);
/* Borrowed from the object. undefined when there is none. */
JSValueRef engine_get(JSContextRef context, JSObjectRef object, const char *name);
void engine_set(JSContextRef context, JSObjectRef object, const char *name, JSValueRef value);
/* Sets *exception to an Error with that message and returns undefined, for `return engine_throw(...)` in a native
 * function. */
JSValueRef engine_throw(JSContextRef context, JSValueRef *exception, const struct err *err);

/* --- convert.c --- */

/* Initialises `out`; the caller destroys it, on success only. On failure *exception is set. */
bool convert_to_bson(struct engine *engine, JSValueRef value, bson_t *out, JSValueRef *exception);
JSValueRef convert_from_bson(struct engine *engine, struct bdoc doc, JSValueRef *exception);

/* --- natives.c --- */

/* Puts the native functions into a new object. */
JSObjectRef natives_new(struct engine *engine);

#endif
