"""Who could have put programs into a folder that programs are loaded from."""

import os
import stat
from pathlib import Path
from typing import Final

_ROOT: Final = 0
_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def planted_by(folder: Path) -> str:
    """Return in one line who else could put programs into a folder; an empty text if nobody could.

    The folder and those above it, and links on the way, must belong to this user or root. Nobody
    else may write to the folder, and other users not to those above, unless they are sticky. A
    group that may write to a folder above is trusted, as umask 002 gives a user's own group that.

    Parameters
    ----------
    folder : Path
        The folder, which may be missing: then those above it are checked.
    """
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() follows links
    resolved = folder.resolve()
    for one in (absolute, resolved):
        if reason := _reason(one, _BY_OTHERS):
            return reason
    for one in (*absolute.parents, *resolved.parents):
        if reason := _reason(one, stat.S_IWOTH):
            return reason
    return ""


def _reason(path: Path, forbidden: int) -> str:
    try:
        found = path.lstat()
    except OSError:  # it is missing, or below one that others may not search
        return ""
    if found.st_uid not in (_ROOT, os.geteuid()):
        return f"{path} belongs to uid {found.st_uid}: must be this user's or root's"
    mode = stat.S_IMODE(found.st_mode)
    is_guarded = stat.S_ISLNK(found.st_mode) or (forbidden == stat.S_IWOTH and mode & stat.S_ISVTX)
    if mode & forbidden and not is_guarded:
        return (
            f"{path} has mode {mode:04o}: others may write to it; chmod go-w, after a look inside"
        )
    return ""
