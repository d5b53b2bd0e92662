"""Processor time that percentiles and noise floors of spectra add to a frame.

    python benchmarks/bench_percentiles.py [--repeats 11] [--json FILE]

Noise at 48 kHz, one channel, goes through one stream for each averaging in turn, 5 s each time:
the medians are of one run. L90 is checked against NumPy's percentile before a figure counts.
"""

import argparse
import statistics
import time

import numpy as np
from _report import new_report, write_report

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec

FS, HOP, SECONDS = 48_000, 1024, 5
AVERAGINGS = [("none", 1), ("mean", 47), ("L90", 47), ("floor", 47), ("L90", 4001)]
"""Averagings and frames a row; rows of more than 4000 frames are counted in classes."""


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--json")
    args = parser.parse_args()
    report = new_report("percentiles")
    engine = open_engine("auto")
    cases = {
        (bands, averaging, frames): _stream(engine, bands, averaging, frames)
        for bands in ("", "third-octave")
        for averaging, frames in AVERAGINGS
        if not (bands and averaging == "floor")
    }
    x = np.random.default_rng(1).normal(0.0, 0.1, (1, SECONDS * FS)).astype(np.float32)
    _check(engine, x)
    times_s: dict[tuple[str, str, int], list[float]] = {case: [] for case in cases}
    for repeat in range(args.repeats + 1):
        for case, stream in cases.items():
            begin_s = time.process_time()
            for first in range(0, x.shape[1], FS):
                block = x[:, first : first + FS]
                stream.push(Block(block, repeat * x.shape[1] + first, 0, 0))
            times_s[case].append(time.process_time() - begin_s)
    for (bands, averaging, frames), measured in times_s.items():
        frame_us = 1e6 * statistics.median(measured[1:]) * HOP / x.shape[1]
        report["results"].append(
            {"bands": bands, "averaging": averaging, "frames": frames, "frame_us": frame_us}
        )
        print(f"{bands or '2049 bins':12} {averaging:6} of {frames:4} frames {frame_us:8.1f} us")
    engine.close()
    if args.json:
        write_report(report, args.json)


def _stream(engine: Engine, bands: str, averaging: str, frames: int) -> FrameStream:
    spec = SpectrumSpec(
        FS, hop=HOP, scaling="dbfs", bands=bands, averaging=averaging, averaging_frames=frames
    )
    return FrameStream(spec, engine)


def _check(engine: Engine, x: np.ndarray) -> None:
    rows = [
        np.concatenate([one.values for one in _stream(engine, "", *case).push(Block(x, 0, 0, 0))])
        for case in (("none", 1), ("L90", 47))
    ]
    expected = np.percentile(rows[0][:47], 10.0, axis=0, method="inverted_cdf")
    if not np.array_equal(rows[1][0], expected):
        raise SystemExit("L90 is not the 10th percentile of the frames")


if __name__ == "__main__":
    main()
