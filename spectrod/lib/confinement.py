"""How the service manager's confinement hides or protects a path, for messages."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

_MOUNTS = Path("/proc/self/mountinfo")
_BYTES_MAX = 1 << 20


class _Mount(NamedTuple):
    """A mount: the part of its file system, where it is, and its own and the disk's options."""

    root: str
    place: str
    options: list[str]
    disk_options: list[str]


def hidden_hint(path: str | PathLike[str], mounts: Path = _MOUNTS) -> str:
    """Return why this process sees another folder than others; an empty text if it does not.

    Parameters
    ----------
    path : path-like
        Absolute path, which need not exist.
    mounts : Path
        Table of mounts, as proc_pid_mountinfo(5) describes it; at most 1 MiB is read.
    """
    mount = _mount_of(path, mounts)
    if mount is None:
        return ""
    if "/systemd-private-" in mount.root:
        return f"the service has a {mount.place} of its own (PrivateTmp=)"
    if "/systemd/inaccessible/" in mount.root:
        return f"{mount.place} is hidden from the service (ProtectHome=)"
    return ""


def read_only_hint(path: str | PathLike[str], mounts: Path = _MOUNTS) -> str:
    """Return that only this process may not write to a disk; an empty text if nobody may.

    Parameters are those of ``hidden_hint``.
    """
    mount = _mount_of(path, mounts)
    if mount is None or "ro" not in mount.options or "ro" in mount.disk_options:
        return ""
    return "the service may not write there (ReadWritePaths=, see 40-recordings.conf)"


def _mount_of(path: str | PathLike[str], mounts: Path) -> _Mount | None:
    """Return the mount that contains a path: of several at one place, the last."""
    target = Path(path)
    try:
        with mounts.open("rb") as file:
            text = file.read(_BYTES_MAX).decode(errors="surrogateescape")
    except OSError:
        return None
    covering = [one for one in _parsed(text) if target.is_relative_to(one.place)]
    return max(reversed(covering), key=lambda one: len(one.place), default=None)


def _parsed(text: str) -> Iterator[_Mount]:
    for line in text.splitlines():
        fields, _, disk = line.partition(" - ")
        columns, disk_columns = fields.split(), disk.split()
        if len(columns) >= 6 and len(disk_columns) >= 3:
            root, place = _unescaped(columns[3]), _unescaped(columns[4])
            yield _Mount(root, place, columns[5].split(","), disk_columns[2].split(","))


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
