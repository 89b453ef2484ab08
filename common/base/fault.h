/* Fault points: named places where a test makes the process fail. Off unless fault_enable was called, which a daemon
 * does only under --enable-test-commands. */
#ifndef SHERD_BASE_FAULT_H
#define SHERD_BASE_FAULT_H

#include "base/err.h"

enum fault_point {
#define FAULT_POINT(name) FAULT_##name,
#include "base/fault_points.h"
#undef FAULT_POINT
    FAULT_COUNT
};

/* `spec` is "name:n:action" entries joined by commas: at the n-th passage the point acts once. Actions: kill (SIGKILL
 * to this process), stop (SIGSTOP), fail (fault_hit answers true). */
bool fault_enable(const char *spec, struct err *err) ERR_WARN_UNUSED;
/* Counts a passage. True only for action "fail", at its passage; the caller then behaves as if the step had failed. */
bool fault_hit(enum fault_point point);

#endif
