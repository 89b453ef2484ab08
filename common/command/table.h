/* Command tables: name -> handler. A daemon joins one or more arrays of commands into a table at start; it is immutable
 * afterwards, any thread looks up. Names match as spelled or, as MongoDB's shell helpers send them, all in lower case.
 */
#ifndef SHERD_COMMAND_TABLE_H
#define SHERD_COMMAND_TABLE_H

#include "base/err.h"
#include "command/context.h"

enum command_flag {
    COMMAND_WRITE = 1 << 0,         /* changes data: needs the leader */
    COMMAND_ADMIN_ONLY = 1 << 1,    /* only on the admin database (13 Unauthorized elsewhere) */
    COMMAND_INTERNAL_ONLY = 1 << 2, /* only from another daemon: a client gets 59 CommandNotFound */
    COMMAND_ANY_ROLE = 1 << 3,      /* also answered by a node that does not lead */
    COMMAND_NO_AUTH = 1 << 4,       /* before authentication: hello, ping, buildInfo, sasl* */
    COMMAND_TEST = 1 << 5,          /* only with --enable-test-commands */
    COMMAND_COLLECTION = 1 << 6,    /* the value is a collection's name, checked before run; ctx->value stays */
    COMMAND_SEQUENCES = 1 << 7,     /* takes kind-1 sections; others refuse them */
};

enum command_status {
    COMMAND_OK,     /* the reply is in ctx->reply or ctx->raw_reply */
    COMMAND_ERROR,  /* err is filled */
    COMMAND_PARKED, /* command_finish was or will be called by somebody else; ctx may be gone already */
};

struct command {
    const char *name;
    const char *alias; /* a second spelling beside the lower-case one, e.g. "ismaster" for "isMaster"; or NULL */
    unsigned flags;    /* enum command_flag */
    enum command_status (*run)(struct command_ctx *ctx, struct err *err);
};

struct command_table;

struct command_table *command_table_new(void);
void command_table_free(struct command_table *table);
/* `commands` is borrowed and must stay; a later array overrides names of an earlier one. */
void command_table_add(struct command_table *table, const struct command *commands, unsigned count);
/* Whether COMMAND_TEST commands exist; off at first. */
void command_table_enable_test(struct command_table *table, bool enabled);
/* NULL when there is none. */
const struct command *command_table_find(const struct command_table *table, const char *name);
/* Walks all commands once, for listCommands: *position starts at 0; NULL at the end. */
const struct command *command_table_next(const struct command_table *table, unsigned *position);

/* Reads name, $db and deadline from the body. command_run calls it unless the daemon has (to look at the command before
 * running it). Errors: 40571 for a missing $db, 73 for a bad one, 14, 9 and 51024 for a bad maxTimeMS, 40415 for $sherd
 * fields of a client, 59 for an empty body. */
bool command_parse(struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;
/* Parses, looks up, checks flags, runs, and finishes unless parked. Takes ctx. */
void command_run(const struct command_table *table, struct command_ctx *ctx);

#endif
