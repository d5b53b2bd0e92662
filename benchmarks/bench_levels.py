"""Processor time of sound levels, and of third octaves beside them.

    python benchmarks/bench_levels.py [--channels 1 2 64] [--seconds 10] [--json FILE]

Noise at 48 kHz goes through a ``LevelMeter`` in blocks of 10 ms for each set of quantities, and
through ``Stft`` and ``OctaveMeter`` for third octaves. The level of LZeq and that of the filters'
highest band are checked before their figures count. The figure is the processor time as a share of
the signal's duration: 1 is one processor.
"""

import argparse
import time

import numpy as np
from _report import new_report, write_report

import spectrod
from spectrod.measure.levels import LevelMeter, OctaveMeter

FS, BLOCK = 48_000, 480
_RMS = 0.1
_LEAST_S = 3.0
"""Shortest signal whose second whole second has been measured when it ends [s]."""
SETS = {
    "LZeq": ["LZeq"],
    "LAeq": ["LAeq"],
    "LAeq LAFmax": ["LAeq", "LAFmax"],
    "LAeq L10 L90": ["LAeq", "L10", "L90"],
    "LAeq LAImax": ["LAeq", "LAImax"],
    "LCpeak": ["LCpeak"],
    "true_peak": ["true_peak"],
    "LUFS_I LRA": ["LUFS_I", "LRA"],
}


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--channels", type=int, nargs="+", default=[1, 2, 64])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.seconds < _LEAST_S:
        parser.error(f"--seconds {args.seconds:g}: must be at least {_LEAST_S:g}")
    report = new_report("levels")
    for channels in args.channels:
        x = _RMS * np.random.default_rng(1).standard_normal((channels, round(args.seconds * FS)))
        samples = x.astype(np.float32)
        sets = {name: _levels(samples, names) for name, names in SETS.items()}
        sets["third octaves"] = _third_octaves(samples)
        sets["LAeq LAFmax + third octaves"] = sets["LAeq LAFmax"] + sets["third octaves"]
        sets["third-octave filters"] = _octave_filters(samples)
        for name, share in sets.items():
            report["results"].append(
                {"channels": channels, "quantities": name, "processors": share}
            )
            print(f"{channels:5} channels  {name:28} {share:7.2%} of a processor")
    if args.json:
        write_report(report, args.json)


def _levels(samples: np.ndarray, names: list[str]) -> float:
    channels, n = samples.shape
    weights = [1.0] * channels if "LUFS_I" in names else None
    meter = LevelMeter(FS, channels, quantities=names, interval_s=3.0, channel_weights=weights)
    begin_s = time.process_time()
    rows = []
    for first in range(0, n, BLOCK):
        rows += meter.push(samples[:, first : first + BLOCK])
    rows += meter.finish()
    share = (time.process_time() - begin_s) / (n / FS)
    expected = 10.0 * np.log10(2.0 * _RMS**2)
    if names[0] == "LZeq" and np.abs(rows[0].values[0] - expected).max() > 0.1:
        raise SystemExit(f"LZeq: {rows[0].values[0]} instead of {expected:.2f} dBFS")
    return share


def _octave_filters(samples: np.ndarray) -> float:
    channels, n = samples.shape
    meter = OctaveMeter(FS, channels, interval_s=1.0)
    begin_s = time.process_time()
    rows = []
    for first in range(0, n, BLOCK):
        rows += meter.push(samples[:, first : first + BLOCK])
    share = (time.process_time() - begin_s) / (n / FS)
    # The highest bands average the most independent values.
    width_hz = meter.filters[-1].upper_hz - meter.filters[-1].lower_hz
    expected = 10.0 * np.log10(2.0 * _RMS**2 * width_hz / (FS / 2.0))
    if np.abs(rows[1].levels[-1] - expected).max() > 0.5:
        raise SystemExit(f"highest band: {rows[1].levels[-1]} instead of {expected:.2f} dBFS")
    return share


def _third_octaves(samples: np.ndarray) -> float:
    channels, n = samples.shape
    with spectrod.Stft(
        FS, channels=channels, win_length=4096, hop=2048, bands="third-octave", scaling="dbfs"
    ) as stft:
        list(stft.push(samples[:, :8192]))  # compile
        begin_s = time.process_time()
        for first in range(8192, n, 1 << 15):
            list(stft.push(samples[:, first : first + (1 << 15)]))
        return (time.process_time() - begin_s) / ((n - 8192) / FS)


if __name__ == "__main__":
    main()
