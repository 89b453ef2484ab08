/* Small files written so that a power loss leaves the old or the new content, never a mixture. */
#ifndef SHERD_BASE_FILE_H
#define SHERD_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* write to PATH.tmp, fsync, rename over PATH, fsync the directory. */
bool file_replace(const char *path, const void *data, size_t len, struct err *err) ERR_WARN_UNUSED;
/* Appends the whole file to `out`; one of more than `max_bytes` is an error. A missing file is ERR_NonExistentPath. */
bool file_read(const char *path, size_t max_bytes, struct buf *out, struct err *err) ERR_WARN_UNUSED;
/* fsync of a directory, after a file in it was made, renamed or removed. */
bool file_sync_dir(const char *dir, struct err *err) ERR_WARN_UNUSED;
/* Makes a directory unless it is there. */
bool file_make_dir(const char *dir, struct err *err) ERR_WARN_UNUSED;

#endif
