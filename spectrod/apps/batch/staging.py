"""Folders of a whole job: filled out of sight, then swapped for the one before."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spectrod.apps.batch.folders import make_folder, open_lock
from spectrod.apps.batch.results import STATE_FOLDER
from spectrod.formats.whole_files import sync
from spectrod.lib.errors import BusyError, storage_error, storage_errors

_STAGING = (STATE_FOLDER, "merge")
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK, errno.EXDEV)
"""Of file systems without hard links, as FAT and some of networks."""


@contextmanager
def merging(results: Path) -> Iterator[None]:
    """Claim the folders of a whole job for this process, and clear what a killed one left.

    The lock ends with the process.

    Raises
    ------
    BusyError
        If another process merges.
    StorageError
        If the folder of the results cannot be written, or has a link in it.
    """
    lock = open_lock(make_folder(results, *_STAGING), "lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(f"{results}: another process merges") from error
        with storage_errors(results):
            _restore(results)
        yield
    finally:
        os.close(lock)


@contextmanager
def staged(final: Path) -> Iterator[Path]:
    """Fill a folder in the state of the results, then give it its final name; within ``merging``.

    The folder that had the name stays until the new one is complete and on the disk, and if the
    block raises.

    Yields
    ------
    part : Path
        The folder, which does not exist yet.

    Raises
    ------
    StorageError
        For any OSError, with the final name and the system's reason.
    """
    staging = _staging(final.parent)
    part, old = staging / f"{final.name}.part", staging / f"{final.name}.old"
    try:
        yield part
        _sync_all(part)
        try:
            if final.exists():
                final.rename(old)
            part.rename(final)
        except BaseException:
            if old.exists() and not final.exists():
                old.rename(final)
            raise
        sync(final.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise storage_error(final, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def link(source: Path, target: Path) -> None:
    """Give a complete file, which is never written again, a second name; copy it without links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)


def _staging(results: Path) -> Path:
    return results.joinpath(*_STAGING)


def _restore(results: Path) -> None:
    """Remove unfinished folders; give old ones their names back if no new one has them."""
    for left in list(_staging(results).iterdir()):
        final = results / left.stem
        if left.suffix == ".old" and not final.exists():
            left.rename(final)
        elif left.name != "lock":
            shutil.rmtree(left)


def _sync_all(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))
