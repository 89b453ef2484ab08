/* The life of a node: parts are started bottom-up and stopped top-down. */
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/temp_space.h"
#include "base/thread.h"
#include "document/commands.h"
#include "document/parameters.h"
#include "document/traits.h"
#include "document/ttl.h"
#include "node/node_internal.h"
#include "replication/address.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STOP_POLL_MS = 5,
};

static int fail(const struct node_program *program, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", program->name, err->msg);
    return 1;
}

static char *raft_dir(const struct node *node)
{
    return mem_printf("%s/raft", node->config.dbpath);
}

static bool open_store(struct node *node, bool create, struct err *err)
{
    struct store_options options = {
        .dir = node->config.dbpath,
        .create = create,
        .map_bytes = (uint64_t)node->config.max_data_gib << 30,
        .filter_hooks = node_filter_hooks(),
        .collection_hooks = traits_store_hooks(),
    };
    return store_open(&options, &node->store, err);
}

/* A name that an --init which was interrupted may have left, or that every new file system has. */
static bool may_be_there(const char *name)
{
    static const char *const own[] = {"checkpoint", "data-", "node.json", "raft", "sherd.lock", "lost+found", "."};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strncmp(name, own[i], strlen(own[i])) == 0)
            return true;
    }
    return false;
}

static bool refuse_foreign_files(const char *path, struct err *err)
{
    bool ok = true;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return err_set_errno(err, ERR_InternalError, errno, "opening %s", path);
    for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
        if (!may_be_there(entry->d_name))
            ok = err_set(err, ERR_InvalidOptions, "%s holds something else ('%s'): --init needs an empty folder", path,
                         entry->d_name);
    }
    closedir(dir);
    return ok;
}

/* --init: an empty store, its checkpoint, the group's first configuration, and at last node.json, which says that it is
 * complete. */
static bool initialise(struct node *node, struct err *err)
{
    struct node_config *config = &node->config;
    if (!file_make_dir(config->dbpath, err))
        return false;
    if (node_config_exists(config))
        return err_set(err, ERR_AlreadyInitialized, "%s is already initialised", config->dbpath);
    if (!refuse_foreign_files(config->dbpath, err))
        return false;
    if (!node_config_from_options(config, node->program->default_port, err) || !open_store(node, true, err))
        return false;
    char *dir = raft_dir(node);
    struct err bootstrap;
    bool ok = replica_bootstrap(dir, config->member_id, config->member, config->member_count, &bootstrap);
    /* An earlier --init that was interrupted got this far. */
    if (!ok && bootstrap.code != ERR_AlreadyInitialized)
        *err = bootstrap;
    else
        ok = node_config_save(config, node->program->name, err);
    mem_free(dir);
    store_close(node->store);
    node->store = NULL;
    return ok;
}

static bool start_engine(struct node *node, struct err *err)
{
    struct document_engine_options options = {
        .store = node->store,
        .log = node->log,
        .member_name = node->config.set_name,
        .host = node->address,
        .temp = node->temp,
    };
    node->host.engine = document_engine_new(&options);
    if (node->program->open != NULL && !node->program->open(node, &node->plugin, err))
        return false;
    if (node->program->ownership != NULL)
        node->ownership = node->program->ownership(node->plugin);
    document_engine_set_ownership(node->host.engine, node->ownership);
    return true;
}

static void changed(void *arg, const struct replica_status *status)
{
    (void)status;
    node_housekeeping_wake(arg);
}

static bool start_replica(struct node *node, struct err *err)
{
    char *dir = raft_dir(node);
    struct replica_options options = {
        .dir = dir,
        .set_name = node->config.set_name,
        .id = node->config.member_id,
        .address = node->config.own_address,
        .bind_host = node->config.bind == NULL ? "127.0.0.1" : node->config.bind,
        .fsm = node_fsm(node),
        .on_change = changed,
        .on_change_arg = node,
    };
    bool ok = replica_start(&node->replica, &options, err);
    mem_free(dir);
    return ok;
}

static bool start_server(struct node *node, struct err *err)
{
    struct address own;
    if (!address_parse(node->config.own_address, &own, err))
        return false;
    struct rpc_server_options options = {
        .bind = node->config.bind,
        .port = node->config.port == 0 ? own.port : (uint16_t)node->config.port,
        .handle = node_handle_request,
        .arg = node,
    };
    if (options.port != own.port)
        log_warn("NODE", 5406, "Listens on another port than the one that this member was prepared with",
                 LOG_I64("port", options.port), LOG_I64("prepared", own.port));
    return rpc_server_start(&options, &node->server, err);
}

static bool find_address(struct node *node, struct err *err)
{
    struct address own;
    if (!address_parse(node->config.own_address, &own, err))
        return false;
    return address_format_client(&own, node->address, sizeof node->address) ||
           err_set(err, ERR_BadValue, "the address '%s' is too long", node->config.own_address);
}

static void make_pool(struct node *node)
{
    struct pool_options options = {.name = "worker", .max_threads = NODE_WORKERS_MAX, .max_queued = NODE_QUEUE_MAX};
    node->pool = pool_new(&options);
    node->delay = delay_start();
}

static void make_commands(struct node *node)
{
    node->ops = op_registry_new();
    node->commands = command_table_new();
    command_table_add(node->commands, document_commands, document_command_count);
    command_table_add(node->commands, node_commands, node_command_count);
    command_table_add(node->commands, node_op_commands, node_op_command_count);
    command_table_add(node->commands, node->program->commands, (unsigned)node->program->command_count);
    command_table_enable_test(node->commands, node->config.test_commands);
}

/* What a predecessor left in it goes. */
static bool open_temp(struct node *node, struct err *err)
{
    char *dir = mem_printf("%s/_tmp", node->config.dbpath);
    bool ok = temp_space_open(dir, TEMP_SPACE_DEFAULT_BYTES, &node->temp, err);
    mem_free(dir);
    return ok;
}

static bool start(struct node *node, struct err *err)
{
    if (!node_config_load(&node->config, node->program->name, err) || !find_address(node, err) ||
        !open_store(node, false, err))
        return false;
    node_log_init(node);
    make_commands(node);
    make_pool(node);
    if (!open_temp(node, err) || !start_engine(node, err) || !start_replica(node, err) || !start_server(node, err))
        return false;
    if (node->program->start != NULL)
        node->program->start(node->plugin);
    node_housekeeping_start(node);
    if (!document_parameters_load(node->host.engine, err))
        return false;
    document_ttl_start(document_engine_ttl(node->host.engine));
    log_info("NODE", 5401, "Started", LOG_STR("program", node->program->name), LOG_STR("set", node->config.set_name),
             LOG_I64("id", node->config.member_id), LOG_STR("address", node->address),
             LOG_STR("version", SHERD_VERSION), LOG_STR("dbpath", node->config.dbpath));
    return true;
}

/* Parked requests end with the replica; what they leave behind runs on the pool. */
static void wait_for_requests(struct node *node)
{
    int64_t deadline_ms = deadline_after_ms(NODE_STOP_TIMEOUT_MS);
    while ((atomic_load(&node->requests) > 0 || atomic_load(&node->continuations) > 0) && !deadline_passed(deadline_ms))
        clock_sleep_ms(STOP_POLL_MS);
}

static void stop(struct node *node)
{
    struct err err;
    rpc_server_stop(node->server);
    if (node->program->stop != NULL)
        node->program->stop(node->plugin);
    node_housekeeping_stop(node);
    op_kill_all(node->ops, ERR_InterruptedAtShutdown);
    document_ttl_stop(document_engine_ttl(node->host.engine));
    replica_stop(node->replica, NODE_STOP_TIMEOUT_MS);
    delay_stop(node->delay);
    wait_for_requests(node);
    pool_stop(node->pool);
    if (!store_checkpoint(node->store, NULL, &err))
        log_warn("NODE", 5402, "No checkpoint at the end; the next start replays more", LOG_STR("error", err.msg));
    rpc_server_free(node->server);
    replica_free(node->replica);
    document_engine_free(node->host.engine);
    if (node->program->close != NULL)
        node->program->close(node->plugin);
    command_table_free(node->commands);
    op_registry_free(node->ops);
    temp_space_close(node->temp);
    pool_free(node->pool);
    delay_free(node->delay);
    store_close(node->store);
    log_info("NODE", 5403, "Stopped", LOG_STR("program", node->program->name));
}

static void on_signal(void *arg, int signum)
{
    struct node *node = arg;
    log_info("NODE", 5404, "Stopping on a signal", LOG_I64("signal", signum));
    loop_stop(node->loop);
}

static bool serve(struct node *node, struct err *err)
{
    node->loop = loop_new();
    if (!loop_on_signal(node->loop, SIGTERM, on_signal, node, err) ||
        !loop_on_signal(node->loop, SIGINT, on_signal, node, err) || !start(node, err))
        return false;
    loop_run(node->loop);
    stop(node);
    loop_free(node->loop);
    return true;
}

static bool prepare_process(struct node *node, struct err *err)
{
    struct node_config *config = &node->config;
    if (config->log_level != NULL) {
        int level = log_level_parse(config->log_level);
        if (level < 0)
            return err_set(err, ERR_BadValue, "--log-level: '%s' is not debug, info, warn or error", config->log_level);
        log_set_level((enum log_level)level);
    }
    if (config->faults != NULL && !fault_enable(config->faults, err))
        return err_prefix(err, "--faults");
    signal(SIGPIPE, SIG_IGN);
    /* A connection is a descriptor: take as many as the system gives. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            log_warn("NODE", 5405, "The limit of open files can't be raised", LOG_I64("limit", limit.rlim_cur));
    }
    return true;
}

int node_main(int argc, char **argv, const struct node_program *program)
{
    /* Lives until the process ends: after a failed start, threads may still look at it. */
    struct node *node = mem_alloc_aligned(1, sizeof *node, alignof(struct node));
    struct err err;
    node->program = program;
    pthread_mutex_init(&node->tick_mutex, NULL);
    thread_cond_init(&node->tick_cond);
    arena_init(&node->apply.arena);
    switch (node_config_parse(&node->config, program->name, program->summary, argc, argv, &err)) {
    case OPTIONS_OK:
        break;
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_FAILED:
        return fail(program, &err);
    }
    if (!prepare_process(node, &err))
        return fail(program, &err);
    bool ok = node->config.init ? initialise(node, &err) : serve(node, &err);
    if (!ok) {
        int status = fail(program, &err);
        fflush(NULL);
        _exit(status);
    }
    arena_deinit(&node->apply.arena);
    node_config_deinit(&node->config);
    mem_free(node);
    return 0;
}
