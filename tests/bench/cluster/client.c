#include "tests/bench/cluster/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER_BYTES = 16, OP_MSG = 2013, REPLY_MAX = 48000000 };

_Noreturn static void give_up(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

void bench_send(int fd, const void *data, size_t len)
{
    const char *from = data;
    while (len > 0) {
        ssize_t sent = send(fd, from, len, MSG_NOSIGNAL);
        if (sent <= 0)
            give_up("send");
        from += sent;
        len -= (size_t)sent;
    }
}

void bench_receive(int fd, void *data, size_t len)
{
    char *to = data;
    while (len > 0) {
        ssize_t got = recv(fd, to, len, 0);
        if (got <= 0)
            give_up("the server closed the connection");
        to += got;
        len -= (size_t)got;
    }
}

int bench_connect(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        give_up("connect");
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void bench_client_open(struct bench_client *client, int port)
{
    *client = (struct bench_client){.fd = bench_connect(port)};
}

void bench_client_close(struct bench_client *client)
{
    close(client->fd);
    buf_deinit(&client->request);
    buf_deinit(&client->reply);
}

static void check_reply(struct bdoc body)
{
    struct bval ok;
    if (bdoc_find(body, "ok", &ok) && bval_truthy(&ok) && !bdoc_has(body, "writeErrors"))
        return;
    bson_t view;
    bdoc_to_bson(body, &view);
    char *text = bson_as_relaxed_extended_json(&view, NULL);
    fprintf(stderr, "bench: refused: %s\n", text);
    exit(1);
}

struct bdoc bench_client_run(struct bench_client *client, const bson_t *command, const char *sequence,
                             const struct buf *documents)
{
    struct buf *out = &client->request;
    buf_clear(out);
    buf_reserve(out, HEADER_BYTES);
    out->len = HEADER_BYTES;
    buf_append_le32(out, 0);
    buf_append_u8(out, 0);
    buf_append(out, bson_get_data(command), command->len);
    if (documents != NULL) {
        buf_append_u8(out, 1);
        buf_append_le32(out, (uint32_t)(4 + strlen(sequence) + 1 + documents->len));
        buf_append(out, sequence, strlen(sequence) + 1);
        buf_append(out, documents->data, documents->len);
    }
    store_le32(out->data, (uint32_t)out->len);
    store_le32(out->data + 4, (uint32_t)++client->request_id);
    store_le32(out->data + 8, 0);
    store_le32(out->data + 12, OP_MSG);
    bench_send(client->fd, out->data, out->len);

    uint8_t header[HEADER_BYTES + 5];
    bench_receive(client->fd, header, sizeof header);
    uint32_t len = load_le32(header);
    if (len < sizeof header || len > REPLY_MAX)
        give_up("a reply's length is wrong");
    buf_clear(&client->reply);
    bench_receive(client->fd, buf_reserve(&client->reply, len - sizeof header), len - sizeof header);
    client->reply.len = len - sizeof header;
    struct bdoc body = {.data = client->reply.data, .len = load_le32(client->reply.data)};
    check_reply(body);
    return body;
}
