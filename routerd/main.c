/* routerd: options, start, signals, stop. */
#include "async/loop.h"
#include "async/pool.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/temp_space.h"
#include "config/options.h"
#include "routerd/commands.h"
#include "routerd/cursors.h"
#include "routerd/dispatch.h"
#include "routerd/failpoint.h"
#include "routerd/housekeeper.h"
#include "routerd/registry.h"
#include "routerd/router.h"
#include "routerd/routing_cache.h"
#include "rpc/client.h"
#include "wire/client_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STOP_GRACE_MS = 5000,
    SPARE_FILES = 256, /* descriptors beside those of clients */
};

/* What takes effect at once, and what options_parse can't check. */
static bool apply_options(const struct router_options *o, struct err *err)
{
    if (!o->configdb)
        return err_set(err, ERR_InvalidOptions, "--configdb is required: the members of the config service");
    if (o->log_level) {
        int level = log_level_parse(o->log_level);
        if (level < 0)
            return err_set(err, ERR_InvalidOptions, "--log-level must be debug, info, warn or error");
        log_set_level((enum log_level)level);
    }
    if (o->faults && !o->test_commands)
        return err_set(err, ERR_InvalidOptions, "--faults needs --enable-test-commands");
    return !o->faults || fault_enable(o->faults, err) || err_prefix(err, "--faults");
}

static enum options_result read_options(struct router *router, struct err *err)
{
    struct router_options *o = &router->options;
    const struct options_usage usage = {
        .program = "routerd",
        .summary = "routes the operations of MongoDB drivers to the shards of a cluster; any number may run",
    };
    const struct option options[] = {
        {.name = "configdb",
         .type = OPTION_STR,
         .destination = &o->configdb,
         .value = "SET/HOST:PORT,...",
         .help = "the members of the config service (required)"},
        {.name = "port",
         .type = OPTION_INT,
         .destination = &o->port,
         .min = 1,
         .max = 65535,
         .value = "PORT",
         .help = "where drivers connect to (default 27017)"},
        {.name = "bind",
         .type = OPTION_STR,
         .destination = &o->bind,
         .value = "ADDRESS",
         .help = "address to listen on (default 127.0.0.1)"},
        {.name = "max-conns",
         .type = OPTION_INT,
         .destination = &o->max_conns,
         .min = 1,
         .max = 1000000,
         .value = "COUNT",
         .help = "refuse connections beyond this number (default 20000)"},
        {.name = "log-level",
         .type = OPTION_STR,
         .destination = &o->log_level,
         .value = "LEVEL",
         .help = "debug, info, warn or error (default info)"},
        {.name = "faults",
         .type = OPTION_STR,
         .destination = &o->faults,
         .value = "SPEC",
         .help = "fault points as NAME:N:ACTION,..., with --enable-test-commands"},
        {.name = "tmpdir",
         .type = OPTION_STR,
         .destination = &o->tmpdir,
         .value = "PATH",
         .help = "folder for sorts that don't fit into memory (default $TMPDIR or /tmp)"},
        {.name = "enable-test-commands",
         .type = OPTION_FLAG,
         .destination = &o->test_commands,
         .help = "allow commands and faults that only tests need"},
    };
    o->port = ROUTER_DEFAULT_PORT;
    o->max_conns = ROUTER_DEFAULT_MAX_CONNS;
    enum options_result result =
        options_parse(&usage, options, sizeof options / sizeof options[0], router->argc, router->argv, err);
    if (result != OPTIONS_OK)
        return result;
    return apply_options(o, err) ? OPTIONS_OK : OPTIONS_FAILED;
}

/* The name under which this router shows to others: of the machine, when it listens on every address. */
static void set_address(struct router *router)
{
    char host[256] = "127.0.0.1";
    const char *bind = router->options.bind;
    if (bind && (strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0))
        gethostname(host, sizeof host - 1);
    else if (bind)
        snprintf(host, sizeof host, "%s", bind);
    snprintf(router->address, sizeof router->address, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
             (int)router->options.port);
}

/* As many descriptors as the connections take; what the system doesn't give limits max-conns. */
static void raise_file_limit(struct router *router)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)router->options.max_conns + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted && limit.rlim_cur > SPARE_FILES) {
        router->options.max_conns = (int64_t)limit.rlim_cur - SPARE_FILES;
        log_warn("NETWORK", 8002, "The limit of open files lowers max-conns",
                 LOG_I64("maxConns", router->options.max_conns));
    }
}

/* A folder of this process alone: several routers may share a machine. Without one that was asked for by name the
 * router runs all the same: what doesn't fit into memory ends with 292 then. */
static bool open_temp(struct router *router, struct err *err)
{
    const char *base = router->options.tmpdir ? router->options.tmpdir : getenv("TMPDIR");
    char *dir = mem_printf("%s/routerd-%d", base && *base ? base : "/tmp", (int)router->options.port);
    bool ok = temp_space_open(dir, TEMP_SPACE_DEFAULT_BYTES, &router->temp, err);
    if (!ok && !router->options.tmpdir) {
        log_warn("CONTROL", 8003, "No folder for temporary files; set --tmpdir", LOG_STR("error", err->msg));
        ok = true;
    }
    mem_free(dir);
    return ok;
}

static bool start(struct router *router, struct err *err)
{
    router->ops = op_registry_new();
    if (!open_temp(router, err))
        return false;
    router->started_ms = clock_now_ms();
    set_address(router);
    raise_file_limit(router);
    router->rpc = rpc_client_new(&(struct rpc_client_options){.name = "routerd"});
    if (!registry_new(router, router->options.configdb, &router->registry, err))
        return false;
    router->routing = routing_cache_new(routing_fetch_remote, router);
    router->cursors = cursor_table_new(router);
    router->failpoints = failpoints_new();
    router->commands = commands_table_new(router->options.test_commands);
    router->pool = pool_new(
        &(struct pool_options){.name = "worker", .max_threads = ROUTER_WORKERS_MAX, .max_queued = ROUTER_QUEUE_MAX});
    const struct client_server_options options = {
        .bind = router->options.bind,
        .port = (uint16_t)router->options.port,
        .max_conns = (unsigned)router->options.max_conns,
        .pool = router->pool,
        .handle = dispatch_request,
        .on_open = dispatch_opened,
        .on_close = dispatch_closed,
        .arg = router,
    };
    return client_server_start(&options, &router->server, err);
}

/* The reverse of start; also after one that has failed half way. */
static void stop(struct router *router)
{
    /* What waits for documents doesn't hold the stop up. */
    op_kill_all(router->ops, ERR_Interrupted);
    if (router->server)
        client_server_stop(router->server, STOP_GRACE_MS);
    client_server_free(router->server);
    pool_free(router->pool);
    command_table_free(router->commands);
    failpoints_free(router->failpoints);
    op_registry_free(router->ops);
    cursor_table_free(router->cursors);
    routing_cache_free(router->routing);
    registry_free(router->registry);
    rpc_client_free(router->rpc);
    temp_space_close(router->temp);
}

static void on_signal(void *arg, int signum)
{
    log_info("CONTROL", 8001, "Stopping", LOG_I64("signal", signum));
    loop_stop(arg);
}

static bool serve(struct router *router, struct err *err)
{
    struct loop *loop = loop_new();
    bool ok = loop_on_signal(loop, SIGTERM, on_signal, loop, err) && loop_on_signal(loop, SIGINT, on_signal, loop, err);
    if (ok) {
        struct housekeeper *housekeeper = housekeeper_start(router);
        log_info("NETWORK", 8000, "Waiting for connections", LOG_STR("address", router->address),
                 LOG_I64("port", router->options.port), LOG_STR("configdb", router->options.configdb));
        loop_run(loop);
        housekeeper_stop(housekeeper);
    }
    loop_free(loop);
    return ok;
}

int main(int argc, char **argv)
{
    struct router router = {.argc = argc, .argv = argv};
    struct err err;
    signal(SIGPIPE, SIG_IGN);
    enum options_result result = read_options(&router, &err);
    if (result == OPTIONS_EXIT)
        return 0;
    bool ok = result == OPTIONS_OK && start(&router, &err) && serve(&router, &err);
    if (!ok)
        fprintf(stderr, "routerd: %s\n", err.msg);
    if (result == OPTIONS_OK)
        stop(&router);
    mem_free(router.options.configdb);
    mem_free(router.options.bind);
    mem_free(router.options.log_level);
    mem_free(router.options.tmpdir);
    mem_free(router.options.faults);
    return ok ? 0 : 1;
}
