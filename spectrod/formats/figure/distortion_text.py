"""Figures of distortion as text."""

import math
from collections.abc import Iterator, Mapping
from typing import Any


def distortion_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of one tone, then a line for each harmonic.

    Parameters
    ----------
    found : mapping of str to object
        Fields of a ``Distortion``.
    """
    low, high = found["band_hz"]
    yield (
        f"fundamental {found['frequency_hz']:.4f} Hz, {found['level_db']:.3f} {found['unit']}; "
        f"distortion and noise from {low:.6g} to {high:.6g} Hz:"
    )
    yield (
        f"THD {_ratio(found['thd_db'])}, THD+N {_ratio(found['thd_n_db'])}, "
        f"SINAD {found['sinad_db']:.2f} dB, SNR {found['snr_db']:.2f} dB"
    )
    yield (
        f"SFDR {found['sfdr_db']:.2f} dBc (spur at {found['spur_hz']:.6g} Hz), "
        f"ENOB {found['enob_bits']:.2f} bits"
    )
    for one in found["harmonics"]:
        note = ", folded" if one["is_folded"] else ""
        yield f"harmonic {one['order']}: {one['frequency_hz']:.2f} Hz, {level_text(one)}{note}"


def level_text(found: Mapping[str, Any]) -> str:
    """Return the level of a harmonic or another product, or why it has none."""
    level = found["level_db"]
    if math.isnan(level):
        return "hidden by another tone"
    return f"{level:.2f}" if math.isfinite(level) else "not above the noise"


def _ratio(level_db: float) -> str:
    """Format a ratio of powers as a level and as a ratio of amplitudes."""
    if level_db == -math.inf:
        return "not above the noise"
    return f"{level_db:.2f} dB ({10.0 ** (level_db / 20.0):.4%})"
