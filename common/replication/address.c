#include "replication/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_port(const char *text, size_t len, uint16_t *port)
{
    unsigned value = 0;
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    if (value == 0 || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

/* Splits the host off; returns the text after it (at a ':'), or NULL. */
static const char *parse_host(const char *text, struct address *address)
{
    const char *start = text, *end;
    if (*text == '[') {
        start = text + 1;
        end = strchr(start, ']');
        if (end == NULL)
            return NULL;
        text = end + 1;
    } else {
        end = strchr(text, ':');
        if (end == NULL)
            return NULL;
        text = end;
    }
    size_t len = (size_t)(end - start);
    if (len == 0 || len >= ADDRESS_HOST_MAX || *text != ':')
        return NULL;
    memcpy(address->host, start, len);
    address->host[len] = '\0';
    return text;
}

bool address_parse(const char *text, struct address *address, struct err *err)
{
    memset(address, 0, sizeof *address);
    const char *ports = parse_host(text, address);
    if (ports == NULL)
        return err_set(err, ERR_BadValue, "address '%.100s' is not host:port or host:port:raftport", text);
    ports++;
    const char *colon = strchr(ports, ':');
    size_t len = colon == NULL ? strlen(ports) : (size_t)(colon - ports);
    if (!parse_port(ports, len, &address->port))
        return err_set(err, ERR_BadValue, "address '%.100s' has no valid port", text);
    if (colon == NULL) {
        if (address->port > UINT16_MAX - ADDRESS_RAFT_PORT_OFFSET)
            return err_set(err, ERR_BadValue, "address '%.100s' needs an explicit raft port", text);
        address->raft_port = (uint16_t)(address->port + ADDRESS_RAFT_PORT_OFFSET);
        return true;
    }
    if (!parse_port(colon + 1, strlen(colon + 1), &address->raft_port))
        return err_set(err, ERR_BadValue, "address '%.100s' has no valid raft port", text);
    return true;
}

bool address_format(const struct address *address, char *out, size_t size)
{
    bool v6 = strchr(address->host, ':') != NULL;
    int len = snprintf(out, size, v6 ? "[%s]:%u:%u" : "%s:%u:%u", address->host, address->port, address->raft_port);
    return len > 0 && (size_t)len < size;
}

bool address_format_client(const struct address *address, char *out, size_t size)
{
    bool v6 = strchr(address->host, ':') != NULL;
    int len = snprintf(out, size, v6 ? "[%s]:%u" : "%s:%u", address->host, address->port);
    return len > 0 && (size_t)len < size;
}
