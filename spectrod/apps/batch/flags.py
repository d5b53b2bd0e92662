"""Quality flags of a unit: what was wrong with the samples of each minute."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spectrod.apps.batch.flag_table import flags_parquet
from spectrod.apps.batch.minute_checks import CheckedMinute, MinuteChecks
from spectrod.apps.batch.results import FLAG_CHARS_MAX, FLAGS_MAX
from spectrod.apps.batch.unit_settings import UnitSettings
from spectrod.dsp.blocks import Block
from spectrod.formats.whole_files import write_whole
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable

_HEAD = "time_utc,effort_s,gaps,clipped_samples,flags"

FLAGS_BYTES_MAX = 1 << 20
"""Largest file of flags that is read [bytes]."""
_CLIPPED_MAX = 1 << 53


def parse_flags(content: bytes) -> tuple[Counter[str], int]:
    """Return how many minutes have each flag of a file, and its clipped samples.

    Raises
    ------
    ValueError
        If it is no CSV file of ``FlagsWriter``.
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
    if len(minutes) > FLAGS_MAX or any(len(flag) > FLAG_CHARS_MAX for flag in minutes):
        raise ValueError(f"must have at most {FLAGS_MAX} flags of {FLAG_CHARS_MAX} characters")
    if n_clipped > _CLIPPED_MAX:
        raise ValueError(f"clipped_samples: {n_clipped}: must be at most {_CLIPPED_MAX}")
    return minutes, n_clipped


class FlagsWriter:
    """Writes a row for each minute of UTC with samples: their duration, and conditions in it.

    Parameters
    ----------
    path : Path
        The file, ``.csv`` or ``.parquet``; an existing one is replaced.
    checks : MinuteChecks
        The checks, to which the caller gives the samples.
    settings : UnitSettings
        Of the unit.
    """

    def __init__(self, path: Path, checks: MinuteChecks, settings: UnitSettings) -> None:
        self._path, self._checks, self._settings = path, checks, settings

    def write(self, block: Block) -> None:
        """Do nothing: the checks have the block."""

    def finish(self) -> None:
        """Write the file, after the checks have finished.

        Raises
        ------
        InputError
            If there were no samples.
        StorageError
            If it cannot be written.
        """
        if not self._checks.minutes:
            raise InputError(f"{self._path}: nothing to write: no samples")
        if self._path.suffix == ".parquet":
            content = flags_parquet(self._checks, self._settings)
        else:
            content = "\n".join([_HEAD, *map(_line, self._checks.minutes), ""]).encode()
        write_whole(self._path, content)

    def abort(self) -> None:
        """Do nothing: the file is written at the end."""


def count_flags(minutes: Sequence[CheckedMinute]) -> tuple[dict[str, int], int]:
    """Return how many minutes have each flag, and the clipped samples; see ``parse_flags``."""
    counts = Counter(flag for one in minutes for flag in one.conditions)
    return dict(counts.most_common(FLAGS_MAX)), sum(sum(one.n_clipped) for one in minutes)


def _line(one: CheckedMinute) -> str:
    begin = f"{np.datetime64(one.number * 60, 's')}Z"
    flags = ";".join(sorted(one.conditions))
    return f"{begin},{one.effort_s:.6g},{one.n_gaps},{sum(one.n_clipped)},{flags}"
