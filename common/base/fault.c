#include "base/fault.h"

#include "base/mem.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum fault_action { FAULT_ACTION_NONE, FAULT_ACTION_KILL, FAULT_ACTION_STOP, FAULT_ACTION_FAIL };

static const char *const point_names[FAULT_COUNT] = {
#define FAULT_POINT(name) #name,
#include "base/fault_points.h"
#undef FAULT_POINT
};

static struct {
    atomic_int action;     /* enum fault_action */
    atomic_long countdown; /* passages left; acts when it reaches 0 */
} points[FAULT_COUNT];

static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

static bool enable_one(char *entry, struct err *err)
{
    static const char *const actions[] = {"none", "kill", "stop", "fail"};
    char *save = NULL;
    char *name = strtok_r(entry, ":", &save);
    char *count = strtok_r(NULL, ":", &save);
    char *action = strtok_r(NULL, ":", &save);
    if (name == NULL || count == NULL || action == NULL)
        return err_set(err, ERR_BadValue, "a fault point is written name:count:action");
    int point = find_name(point_names, FAULT_COUNT, name);
    int kind = find_name(actions, 4, action);
    long passages = strtol(count, NULL, 10);
    if (point < 0 || kind < 0 || passages < 1)
        return err_set(err, ERR_BadValue, "unknown fault point '%s', count '%s' or action '%s'", name, count, action);
    atomic_store(&points[point].countdown, passages);
    atomic_store(&points[point].action, kind);
    return true;
}

bool fault_enable(const char *spec, struct err *err)
{
    char *copy = mem_copy_str(spec);
    char *save = NULL;
    bool ok = true;
    for (char *entry = strtok_r(copy, ",", &save); ok && entry != NULL; entry = strtok_r(NULL, ",", &save))
        ok = enable_one(entry, err);
    mem_free(copy);
    return ok;
}

bool fault_hit(enum fault_point point)
{
    int action = atomic_load_explicit(&points[point].action, memory_order_relaxed);
    if (action == FAULT_ACTION_NONE || atomic_fetch_sub(&points[point].countdown, 1) != 1)
        return false;
    if (action == FAULT_ACTION_KILL)
        raise(SIGKILL);
    if (action == FAULT_ACTION_STOP)
        raise(SIGSTOP);
    return action == FAULT_ACTION_FAIL;
}
