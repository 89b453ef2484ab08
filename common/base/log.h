/* Structured log lines on stderr, one event a line, in the shape of mongod's since 4.4:
 *   {"t":{"$date":"..."},"s":"I","c":"STORAGE","id":2001,"ctx":"apply","msg":"Checkpoint taken","attr":{"index":17}}
 * On a terminal the same event is plain text. Any thread may log. The message is a constant, values are attributes:
 *   log_info("STORAGE", 2001, "Checkpoint taken", LOG_I64("index", index), LOG_STR("file", name));
 * Ids are unique in the tree: base 1000s, storage 2000s, replication 3000s, rpc and wire 4000s, document and node
 * 5000s, shardd 6000s, configd 7000s, routerd 8000s. */
#ifndef SHERD_BASE_LOG_H
#define SHERD_BASE_LOG_H

#include <stdint.h>

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARN,
    LOG_LEVEL_ERROR, /* someone must act */
};

enum log_attr_type {
    LOG_ATTR_END,
    LOG_ATTR_STR,
    LOG_ATTR_I64,
    LOG_ATTR_F64,
    LOG_ATTR_BOOL,
};

struct log_attr {
    enum log_attr_type type;
    const char *name;
    union {
        const char *str; /* NULL prints null */
        int64_t i64;
        double f64;
    } value;
};

#define LOG_STR(n, v)  ((struct log_attr){.type = LOG_ATTR_STR, .name = (n), .value.str = (v)})
#define LOG_I64(n, v)  ((struct log_attr){.type = LOG_ATTR_I64, .name = (n), .value.i64 = (int64_t)(v)})
#define LOG_F64(n, v)  ((struct log_attr){.type = LOG_ATTR_F64, .name = (n), .value.f64 = (v)})
#define LOG_BOOL(n, v) ((struct log_attr){.type = LOG_ATTR_BOOL, .name = (n), .value.i64 = (v)})

/* Lines below `level` are dropped. The default is info. */
void log_set_level(enum log_level level);
/* "debug", "info", "warn" or "error" into a level; -1 for anything else. */
int log_level_parse(const char *name);
void log_write(enum log_level level, const char *component, int id, const char *msg, const struct log_attr *attrs);

/* For an event without attributes: the macros below take at least one. */
#define LOG_NO_ATTRS ((struct log_attr){.type = LOG_ATTR_END})

#define LOG_ATTRS(...)                     ((const struct log_attr[]){__VA_ARGS__, {.type = LOG_ATTR_END}})
#define log_debug(component, id, msg, ...) log_write(LOG_LEVEL_DEBUG, component, id, msg, LOG_ATTRS(__VA_ARGS__))
#define log_info(component, id, msg, ...)  log_write(LOG_LEVEL_INFO, component, id, msg, LOG_ATTRS(__VA_ARGS__))
#define log_warn(component, id, msg, ...)  log_write(LOG_LEVEL_WARN, component, id, msg, LOG_ATTRS(__VA_ARGS__))
#define log_error(component, id, msg, ...) log_write(LOG_LEVEL_ERROR, component, id, msg, LOG_ATTRS(__VA_ARGS__))

#endif
