/* The prompt: line editing, history and completion on a terminal; statements from standard input otherwise. */
#ifndef SHERD_SHELL_PROMPT_H
#define SHERD_SHELL_PROMPT_H

#include "shell/engine.h"

/* Runs until end of input, exit or quit(); returns the exit code: that of quit(), 0, or 1 when input that does not come
 * from a terminal has failed. */
int prompt_run(struct engine *engine, bool quiet);

#endif
