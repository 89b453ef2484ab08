/* configd: a member of the config service, the small replicated store of the cluster's metadata. See README.md. */
#include "configd/commit.h"
#include "configd/server.h"
#include "node/node.h"

enum { CONFIGD_DEFAULT_PORT = 27019 };

static bool open_plugin(struct node *node, void **plugin, struct err *err)
{
    (void)err;
    *plugin = server_new(node);
    return true;
}

static void tick(void *plugin)
{
    server_tick(plugin);
}

static void lead(void *plugin, bool leading)
{
    server_lead(plugin, leading);
}

static void close_plugin(void *plugin)
{
    server_free(plugin);
}

int main(int argc, char **argv)
{
    static const struct node_applier appliers[] = {
        {CONFIG_KIND_COMMIT, commit_apply},
        {CONFIG_KIND_BOOTSTRAP, bootstrap_apply},
    };
    const struct node_program program = {
        .name = "configd",
        .summary = "a member of Sherd's config service",
        .default_port = CONFIGD_DEFAULT_PORT,
        .commands = config_commands,
        .command_count = config_command_count,
        .appliers = appliers,
        .applier_count = sizeof appliers / sizeof appliers[0],
        .open = open_plugin,
        .tick = tick,
        .lead = lead,
        .close = close_plugin,
    };
    return node_main(argc, argv, &program);
}
