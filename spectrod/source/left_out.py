"""Files of a source that are unusable or only partly usable: counted, the first ones named."""

import logging
from collections.abc import Callable
from pathlib import Path

from spectrod.lib.errors import InputError
from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

NAMED_MAX = 20
"""Largest number of files that are named; others are only counted and logged at info level."""


class LeftOut:
    """Collects the problems of a source's files, or raises the first one.

    The thread that reads the files calls ``add``; any thread may read the attributes.

    Parameters
    ----------
    strict : bool
        Raise the first problem as an error.

    Attributes
    ----------
    n_files : int
        Files that are skipped or read in part.
    lines : tuple of str
        One printable line for each of the first ``NAMED_MAX`` files: the file, its problem and the
        skipped part.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.n_files = 0
        self.lines: tuple[str, ...] = ()
        self._report: Callable[[str], None] = _ignore
        self._is_strict = strict
        self._files: dict[Path, None] = {}  # in order

    def add(self, path: Path, problem: str, consequence: str = "left out") -> None:
        """Record that a file is skipped or read in part; only its first problem counts.

        Parameters
        ----------
        path : Path
            The file, or a folder that could not be searched.
        problem : str
            The path and its problem.
        consequence : str
            Effect on the file.

        Raises
        ------
        InputError
            If this is strict, with the problem.
        """
        if self._is_strict:
            raise InputError(f"{problem} (without --strict, what can be read is read)")
        self.note(path, printable(f"{problem.rstrip('.')}: {consequence}"))

    def _count(self, line: str) -> None:
        self.n_files += 1
        if self.n_files <= NAMED_MAX:
            self.lines = (*self.lines, line)
            self._report(line)
            return
        _log.info("%s", line)
        if self.n_files == NAMED_MAX + 1:
            self._report(f"{NAMED_MAX} files are left out or read in part: more are only counted")

    def since(self, n_files: int) -> list[tuple[Path, str]]:
        """Return the path and the line of each named file after the first ones."""
        return list(zip(self._files, self.lines, strict=False))[n_files:]

    def note(self, path: Path, line: str) -> None:
        """Record a file by a line that another process has found."""
        if path not in self._files:
            self._files[path] = None
            self._count(line)

    def report_to(self, report: Callable[[str], None]) -> None:
        """Report each line, the existing ones first; call before the source starts.

        Parameters
        ----------
        report : callable
            Called with each of ``lines``, and once with a summary line if there are more files;
            after the start by the thread that calls ``add``. It must not block.
        """
        for line in self.lines:
            report(line)
        self._report = report

    @property
    def n_unnamed(self) -> int:
        """Number of files without a line."""
        return self.n_files - len(self.lines)


def _ignore(_line: str) -> None:
    """Ignore the line (the default)."""
