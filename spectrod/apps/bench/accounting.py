"""Accounts of what a daemon sent and recorded: each row and each sample is there, or counted."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from spectrod.recording.inputs import open_recording
from spectrod.wire.schema import BandFrame, Frame

_NS = 1_000_000_000
_EXAMPLES_MAX = 20


@dataclass
class Listened:
    """Rows that a subscriber received in one phase.

    Attributes
    ----------
    rows : int
        Messages with values, those that were replayed included.
    replayed : int
        Those that came by ``replay`` after a connection was cut.
    missed : int
        Counted by ``seq``, after replay.
    gap_samples : int
        Missing at the source, as headers say.
    dropped : int
        Those of ``missed`` that never left the daemon's queue, as headers say.
    uncounted : int
        Rows whose ``seq`` or ``sample_index`` neither follows on the one before nor is explained by
        what was counted as missing.
    longest_pause_s : float
        Between two rows.
    errors : list of str
        What the client raised.
    examples : list of str
        The first uncounted rows.
    latency_s : list of float
        From a row's last sample to its arrival, by the machine's monotonic clock.
    """

    rows: int = 0
    replayed: int = 0
    missed: int = 0
    gap_samples: int = 0
    dropped: int = 0
    uncounted: int = 0
    longest_pause_s: float = 0.0
    errors: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Summarise, with percentiles of the latency."""
        latency_s = np.array(self.latency_s or [np.nan])
        p50, p99 = np.percentile(latency_s, [50, 99])
        return {
            **{name: value for name, value in vars(self).items() if name != "latency_s"},
            "longest_pause_s": round(self.longest_pause_s, 3),
            "latency_p50_ms": round(float(p50) * 1e3, 2),
            "latency_p99_ms": round(float(p99) * 1e3, 2),
            "latency_max_ms": round(float(latency_s.max()) * 1e3, 2),
        }


class Audit:
    """Checks each row against the one before it in its topic."""

    def __init__(self) -> None:
        self.phase = Listened()
        self._before: dict[str, Frame | BandFrame] = {}
        self._arrived_s = time.monotonic()

    def take(self, frame: Frame | BandFrame) -> None:
        """Count a row."""
        now_s, header, phase = time.monotonic(), frame.header, self.phase
        # Between the last row before a phase and its first one is a pause of either.
        phase.longest_pause_s = max(phase.longest_pause_s, now_s - self._arrived_s)
        self._arrived_s = now_s
        end_s = header.t_mono_ns / _NS + header.win_length / header.fs
        phase.latency_s.append(now_s - end_s)
        phase.rows += 1
        phase.replayed += frame.replayed
        phase.missed += frame.missed
        phase.gap_samples += header.gap_samples
        before = self._before.get(frame.topic)
        if before is not None:
            if not _follows(before, frame):
                phase.uncounted += 1
                if len(phase.examples) < _EXAMPLES_MAX:
                    phase.examples.append(_described(before, frame))
            phase.dropped += header.dropped - before.header.dropped
        self._before[frame.topic] = frame


def _described(before: Frame | BandFrame, frame: Frame | BandFrame) -> str:
    old, new = before.header, frame.header
    return (
        f"{frame.topic}: row {new.seq} of sample {new.sample_index}, {new.gap_samples} missing "
        f"before it, after row {old.seq} of sample {old.sample_index}"
    )


def _follows(before: Frame | BandFrame, frame: Frame | BandFrame) -> bool:
    old, new = before.header, frame.header
    if new.epoch != old.epoch or new.seq != old.seq + 1 + frame.missed:
        return False
    step = new.sample_index - old.sample_index
    # After a gap frames restart: where windows do not touch, sooner than a hop.
    first = min(new.hop, new.win_length) if new.gap_samples else new.hop
    least = first + new.hop * frame.missed + new.gap_samples
    if frame.missed:  # its header would have said what was missing before it
        return step >= least
    # Of the samples before a gap, those that fill no frame are in none.
    return least <= step <= least + (max(new.hop, new.win_length) if new.gap_samples else 0)


def check_recording(folder: Path, dropped: Sequence[Path]) -> dict[str, Any]:
    """Hold all rows and samples of a recording of one source against the sample index.

    Parameters
    ----------
    folder : Path
        Of the recording and the source. What was dropped there is deleted.
    dropped : sequence of Path

    Returns
    -------
    facts : dict
        ``first_index`` and ``end_index`` of what the rows cover; ``gap_samples``, missing by what
        the files say; ``left_out_samples``, which come before a gap and fill no row;
        ``uncounted_samples``: neither in a row nor missing.
    """
    for path in dropped:
        if path.parent == folder:
            path.unlink(missing_ok=True)
    reader = open_recording(folder)
    spec = reader.description.spec
    rows = gap_samples = left_out = uncounted = 0
    first = end = None
    for batch in reader.batches():
        index = batch.sample_index
        first = int(index[0]) if first is None else first
        missing = batch.gap_samples + batch.skipped_rows * spec.hop
        step = 0 if end is None else int(index[0]) - end - missing
        if missing and 0 < step <= spec.win_length:
            left_out += step
        else:
            uncounted += abs(step)
        uncounted += int(np.abs(np.diff(index) - spec.hop).sum())
        gap_samples += missing
        end = int(index[-1]) + spec.hop
        rows += len(index)
    sound = sorted(folder.glob("*.wav"))
    return {
        "files": len(list(folder.glob("*.spd"))),
        "unfinished": len(list(folder.glob("*.part"))),
        "rows": rows,
        "gap_samples": gap_samples,
        "left_out_samples": left_out,
        "first_index": first,
        "end_index": end,
        "uncounted_samples": uncounted,
        "sound_files": len(sound),
        "sound_samples": sum(soundfile.info(path).frames for path in sound),
    }
