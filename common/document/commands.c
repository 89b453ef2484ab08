#include "document/commands.h"

#include "document/explain.h"

const struct command document_commands[] = {
    {"find", NULL, COMMAND_COLLECTION, find_run},
    {"getMore", NULL, 0, get_more_run},
    {"killCursors", NULL, COMMAND_COLLECTION, kill_cursors_run},
    {"count", NULL, COMMAND_COLLECTION, count_run},
    {"distinct", NULL, COMMAND_COLLECTION, distinct_run},
    {"aggregate", NULL, 0, aggregate_run},
    {"explain", NULL, 0, explain_run},
    {"collStats", NULL, COMMAND_COLLECTION, coll_stats_run},
    {"dbStats", NULL, 0, db_stats_run},
    {"validate", NULL, COMMAND_COLLECTION, validate_run},
    {"planCacheClear", NULL, COMMAND_COLLECTION, plan_cache_clear_run},
    {"listCollections", NULL, 0, list_collections_run},
    {"listIndexes", NULL, COMMAND_COLLECTION, list_indexes_run},
    {"listDatabases", NULL, COMMAND_ADMIN_ONLY, list_databases_run},
    {"insert", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, insert_run},
    {"update", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, update_run},
    {"delete", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, delete_run},
    {"findAndModify", "findandmodify", COMMAND_WRITE | COMMAND_COLLECTION, find_and_modify_run},
    {"create", NULL, COMMAND_WRITE | COMMAND_COLLECTION, create_run},
    {"drop", NULL, COMMAND_WRITE | COMMAND_COLLECTION, drop_run},
    {"dropDatabase", NULL, COMMAND_WRITE, drop_database_run},
    {"createIndexes", NULL, COMMAND_WRITE | COMMAND_COLLECTION, create_indexes_run},
    {"dropIndexes", "deleteIndexes", COMMAND_WRITE | COMMAND_COLLECTION, drop_indexes_run},
    {"collMod", NULL, COMMAND_WRITE | COMMAND_COLLECTION, coll_mod_run},
    {"setParameter", NULL, COMMAND_WRITE | COMMAND_ADMIN_ONLY, set_parameter_run},
    {"getParameter", NULL, COMMAND_ADMIN_ONLY, get_parameter_run},
    {"renameCollection", NULL, COMMAND_WRITE | COMMAND_ADMIN_ONLY, rename_collection_run},
    {"convertToCapped", NULL, COMMAND_WRITE | COMMAND_COLLECTION, convert_to_capped_run},
    {"cloneCollectionAsCapped", NULL, COMMAND_WRITE | COMMAND_COLLECTION, clone_as_capped_run},
};

const unsigned document_command_count = sizeof document_commands / sizeof document_commands[0];
