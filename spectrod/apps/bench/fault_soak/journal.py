"""The log of a daemon, line by line."""

import json
import re
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_WARNINGS = ("warning", "error", "critical")
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log in JSON; one that is no JSON counts as an error.

    Attributes
    ----------
    level : str
        ``info``, ``warning`` and so on.
    text : str
        Kind of the event, if it has one, and text.
    """

    level: str
    text: str

    @property
    def is_warning(self) -> bool:
        """Whether it reports something that an operator should know."""
        return self.level in _WARNINGS

    @property
    def form(self) -> str:
        """The text without its numbers: equal for reports of the same thing."""
        return _NUMBER.sub("#", self.text)


@dataclass(frozen=True, slots=True)
class Expected:
    """Lines that a fault must cause.

    Attributes
    ----------
    pattern : str
        Regular expression that is searched in the text.
    least, most : int
        How many lines there must be.
    """

    pattern: str
    least: int = 1
    most: int = 1


class LogReader(threading.Thread):
    """Reads the log of a daemon from a pipe, which no limit of files and no full disk can cut.

    Parameters
    ----------
    pipe : file
        JSON lines; closed at its end.
    copy : Path
        File of the same lines.

    Attributes
    ----------
    lines : list of LogLine
        All lines so far.
    """

    def __init__(self, pipe: IO[bytes], copy: Path) -> None:
        super().__init__(name="journal", daemon=True)
        self._pipe, self._copy = pipe, copy
        self.lines: list[LogLine] = []

    def run(self) -> None:
        """See the class."""
        with self._pipe, self._copy.open("wb", buffering=0) as copy:
            for data in self._pipe:
                copy.write(data)
                self.lines.append(_parsed(data))


def _parsed(data: bytes) -> LogLine:
    text = data.decode(errors="replace")
    try:
        fields = json.loads(text)
        kind = fields.get("about", {}).get("event", "")
        return LogLine(fields["level"], f"{kind} {fields['event']}{fields.get('traceback', '')}")
    except (ValueError, KeyError, TypeError):
        return LogLine("error", text)


def problems_of(lines: list[LogLine], expected: tuple[Expected, ...]) -> list[str]:
    """Compare the lines of one fault with those that it must cause.

    Parameters
    ----------
    lines : list of LogLine
        From the injection of the fault to the recovery.
    expected : tuple of Expected
        Lines that must be there. Warnings that fit none must not be there.

    Returns
    -------
    problems : list of str
        One for each line that is missing, too frequent or unexpected.
    """
    problems = []
    for one in expected:
        found = [line.text for line in lines if re.search(one.pattern, line.text)]
        if not one.least <= len(found) <= one.most:
            limits = f"{one.least} to {one.most}"
            first = f", the first: {found[0]}" if found else ""
            problems.append(f"{len(found)} lines of {one.pattern!r}, not {limits}{first}")
    patterns = [re.compile(one.pattern) for one in expected]
    odd = [
        line
        for line in lines
        if line.is_warning and not any(pattern.search(line.text) for pattern in patterns)
    ]
    counts = Counter(line.form for line in odd)
    examples = {line.form: line.text for line in reversed(odd)}
    return problems + [f"{n} unexpected: {examples[form]}" for form, n in counts.items()]
