"""The folder in which PoCL keeps what it compiles.

PoCL ends its process (``abort``) where it cannot write there or cannot load what it has linked, so
the folder is checked before PoCL compiles or loads a program.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

POCL: Final = "Portable Computing Language"
"""Name of PoCL's platform."""

MIN_FREE_DESCRIPTORS: Final = 16
"""Descriptors that PoCL may need: it opens folders within folders, files, and its linker."""

_PROBE_BYTES = 1 << 20

MIN_FREE_BYTES: Final = 32 << 20
"""Free space that PoCL needs [bytes]: its files of one analysis have up to 4 MB."""


def driver_cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of PoCL's cache.

    References
    ----------
    .. [1] PoCL's documentation, "Environment variables": POCL_CACHE_DIR.
    """
    if folder := environ.get("POCL_CACHE_DIR"):
        return Path(folder)
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base, "pocl", "kcache")
    if home := environ.get("HOME"):
        return Path(home, ".cache", "pocl", "kcache")
    return Path("/tmp/pocl/kcache")  # noqa: S108 - PoCL's own choice


def driver_cache_trouble(folder: Path) -> str:
    """Return in one line why PoCL cannot use a folder; an empty text if it can.

    Parameters
    ----------
    folder : Path
        Folder of the cache, which is made if it is missing.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
