/* A line on stderr that says how far a transfer is: redrawn on a terminal, nothing but the last line elsewhere. */
#ifndef SHERD_SHELL_PROGRESS_H
#define SHERD_SHELL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *verb; /* "imported" */
    int64_t start_ms;
    int64_t drawn_ms; /* when it was drawn last */
    bool terminal;
    uint64_t documents; /* done */
    uint64_t done;      /* of `total`, in its unit */
    uint64_t total;     /* 0: unknown */
};

void progress_begin(struct progress *progress, const char *verb, uint64_t total);
/* Redraws at most five times a second. */
void progress_update(struct progress *progress, uint64_t documents, uint64_t done);
/* Draws the final line. */
void progress_end(struct progress *progress);

#endif
