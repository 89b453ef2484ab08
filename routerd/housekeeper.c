#include "routerd/housekeeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "routerd/cursors.h"
#include "routerd/remote.h"

enum { PING_TIMEOUT_MS = 3000 };

struct housekeeper {
    struct router *router;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `stopping` */
    pthread_cond_t wake;
    bool stopping;
    bool config_away; /* the thread's own: the last ping failed, and that was logged */
};

static void ping(struct housekeeper *housekeeper)
{
    struct router *router = housekeeper->router;
    struct remote_request request;
    struct err err;
    remote_request_init_config(&request, router, true);
    BSON_APPEND_UTF8(&request.body, "_configsvrPing", router->address);
    BSON_APPEND_INT64(&request.body, "up", (clock_now_ms() - router->started_ms) / 1000);
    BSON_APPEND_UTF8(&request.body, "version", "8.0.0");
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(router, &request, deadline_after_ms(PING_TIMEOUT_MS), &err);
    remote_request_deinit(&request);
    if (!ok && !housekeeper->config_away)
        log_warn("SHARDING", 8010, "Config service can't be reached", LOG_STR("error", err.msg));
    else if (ok && housekeeper->config_away)
        log_info("SHARDING", 8011, "Config service is back", LOG_NO_ATTRS);
    housekeeper->config_away = !ok;
}

/* False when it is time to stop. */
static bool rest(struct housekeeper *housekeeper)
{
    int64_t until_ms = deadline_after_ms(HOUSEKEEPER_TICK_MS);
    pthread_mutex_lock(&housekeeper->lock);
    while (!housekeeper->stopping && !deadline_passed(until_ms))
        thread_cond_wait_until(&housekeeper->wake, &housekeeper->lock, until_ms);
    bool go_on = !housekeeper->stopping;
    pthread_mutex_unlock(&housekeeper->lock);
    return go_on;
}

static void *run(void *arg)
{
    struct housekeeper *housekeeper = arg;
    int64_t next_ping_ms = 0;
    do {
        if (clock_now_ms() >= next_ping_ms) {
            ping(housekeeper);
            next_ping_ms = clock_now_ms() + (housekeeper->config_away ? HOUSEKEEPER_TICK_MS : HOUSEKEEPER_PING_MS);
        }
        cursor_table_sweep(housekeeper->router->cursors);
    } while (rest(housekeeper));
    return NULL;
}

struct housekeeper *housekeeper_start(struct router *router)
{
    struct housekeeper *housekeeper = mem_alloc(sizeof *housekeeper);
    housekeeper->router = router;
    pthread_mutex_init(&housekeeper->lock, NULL);
    thread_cond_init(&housekeeper->wake);
    thread_start(&housekeeper->thread, "housekeeper", run, housekeeper);
    return housekeeper;
}

void housekeeper_stop(struct housekeeper *housekeeper)
{
    if (!housekeeper)
        return;
    pthread_mutex_lock(&housekeeper->lock);
    housekeeper->stopping = true;
    pthread_cond_signal(&housekeeper->wake);
    pthread_mutex_unlock(&housekeeper->lock);
    thread_join(housekeeper->thread);
    pthread_cond_destroy(&housekeeper->wake);
    pthread_mutex_destroy(&housekeeper->lock);
    mem_free(housekeeper);
}
