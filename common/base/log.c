#include "base/log.h"

#include "base/buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int log_threshold = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    atomic_store(&log_threshold, (int)level);
}

static const char *const level_names[] = {"debug", "info", "warn", "error"};

int log_level_parse(const char *name)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, level_names[i]) == 0)
            return i;
    }
    return -1;
}

static void append_str(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

/* A JSON string; bytes that are not printable ASCII or UTF-8 continuation stay as they are, control bytes are escaped.
 */
static void append_json_string(struct buf *out, const char *text)
{
    buf_append_u8(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') {
            buf_append_u8(out, '\\');
            buf_append_u8(out, byte);
        } else if (byte < 0x20) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            append_str(out, escaped);
        } else {
            buf_append_u8(out, byte);
        }
    }
    buf_append_u8(out, '"');
}

static void append_time(struct buf *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm parts;
    gmtime_r(&now.tv_sec, &parts);
    char text[48];
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + len, sizeof text - len, ".%03ldZ", now.tv_nsec / 1000000);
    append_str(out, text);
}

static void append_value(struct buf *out, const struct log_attr *attr)
{
    char number[40];
    switch (attr->type) {
    case LOG_ATTR_STR:
        if (attr->value.str == NULL)
            append_str(out, "null");
        else
            append_json_string(out, attr->value.str);
        return;
    case LOG_ATTR_I64:
        snprintf(number, sizeof number, "%lld", (long long)attr->value.i64);
        break;
    case LOG_ATTR_F64:
        snprintf(number, sizeof number, "%.6g", attr->value.f64);
        break;
    case LOG_ATTR_BOOL:
        snprintf(number, sizeof number, "%s", attr->value.i64 ? "true" : "false");
        break;
    case LOG_ATTR_END:
        return;
    }
    append_str(out, number);
}

static void append_json(struct buf *out, char severity, const char *component, int id, const char *msg,
                        const struct log_attr *attrs)
{
    char context[16] = "";
    pthread_getname_np(pthread_self(), context, sizeof context);
    char head[128];
    append_str(out, "{\"t\":{\"$date\":\"");
    append_time(out);
    snprintf(head, sizeof head, "\"},\"s\":\"%c\",\"c\":\"%s\",\"id\":%d,\"ctx\":", severity, component, id);
    append_str(out, head);
    append_json_string(out, context);
    append_str(out, ",\"msg\":");
    append_json_string(out, msg);
    if (attrs[0].type != LOG_ATTR_END) {
        append_str(out, ",\"attr\":{");
        for (const struct log_attr *attr = attrs; attr->type != LOG_ATTR_END; attr++) {
            if (attr != attrs)
                buf_append_u8(out, ',');
            append_json_string(out, attr->name);
            buf_append_u8(out, ':');
            append_value(out, attr);
        }
        buf_append_u8(out, '}');
    }
    append_str(out, "}\n");
}

static void append_plain(struct buf *out, char severity, const char *component, const char *msg,
                         const struct log_attr *attrs)
{
    char head[64];
    append_time(out);
    snprintf(head, sizeof head, " %c %-8s ", severity, component);
    append_str(out, head);
    append_str(out, msg);
    for (const struct log_attr *attr = attrs; attr->type != LOG_ATTR_END; attr++) {
        buf_append_u8(out, ' ');
        append_str(out, attr->name);
        buf_append_u8(out, '=');
        append_value(out, attr);
    }
    buf_append_u8(out, '\n');
}

void log_write(enum log_level level, const char *component, int id, const char *msg, const struct log_attr *attrs)
{
    if ((int)level < atomic_load_explicit(&log_threshold, memory_order_relaxed))
        return;
    char severity = "DIWE"[level];
    struct buf out = BUF_INIT;
    if (isatty(STDERR_FILENO))
        append_plain(&out, severity, component, msg, attrs);
    else
        append_json(&out, severity, component, id, msg, attrs);
    /* One write, so that lines of several threads and processes never mix. */
    ssize_t ignored = write(STDERR_FILENO, out.data, out.len);
    (void)ignored;
    buf_deinit(&out);
}
