#include "shell/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { REDRAW_MS = 200, BAR_CELLS = 30 };

void progress_begin(struct progress *progress, const char *verb, uint64_t total)
{
    *progress = (struct progress){.verb = verb, .start_ms = clock_now_ms(), .total = total};
    progress->terminal = isatty(STDERR_FILENO) != 0;
}

static void draw(const struct progress *progress, int64_t now_ms)
{
    double seconds = (double)(now_ms - progress->start_ms) / 1000.0;
    double rate = seconds > 0 ? (double)progress->documents / seconds : 0;
    if (progress->total > 0) {
        double part = (double)progress->done / (double)progress->total;
        part = part > 1 ? 1 : part;
        char bar[BAR_CELLS + 1];
        for (int i = 0; i < BAR_CELLS; i++)
            bar[i] = i < (int)(part * BAR_CELLS + 0.5) ? '#' : '.';
        bar[BAR_CELLS] = 0;
        fprintf(stderr, "[%s] %3.0f%%  ", bar, part * 100);
    }
    fprintf(stderr, "%s %" PRIu64 " documents in %.1f s (%.0f a second)", progress->verb, progress->documents, seconds,
            rate);
}

void progress_update(struct progress *progress, uint64_t documents, uint64_t done)
{
    int64_t now_ms = clock_now_ms();
    progress->documents = documents;
    progress->done = done;
    if (!progress->terminal || now_ms - progress->drawn_ms < REDRAW_MS)
        return;
    progress->drawn_ms = now_ms;
    fputs("\r\033[K", stderr);
    draw(progress, now_ms);
}

void progress_end(struct progress *progress)
{
    if (progress->terminal)
        fputs("\r\033[K", stderr);
    draw(progress, clock_now_ms());
    fputc('\n', stderr);
}
