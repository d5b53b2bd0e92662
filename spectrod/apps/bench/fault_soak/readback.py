"""Recordings after the run: rows and gaps, and the number of each sample."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from spectrod.apps.bench.accounting import check_recording
from spectrod.apps.bench.sequence_signal import read_numbers
from spectrod.dsp.units import Int64Array


@dataclass(frozen=True, slots=True)
class SoundCount:
    """Numbered samples of all sound files of a recording.

    Attributes
    ----------
    samples : int
        Different numbers that are there.
    twice : int
        Samples whose number is there already.
    missing : int
        Numbers between the first and the last that are not there.
    false : int
        Samples with a number that was never written, or that go back within a file.
    first, last : int
        Lowest and highest number; 0 if there is none.
    """

    samples: int
    twice: int
    missing: int
    false: int
    first: int
    last: int


def count_numbers(paths: Iterable[Path], next_number: int, torn: set[int]) -> SoundCount:
    """Read sound files, and compare the numbers of their samples with those that were written.

    Parameters
    ----------
    paths : iterable of Path
        WAV or FLAC files of the numbered signal; silence stands for missing samples.
    next_number : int
        Number after the last one that was written.
    torn : set of int
        Numbers that reach no recording.
    """
    there = np.zeros(next_number, np.uint32)
    false = 0
    for path in paths:
        numbers = _numbers(path)
        is_known = numbers < next_number
        false += int(np.count_nonzero(~is_known))
        known = numbers[is_known]
        false += int(np.count_nonzero(np.diff(known) <= 0))
        np.add.at(there, known, 1)
    found = np.flatnonzero(there)
    if not found.size:
        return SoundCount(0, 0, 0, false, 0, 0)
    first, last = int(found[0]), int(found[-1])
    n_torn = sum(first < number < last for number in torn)
    twice = int(there.sum()) - found.size
    missing = last - first + 1 - found.size - n_torn
    return SoundCount(int(found.size), twice, missing, false, first, last)


def _numbers(path: Path) -> Int64Array:
    samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    numbers = read_numbers(samples.T)
    return np.asarray(numbers[numbers > 0], np.int64)


def check_rows(folders: Iterable[Path]) -> dict[str, Any]:
    """Sum up ``check_recording`` over folders that hold rows of one source."""
    total: dict[str, Any] = {"rows": 0, "gap_samples": 0, "uncounted_samples": 0, "unfinished": 0}
    for folder in folders:
        if any(folder.glob("*.spd")):
            found = check_recording(folder, ())
            for name in total:
                total[name] += found[name]
        else:
            total["unfinished"] += len(list(folder.glob("*.part")))
    return total
