"""The folder in which PoCL keeps what it compiles.

PoCL ends its process (``abort``) where it cannot write there or cannot load what it has linked, and
runs whatever machine code lies there under a kernel's name. So the folder is chosen here, and it is
checked before PoCL compiles or loads a program.
"""

import atexit
import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final

from spectrod.opencl.trust import planted_by

POCL: Final = "Portable Computing Language"
"""Name of PoCL's platform."""

MIN_FREE_DESCRIPTORS: Final = 16
"""Descriptors that PoCL may need: it opens folders within folders, files, and its linker."""

_PROBE_BYTES = 1 << 20

MIN_FREE_BYTES: Final = 32 << 20
"""Free space that PoCL needs [bytes]: its files of one analysis have up to 4 MB."""


_VARIABLE: Final = "POCL_CACHE_DIR"


def choose_driver_cache() -> None:
    """Set POCL_CACHE_DIR to the folder that this module checks; call it before PoCL is loaded.

    By itself PoCL takes a folder below /tmp where HOME is not set, whoever made it.
    """
    os.environ[_VARIABLE] = str(driver_cache_folder().resolve())


def driver_cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of PoCL's cache.

    It is that of POCL_CACHE_DIR, or below XDG_CACHE_HOME, or below the user's home, by HOME or else
    the user database. A user without a home has one for this process and those that it starts,
    which ends with it.

    References
    ----------
    .. [1] PoCL's documentation, "Environment variables": POCL_CACHE_DIR.
    """
    if folder := environ.get(_VARIABLE):
        return Path(folder)
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base, "pocl", "kcache")
    home = environ.get("HOME") or _home()
    return Path(home, ".cache", "pocl", "kcache") if home else _passing_folder()


def _home() -> str:
    """Return this user's home by the user database; empty without one to write to."""
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""
    return home if Path(home).is_absolute() and os.access(home, os.W_OK | os.X_OK) else ""


@cache
def _passing_folder() -> Path:
    """Make a folder of mode 0700, which ends with this process."""
    folder, pid = tempfile.mkdtemp(prefix="spectrod-pocl-"), os.getpid()

    def remove() -> None:
        if os.getpid() == pid:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)


def driver_cache_trouble(folder: Path) -> str:
    """Return in one line why PoCL cannot or must not use a folder; an empty text if it can.

    Parameters
    ----------
    folder : Path
        Folder of the cache, which is made if it is missing.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := planted_by(folder):
            return f"{folder}: PoCL's cache may hold programs of others: {reason}"
        with tempfile.TemporaryFile(dir=folder) as file, ExitStack() as spare:
            for _ in range(MIN_FREE_DESCRIPTORS):
                spare.callback(os.close, os.dup(file.fileno()))
            found = os.statvfs(folder)
            # Free space that this process may not use: a quota, or a limit of the length of files.
            os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)
    except OSError as error:
        return f"{folder}: PoCL's cache cannot be written: {error.strerror or error}"
    if found.f_flag & os.ST_NOEXEC:
        return f"{folder}: PoCL's cache is mounted noexec, and its kernels cannot be loaded"
    free_bytes = found.f_bavail * found.f_frsize
    if free_bytes < MIN_FREE_BYTES:
        return (
            f"{folder}: PoCL's cache has {free_bytes / 1e6:.1f} MB of free space, but needs "
            f"{MIN_FREE_BYTES / 1e6:.1f} MB"
        )
    return ""
