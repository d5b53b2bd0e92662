"""Where a written file goes if its path has links: strangers' links are not followed."""

import errno
import os
import stat
from collections import deque
from pathlib import Path

from spectrod.lib.errors import StorageError, storage_error

LINKS_MAX = 40
"""Maximum number of links that are followed for one path, as Linux has it."""


def written_path(path: Path) -> Path:
    """Return the path that is written to: absolute, and without links.

    A link is followed if it belongs to the user or to the owner of its folder, wherever it stands
    in the path. In a shared folder, a stranger could lead what is written to any file of the user
    by a link, also where the kernel would refuse to open it (``fs.protected_symlinks``, see
    proc_sys_fs(5)).

    Raises
    ------
    StorageError
        If a link belongs to anybody else, there are too many, or a link cannot be read.
    """
    here = Path("/") if path.is_absolute() else Path.cwd()
    waiting, n_links = deque(path.parts), 0
    while waiting:
        part = waiting.popleft()
        if part == "..":
            here = here.parent
            continue
        here /= part
        try:
            found = here.lstat()
            target = here.readlink() if stat.S_ISLNK(found.st_mode) else None
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(path, error) from error
        if target is None:
            continue
        if found.st_uid not in (os.geteuid(), here.parent.stat().st_uid):
            raise StorageError(
                f"{path}: {here} is a link of another user (uid {found.st_uid}): it is not followed"
            )
        n_links += 1
        if n_links > LINKS_MAX:
            raise StorageError(f"{path}: {os.strerror(errno.ELOOP)}")
        here = here.parent
        waiting.extendleft(reversed(target.parts))
    return here
