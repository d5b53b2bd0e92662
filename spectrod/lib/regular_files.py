"""Regular files, opened without waiting: what lies at a path may be a FIFO or a device."""

import errno
import io
import os
import stat
from pathlib import Path

__all__ = ["open_regular", "read_regular"]


def open_regular(
    path: str | Path, *, follow: bool = True, buffer_bytes: int = io.DEFAULT_BUFFER_SIZE
) -> io.BufferedReader:
    """Open a regular file for reading.

    Parameters
    ----------
    path : str or Path
        The file.
    follow : bool
        Whether a link at the path itself is followed.
    buffer_bytes : int
        Size of the reader's buffer [bytes].

    Raises
    ------
    OSError
        If it cannot be opened, or is a folder, a FIFO or a device, for which nothing waits; its
        ``strerror`` has the rule.
    ValueError
        If the path has a zero byte.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder; must be a file", str(path))
        raise OSError(errno.EINVAL, "must be a regular file", str(path))
    return io.BufferedReader(io.FileIO(descriptor), buffer_bytes)


def read_regular(path: str | Path, bytes_max: int, *, follow: bool = True) -> bytes:
    """Read a regular file as a whole.

    Parameters
    ----------
    path : str or Path
        The file.
    bytes_max : int
        Its largest size [bytes].
    follow : bool
        Whether a link at the path itself is followed.

    Raises
    ------
    OSError
        As ``open_regular``, or if the file cannot be read or is larger.
    ValueError
        If the path has a zero byte.
    """
    with open_regular(path, follow=follow) as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"must have at most {bytes_max} bytes", str(path))
    return content
