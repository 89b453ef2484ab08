/* Temporary files of sorts and groups that don't fit into memory. A space is a directory with a limit on the bytes in
 * all its files; a file has no name (it goes with its descriptor, also when the process dies), is appended to, then
 * read. A space may be used by any thread, a file by one at a time. */
#ifndef SHERD_BASE_TEMP_SPACE_H
#define SHERD_BASE_TEMP_SPACE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TEMP_SPACE_FILES_MAX = 1000, /* open at once in one space */
};

#define TEMP_SPACE_DEFAULT_BYTES (INT64_C(64) << 30)

struct temp_space;
struct temp_file;

/* Makes the directory unless it is there and removes the files that a predecessor left in it. `max_bytes` limits the
 * sum of all files, as does half of what the disk has free now: others need it too. The caller frees it with temp_space_close. */
bool temp_space_open(const char *dir, int64_t max_bytes, struct temp_space **out, struct err *err) ERR_WARN_UNUSED;
/* No file may be open. Removes the directory if it is empty. Accepts NULL. */
void temp_space_close(struct temp_space *space);
/* Bytes in all files now. */
int64_t temp_space_used_bytes(const struct temp_space *space);

/* An empty file. The space must outlive it. Errors: 1024 too many, 14031 and what the system says. */
bool temp_file_open(struct temp_space *space, struct temp_file **out, struct err *err) ERR_WARN_UNUSED;
/* Gives its bytes back. Accepts NULL. */
void temp_file_close(struct temp_file *file);
/* Appends; may keep some of it in memory until temp_file_flush. 14031 OutOfDiskSpace when the disk is full or the
 * space's limit is reached. Blocks on the disk. */
bool temp_file_append(struct temp_file *file, const void *data, size_t len, struct err *err) ERR_WARN_UNUSED;
bool temp_file_flush(struct temp_file *file, struct err *err) ERR_WARN_UNUSED;
/* What was appended so far. */
int64_t temp_file_size_bytes(const struct temp_file *file);
/* Reads exactly `len` flushed bytes at `offset`. */
bool temp_file_read(struct temp_file *file, int64_t offset, void *out, size_t len, struct err *err) ERR_WARN_UNUSED;

#endif
