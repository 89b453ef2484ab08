/* The files of shell/js, embedded when the shell is built (cmake/embed.cmake in this folder). */
#ifndef SHERD_SHELL_LIBRARY_H
#define SHERD_SHELL_LIBRARY_H

#include <stddef.h>

struct library_file {
    const char *name;          /* NULL ends the list */
    const unsigned char *data; /* not ended by a NUL */
    size_t len;
};

/* In the order in which they are evaluated. */
extern const struct library_file library_files[];

#endif
