"""Processor time that transfer functions take for a frame and pair of channels.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bench_transfer.py [--responses 1 7] [--seconds 20]

Noise at 48 kHz, and copies of it that are later and noisy, go in blocks of 10 ms through meters of
intervals of 1 s, with frames of 4096 samples and a hop of 2048. "frames and averages" computes
no value but the level difference; the others are what is added to it. All are measured in turn in
one process, several times; the figure is the median. The delays are checked before figures count.
"""

import argparse
import statistics
import time

import numpy as np
from _report import new_report, write_report

from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.measure.transfer.transfer_config import (
    TRANSFER_DEFAULT,
    TRANSFER_SPECTRA_DEFAULT,
    TransferConfig,
)
from spectrod.measure.transfer.transfer_meter import TransferIntervalMeter

FS, BLOCK, TURNS, DELAY = 48_000, 480, 5, 100
ALONE = "frames and averages"
KINDS = {
    ALONE: {"quantities": ("level_difference",), "spectra": ()},
    "delay": {"quantities": ("level_difference", "delay"), "spectra": ()},
    "all by default": {"quantities": TRANSFER_DEFAULT, "spectra": TRANSFER_SPECTRA_DEFAULT},
}


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--responses", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json")
    args = parser.parse_args()
    report = new_report("transfer")
    for n in args.responses:
        for name, frame_us in _measure(_samples(n, round(args.seconds * FS))).items():
            report["results"].append({"responses": n, "what": name, "frame_us": frame_us})
            print(f"{n:5} responses  {name:20} {frame_us:8.1f} us a frame and response")
    if args.json:
        write_report(report, args.json)


def _samples(n_responses: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    x = 0.1 * rng.standard_normal(n + DELAY)
    late = np.broadcast_to(x[:n], (n_responses, n))
    noisy = late + 0.01 * rng.standard_normal((n_responses, n))
    return np.concatenate([x[np.newaxis, DELAY:], noisy]).astype(np.float32)


def _measure(samples: np.ndarray) -> dict[str, float]:
    """Return the processor time of each kind, less that of the frames and their averages [us]."""
    found: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name in KINDS:
            found.setdefault(name, []).append(_frame_us(name, samples))
    medians = {name: statistics.median(times) for name, times in found.items()}
    return {name: us if name == ALONE else us - medians[ALONE] for name, us in medians.items()}


def _frame_us(name: str, samples: np.ndarray) -> float:
    meter = _meter(name, len(samples))
    rows = []
    begin_s = time.process_time()
    for first in range(0, samples.shape[1], BLOCK):
        rows += meter.push(samples[:, first : first + BLOCK])
    used_s = time.process_time() - begin_s
    if name == "delay" and np.abs(rows[0].values[1] * FS - DELAY).max() > 0.1:
        raise SystemExit(f"delay: {rows[0].values[1]} instead of {DELAY / FS} s")
    n_frames = sum(row.n_frames for row in rows)
    return 1e6 * used_s / n_frames / (len(samples) - 1)


def _meter(name: str, channels: int) -> TransferIntervalMeter:
    config = TransferConfig("pairs", align="start", **KINDS[name])
    names = [str(one) for one in range(channels)]
    return config.bind(MeasuredSignals("", FS, tuple(names), (None,) * channels)).open(0)


if __name__ == "__main__":
    main()
