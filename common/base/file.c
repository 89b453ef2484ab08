#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, data, len);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return false;
        }
        data += written;
        len -= (size_t)written;
    }
    return true;
}

static bool write_and_sync(const char *path, const void *data, size_t len, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, ERR_OperationFailed, errno, "cannot create %s", path);
    bool ok = write_all(fd, data, len) && fsync(fd) == 0;
    int errnum = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        errnum = errno;
    }
    return ok || err_set_errno(err, ERR_OperationFailed, errnum, "cannot write %s", path);
}

bool file_sync_dir(const char *dir, struct err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, ERR_OperationFailed, errno, "cannot open directory %s", dir);
    bool ok = fsync(fd) == 0;
    int errnum = errno;
    close(fd);
    return ok || err_set_errno(err, ERR_OperationFailed, errnum, "cannot sync directory %s", dir);
}

bool file_replace(const char *path, const void *data, size_t len, struct err *err)
{
    char *temporary = mem_printf("%s.tmp", path);
    const char *slash = strrchr(path, '/');
    char *dir = slash == NULL ? mem_copy_str(".") : mem_copy_strn(path, slash == path ? 1 : (size_t)(slash - path));
    bool ok = write_and_sync(temporary, data, len, err);
    if (ok && rename(temporary, path) != 0)
        ok = err_set_errno(err, ERR_OperationFailed, errno, "cannot rename %s to %s", temporary, path);
    ok = ok && file_sync_dir(dir, err);
    mem_free(dir);
    mem_free(temporary);
    return ok;
}

bool file_read(const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NonExistentPath : ERR_OperationFailed, errno, "cannot open %s",
                             path);
    bool ok = true;
    size_t total = 0;
    for (;;) {
        ssize_t got = read(fd, buf_reserve(out, 65536), 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            ok = err_set_errno(err, ERR_OperationFailed, errno, "cannot read %s", path);
        if (got <= 0)
            break;
        out->len += (size_t)got;
        total += (size_t)got;
        if (total > max_bytes) {
            ok = err_set(err, ERR_InvalidLength, "%s is larger than %zu bytes", path, max_bytes);
            break;
        }
    }
    close(fd);
    return ok;
}

bool file_make_dir(const char *dir, struct err *err)
{
    if (mkdir(dir, 0700) == 0 || errno == EEXIST)
        return true;
    return err_set_errno(err, ERR_OperationFailed, errno, "cannot make directory %s", dir);
}
