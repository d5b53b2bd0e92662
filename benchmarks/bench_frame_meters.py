"""Processor time that features, tones and products take for a frame.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bench_frame_meters.py [--channels 1 8] [--seconds 20]

Noise with a tone at 48 kHz goes in blocks of 10 ms through meters of intervals of 5 s, with frames
of 4096 samples and a hop of 2048. "frames alone" computes no value; the others are what is added to
it. Products are spectra by NumPy, which computes constant-Q and reassigned ones whatever the
engine; their figures are of whole frames, and the name says window and hop. All are measured in
turn in one process, several times; the figure is the median. The tone's frequency, and the level
of products, are checked before figures count.
"""

import argparse
import statistics
import time

import numpy as np
from _report import new_report, write_report

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.measure.features.feature_meter import feature_meter
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.tones.tone_meter import tone_meter

FS, BLOCK, INTERVAL_S, TONE_HZ, TURNS = 48_000, 480, 5.0, 1000.3, 5
FEATURES = {
    "shape (all seven)": ["centroid", "flux"],
    "SK": ["SK_max"],
    "ACI": ["ACI"],
    "NDSI": ["NDSI"],
    "ADI": ["ADI"],
}
PRODUCTS = {
    "bins 4096/2048": ("", 4096, 2048),
    "thirds 4096/2048": ("third-octave", 4096, 2048),
    "Bark 4096/2048": ("bark", 4096, 2048),
    "ERB 4096/2048": ("erb", 4096, 2048),
    "cqt:12 32768/2048": ("cqt:12", 32768, 2048),
    "vqt:12 32768/2048": ("vqt:12", 32768, 2048),
    "reassigned 1024/256": ("reassigned", 1024, 256),
}


class _NoTally:
    """Computes nothing of the frames."""

    quantities = ()
    tables = ()

    def __init__(self, channels: int) -> None:
        self._values = np.empty((0, channels))

    def clear(self) -> None:
        """Do nothing."""

    def skip(self, n_intervals: int) -> None:
        """Do nothing."""

    def interrupt(self) -> None:
        """Do nothing."""

    def add(self, rows: np.ndarray) -> None:
        """Do nothing."""

    def values(self) -> np.ndarray:
        """Return no values."""
        return self._values


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--channels", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.seconds < INTERVAL_S:
        parser.error(f"--seconds {args.seconds:g}: must be at least {INTERVAL_S:g}, an interval")
    report = new_report("frame_meters")
    for channels in args.channels:
        n = round(args.seconds * FS)
        x = 0.01 * np.random.default_rng(1).standard_normal((channels, n))
        x += 0.1 * np.sin(2.0 * np.pi * TONE_HZ * np.arange(n) / FS)
        for name, frame_us in _measure(x.astype(np.float32)).items():
            report["results"].append({"channels": channels, "what": name, "frame_us": frame_us})
            print(f"{channels:5} channels  {name:20} {frame_us:8.1f} us a frame and channel")
    if args.json:
        write_report(report, args.json)


def _measure(samples: np.ndarray) -> dict[str, float]:
    """Return the processor time of each product, less that of frames alone [us]."""
    found: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name in ("frames alone", *FEATURES, "tones and tracks", "tracks alone"):
            found.setdefault(name, []).append(_frame_us(name, samples))
        for name in PRODUCTS:
            found.setdefault(name, []).append(_product_us(name, samples))
    medians = {name: statistics.median(times) for name, times in found.items()}
    alone = medians["frames alone"]
    whole = {"frames alone", *PRODUCTS}
    return {name: us if name in whole else us - alone for name, us in medians.items()}


def _product_us(name: str, samples: np.ndarray) -> float:
    bands, win_length, hop = PRODUCTS[name]
    spec = SpectrumSpec(
        FS, len(samples), win_length=win_length, hop=hop, bands=bands, scaling="spectrum",
        broadband=bool(bands),
    )  # fmt: skip
    stream = FrameStream(spec, NumpyEngine())
    # The first frames make tables and filters.
    before = (win_length + hop) // BLOCK * BLOCK + BLOCK
    stream.push(Block(samples[:, :before], 0, 0, 0, fs=FS))
    batches = []
    begin_s = time.process_time()
    for first in range(before, samples.shape[1], BLOCK):
        part = samples[:, first : first + BLOCK]
        batches += stream.push(Block(part, first, 0, 0, fs=FS))
    batches += stream.finish()
    used_s = time.process_time() - begin_s
    if bands:
        power = np.mean([batch.broadband.mean() for batch in batches])
        if abs(10.0 * np.log10(power / np.mean(np.square(samples)))) > 0.1:
            raise SystemExit(f"{name}: mean square {power:g} instead of that of the samples")
    return 1e6 * used_s / sum(len(batch.values) for batch in batches) / len(samples)


def _frame_us(name: str, samples: np.ndarray) -> float:
    meter = _meter(name, len(samples))
    rows = []
    begin_s = time.process_time()
    for first in range(0, samples.shape[1], BLOCK):
        rows += meter.push(samples[:, first : first + BLOCK])
    used_s = time.process_time() - begin_s
    if name == "tones and tracks" and np.abs(rows[0].values[0] - TONE_HZ).max() > 0.01:
        raise SystemExit(f"fundamental: {rows[0].values[0]} instead of {TONE_HZ} Hz")
    n_frames = sum(row.n_frames for row in rows)
    return 1e6 * used_s / n_frames / len(samples)


def _meter(name: str, channels: int) -> FrameMeter:
    spec = SpectrumSpec(FS, channels, win_length=4096, hop=2048)
    if name == "frames alone":
        return FrameMeter(spec, _NoTally(channels), interval_s=INTERVAL_S)
    if name in FEATURES:
        return feature_meter(spec, FEATURES[name], interval_s=INTERVAL_S)
    names = ["fundamental", "THD", "tracks"] if name == "tones and tracks" else ["tracks"]
    return tone_meter(spec, names, interval_s=INTERVAL_S)


if __name__ == "__main__":
    main()
