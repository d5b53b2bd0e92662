"""What triggers cost: processor time of a row, for each kind of trigger.

    python benchmarks/bench_triggers.py [--channels N] [--rows N] [--json FILE]

Rows are of white noise at 48 kHz, win_length 4096, hop 1024, in dBFS, one at a time, as a live
analysis gives them. The analysis of the same rows by the NumPy engine is measured in turns with
them. Times are of the process, the lowest of several rounds.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from _report import new_report, write_report

from spectrod import Stft
from spectrod.daemon.control.mask_learner import MaskLearner
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig

_FS = 48_000
_HOP = 1024
_ROUNDS = 5
_QUIET = {"threshold": 0.0, "unit": "dBFS"}
_KINDS = {
    "band, threshold": {"kind": "band", "f_min_hz": 900.0, "f_max_hz": 1100.0, **_QUIET},
    "band of all, threshold": {"kind": "band", **_QUIET},
    "band, over the floor": {
        "kind": "band",
        "f_min_hz": 900.0,
        "f_max_hz": 1100.0,
        "over_floor_db": 30.0,
    },
    "all bins, threshold": {"kind": "bin", **_QUIET},
    "all bins, over the floor": {"kind": "bin", "over_floor_db": 30.0},
    "mask over all bins": {
        "kind": "mask",
        "points": ((10.0, 0.0), (24_000.0, 0.0)),
        "unit": "dBFS",
    },
    "tone, 200 Hz": {"kind": "tone", "f_min_hz": 900.0, "f_max_hz": 1100.0, "prominence_db": 30.0},
    "tone, all": {"kind": "tone", "prominence_db": 30.0},
    "one that lasts": {"kind": "bin", "threshold": -150.0, "unit": "dBFS"},
}


def main() -> None:
    """Measure each kind, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows, analyse = _noise(args.channels, args.rows)
    measured: dict[str, Callable[[], object]] = {"analysis by NumPy": analyse}
    for name, keys in _KINDS.items():
        measured[name] = _trigger(keys, rows)
    measured["learning a mask"] = _learner(rows)
    best = dict.fromkeys(measured, float("inf"))
    for _ in range(_ROUNDS):
        for name, run in measured.items():
            start_s = time.process_time()
            run()
            best[name] = min(best[name], (time.process_time() - start_s) / len(rows))
    report = new_report("triggers")
    report["results"] = [
        {
            "what": name,
            "row_us": round(row_s * 1e6, 1),
            "core_percent": round(100.0 * row_s * _FS / _HOP, 3),
            "over_analysis": round(row_s / best["analysis by NumPy"], 3),
        }
        for name, row_s in best.items()
    ]
    for result in report["results"]:
        print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _noise(channels: int, n_rows: int) -> tuple[list[SpectrumBatch], Callable[[], object]]:
    """Return rows of noise, a batch each, and a function that computes as many."""
    noise = np.random.default_rng(1).standard_normal((channels, 4096 + _HOP * (n_rows - 1)))
    samples = (0.01 * noise).astype(np.float32)

    def compute() -> list[SpectrumBatch]:
        options = {"win_length": 4096, "hop": _HOP, "scaling": "dbfs", "engine": "numpy"}
        with Stft(_FS, channels=channels, **options) as stft:
            return [*stft.push(samples), *stft.finish()]

    rows = [one.between(k, k + 1) for one in compute() for k in range(one.n_frames)]
    return rows, compute


def _trigger(keys: dict[str, object], rows: list[SpectrumBatch]) -> Callable[[], None]:
    names = tuple(map(str, range(rows[0].spec.n_signals)))
    trigger = Trigger(TriggerConfig("t", **keys), rows[0].spec, names)

    def run() -> None:
        for batch in rows:
            trigger.push(batch)

    return run


def _learner(rows: list[SpectrumBatch]) -> Callable[[], None]:
    learner = MaskLearner(rows[0].spec, 7 * 86400.0, 99.0, 6.0)

    def run() -> None:
        for batch in rows:
            learner.push(batch)

    return run


if __name__ == "__main__":
    main()
