/* Ctrl-C. The handler only sets a flag; whoever waits or computes looks at it. */
#ifndef SHERD_SHELL_INTERRUPT_H
#define SHERD_SHELL_INTERRUPT_H

#include <stdbool.h>

/* Installs the handler of SIGINT (without restart of system calls) and ignores SIGPIPE. Once, at start. */
void interrupt_install(void);
bool interrupt_pending(void);
void interrupt_clear(void);

#endif
