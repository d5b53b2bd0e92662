"""Patterns of paths, as of ``glob``, within the bounds of a listing."""

import fnmatch
import logging
import os
import re
from collections.abc import Callable, Iterator

from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.source_listing import DEPTH_MAX, FOLDERS_MAX

_log = logging.getLogger(__name__)

_MAGIC = re.compile(r"[*?\[]")
_ANY_DEPTH = "**"


def has_pattern(path: str) -> bool:
    """Return whether a path has ``*``, ``?`` or ``[``, and so may stand for several."""
    return _MAGIC.search(path) is not None


def matching_paths(pattern: str, on_unread: Callable[[str, str], None]) -> Iterator[str]:
    """Find the files and folders that a pattern stands for, each once.

    ``**`` stands for any folders, at most ``DEPTH_MAX`` deep, and at the end for all files in them;
    links to folders are not followed there. Names that begin with a dot match only where the
    pattern has the dot.

    Parameters
    ----------
    pattern : str
        As of ``glob.glob`` with ``recursive``.
    on_unread : callable
        Called with the path of a folder that cannot be searched, and a line that gives the reason.

    Yields
    ------
    path : str

    Raises
    ------
    InputError
        If more than ``FOLDERS_MAX`` folders would be searched.
    """
    return _PatternSearch(pattern, on_unread).paths()


class _PatternSearch:
    """One search; see ``matching_paths``."""

    def __init__(self, pattern: str, on_unread: Callable[[str, str], None]) -> None:
        self._pattern, self._on_unread = pattern, on_unread
        self._parts = [part for part in pattern.split("/") if part]
        self._is_of_folders = pattern.endswith("/")
        # Paths found so far, the number of the part to look for in them, and how many folders deep
        # they lie below a ``**``.
        self._waiting: list[tuple[str, int, int]] = []
        self._seen: set[tuple[str, int]] = set()
        self._add("/" if pattern.startswith("/") else "", 0)

    def paths(self) -> Iterator[str]:
        """Yield the paths that have all parts."""
        while self._waiting:
            path, k, depth = self._waiting.pop()
            if k == len(self._parts):
                if path:
                    yield path
            elif self._parts[k] == _ANY_DEPTH:
                yield from self._any_depth(path, k, depth)
            elif has_pattern(self._parts[k]):
                yield from self._matching(path, k)
            elif os.path.lexists(inner := _joined(path, self._parts[k])):
                self._add(inner, k + 1)

    def _any_depth(self, folder: str, k: int, depth: int) -> Iterator[str]:
        """Add the folder itself and those in it; yield its files if no other part follows."""
        is_of_files = k + 1 == len(self._parts) and not self._is_of_folders
        if not is_of_files:
            self._add(folder, k + 1)
        for path, entry in self._entries(folder, depth):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                self._add(path, k, depth + 1)
            elif entry.is_symlink() and _is_dir(entry):
                _log.warning("%s: a link to a folder: it is not followed", printable(path))
            elif is_of_files:
                yield path

    def _matching(self, folder: str, k: int) -> Iterator[str]:
        part, is_last = self._parts[k], k + 1 == len(self._parts)
        matches = re.compile(fnmatch.translate(part)).match
        for path, entry in self._entries(folder):
            if entry.name.startswith(".") and not part.startswith("."):
                continue
            if not matches(entry.name):
                continue
            if is_last and not self._is_of_folders:
                yield path
            elif _is_dir(entry):
                self._add(path, k + 1)

    def _add(self, path: str, k: int, depth: int = 0) -> None:
        if (path, k) in self._seen:
            return
        self._seen.add((path, k))
        self._waiting.append((path, k, depth))
        if len(self._seen) > FOLDERS_MAX * (len(self._parts) + 1):
            raise InputError(f"{self._pattern}: stands for more than {FOLDERS_MAX} folders")

    def _entries(self, folder: str, depth: int = 0) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield the paths and entries of a folder; nothing if it is none."""
        if depth > DEPTH_MAX:
            self._on_unread(folder, f"{folder}: lies more than {DEPTH_MAX} folders deep")
            return
        try:
            with os.scandir(folder or ".") as entries:
                for entry in entries:
                    yield _joined(folder, entry.name), entry
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._on_unread(folder or ".", f"{folder or '.'}: {error.strerror}")


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a link to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
