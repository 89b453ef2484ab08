/* Checks for our own mistakes. They stay on in release builds: a bug crashes with a line that says where, the world
 * gets an error. Never used on bytes from the network, a client or the disk. */
#ifndef SHERD_BASE_CHECK_H
#define SHERD_BASE_CHECK_H

#include <stdbool.h>

/* Writes one line to stderr and aborts. */
_Noreturn void check_failed(const char *file, int line, const char *what);

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define UNREACHABLE()    check_failed(__FILE__, __LINE__, "unreachable")

#endif
