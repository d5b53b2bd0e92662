"""Files of a source that cannot be used, or only in part: counted, and the first ones named."""

import logging
from collections.abc import Callable
from pathlib import Path

from spectrod.errors import InputError
from spectrod.text import printable

_log = logging.getLogger(__name__)

NAMED_MAX = 20
"""Files that are named; further ones are only counted, and logged as information."""


class LeftOut:
    """Collects what is wrong with the files of a source, or raises the first problem.

    The thread that reads the files calls ``add``; any thread may read the attributes.

    Parameters
    ----------
    strict : bool
        Whether the first problem is an error.

    Attributes
    ----------
    n_files : int
        Files that are left out or read in part.
    lines : tuple of str
        One for each of the first ``NAMED_MAX`` of them, printable: the file, what is wrong with it
        and what is left out.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.n_files = 0
        self.lines: tuple[str, ...] = ()
        self._report: Callable[[str], None] = _ignore
        self._is_strict = strict
        self._files: set[Path] = set()

    def add(self, path: Path, problem: str, consequence: str = "left out") -> None:
        """Note that a file is left out or read in part; only its first problem counts.

        Parameters
        ----------
        path : Path
            The file, or a folder that could not be searched.
        problem : str
            Its path and what is wrong with it.
        consequence : str
            What becomes of it.

        Raises
        ------
        InputError
            With the problem, if this is strict.
        """
        if self._is_strict:
            raise InputError(f"{problem} (without --strict, what can be read is read)")
        if path in self._files:
            return
        self._files.add(path)
        self.n_files += 1
        line = printable(f"{problem.rstrip('.')}: {consequence}")
        if self.n_files <= NAMED_MAX:
            self.lines = (*self.lines, line)
            self._report(line)
            return
        _log.info("%s", line)
        if self.n_files == NAMED_MAX + 1:
            self._report(f"{NAMED_MAX} files are left out or read in part: more are only counted")

    def report_to(self, report: Callable[[str], None]) -> None:
        """Report each line, those there are first; before the source starts.

        Parameters
        ----------
        report : callable
            Called with each of ``lines``, and once with another line if there are more files; from
            the start on by the thread that calls ``add``. It must not block.
        """
        for line in self.lines:
            report(line)
        self._report = report

    @property
    def n_unnamed(self) -> int:
        """Number of files without a line."""
        return self.n_files - len(self.lines)


def _ignore(_line: str) -> None:
    """Ignore the line, by default."""
