#include "tests/unit/shell/fake_router.h"

#include "base/check.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static bool read_all(int fd, uint8_t *to, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, to, len);
        if (n <= 0)
            return false;
        to += n;
        len -= (size_t)n;
    }
    return true;
}

static void answer(int fd, uint32_t response_to, const bson_t *reply)
{
    struct buf out = BUF_INIT;
    size_t start = wire_msg_begin(&out, 1, response_to, 0);
    wire_msg_body(&out, bdoc_of(reply));
    wire_msg_end(&out, start);
    size_t sent = 0;
    while (sent < out.len) {
        ssize_t n = send(fd, out.data + sent, out.len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    buf_deinit(&out);
}

static enum fake_action handle(struct fake_router *router, const struct wire_msg *msg, bson_t *reply)
{
    if (!bdoc_has(msg->body, "hello"))
        return router->handle(router->arg, msg, reply);
    BSON_APPEND_INT32(reply, "maxWireVersion", 25);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
    return FAKE_REPLY;
}

/* One message; false ends the connection. */
static bool serve_message(struct fake_router *router, int fd)
{
    uint8_t head[WIRE_HEADER_BYTES];
    struct wire_header header;
    struct wire_msg msg;
    struct err err;
    if (!read_all(fd, head, sizeof head))
        return false;
    CHECK(wire_header_parse(head, &header, &err));
    uint8_t *bytes = mem_alloc(header.length);
    memcpy(bytes, head, sizeof head);
    CHECK(read_all(fd, bytes + sizeof head, header.length - sizeof head));
    CHECK(wire_msg_parse(bytes, header.length, WIRE_PARSE_CHECKED, &msg, &err));
    bson_t reply = BSON_INITIALIZER;
    enum fake_action action = handle(router, &msg, &reply);
    if (action == FAKE_REPLY)
        answer(fd, header.request_id, &reply);
    bson_destroy(&reply);
    mem_free(bytes);
    return action != FAKE_CLOSE;
}

static void *serve(void *arg)
{
    struct fake_router *router = arg;
    int fd;
    while ((fd = accept(router->listener, NULL, NULL)) >= 0) {
        while (serve_message(router, fd))
            ;
        close(fd);
    }
    return NULL;
}

void fake_router_start(struct fake_router *router)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    router->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(router->listener >= 0);
    CHECK(bind(router->listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(router->listener, 8) == 0);
    CHECK(getsockname(router->listener, (struct sockaddr *)&address, &size) == 0);
    router->port = ntohs(address.sin_port);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, serve, router) == 0);
    router->thread = thread;
}

void fake_router_stop(struct fake_router *router)
{
    shutdown(router->listener, SHUT_RDWR); /* accept fails */
    pthread_join(router->thread, NULL);
    close(router->listener);
}
