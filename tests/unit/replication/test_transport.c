#include "replication/transport.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/replication/group.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT = 27430,
};

static struct group group;

static int dial(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Bytes read until the other side closes, within some seconds; -1: it doesn't close. */
static ssize_t read_all(int fd, uint8_t *out, size_t size)
{
    size_t got = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 8000) != 1)
            return -1;
        ssize_t count = read(fd, out + got, size - got);
        if (count <= 0)
            return (ssize_t)got;
        got += (size_t)count;
    }
}

static size_t hello(uint8_t *out, uint8_t version, uint64_t to, const char *set)
{
    static const char address[] = "127.0.0.1:1:1";
    uint16_t set_len = (uint16_t)strlen(set), address_len = (uint16_t)strlen(address);
    memset(out, 0, TRANSPORT_HELLO_BYTES);
    store_le32(out, TRANSPORT_MAGIC);
    out[4] = version;
    out[5] = PURPOSE_TERM;
    memcpy(out + 6, &set_len, 2);
    store_le64(out + 8, 99);
    store_le64(out + 16, to);
    memcpy(out + 24, &address_len, 2);
    memcpy(out + TRANSPORT_HELLO_BYTES, set, set_len);
    memcpy(out + TRANSPORT_HELLO_BYTES + set_len, address, address_len);
    return TRANSPORT_HELLO_BYTES + (size_t)set_len + address_len;
}

static void send_bytes(int fd, const uint8_t *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void expect_refusal(uint8_t version, uint64_t to, const char *set, uint8_t verdict)
{
    uint8_t bytes[256], answer[64];
    int fd = dial(PORT);
    send_bytes(fd, bytes, hello(bytes, version, to, set));
    assert_int_equal(read_all(fd, answer, sizeof answer), TRANSPORT_ANSWER_BYTES);
    assert_int_equal(answer[5], verdict);
    close(fd);
}

static void transport_strangers_refused_with_a_reason(void **state)
{
    (void)state;
    expect_refusal(TRANSPORT_VERSION, 1, "other", VERDICT_OTHER_SET);
    expect_refusal(TRANSPORT_VERSION, 7, "test", VERDICT_OTHER_MEMBER);
    expect_refusal(TRANSPORT_VERSION + 1, 1, "test", VERDICT_OTHER_VERSION);
}

static void transport_term_question_answered_byte_by_byte(void **state)
{
    uint8_t bytes[256], answer[TRANSPORT_ANSWER_BYTES], reply[TRANSPORT_TERM_BYTES];
    struct replica_status status;
    (void)state;
    int fd = dial(PORT);
    size_t len = hello(bytes, TRANSPORT_VERSION, 1, "test");
    for (size_t i = 0; i < len; i++)
        send_bytes(fd, bytes + i, 1);
    assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
    assert_int_equal(answer[5], VERDICT_WELCOME);
    store_le64(bytes, 4711);
    store_le64(bytes + 8, 1);
    send_bytes(fd, bytes, 3);
    clock_sleep_ms(20);
    send_bytes(fd, bytes + 3, TRANSPORT_TERM_BYTES - 3);
    assert_int_equal(recv(fd, reply, sizeof reply, MSG_WAITALL), sizeof reply);
    replica_get_status(group.members[0].replica, &status);
    assert_int_equal(load_le64(reply), 4711);
    assert_int_equal(load_le64(reply + 8), status.term);
    close(fd);
}

static void transport_garbage_closes_only_that_connection(void **state)
{
    struct prng prng = {.state = 5};
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        uint8_t bytes[512], answer[64];
        size_t len = hello(bytes, TRANSPORT_VERSION, 1, "test");
        if (round % 2 == 0)
            len = 1 + prng_below(&prng, sizeof bytes);
        for (size_t i = 0; i < 3 || (round % 2 == 0 && i < len); i++)
            bytes[prng_below(&prng, len)] = (uint8_t)prng_next(&prng);
        int fd = dial(PORT);
        (void)!send(fd, bytes, len, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        assert_true(read_all(fd, answer, sizeof answer) >= 0);
        close(fd);
    }
    group_propose_wait(&group, 1, 64);
}

static void transport_silent_connection_closed_after_a_while(void **state)
{
    uint8_t answer[64];
    (void)state;
    int fd = dial(PORT);
    assert_int_equal(read_all(fd, answer, sizeof answer), 0);
    close(fd);
}

static void transport_many_idle_connections_do_not_shut_members_out(void **state)
{
    int fds[TRANSPORT_ACCEPTED_MAX + 20];
    (void)state;
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fds[i] = dial(PORT);
    group_propose_wait(&group, 2, 64);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
}

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    group_init(&group, 1, PORT);
    group_start_all(&group);
    group_wait_leader(&group);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    group_deinit(&group);
    return 0;
}

static void agree_over(const char *host)
{
    static struct group other;
    group_init_host(&other, 3, PORT + 10, host);
    group_start_all(&other);
    for (unsigned i = 0; i < 10; i++)
        group_propose_wait(&other, i, 64);
    assert_int_equal(group_read(&other, group_wait_leader(&other)), REPLICA_APPLIED);
    assert_true(group_equal(&other));
    group_deinit(&other);
}

static void transport_resolves_names(void **state)
{
    (void)state;
    agree_over("localhost");
}

static void transport_speaks_ipv6(void **state)
{
    (void)state;
    agree_over("[::1]");
}

static void transport_member_of_another_set_stays_out(void **state)
{
    static struct group other;
    struct hash_state end;
    (void)state;
    group_init(&other, 3, PORT + 10);
    other.set_names[2] = "elsewhere";
    group_start_all(&other);
    for (unsigned i = 0; i < 5; i++)
        group_propose_wait(&other, i, 64);
    hash_fsm_get(&other.members[2].fsm, &end);
    assert_int_equal(end.count, 0);
    group_deinit(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transport_strangers_refused_with_a_reason),
        cmocka_unit_test(transport_term_question_answered_byte_by_byte),
        cmocka_unit_test(transport_garbage_closes_only_that_connection),
        cmocka_unit_test(transport_silent_connection_closed_after_a_while),
        cmocka_unit_test(transport_many_idle_connections_do_not_shut_members_out),
        cmocka_unit_test(transport_resolves_names),
        cmocka_unit_test(transport_speaks_ipv6),
        cmocka_unit_test(transport_member_of_another_set_stays_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
