#include "shell/uri.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char scheme[] = "mongodb://";

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 &&
           (text[digits] == 0 || text[digits] == '/' || text[digits] == ',' || text[digits] == '?');
}

bool uri_is_uri(const char *text)
{
    if (strstr(text, "://") != NULL)
        return true;
    const char *colon = strchr(text, ':');
    return colon != NULL && is_port(colon + 1);
}

static bool parse_host(const char *text, size_t len, struct uri *out, struct err *err)
{
    if (out->host_count == URI_MAX_HOSTS)
        return err_set(err, ERR_FailedToParse, "more than %d hosts", URI_MAX_HOSTS);
    struct uri_host *host = &out->hosts[out->host_count];
    const char *name_end = text + len;
    const char *port = NULL;
    if (len > 0 && *text == '[') { /* an IPv6 address */
        const char *close = memchr(text, ']', len);
        if (close == NULL)
            return err_set(err, ERR_FailedToParse, "']' is missing in the host '%.*s'", (int)len, text);
        name_end = close;
        text++;
        len--;
        port = close[1] == ':' ? close + 2 : NULL;
    } else {
        const char *colon = memchr(text, ':', len);
        if (colon != NULL) {
            name_end = colon;
            port = colon + 1;
        }
    }
    size_t name_len = (size_t)(name_end - text);
    if (name_len == 0 || name_len >= sizeof host->name)
        return err_set(err, ERR_FailedToParse, "an empty or overlong host name");
    memcpy(host->name, text, name_len);
    host->name[name_len] = 0;
    snprintf(host->port, sizeof host->port, "%d", URI_DEFAULT_PORT);
    if (port != NULL) {
        int number = is_port(port) ? atoi(port) : 0;
        if (number < 1 || number > 65535)
            return err_set(err, ERR_FailedToParse, "the port of host '%s' is not a number from 1 to 65535", host->name);
        snprintf(host->port, sizeof host->port, "%d", number);
    }
    out->host_count++;
    return true;
}

static bool parse_hosts(const char *text, size_t len, struct uri *out, struct err *err)
{
    const char *end = text + len;
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma != NULL ? comma : end;
        if (!parse_host(text, (size_t)(stop - text), out, err))
            return false;
        if (comma == NULL)
            return true;
        text = comma + 1;
    }
}

/* One name=value of `len` bytes. Options that only tune a driver are accepted and without effect. */
static bool parse_option(const char *text, size_t len, struct uri *out, struct err *err)
{
    const char *equals = memchr(text, '=', len);
    if (equals == NULL)
        return err_set(err, ERR_FailedToParse, "'=' is missing in the option '%.*s'", (int)len, text);
    size_t name_len = (size_t)(equals - text);
    char value[64];
    snprintf(value, sizeof value, "%.*s", (int)(len - name_len - 1), equals + 1);
    bool is_tls =
        (name_len == 3 && strncasecmp(text, "tls", 3) == 0) || (name_len == 3 && strncasecmp(text, "ssl", 3) == 0);
    if (is_tls && strcmp(value, "true") == 0)
        return err_set(err, ERR_NotImplemented, "the shell has no TLS yet");
    bool is_timeout = (name_len == 16 && strncasecmp(text, "connectTimeoutMS", 16) == 0) ||
                      (name_len == 24 && strncasecmp(text, "serverSelectionTimeoutMS", 24) == 0);
    if (is_timeout) {
        out->connect_timeout_ms = atoi(value);
        if (out->connect_timeout_ms <= 0)
            return err_set(err, ERR_FailedToParse, "%.*s takes a number of milliseconds", (int)name_len, text);
    }
    return true;
}

static bool parse_options(const char *text, struct uri *out, struct err *err)
{
    while (*text != 0) {
        size_t len = strcspn(text, "&");
        if (len > 0 && !parse_option(text, len, out, err))
            return false;
        text += len + (text[len] == '&');
    }
    return true;
}

static bool parse_database(const char *text, size_t len, struct uri *out, struct err *err)
{
    if (len == 0)
        return true;
    if (len >= sizeof out->database)
        return err_set(err, ERR_FailedToParse, "the database name is longer than %zu bytes", sizeof out->database - 1);
    memcpy(out->database, text, len);
    out->database[len] = 0;
    if (strpbrk(out->database, "/\\. \"$") != NULL)
        return err_set(err, ERR_FailedToParse, "'%s' is not a database name", out->database);
    return true;
}

bool uri_parse(const char *text, struct uri *out, struct err *err)
{
    *out = (struct uri){.database = "test", .connect_timeout_ms = URI_DEFAULT_TIMEOUT_MS};
    if (starts_with(text, "mongodb+srv://"))
        return err_set(err, ERR_NotImplemented, "mongodb+srv:// is not supported; name the hosts");
    if (starts_with(text, scheme))
        text += strlen(scheme);
    else if (strstr(text, "://") != NULL)
        return err_set(err, ERR_FailedToParse, "a connection string starts with %s", scheme);
    size_t hosts_len = strcspn(text, "/?");
    if (memchr(text, '@', hosts_len) != NULL)
        return err_set(err, ERR_NotImplemented, "the shell has no authentication yet: leave the user name out");
    if (!parse_hosts(text, hosts_len, out, err))
        return false;
    text += hosts_len;
    if (*text == '/') {
        text++;
        size_t database_len = strcspn(text, "?");
        if (!parse_database(text, database_len, out, err))
            return false;
        text += database_len;
    }
    return *text != '?' || parse_options(text + 1, out, err);
}
