"""What ``spectrod tones`` prints: peaks, distortion, intermodulation and powers as text."""

from collections.abc import Iterator
from typing import Any

from spectrod.cli.tables import Column, error, fixed, heading, line
from spectrod.formats.figure.distortion_text import distortion_lines, level_text

PEAK_COLUMNS = (
    Column("frequency_hz", "Hz", 16, fixed(4)),
    Column("frequency_sd_hz", "+- Hz", 9, error),
    Column("level_db", "level", 10, fixed(3)),
    Column("level_sd_db", "+- dB", 9, error),
    Column("floor_db", "noise", 10, fixed(2)),
)
"""Columns of the peaks, by the names of their fields."""


def report_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield all that was found, in all channels."""
    yield (
        f"{found['source']}: {found['fs']:g} Hz, mean of {found['frames']} frames of "
        f"{found['win_length']} samples, {found['window']}"
    )
    for one in found["channels"]:
        yield f"\nchannel {one['channel']}, levels in {one['unit']}"
        if one["clipped_samples"]:
            yield f"clipped: {one['clipped_samples']} samples at full scale"
        yield heading(PEAK_COLUMNS)
        yield from (line(PEAK_COLUMNS, peak) for peak in one["peaks"])
        if not one["peaks"]:
            yield "no tones above the noise floor"
        low, high = one["occupied_hz"]
        if high > low:
            yield f"99 % of the power: {low:.6g} to {high:.6g} Hz, {high - low:.6g} Hz wide"
        if one["distortion"] is None:
            yield f"distortion: not measured: {one['not_measured']}"
        else:
            yield from distortion_lines(one["distortion"])
        if "intermodulation" in one:
            yield from _intermodulation_lines(one["intermodulation"])
        for power in one.get("channel_powers", ()):
            yield _power_line(power, one["unit"])


def _intermodulation_lines(found: dict[str, Any]) -> Iterator[str]:
    low, high = found["frequencies_hz"]
    reference = f"{high:.6g} Hz" if found["kind"] == "smpte" else "the sum of both amplitudes"
    yield (
        f"IMD {found['kind']}, {low:.6g} and {high:.6g} Hz, re {reference}: {found['rss']:.4%} "
        f"(root-sum-square), {found['pairs']:.4%} (pairs added)"
    )
    for one in found["products"]:
        yield f"{one['name']}: {one['frequency_hz']:.2f} Hz, {level_text(one)}"


def _power_line(found: dict[str, Any], unit: str) -> str:
    text = f"channel {found['low_hz']:.9g} to {found['high_hz']:.9g} Hz: "
    text += f"{found['level_db']:.3f} {unit}"
    if "spacing_hz" in found:
        text += (
            f", adjacent ones {found['spacing_hz']:.6g} Hz apart: "
            f"lower {found['lower_db']:.2f} dB, upper {found['upper_db']:.2f} dB"
        )
    return text
