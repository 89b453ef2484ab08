#include "routerd/commands.h"

#include <stddef.h>

struct command_table *commands_table_new(bool test_commands)
{
    static const struct command_family *const families[] = {
        &commands_handshake,  &commands_info,     &commands_session,  &commands_ops,       &commands_explain,
        &commands_find,       &commands_cursors,  &commands_count,    &commands_aggregate, &commands_write,
        &commands_bulk,       &commands_modify,   &commands_ddl,      &commands_index,     &commands_list,
        &commands_shards,     &commands_sharding, &commands_balancer, &commands_metadata,  &commands_failpoint,
        &commands_parameters,
    };
    struct command_table *table = command_table_new();
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        command_table_add(table, families[i]->commands, families[i]->count);
    command_table_enable_test(table, test_commands);
    return table;
}
