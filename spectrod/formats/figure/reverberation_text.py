"""Reverberation times as text: a table, and comments of files."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from spectrod.measure.transfer.reverberation import RANGES_DB, Reverberation

_WIDTH = 8


def band_name(band_hz: tuple[float, float] | None) -> str:
    """Return the nominal mid-band frequency of an octave, or ``all``."""
    if band_hz is None:
        return "all"
    octaves = round(math.log2(math.sqrt(band_hz[0] * band_hz[1]) / 1000.0))
    hz = math.floor(1000.0 * 2.0**octaves + 0.5)
    return f"{hz} Hz" if octaves < 0 else f"{hz / 1000:g} kHz"


def times_text(found: Reverberation) -> str:
    """Return the times that are known, as ``EDT 0.81 s, T20 0.80 s``."""
    known = {name: one for name, one in found.times_s.items() if np.isfinite(one)}
    if not known:
        return "reverberation times: not measured, the noise is too near"
    return ", ".join(f"{name} {one:.3g} s" for name, one in known.items())


def reverberation_comments(decays: Sequence[Reverberation]) -> dict[str, str]:
    """Return what files say: ``reverberation 500 Hz``, with its times [s] and the noise [dB].

    They say nothing if no octave has a time.
    """
    if not _is_room(decays):
        return {}
    return {
        f"reverberation {band_name(one.band_hz)}": ", ".join(
            [f"{name} {value:.4g} s" for name, value in one.times_s.items()]
            + [f"noise {one.noise_db:.1f} dB"]
        )
        for one in decays
    }


def reverberation_lines(decays: Sequence[Reverberation]) -> Iterator[str]:
    """Yield the lines of a table; a time that is not known is a dash.

    There is none if no octave has a time: the system is no room.
    """
    if not _is_room(decays):
        return
    yield "reverberation times [s] by ISO 3382, and the noise re the begin of the decay [dB]"
    yield "".join(f"{name:>{_WIDTH}}" for name in ("band", *RANGES_DB, "noise"))
    for one in decays:
        times = [f"{value:.3f}" if np.isfinite(value) else "-" for value in one.times_s.values()]
        cells = [band_name(one.band_hz), *times, f"{one.noise_db:.1f}"]
        yield "".join(f"{cell:>{_WIDTH}}" for cell in cells)


def _is_room(decays: Sequence[Reverberation]) -> bool:
    return any(np.isfinite(list(one.times_s.values())).any() for one in decays[1:])
