#include "replication/log_bytes.h"

static uint64_t mark_at(const struct log_bytes *log, size_t number)
{
    return log->marks[(log->first + number) % LOG_BYTES_MARKS];
}

void log_bytes_add(struct log_bytes *log, uint64_t bytes, uint64_t last_index)
{
    while (log->count > 0 && mark_at(log, log->count - 1) > last_index)
        log->count--;
    log->total += bytes;
    while (log->total >= log->next_total) {
        log->next_total += LOG_BYTES_MARK;
        if (log->count == LOG_BYTES_MARKS) {
            log->first = (log->first + 1) % LOG_BYTES_MARKS;
            log->count--;
        }
        log->marks[(log->first + log->count) % LOG_BYTES_MARKS] = last_index;
        log->count++;
    }
}

uint64_t log_bytes_entries(const struct log_bytes *log, uint64_t bytes, uint64_t last_index)
{
    uint64_t marks = bytes / LOG_BYTES_MARK;
    if (marks >= log->count)
        return log->count == LOG_BYTES_MARKS ? last_index - mark_at(log, 0) : UINT64_MAX;
    return last_index - mark_at(log, log->count - 1 - (size_t)marks);
}
