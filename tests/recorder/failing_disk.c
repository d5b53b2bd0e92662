// failing_disk.c -- lets calls on files below a folder fail or hang, for tests: gcc -shared -fPIC.
// FAILING_FOLDER names the folder; FAILING_ERRNO a file that holds the number of the error while
// calls are to fail, "hang" while they are to wait, and is not there while they are to work. Anything
// that opens for writing, writes, makes, renames or synchronises fails; reading and deleting does not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { HANG = -1 };

static int wanted_error(void) {
    char text[16] = {0};
    const char *name = getenv("FAILING_ERRNO");
    if (!name)
        return 0;
    int fd = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY);
    if (fd < 0)
        return 0;
    long n = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    if (n >= 4 && !strncmp(text, "hang", 4))
        return HANG;
    return n > 0 ? atoi(text) : 0;
}

static int is_below(const char *path) {
    const char *folder = getenv("FAILING_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int path_fails(const char *path) {
    int error = is_below(path) ? wanted_error() : 0;
    while (error == HANG) {
        const struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
        error = wanted_error();
    }
    if (!error)
        return 0;
    errno = error;
    return 1;
}

// The path of an open file; its length, or -1.
static ssize_t path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n >= 0)
        path[n] = 0;
    return n;
}

static int file_fails(int fd) {
    char path[PATH_MAX];
    return path_of(fd, path) >= 0 && path_fails(path);
}

// The same of a name in an open folder.
static int name_fails(int folder, const char *name) {
    char path[2 * PATH_MAX];
    if (folder == AT_FDCWD || *name == '/')
        return path_fails(name);
    ssize_t n = path_of(folder, path);
    if (n < 0)
        return 0;
    snprintf(path + n, PATH_MAX, "/%s", name);
    return path_fails(path);
}

// Looked up once for each place: dlsym with each call would take the loader's lock in every thread.
#define REAL(type, name, ...)                                                                      \
    ({                                                                                             \
        static type (*real)(__VA_ARGS__);                                                          \
        if (!real)                                                                                 \
            real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);                                  \
        real;                                                                                      \
    })

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        int mode = va_arg(rest, int);                                                              \
        va_end(rest);                                                                              \
        if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && path_fails(path))                           \
            return -1;                                                                             \
        return REAL(int, #name, const char *, int, ...)(path, flags, mode);                        \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
    int name(int folder, const char *path, int flags, ...) {                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        int mode = va_arg(rest, int);                                                              \
        va_end(rest);                                                                              \
        if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && name_fails(folder, path))                   \
            return -1;                                                                             \
        return REAL(int, #name, int, const char *, int, ...)(folder, path, flags, mode);           \
    }
OPENAT(openat)
OPENAT(openat64)

#define PWRITE(name)                                                                               \
    ssize_t name(int fd, const void *data, size_t n, off_t offset) {                               \
        if (file_fails(fd))                                                                        \
            return -1;                                                                             \
        return REAL(ssize_t, #name, int, const void *, size_t, off_t)(fd, data, n, offset);        \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t write(int fd, const void *data, size_t n) {
    if (fd > 2 && file_fails(fd))
        return -1;
    return REAL(ssize_t, "write", int, const void *, size_t)(fd, data, n);
}

int fsync(int fd) {
    return file_fails(fd) ? -1 : REAL(int, "fsync", int)(fd);
}

int fdatasync(int fd) {
    return file_fails(fd) ? -1 : REAL(int, "fdatasync", int)(fd);
}

int mkdir(const char *path, mode_t mode) {
    return path_fails(path) ? -1 : REAL(int, "mkdir", const char *, mode_t)(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    if (name_fails(folder, path))
        return -1;
    return REAL(int, "mkdirat", int, const char *, mode_t)(folder, path, mode);
}

int rename(const char *from, const char *to) {
    return path_fails(from) ? -1 : REAL(int, "rename", const char *, const char *)(from, to);
}

#define RENAME(name, ...)                                                                          \
    if (name_fails(from_folder, from))                                                             \
        return -1;                                                                                 \
    return REAL(int, name, int, const char *, int, const char *, ...)(__VA_ARGS__)

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    RENAME("renameat", from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    RENAME("renameat2", from_folder, from, to_folder, to, flags);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    RENAME("linkat", from_folder, from, to_folder, to, flags);
}
