/* Connection strings: mongodb://host:port[,host:port...][/database][?name=value&...], or just host:port/database. */
#ifndef SHERD_SHELL_URI_H
#define SHERD_SHELL_URI_H

#include "base/err.h"

#include <stddef.h>

enum { URI_MAX_HOSTS = 16, URI_MAX_TEXT = 256, URI_DEFAULT_PORT = 27017, URI_DEFAULT_TIMEOUT_MS = 10000 };

struct uri_host {
    char name[URI_MAX_TEXT];
    char port[8];
};

struct uri {
    size_t host_count;
    struct uri_host hosts[URI_MAX_HOSTS];
    char database[64]; /* "test" unless given */
    int connect_timeout_ms;
};

/* True when `text` is meant as a connection string and not as the name of a script file. */
bool uri_is_uri(const char *text);
/* ERR_FailedToParse for a malformed one, ERR_NotImplemented for what the shell can't do (user names, TLS, SRV). */
bool uri_parse(const char *text, struct uri *out, struct err *err) ERR_WARN_UNUSED;

#endif
