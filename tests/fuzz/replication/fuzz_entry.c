/* Arbitrary bytes as a run of log entries ({u16 length, bytes} each) through the applier: an error, or commands whose
 * bytes stay inside the entry. */
#include "replication/applier.h"

#include "base/check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sink {
    uint64_t applied;
    uint64_t sum;
    bool open;
};

static void begin(void *arg)
{
    struct sink *sink = arg;
    CHECK(!sink->open);
    sink->open = true;
}

static void apply(void *arg, uint64_t index, const uint8_t *command, size_t len, struct buf *result)
{
    struct sink *sink = arg;
    CHECK(sink->open && len > 0 && index > sink->applied);
    for (size_t i = 0; i < len; i++)
        sink->sum += command[i];
    buf_append_le64(result, sink->sum);
}

static void commit(void *arg, uint64_t last_index)
{
    struct sink *sink = arg;
    CHECK(sink->open && last_index > sink->applied);
    sink->open = false;
    sink->applied = last_index;
}

static uint64_t applied_index(void *arg)
{
    return ((struct sink *)arg)->applied;
}

static bool checkpoint(void *arg, struct err *err)
{
    (void)arg;
    (void)err;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sink sink = {0};
    struct replica_fsm fsm = {.arg = &sink,
                              .begin = begin,
                              .apply = apply,
                              .commit = commit,
                              .applied_index = applied_index,
                              .checkpoint = checkpoint};
    struct applier applier;
    struct err err;
    uint64_t index = 0;
    applier_init(&applier, &fsm);
    while (size >= 2) {
        size_t len = (size_t)data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        if (len > size)
            len = size;
        struct applier_entry raw = {.index = ++index, .data = data, .len = len};
        if (!applier_add(&applier, &raw, NULL, NULL, &err))
            CHECK(err.msg[0] != '\0');
        if (len % 3 == 0)
            applier_commit(&applier);
        data += len;
        size -= len;
    }
    applier_commit(&applier);
    applier_deinit(&applier);
    return 0;
}
