#include "base/temp_space.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    TEMP_BUFFER_BYTES = 256 * 1024, /* collected before a write */
    TEMP_DISK_SHARE = 2,            /* 1/n of what is free may be used */
};

struct temp_space {
    char *dir;
    int64_t max_bytes;
    _Atomic int64_t used_bytes; /* in all files, buffers included */
    atomic_uint files;          /* open */
};

struct temp_file {
    struct temp_space *space;
    int fd;
    int64_t written_bytes; /* on the disk */
    struct buf buffer;     /* what follows */
};

static const char prefix[] = "sort-";

/* Files that were made but not unlinked yet when the process died. */
static void remove_leftovers(const char *dir)
{
    DIR *list = opendir(dir);
    if (list == NULL)
        return;
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0)
            (void)unlinkat(dirfd(list), entry->d_name, 0);
    }
    closedir(list);
}

bool temp_space_open(const char *dir, int64_t max_bytes, struct temp_space **out, struct err *err)
{
    if (!file_make_dir(dir, err))
        return false;
    remove_leftovers(dir);
    struct temp_space *space = mem_alloc(sizeof *space);
    space->dir = mem_copy_str(dir);
    space->max_bytes = max_bytes;
    struct statvfs disk;
    if (statvfs(dir, &disk) == 0 && (int64_t)(disk.f_bavail * disk.f_frsize / TEMP_DISK_SHARE) < max_bytes)
        space->max_bytes = (int64_t)(disk.f_bavail * disk.f_frsize / TEMP_DISK_SHARE);
    *out = space;
    return true;
}

void temp_space_close(struct temp_space *space)
{
    if (space == NULL)
        return;
    (void)rmdir(space->dir); /* fails when others have put something in */
    mem_free(space->dir);
    mem_free(space);
}

int64_t temp_space_used_bytes(const struct temp_space *space)
{
    return atomic_load(&space->used_bytes);
}

static bool make_file(const struct temp_space *space, int *fd, struct err *err)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%sXXXXXX", space->dir, prefix);
    if (len < 0 || (size_t)len >= sizeof path)
        return err_set(err, ERR_InvalidPath, "the path of the directory of temporary files is too long");
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0) {
        int32_t code = errno == ENOSPC ? ERR_OutOfDiskSpace : ERR_OperationFailed;
        return err_set_errno(err, code, errno, "no temporary file can be made in %s", space->dir);
    }
    (void)unlink(path);
    return true;
}

bool temp_file_open(struct temp_space *space, struct temp_file **out, struct err *err)
{
    int fd;
    if (atomic_fetch_add(&space->files, 1) >= TEMP_SPACE_FILES_MAX) {
        atomic_fetch_sub(&space->files, 1);
        return err_set(err, ERR_TooManyFilesOpen, "more than %d temporary files are open", TEMP_SPACE_FILES_MAX);
    }
    if (!make_file(space, &fd, err)) {
        atomic_fetch_sub(&space->files, 1);
        return false;
    }
    struct temp_file *file = mem_alloc(sizeof *file);
    file->space = space;
    file->fd = fd;
    *out = file;
    return true;
}

void temp_file_close(struct temp_file *file)
{
    if (file == NULL)
        return;
    (void)close(file->fd);
    atomic_fetch_sub(&file->space->used_bytes, temp_file_size_bytes(file));
    atomic_fetch_sub(&file->space->files, 1);
    buf_deinit(&file->buffer);
    mem_free(file);
}

bool temp_file_append(struct temp_file *file, const void *data, size_t len, struct err *err)
{
    struct temp_space *space = file->space;
    int64_t before = atomic_fetch_add(&space->used_bytes, (int64_t)len);
    if (before + (int64_t)len > space->max_bytes) {
        atomic_fetch_sub(&space->used_bytes, (int64_t)len);
        return err_set(err, ERR_OutOfDiskSpace, "temporary files would take more than %lld bytes",
                       (long long)space->max_bytes);
    }
    buf_append(&file->buffer, data, len);
    return file->buffer.len < TEMP_BUFFER_BYTES || temp_file_flush(file, err);
}

bool temp_file_flush(struct temp_file *file, struct err *err)
{
    size_t done = 0;
    while (done < file->buffer.len) {
        ssize_t n = pwrite(file->fd, file->buffer.data + done, file->buffer.len - done, file->written_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int32_t code = n == 0 || errno == ENOSPC || errno == EDQUOT ? ERR_OutOfDiskSpace : ERR_OperationFailed;
            return err_set_errno(err, code, n == 0 ? ENOSPC : errno, "a temporary file in %s can't be written",
                                 file->space->dir);
        }
        done += (size_t)n;
        file->written_bytes += n;
    }
    buf_clear(&file->buffer);
    return true;
}

int64_t temp_file_size_bytes(const struct temp_file *file)
{
    return file->written_bytes + (int64_t)file->buffer.len;
}

bool temp_file_read(struct temp_file *file, int64_t offset, void *out, size_t len, struct err *err)
{
    uint8_t *to = out;
    while (len > 0) {
        ssize_t n = pread(file->fd, to, len, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set_errno(err, ERR_OperationFailed, n == 0 ? EIO : errno, "a temporary file in %s can't be read",
                                 file->space->dir);
        to += n;
        offset += n;
        len -= (size_t)n;
    }
    return true;
}
