"""Quality flags of a unit: what was wrong with the samples of each minute, as CSV."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spectrod.dsp.blocks import Block, duration_ns
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.whole_files import write_whole
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.checks import ContentChecks

_HEAD = "time_utc,effort_s,gaps,clipped_samples,flags"
_MINUTE_NS = 60 * NS_PER_S
_CHECKED_S = 0.25
"""Length of the parts that are checked at a time [s]: conditions count whole ones."""


FLAGS_BYTES_MAX = 1 << 20
"""Largest file of flags that is read [bytes]."""
_FLAGS_MAX, _FLAG_CHARS_MAX = 256, 200
"""Most different flags of a file, and the longest [characters]."""
_CLIPPED_MAX = 1 << 53


def parse_flags(content: bytes) -> tuple[Counter[str], int]:
    """Return how many minutes have each flag of a file, and its clipped samples.

    Raises
    ------
    ValueError
        If it is no file of ``FlagsWriter``.
    """
    if len(content) > FLAGS_BYTES_MAX:
        raise ValueError(f"must have at most {FLAGS_BYTES_MAX} bytes")
    lines = content.decode().splitlines()
    if lines[:1] != [_HEAD]:
        raise ValueError(f"must begin with {_HEAD}")
    minutes: Counter[str] = Counter()
    n_clipped = 0
    for line in lines[1:]:
        row = line.split(",", 4)
        if len(row) != _HEAD.count(",") + 1 or not (row[3].isdecimal() and len(row[3]) < 20):
            raise ValueError(f"line {printable(line)}: must have {_HEAD}")
        n_clipped += int(row[3])
        minutes.update(flag for flag in row[4].split(";") if flag)
    if len(minutes) > _FLAGS_MAX or any(len(flag) > _FLAG_CHARS_MAX for flag in minutes):
        raise ValueError(f"must have at most {_FLAGS_MAX} flags of {_FLAG_CHARS_MAX} characters")
    if n_clipped > _CLIPPED_MAX:
        raise ValueError(f"clipped_samples: {n_clipped}: must be at most {_CLIPPED_MAX}")
    return minutes, n_clipped


class FlagsWriter:
    """Writes a row for each minute of UTC with samples: their duration, and conditions in it.

    Conditions are those of ``ContentChecks``, as ``silent: 0``; a condition that begins or ends in
    a minute is a flag of that minute. Samples are checked in parts of 0.25 s, which belong to the
    minute that they begin in. After a gap all checks start again.

    Parameters
    ----------
    path : Path
        The file; an existing one is replaced.
    fs : float
        Sample rate [Hz].
    signals : sequence of str
        Names of the channels.
    """

    def __init__(self, path: Path, fs: float, signals: Sequence[str]) -> None:
        self._path, self._fs, self._signals = path, fs, signals
        # Blocks end anywhere: conditions must not depend on where.
        self._part = np.empty((len(signals), max(1, round(fs * _CHECKED_S))), np.float32)
        self._n_part, self._part_utc_ns = 0, 0
        self._checks = ContentChecks(len(signals), fs)
        self._lines: list[str] = []
        self._minute = -1
        self._begin(0)

    def _begin(self, minute: int) -> None:
        self._minute, self._n, self._gaps = minute, 0, 0
        self._flags: dict[str, None] = {}
        self._clipped_before = self._checks.clipped_samples

    def write(self, block: Block) -> None:
        """Check a block of float32 samples."""
        if block.lost_samples:
            self._check_rest()
            self._end_minute_if_over(block.t_utc_ns)
            self._gaps += 1
            clipped = self._checks.clipped_samples - self._clipped_before
            self._checks = ContentChecks(len(self._signals), self._fs)
            self._clipped_before = -clipped
        first = 0
        while first < block.n_samples:
            if not self._n_part:
                self._part_utc_ns = block.t_utc_ns + duration_ns(first, self._fs)
            n = min(self._part.shape[1] - self._n_part, block.n_samples - first)
            self._part[:, self._n_part : self._n_part + n] = block.samples[:, first : first + n]
            self._n_part += n
            first += n
            if self._n_part == self._part.shape[1]:
                self._check_rest()

    def _check_rest(self) -> None:
        """Check the samples of the present part."""
        if not self._n_part:
            return
        self._end_minute_if_over(self._part_utc_ns)
        self._checks.look(self._part[:, : self._n_part])
        self._n += self._n_part
        self._n_part = 0
        for text in self._checks.active:
            self._flags[text.partition(" (")[0]] = None

    def _end_minute_if_over(self, t_utc_ns: int) -> None:
        minute = t_utc_ns // _MINUTE_NS
        if minute != self._minute:
            self._end_minute()
            self._begin(minute)

    def _end_minute(self) -> None:
        if not self._n:
            return
        begin = f"{np.datetime64(self._minute * 60, 's')}Z"
        clipped = self._checks.clipped_samples - self._clipped_before
        effort_s = self._n / self._fs
        flags = ";".join(sorted(self._flags))
        self._lines.append(f"{begin},{effort_s:.6g},{self._gaps},{clipped},{flags}")

    def finish(self) -> None:
        """Write the file.

        Raises
        ------
        InputError
            If there were no samples.
        StorageError
            If it cannot be written.
        """
        self._check_rest()
        self._end_minute()
        if not self._lines:
            raise InputError(f"{self._path}: nothing to write: no samples")
        write_whole(self._path, ("\n".join([_HEAD, *self._lines]) + "\n").encode())

    def abort(self) -> None:
        """Do nothing: the file is written at the end."""
