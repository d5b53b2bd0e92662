"""How many planted calls ``spectrod detect`` finds, and how often it finds what is none.

    python benchmarks/detect_recall.py [--minutes N] [--json FILE]

Bursts of a tone of 0.3 s in white noise at 16 kHz, one in 3 s, of several levels over the noise in
2 to 6 kHz, are read by the triggers of the program with a floor that is learned first, as
``spectrod detect --kind band`` and ``--kind bin`` do, and by a plain energy detector: the mean
square of blocks of a hop of the same band (by a Fourier transform of the whole), over the median of
all blocks. Each has the same thresholds. A call is found if an event overlaps it that lasts at most
three times as long; all other events are false alarms. These are counted in noise without calls as
well.
"""

import argparse
from collections.abc import Callable

import numpy as np
from _report import new_report, write_report

from spectrod import Stft
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig

_FS, _WINDOW, _HOP = 16_000, 1024, 256
_LOW_HZ, _HIGH_HZ = 2000.0, 6000.0
_PERIOD_S, _CALL_S = 3.0, 0.3
_LEVELS_DB = (-6.0, 0.0, 6.0, 10.0, 20.0)
_FACTORS_DB = (6.0, 8.0, 10.0, 15.0, 20.0)
_NOISE = 1e-2
_MERGE_S = 0.5
_LENGTHS_MAX = 3.0
"""Longest event that stands for a call, in lengths of the call."""

Spans = list[tuple[float, float]]


def main() -> None:
    """Print a table for each detector, and optionally store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of each level (5)")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    seconds = 60.0 * args.minutes
    detectors = {"band": _triggered("band"), "bin": _triggered("bin"), "energy": _energy}
    results = []
    recorded = {level: _sound(seconds, level) for level in (*_LEVELS_DB, None)}
    for name, detector in detectors.items():
        print(f"\n{name}: calls found [%], false alarms an hour")
        print("call [dB]  " + "".join(f"{factor:>8g} dB over" for factor in _FACTORS_DB))
        for level, (samples, calls) in recorded.items():
            cells = []
            for factor, spans in zip(_FACTORS_DB, detector(samples), strict=True):
                recall, false_an_hour = _judged(spans, calls, seconds)
                cells.append(f"{'' if level is None else f'{recall:.0%}':>7} {false_an_hour:6.0f}")
                about = {"detector": name, "call_db": level, "over_db": factor}
                counts = {"recall": recall, "false_an_hour": false_an_hour}
                results.append(about | counts)
            print(f"{'none' if level is None else f'{level:g}':>9}  " + "  ".join(cells))
    if args.json:
        report = new_report("detect_recall") | {"minutes": args.minutes, "results": results}
        write_report(report, args.json)


def _sound(seconds: float, level_db: float | None) -> tuple[np.ndarray, Spans]:
    """Return noise with calls, the first in the first second; without a level, no calls."""
    rng = np.random.default_rng(1)
    t = np.arange(round(seconds * _FS)) / _FS
    samples = _NOISE * rng.standard_normal(len(t))
    if level_db is None:
        return samples.astype(np.float32), []
    power = _NOISE**2 * (_HIGH_HZ - _LOW_HZ) / (_FS / 2) * 10 ** (level_db / 10)
    calls = []
    for k in range(int(seconds / _PERIOD_S)):
        begin_s = k * _PERIOD_S + rng.uniform(0.2, 0.7)
        on = slice(round(begin_s * _FS), round((begin_s + _CALL_S) * _FS))
        samples[on] += np.sqrt(2 * power) * np.sin(2 * np.pi * rng.uniform(2500, 5500) * t[on])
        calls.append((begin_s, begin_s + _CALL_S))
    return samples.astype(np.float32), calls


def _triggered(kind: str) -> Callable[[np.ndarray], list[Spans]]:
    def find(samples: np.ndarray) -> list[Spans]:
        with Stft(_FS, engine="numpy", win_length=_WINDOW, hop=_HOP, scaling="dbfs") as stft:
            batches = [*stft.push(samples[np.newaxis]), *stft.finish()]
        return [_events(kind, factor, batches) for factor in _FACTORS_DB]

    return find


def _events(kind: str, factor_db: float, batches: list[SpectrumBatch]) -> Spans:
    config = TriggerConfig(
        "call", kind=kind, f_min_hz=_LOW_HZ, f_max_hz=_HIGH_HZ, over_floor_db=factor_db
    )
    finder = LookAhead(Trigger(config, batches[0].spec, ("0",)))
    found = [event for batch in batches for event in finder.push(batch)] + finder.finish()
    start_ns = int(batches[0].t_utc_ns[0])
    begins = [(one.begin_utc_ns - start_ns) / 1e9 for one in found if one.state == "ended"]
    lengths = [one.duration_s for one in found if one.state == "ended"]
    return [(begin, begin + length) for begin, length in zip(begins, lengths, strict=True)]


def _energy(samples: np.ndarray) -> list[Spans]:
    spectrum = np.fft.rfft(samples)
    hz = np.fft.rfftfreq(len(samples), 1 / _FS)
    spectrum[(hz < _LOW_HZ) | (hz > _HIGH_HZ)] = 0
    band = np.fft.irfft(spectrum, len(samples))
    n = len(band) // _HOP
    level = 10 * np.log10(np.mean(band[: n * _HOP].reshape(n, _HOP) ** 2, axis=1))
    return [_runs(level - np.median(level) >= factor) for factor in _FACTORS_DB]


def _runs(is_over: np.ndarray) -> Spans:
    """Return the spans of blocks that are over; those close to each other are one."""
    spans: Spans = []
    for k in np.flatnonzero(is_over).tolist():
        begin_s, end_s = k * _HOP / _FS, (k + 1) * _HOP / _FS
        if spans and begin_s - spans[-1][1] < _MERGE_S:
            spans[-1] = spans[-1][0], end_s
        else:
            spans.append((begin_s, end_s))
    return spans


def _judged(spans: Spans, calls: Spans, seconds: float) -> tuple[float, float]:
    """Return the share of calls that are found, and the false alarms an hour."""

    def overlaps(one: tuple[float, float], others: Spans) -> bool:
        return any(one[0] < other[1] and other[0] < one[1] for other in others)

    short = [span for span in spans if span[1] - span[0] <= _LENGTHS_MAX * _CALL_S]
    found = sum(overlaps(call, short) for call in calls)
    false = len(spans) - sum(overlaps(span, calls) for span in short)
    return found / max(1, len(calls)), false * 3600.0 / seconds


if __name__ == "__main__":
    main()
