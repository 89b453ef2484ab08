/* Sorted runs in temporary files and their merge: the part of a sorter that lies on the disk. For sorter.c only. */
#ifndef SHERD_QUERY_SORT_RUNS_H
#define SHERD_QUERY_SORT_RUNS_H

#include "query/sorter.h"

enum {
    SORT_MERGE_WAYS = 64,               /* runs merged at once; more are merged in several passes */
    SORT_RUN_BUFFER_BYTES = 128 * 1024, /* read ahead of each run */
};

struct sort_runs;

/* `space` is borrowed. */
struct sort_runs *sort_runs_new(struct temp_space *space);
/* Accepts NULL. */
void sort_runs_free(struct sort_runs *runs);
/* A run: begin, its items in ascending order, end. Of equal items in two runs the earlier run's come first. */
bool sort_runs_begin(struct sort_runs *runs, struct err *err) ERR_WARN_UNUSED;
bool sort_runs_append(struct sort_runs *runs, const struct sort_item *item, struct err *err) ERR_WARN_UNUSED;
bool sort_runs_end(struct sort_runs *runs, struct err *err) ERR_WARN_UNUSED;
/* After the last run: merges until few enough are left, then stands before the first item. */
bool sort_runs_merge(struct sort_runs *runs, struct err *err) ERR_WARN_UNUSED;
/* Borrowed until the next call; *found false at the end. */
bool sort_runs_next(struct sort_runs *runs, struct sort_item *out, bool *found, struct err *err) ERR_WARN_UNUSED;
size_t sort_runs_memory_bytes(const struct sort_runs *runs);
void sort_runs_stats(const struct sort_runs *runs, struct sorter_stats *out);

/* The first eight bytes of a key as a number that compares like them, and the whole comparison. */
uint64_t sort_key_prefix(const uint8_t *key, size_t len);
int sort_key_compare(uint64_t a_prefix, const uint8_t *a, uint32_t a_len, uint64_t b_prefix, const uint8_t *b,
                     uint32_t b_len);

#endif
