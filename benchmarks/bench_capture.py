"""Processor time of the way from a sound card's callback to its spectra, without a card.

    python benchmarks/bench_capture.py [--channels 2 64 1000] [--format f32le] [--seconds 10]
                                       [--json FILE]

A thread writes tones into the ring at a card's pace, as PortAudio's callback does; from there on
everything is the daemon's: the blocks are published, the analysis reads the ring and makes spectra
of 4096 points, hop 2048, and a sink takes them. Frequencies and levels
are checked before a figure counts: each channel has a tone of its own at -20 dBFS. The figure is
the processor time of the whole process as a share of one processor, median of ``--repeats``.
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _report import new_report, write_report

from spectrod.analysis.engine import open_engine
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.stats import CaptureStats
from spectrod.source.capture.ring_writer import RECORD, RingWriter
from spectrod.source.files.codings import NATIVE_FORMATS
from spectrod.source.left_out import LeftOut
from spectrod.source.ring import SampleRing, default_capacity
from spectrod.source.shared_samples import SharedSamples
from spectrod.source.soundcard.capture_index import CaptureIndex
from spectrod.source.soundcard.capture_process import BlockRecord, StreamSettings

FS, BLOCK, N, HOP = 48_000, 480, 4096, 2048
_LEVEL_DBFS = -20.0
_COMPILE_S, _SETTLE_S = 120.0, 1.0


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--channels", type=int, nargs="+", default=[2, 64, 1000])
    parser.add_argument("--format", choices=NATIVE_FORMATS, default="f32le")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", default="opencl")
    parser.add_argument("--json")
    args = parser.parse_args()
    report = new_report("capture")
    for channels in args.channels:
        shares = [_share(channels, args) for _ in range(args.repeats)]
        row = {
            "channels": channels,
            "format": args.format,
            "processors": statistics.median(shares),
            "all": shares,
        }
        report["results"].append(row)
        print(
            f"{channels:5} channels {args.format} {100 * row['processors']:6.1f} % of a processor "
            f"({', '.join(f'{100 * share:.1f}' for share in shares)})",
            flush=True,
        )
    if args.json:
        write_report(report, args.json)


class Card:
    """A source like a sound card's, whose blocks a thread of this process writes."""

    name, description = "card", "tones, one for each channel"
    fs, is_iq, center_frequency_hz, n_samples, start_utc_ns = float(FS), False, 0.0, None, None
    is_live, is_stored, failure = True, False, None

    def __init__(self, channels: int, format_: str) -> None:
        self.channels, self.left_out = channels, LeftOut()
        self._settings = StreamSettings(0, "", float(FS), channels, format_, BLOCK)
        self.layout = SampleLayout(self._settings.layout.sample_format, channels)
        self._records_fd, self._records_write_fd = os.pipe()
        self._blocks = _tones(channels, self.layout)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def open_reader(self) -> SampleRing:
        """Create the ring."""
        layout, selected = self._settings.layout, range(self.channels)
        shared = SharedSamples(layout, default_capacity(FS), selected, BLOCK)
        return SampleRing(self.fs, self.layout, shared=shared)

    def start(self, reader: SampleRing, on_change: Callable[[], None] = lambda: None) -> None:
        """Start to fill the ring."""
        del on_change  # nothing of ``capture`` changes
        self._thread = threading.Thread(target=self._fill, args=(reader,))
        self._thread.start()

    def stop(self) -> None:
        """End; idempotent."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def capture(self) -> CaptureStats:
        """Report no loss: there is none."""
        return CaptureStats()

    def _fill(self, ring: SampleRing) -> None:
        writer = RingWriter(
            block_frames=BLOCK, records_fd=self._records_write_fd, **ring.shared.for_writer()
        )
        index = CaptureIndex(ring, self._settings, self.name)
        begin_s, number = time.monotonic(), 0
        while not self._stopping.wait(max(0.0, begin_s + number * BLOCK / FS - time.monotonic())):
            writer.write(self._blocks[number % len(self._blocks)], BLOCK, flagged=False)
            record = RECORD.unpack(os.read(self._records_fd, RECORD.size))
            position, t_mono_ns, _, n_samples, flagged = record
            block = BlockRecord(position, t_mono_ns, n_samples, bool(flagged))
            if number == 0:
                index.start_stream([block])
            index.add(block)
            number += 1
        ring.close()


def _tones(channels: int, layout: SampleLayout) -> list[bytes]:
    """Make a second of blocks: channel c has a tone of 100 + 10 (c mod 1000) Hz."""
    t = np.arange(FS)[:, np.newaxis] / FS
    x = 10 ** (_LEVEL_DBFS / 20) * np.sin(2 * np.pi * _tone_hz(np.arange(channels)) * t)
    if layout.sample_format == "float32":
        data = x.astype("<f4").tobytes()
    elif layout.sample_format == "int16":
        data = np.rint(x * 2**15).astype("<i2").tobytes()
    else:
        data = np.rint(x * 2**31).astype("<i4").tobytes()
        if layout.sample_format == "int24":
            data = np.frombuffer(data, np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    n_bytes = len(data) // FS * BLOCK
    return [data[first : first + n_bytes] for first in range(0, len(data), n_bytes)]


def _tone_hz(channel: Any) -> Any:
    return 100.0 + 10.0 * (channel % 1000)


class Last:
    """A sink that keeps the newest rows."""

    def __init__(self) -> None:
        self.batch: SpectrumBatch | None = None
        self.n_rows = 0
        self.has_rows = threading.Event()

    def write(self, batch: SpectrumBatch) -> None:
        """Count a batch."""
        self.batch, self.n_rows = batch, self.n_rows + batch.n_frames
        self.has_rows.set()


def _share(channels: int, args: argparse.Namespace) -> float:
    """Run for a while; return processor time over time."""
    spec = SpectrumSpec(float(FS), channels, "flattop", N, HOP, scaling="spectrum")
    sink, source = Last(), Card(channels, args.format)
    pipeline = Pipeline(source, spec, open_engine(args.engine))
    pipeline.attach(sink)
    pipeline.start()
    assert sink.has_rows.wait(_COMPILE_S), "no row came"
    time.sleep(_SETTLE_S)  # the backlog of the time that compiling took is not measured
    begin_s, begin_cpu_s, n_rows = time.monotonic(), time.process_time(), sink.n_rows
    time.sleep(args.seconds)
    cpu_s, wall_s = time.process_time() - begin_cpu_s, time.monotonic() - begin_s
    n_rows = sink.n_rows - n_rows
    stats = pipeline.stats()
    pipeline.stop()
    assert stats.gaps == stats.overruns == 0, stats
    assert abs(n_rows - wall_s * FS / HOP) < 8, (n_rows, wall_s)
    _check(sink.batch)
    return cpu_s / wall_s


def _check(batch: SpectrumBatch | None) -> None:
    """Check that each channel's tone is where it must be, at its level."""
    assert batch is not None
    rows = np.asarray(batch.values)[-1]
    for channel, row in enumerate(rows):
        peak_hz = row.argmax() * FS / N
        assert abs(peak_hz - _tone_hz(channel)) <= FS / N, (channel, peak_hz)
        level_dbfs = 10.0 * np.log10(row.max() / 0.5)  # 0 dBFS: a sine of amplitude 1
        assert abs(level_dbfs - _LEVEL_DBFS) < 0.1, (channel, level_dbfs)


if __name__ == "__main__":
    main()
