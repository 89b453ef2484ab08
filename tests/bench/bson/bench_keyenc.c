/* Nanoseconds per encoded key for common types, beside the floor: a memcpy of as many bytes into the same buffer. */
#include "bson/keyenc.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEFAULT_ROUNDS = 2000000, KEYS_PER_CLEAR = 1000 };

/* CPU time of this thread: other programs don't count. */
static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double ns_per_key(const struct bval *val, long rounds, size_t *key_len)
{
    struct buf out = BUF_INIT;
    keyenc_append(&out, val, false);
    *key_len = out.len;
    int64_t start = cpu_ns();
    for (long i = 0; i < rounds; i++) {
        if (i % KEYS_PER_CLEAR == 0)
            buf_clear(&out);
        keyenc_append(&out, val, false);
    }
    int64_t end = cpu_ns();
    buf_deinit(&out);
    return (double)(end - start) / (double)rounds;
}

static double ns_per_memcpy(const struct bval *val, long rounds)
{
    struct buf key = BUF_INIT;
    struct buf out = BUF_INIT;
    keyenc_append(&key, val, false);
    int64_t start = cpu_ns();
    for (long i = 0; i < rounds; i++) {
        if (i % KEYS_PER_CLEAR == 0)
            buf_clear(&out);
        buf_append(&out, key.data, key.len);
    }
    int64_t end = cpu_ns();
    buf_deinit(&key);
    buf_deinit(&out);
    return (double)(end - start) / (double)rounds;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    bson_oid_t oid;
    bson_decimal128_t decimal;
    bson_oid_init_from_string(&oid, "65f0a1b2c3d4e5f601234567");
    bson_decimal128_from_string("19.99", &decimal);
    bson_t *doc =
        BCON_NEW("int32", BCON_INT32(123456), "int64", BCON_INT64(INT64_C(8131313131313131)), "double",
                 BCON_DOUBLE(3.14159), "objectId", BCON_OID(&oid), "string 10", "user012345", "string 60",
                 "the quick brown fox jumps over the lazy dog and runs away ..", "date", BCON_DATE_TIME(1700000000000),
                 "decimal", BCON_DECIMAL128(&decimal), "document", "{", "a", BCON_INT32(1), "b", "x", "}");
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bdoc_of(doc));
    printf("%-10s %10s %12s %12s\n", "type", "key bytes", "ns per key", "ns memcpy");
    while (biter_next(&iter, &elem)) {
        size_t key_len;
        double encode = ns_per_key(&elem.val, rounds, &key_len);
        printf("%-10s %10zu %12.1f %12.1f\n", elem.key, key_len, encode, ns_per_memcpy(&elem.val, rounds));
    }
    bson_destroy(doc);
    return 0;
}
