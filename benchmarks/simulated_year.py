"""A year of recording in minutes: rotation, retention, gaps, pyramid and sizes, then memory.

    python benchmarks/simulated_year.py [--days N] [--folder DIR]

Synthetic third-octave levels, one row a minute from midnight of 2026-01-01 UTC on, go through the
recorder's own classes with a clock that follows them, so that files, deletions and pyramids are
what a daemon makes in that time. Each Sunday from 02:00 to 03:30 the source is away. What is
checked is an error if it is not so; what is printed is what was measured.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.config.settings import RecordingConfig
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.pyramid import PyramidReader
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.events import EventLog
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.recording.recorder_clock import Clock

NS = 1_000_000_000
BEGIN_NS = 1_767_225_600 * NS
"""2026-01-01T00:00:00Z, a Thursday."""
DAY_S, ROW_S, BATCH_ROWS = 86400, 60, 10
FS, HOP = 48_000, 24_000
FRAMES = ROW_S * FS // HOP
AWAY_MINUTES = (3 * 1440 + 120, 3 * 1440 + 210)  # of the week, counted from its Thursday
HEADER_BYTES_MAX, RECORD_BYTES, ROW_BYTES = 16384, 72, 24
INDEX_BYTES_MAX = 2048 * 24 + 200
"""What docs/recorder.md says of a segment's size."""


class FastClock(Clock):
    """Shows the time of the last row."""

    def __init__(self) -> None:
        self.now_ns = BEGIN_NS

    def utc_ns(self) -> int:
        """See ``Clock``."""
        return self.now_ns

    def monotonic_s(self) -> float:
        """See ``Clock``."""
        return (self.now_ns - BEGIN_NS) / NS


def spec() -> SpectrumSpec:
    """Make the rows' spec: 60 s means of third octaves."""
    return SpectrumSpec(
        FS,
        win_length=FS,
        hop=HOP,
        nfft=65536,
        scaling="dbfs",
        bands="third-octave",
        averaging="mean",
        averaging_frames=FRAMES,
    )


def _mark(minutes: NDArray[np.int64]) -> NDArray[np.float32]:
    return (-100.0 + minutes % 97).astype(np.float32)


def is_there(minute: int) -> bool:
    """Return whether the source delivers in a minute of the year."""
    return not AWAY_MINUTES[0] <= minute % (7 * 1440) < AWAY_MINUTES[1]


class Year:
    """A recording on a fast clock, and what was given to it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.spec = folder, spec()
        defaults: dict[str, Any] = {"rotate_s": DAY_S, "min_free_mb": 0.0, "fsync_s": 3600.0}
        config = RecordingConfig("year", **(defaults | settings))
        config.check()
        self.clock, self.events = FastClock(), EventLog()
        about = Recorded("site", ("0",), float(FS), "simulated", dict)
        self.recording = ConfiguredRecording(config, about, folder, self.events, self.clock)
        self.minute = self.given = 0
        self._missing = 0
        self.recording.start()

    def play(self, days: float) -> None:
        """Go on for so long."""
        end = self.minute + round(days * 1440)
        while self.minute < end:
            n = min(BATCH_ROWS, end - self.minute)
            if is_there(self.minute):
                self.recording.write(self._batch(n))
                self.given += n
            else:
                self._missing += n * FRAMES * HOP
            self.minute += n
            self.clock.now_ns = BEGIN_NS + self.minute * ROW_S * NS
            self.recording.tick()

    def _batch(self, n: int) -> SpectrumBatch:
        """Make rows whose first value depends on the minute that they are of."""
        minutes = self.minute + np.arange(n)
        values = np.full((n, 1, self.spec.n_values), -60.0, np.float32)
        values[:, 0, 1:] += 10.0 * np.sin(minutes / 1440.0 * 2.0 * np.pi)[:, None]
        values[:, 0, 0] = _mark(minutes)
        missing, self._missing = self._missing, 0
        t_ns = minutes * ROW_S * NS
        indices = minutes * FRAMES * HOP
        return SpectrumBatch(
            values, indices, t_ns, BEGIN_NS + t_ns, self.spec, "numpy", missing, missing > 0
        )

    def files(self) -> list[Path]:
        """List the finished segments in their order."""
        return sorted(self.folder.glob("*.spd"))


def check_rows(year: Year, first_minute: int) -> dict[str, float]:
    """Check that every row from a minute on is there once, in the file of its day, gaps marked."""
    expected = [m for m in range(first_minute, year.minute) if is_there(m)]
    found: list[int] = []
    missing = 0
    for batch in SegmentReader(year.folder).batches():
        minutes = batch.sample_index // (FRAMES * HOP)
        assert (batch.values[:, 0, 0] == _mark(minutes)).all()
        assert (batch.t_utc_ns == BEGIN_NS + minutes * ROW_S * NS).all()
        found += minutes.tolist()
        missing += batch.gap_samples
    assert found == expected, f"{len(found)} rows, not {len(expected)}"
    away = (expected[-1] - expected[0] + 1 - len(expected)) * FRAMES * HOP
    assert missing in (away, away + first_minute * FRAMES * HOP), f"{missing} samples missing"
    for file in year.files():
        stem = time.strftime("%Y%m%dT", time.gmtime(file.stat().st_mtime - 2 * 3600))
        assert file.name.startswith(stem), f"{file.name} was finished at another day's end"
    return {"rows": len(found), "gap_minutes": away // (FRAMES * HOP)}


def check_sizes(year: Year) -> dict[str, float]:
    """Check the size of whole days against what the documentation says."""
    values_bytes = 4 * year.spec.n_values
    largest = 0
    for file in year.files():
        n_rows = sum(batch.n_frames for batch in SegmentReader(file).batches())
        n_records = -(-n_rows // BATCH_ROWS)
        payload = n_rows * (ROW_BYTES + values_bytes) + n_records * RECORD_BYTES
        size = file.stat().st_size
        assert payload < size <= payload + HEADER_BYTES_MAX + INDEX_BYTES_MAX, f"{file}: {size}"
        largest = max(largest, size)
    return {"largest_day_bytes": largest}


def check_pyramid(year: Year) -> dict[str, float]:
    """Check the pyramid's daily means, which a sine over the day leaves at -60 dB in power."""
    n_days = year.minute // 1440
    columns = PyramidReader(year.folder / "pyramid").columns(
        BEGIN_NS, BEGIN_NS + n_days * DAY_S * NS, n_days
    )
    is_away = np.arange(n_days) % 7 == 3
    level = 10.0 * np.log10(np.mean(10.0 ** ((np.sin(np.arange(1440) / 1440 * 2 * np.pi)) - 6.0)))
    mean = columns.mean[~is_away, 0, 1:]
    error = float(np.abs(mean - level).max())
    assert error < 0.05, f"daily means are off by {error:.3f} dB"
    return {"pyramid_error_db": error}


def check_year(year: Year, days: int, kept_days: int) -> dict[str, float]:
    """Continue for a number of days, check the files, and return the measurements."""
    start_s, peaks_mb = time.perf_counter(), []
    for _ in range(days):
        year.play(1)
        peaks_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    year.recording.finish()
    files = year.files()
    assert len(files) in (min(days, kept_days), min(days, kept_days + 1)), f"{len(files)} files"
    found = {"files": len(files), "wall_s": time.perf_counter() - start_s}
    first = next(SegmentReader(files[0]).batches())
    found |= check_rows(year, int(first.sample_index[0]) // (FRAMES * HOP)) | check_sizes(year)
    if year.recording.config.pyramid:
        found |= check_pyramid(year)
    growth_mb = peaks_mb[-1] - peaks_mb[len(peaks_mb) // 4]
    return found | {"peak_mb": peaks_mb[-1], "growth_mb": growth_mb}


def main() -> None:
    """Run all, check, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        for title, settings, kept_days in (
            ("30 days kept", {"keep_days": 30.0}, 30),
            ("all kept", {}, args.days),
            ("all kept, with a pyramid", {"pyramid": True}, args.days),
        ):
            year = Year(Path(name) / title.replace(" ", "-"), **settings)
            print(f"{title}: {args.days} days")
            for key, value in check_year(year, args.days, kept_days).items():
                print(f"  {key:20} {value:.6g}")


if __name__ == "__main__":
    main()
