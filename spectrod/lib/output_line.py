"""Lines of output that wait for no reader."""

import errno
import os
import select
import stat
from typing import TextIO

from spectrod.lib.errors import StorageError


def write_line(text: str, out: TextIO) -> None:
    """Write a line; skip it if the reader has stopped reading.

    Raises
    ------
    BrokenPipeError
        If the reader has gone: a pipe's other end, or the terminal.
    StorageError
        If the target of ``out`` cannot be written, for example on a full disk.
    """
    fd = out.fileno()
    if not select.select([], [fd], [], 0.0)[1]:
        return
    try:
        # Not through out's buffer, which would fail again at the program's end.
        os.write(fd, f"{text}\n".encode(out.encoding, "replace"))
    except BrokenPipeError:
        raise
    except OSError as error:
        # A terminal that has gone returns EIO, and isatty() is false for it.
        if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(fd).st_mode):
            raise BrokenPipeError(error.errno, error.strerror) from error
        raise StorageError(f"{out.name}: {error.strerror}") from error
