"""Recall and false alarms of ``spectrod detect`` over the level of planted calls and the threshold.

    python benchmarks/detect_recall.py [--minutes N] [--noise NAME]... [--json FILE]
    python benchmarks/detect_recall.py --draw FILE.json FIGURE.png

Bursts of a tone of 0.3 s in noise at 16 kHz, one in 3 s, of several levels over the noise in 2 to
6 kHz: white noise, mains hum with all its harmonics, rain whose drops ring (``_planted.py``). They
are read by the triggers of the program with a floor that is learned first, as
``spectrod detect --kind band`` and ``--kind bin`` do; by a mask of the level that the noise alone
exceeds in 1 % of the time in each bin, the threshold being its margin, as ``spectrod ctl learn``
makes them; by a band with a pattern of one pulse of 0.2 to 0.45 s; by a plain energy detector: the
mean square of blocks of a hop of the same band, over the median of all blocks, with each run of
blocks as an event, as ``thresholded_event_durations`` of OpenSoundscape finds them (that package
itself needs PyTorch), and with those closer than 0.5 s joined; and by ``find_rois_cwt`` of
scikit-maad if it is installed, a detector of energy in a band with a wavelet of the length of a
call, whose threshold is here that far over the mean energy of the noise, which it must be told.
Each has the same thresholds. A call is found if an event overlaps it that lasts at most three times
as long; all other events are false alarms. These are counted in noise without calls as well.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _planted import CALL_S, FS, HIGH_HZ, LOW_HZ, NOISES, Recording, Spans, band_of, planted
from _report import new_report, write_report

from spectrod import Stft
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.mask import Mask
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig, of_stored_sound

_WINDOW, _HOP = 1024, 256
_LEVELS_DB = (-6.0, 0.0, *np.arange(6.0, 21.0, 2.0).tolist())
_FACTORS_DB = tuple(np.arange(6.0, 21.0, 2.0).tolist())
_EXCEEDED_PERCENT = 99.0
_MERGE_S = 0.5
_ALARMS_MAX = 12.0
"""False alarms an hour of the thresholds whose recall is drawn: one in five minutes."""
_LENGTHS_MAX = 3.0
"""Longest event that stands for a call, in lengths of the call."""
_PULSE = {"pulse_s": (0.2, 0.45), "pause_s": (0.0, 0.1), "pulses_min": 1}


@dataclass(frozen=True, slots=True)
class _Heard:
    """A recording, its rows, and the mask of its noise."""

    recording: Recording
    batches: list[SpectrumBatch]
    mask: Mask


Detector = Callable[[_Heard], list[Spans]]


def main() -> None:
    """Print a table for each noise and detector, and optionally store it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of each level (5)")
    parser.add_argument("--noise", action="append", choices=[*NOISES], help="repeatable (all)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--draw", nargs=2, metavar=("FILE", "FIGURE"), help="a report, and no more")
    args = parser.parse_args()
    if args.draw:
        _draw(json.loads(Path(args.draw[0]).read_text(encoding="utf-8")), args.draw[1])
        return
    detectors, results = _detectors(), []
    for noise in args.noise or NOISES:
        found: dict[str, list[Any]] = {name: [] for name in detectors}
        mask = _mask_of(_rows(planted(noise, 60.0 * args.minutes, None)))
        for level in (*_LEVELS_DB, None):
            recording = planted(noise, 60.0 * args.minutes, level)
            heard = _Heard(recording, _rows(recording), mask)
            for name, detector in detectors.items():
                counts = [_judged(spans, recording) for spans in detector(heard)]
                found[name].append((level, counts))
                results.append(_result(noise, name, level, counts))
        for name, lines in found.items():
            print(f"\n{noise} noise, {name}: calls found [%], false alarms an hour")
            print("call [dB]  " + "".join(f"{factor:>8g} dB over" for factor in _FACTORS_DB))
            print("\n".join(_line(*one) for one in lines), flush=True)
    if args.json:
        report = new_report("detect_recall") | {
            "minutes": args.minutes,
            "over_db": _text(_FACTORS_DB, 0),
            "results": results,
        }
        write_report(report, args.json)


def _line(level: float | None, counts: list[tuple[float, float]]) -> str:
    cells = [
        f"{'' if level is None else f'{recall:.0%}':>7} {false_an_hour:6.0f}"
        for recall, false_an_hour in counts
    ]
    return f"{'none' if level is None else f'{level:g}':>9}  " + "  ".join(cells)


def _result(
    noise: str, name: str, level: float | None, counts: list[tuple[float, float]]
) -> dict[str, Any]:
    recall, false_an_hour = zip(*counts, strict=True)
    return {
        "noise": noise,
        "detector": name,
        "call_db": level,
        "recall": _text(recall, 3),
        "false_an_hour": _text(false_an_hour, 1),
    }


def _text(values: Iterable[float], digits: int) -> str:
    """Return the numbers of a curve, one for each threshold, on one line of the report."""
    return " ".join(f"{round(value, digits):g}" for value in values)


def _detectors() -> dict[str, Detector]:
    found = {
        "band": _triggered(kind="band"),
        "bin": _triggered(kind="bin"),
        "mask": _masked,
        "band, a pulse": _triggered(kind="band", **_PULSE),
        "energy": _energy(0.0),
        "energy, joined": _energy(_MERGE_S),
    }
    if importlib.util.find_spec("maad") is not None:
        found["scikit-maad"] = _wavelet
    return found


def _rows(recording: Recording) -> list[SpectrumBatch]:
    samples = recording.samples.astype(np.float32)[np.newaxis]
    with Stft(FS, engine="numpy", win_length=_WINDOW, hop=_HOP, scaling="dbfs") as stft:
        return [*stft.push(samples), *stft.finish()]


def _mask_of(batches: list[SpectrumBatch]) -> Mask:
    spec = batches[0].spec
    levels = np.concatenate([batch.values[:, 0] for batch in batches])
    exceeded = np.percentile(levels, _EXCEEDED_PERCENT, axis=0)
    points = zip(spec.bin_frequencies[1:].tolist(), exceeded[1:].tolist(), strict=True)
    return Mask(tuple(points), spec.scale.level_unit)


def _masked(heard: _Heard) -> list[Spans]:
    found = []
    for margin in _FACTORS_DB:
        points = tuple((f_hz, level + margin) for f_hz, level in heard.mask.points)
        keys = {"kind": "mask", "mask": "noise"}
        found.append(_events(keys, heard.batches, Mask(points, heard.mask.unit)))
    return found


def _triggered(**keys: Any) -> Detector:
    def find(heard: _Heard) -> list[Spans]:
        return [_events(keys | {"over_floor_db": one}, heard.batches) for one in _FACTORS_DB]

    return find


def _events(keys: dict[str, Any], batches: list[SpectrumBatch], mask: Mask | None = None) -> Spans:
    config = TriggerConfig("call", f_min_hz=LOW_HZ, f_max_hz=HIGH_HZ, **of_stored_sound(keys))
    finder = LookAhead(Trigger(config, batches[0].spec, ("0",), mask))
    found = [event for batch in batches for event in finder.push(batch)] + finder.finish()
    start_ns = int(batches[0].t_utc_ns[0])
    begins = [(one.begin_utc_ns - start_ns) / 1e9 for one in found if one.state == "ended"]
    lengths = [one.duration_s for one in found if one.state == "ended"]
    return [(begin, begin + length) for begin, length in zip(begins, lengths, strict=True)]


def _energy(merge_s: float) -> Detector:
    def find(heard: _Heard) -> list[Spans]:
        band = band_of(heard.recording.samples)
        n = len(band) // _HOP
        level = 10 * np.log10(np.mean(band[: n * _HOP].reshape(n, _HOP) ** 2, axis=1))
        over = level - np.median(level)
        return [_runs(over >= factor, merge_s) for factor in _FACTORS_DB]

    return find


def _runs(is_over: np.ndarray, merge_s: float) -> Spans:
    """Return the spans of blocks that are over; those close to each other are one."""
    spans: Spans = []
    for k in np.flatnonzero(is_over).tolist():
        begin_s, end_s = k * _HOP / FS, (k + 1) * _HOP / FS
        if spans and begin_s - spans[-1][1] <= merge_s:
            spans[-1] = spans[-1][0], end_s
        else:
            spans.append((begin_s, end_s))
    return spans


def _wavelet(heard: _Heard) -> list[Spans]:
    from maad import rois  # noqa: PLC0415 - beside the others if it is installed

    found, recording = [], heard.recording
    for factor in _FACTORS_DB:
        threshold = recording.noise_power * 10 ** (factor / 10)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = rois.find_rois_cwt(
                recording.samples, FS, (LOW_HZ, HIGH_HZ), CALL_S, th=threshold
            )
        found.append([] if table.empty else list(zip(table["min_t"], table["max_t"], strict=True)))
    return found


def _judged(spans: Spans, recording: Recording) -> tuple[float, float]:
    """Return the share of calls that are found, and the false alarms an hour."""
    calls = recording.calls

    def overlaps(one: tuple[float, float], others: Spans) -> bool:
        return any(one[0] < other[1] and other[0] < one[1] for other in others)

    short = [span for span in spans if span[1] - span[0] <= _LENGTHS_MAX * CALL_S]
    found = sum(overlaps(call, short) for call in calls)
    false = len(spans) - sum(overlaps(span, calls) for span in short)
    return found / max(1, len(calls)), false * 3600.0 / recording.seconds


def _draw(report: dict[str, Any], path: str) -> None:
    """Draw recall over the level of calls at the best threshold, and false alarms over all."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - of figures alone

    factors, results = _numbers(report["over_db"]), report["results"]
    noises, names = ([*dict.fromkeys(one[key] for one in results)] for key in ("noise", "detector"))
    figure, panels = plt.subplots(2, len(noises), figsize=(9, 6), sharey="row", squeeze=False)
    for (upper, lower), noise in zip(panels.T, noises, strict=True):
        for number, name in enumerate(names):
            look = {"color": f"C{number}", "marker": "osv^Dxp"[number], "markersize": 4}
            found = [one for one in results if (one["noise"], one["detector"]) == (noise, name)]
            levels, recall, alarms = _curves(found)
            lower.plot(factors, alarms, linewidth=1, label=name, **look)
            if (best := _best(recall, alarms)) is not None:
                upper.plot(levels, 100 * recall[:, best], linewidth=1, **look)
        upper.set(title=noise, xlabel="call over the noise [dB]", ylim=(-5, 105))
        lower.set(xlabel="threshold [dB]", yscale="symlog", ylim=(-0.5, 1e5))
    panels[0, 0].set_ylabel("calls found [%]")
    panels[1, 0].set_ylabel("false alarms an hour")
    figure.legend(*panels[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=100)


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split()]


def _curves(found: list[dict[str, Any]]) -> tuple[list[float], np.ndarray, np.ndarray]:
    """Return levels of calls, recall by level and threshold, and false alarms in noise alone."""
    calls = [one for one in found if one["call_db"] is not None]
    (alone,) = [one for one in found if one["call_db"] is None]
    recall = np.array([_numbers(one["recall"]) for one in calls])
    return [one["call_db"] for one in calls], recall, np.array(_numbers(alone["false_an_hour"]))


def _best(recall: np.ndarray, alarms: np.ndarray) -> int | None:
    """Return the threshold that finds most of those with few false alarms; None without any."""
    total = np.where(alarms <= _ALARMS_MAX, recall.sum(axis=0), 0.0)
    return int(np.argmax(total)) if total.any() else None


if __name__ == "__main__":
    main()
