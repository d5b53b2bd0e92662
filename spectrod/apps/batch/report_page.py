"""The report of a job as one HTML file that loads nothing: styles and pictures are inside."""

import base64
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from html import escape

import numpy as np

from spectrod.apps.batch.comparison import (
    Comparison,
    DeploymentDifference,
    SignalAverage,
    diverging,
)
from spectrod.apps.batch.ltsa import HEIGHT, SHADES, WIDTH, LongTermAverage
from spectrod.apps.batch.report import DeploymentReport, JobReport, ReportPictures
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.picture.time_ticks import clock_axis, zone_title
from spectrod.lib.text import printable
from spectrod.lib.time_zones import find_zone, local_time, shown_zone

LISTED_MAX = 200
"""Most units, and most findings, of a deployment that the page lists; see ``report.json``."""
_STRIP_MAX = 4000
"""Most days of a strip; of more the page states the coverage alone."""
_STRIP_HEIGHT, _LEFT, _BOTTOM = 14, 70, 24
_TIME_LABELS = 6
_ROUND = {10: " 00:00:00", 16: ":00"}
"""Characters of a label, if all times end so."""
_HALF_LABEL = 60
_FAINTEST = 0.25
"""Opacity of a day with hardly any sound."""
_MIB = 1 << 20
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #181a20; background: #fff;
  max-width: 1300px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .6rem 0 1.2rem; }
th, td { text-align: left; padding: .15rem 1.2rem .15rem 0; vertical-align: top;
  overflow-wrap: anywhere; }
th { font-weight: 600; }
svg { width: 100%; height: auto; font-size: 12px; }
"""


def html_page(report: JobReport, pictures: ReportPictures) -> str:
    """Return the page of a report; all texts from outside are escaped."""
    title, zone = f"{_text(report.job)}: report", find_zone(report.time_zone)
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{title}</h1><p>Times: {_text(shown_zone(report.time_zone))}.",
        "Days, names of units, and times that end in Z: UTC.",
        f"Unit: {_text(report.unit)}; {_text(report.software)}.</p>",
    ]
    for one in report.deployments:
        of_it = [found for found in pictures.averages if found.deployment == one.name]
        parts += _deployment(one, of_it, zone)
    parts += _differences(pictures.comparisons, report.differences_left_out, zone)
    return "\n".join([*parts, "</main></body></html>\n"])


def _text(text: str) -> str:
    return escape(printable(text))


def _deployment(
    one: DeploymentReport, averages: Sequence[SignalAverage], zone: tzinfo
) -> Iterator[str]:
    yield f"<section><h2>{_text(one.name)}</h2>"
    yield "<table>"
    for name, value in _facts(one, zone):
        yield f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>'
    yield "</table>"
    yield from _strip(one)
    for signal, average in ((found.signal, found.average) for found in averages):
        name = f"{one.name} {signal}".rstrip()
        yield f"<h3>Long-term average of {_text(name)}</h3>"
        yield _average(average, name, zone)
    yield from _set_aside(one)
    if one.notes:
        yield "<h3>Findings of the plan</h3><ul>"
        yield from (f"<li>{_text(line)}</li>" for line in one.notes[:LISTED_MAX])
        yield "</ul>"
        yield from _more(sum(one.findings.values()) - LISTED_MAX, "plan.jsonl")
    yield "</section>"


def _facts(one: DeploymentReport, zone: tzinfo) -> Iterator[tuple[str, str]]:
    units = ", ".join(f"{n} {state}" for state, n in sorted(one.n_units.items()))
    found = ", ".join(f"{n} {kind}" for kind, n in sorted(one.findings.items()))
    yield "units", units or "none"
    yield "findings of the plan, lines", found or "none"
    if not one.n_units:
        return
    ends_ns = one.begin_utc_ns, one.end_utc_ns
    yield f"time, {zone_title(ends_ns, zone)}", " to ".join(_iso(t_ns, zone) for t_ns in ends_ns)
    yield "sound", f"{one.computed_s / 3600:.2f} h computed of {one.sound_s / 3600:.2f} h"
    yield "coverage", f"{100 * one.coverage:.1f} % of the time"
    within = f"{one.gaps} within units, {one.missing_s:.1f} s"
    yield "gaps and pauses", f"{within}; {one.unit_gaps} between units, {one.unit_gaps_s:.1f} s"
    if one.flagged_minutes or one.clipped_samples:
        flags = ", ".join(f"{name}: {n} min" for name, n in one.flagged_minutes.items())
        clipped = f"{one.clipped_samples} clipped samples"
        yield "quality flags", ", ".join(text for text in (flags, clipped) if text)
    if one.events is not None:
        yield "events", f"{one.events}{_most_events(one)}"
    if one.processor_s:
        memory = f"at most {one.memory_bytes / _MIB:.0f} MiB a process"
        yield "rate", f"{one.realtime_factor:.0f} x real time of a core, {memory}"
    if one.unreadable:
        yield "unreadable results", ", ".join(one.unreadable[:LISTED_MAX])


def _most_events(one: DeploymentReport) -> str:
    most = max(one.days, key=lambda day: day.events, default=None)
    return f", most of them on {most.day} UTC: {most.events}" if most and most.events else ""


def _set_aside(one: DeploymentReport) -> Iterator[str]:
    if not one.set_aside:
        return
    yield "<h3>Units without a whole result</h3><table>"
    heads = ("unit (UTC)", "state", "reason")
    yield "<tr>" + "".join(f'<th scope="col">{one}</th>' for one in heads) + "</tr>"
    for unit in one.set_aside[:LISTED_MAX]:
        cells = (unit.unit, unit.state, unit.reason)
        yield "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table>"
    yield from _more(len(one.set_aside) - LISTED_MAX, "report.json")


def _more(n_more: int, file_name: str) -> Iterator[str]:
    if n_more > 0:
        yield f"<p>and {n_more} more in {file_name}</p>"


def _strip(one: DeploymentReport) -> Iterator[str]:
    """Yield a strip of days: the darker, the more of the day has been computed.

    A recorder that sleeps most of the time has days that can be told from days without sound.
    """
    if not one.days:
        return
    days = [np.datetime64(day.day, "D").astype(np.int64) for day in one.days]
    n_days = int(days[-1] - days[0]) + 1
    if n_days > _STRIP_MAX:
        return
    width = WIDTH / n_days
    first, last = one.days[0].day, one.days[-1].day
    yield (
        f'<svg viewBox="0 0 {_LEFT + WIDTH} {_STRIP_HEIGHT + _BOTTOM}" role="img" '
        f'aria-label="share of each day of UTC with results, {first} to {last}">'
    )
    yield f'<rect x="{_LEFT}" y="0" width="{WIDTH}" height="{_STRIP_HEIGHT}" fill="#d0d6dc"/>'
    for number, day in zip(days, one.days, strict=True):
        x = _LEFT + (number - days[0]) * width
        events = "" if one.events is None else f", {day.events} events"
        yield (
            f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="{_STRIP_HEIGHT}" '
            f'fill="#14508c" fill-opacity="{_opacity(day.share):.3f}">'
            f"<title>{day.day}: {100 * day.share:.1f} %{events}</title></rect>"
        )
    y = _STRIP_HEIGHT + 16
    yield f'<text x="{_LEFT}" y="{y}">{first}</text>'
    middle = _LEFT + WIDTH // 2
    yield f'<text x="{middle}" y="{y}" text-anchor="middle">days of UTC with results</text>'
    yield f'<text x="{_LEFT + WIDTH}" y="{y}" text-anchor="end">{last}</text></svg>'


def _opacity(share: float) -> float:
    return _FAINTEST + (1.0 - _FAINTEST) * share if share else 0.0


def _average(average: LongTermAverage, name: str, zone: tzinfo) -> str:
    low, high = average.limits
    unit = _text(average.unit or "dB")
    meaning = f"Mean power, black {low:g} to yellow {high:g} {unit}; grey: no data"
    return _picture(average, f"long-term average of {name}", average.png(), meaning, zone)


def _differences(
    found: Sequence[Comparison], left_out: Sequence[str], zone: tzinfo
) -> Iterator[str]:
    if not (found or left_out):
        return
    yield "<section><h2>Differences</h2>"
    for numbers, picture in found:
        name = f"{numbers.deployment} less {numbers.reference} {numbers.signal}".rstrip()
        yield f"<h3>{_text(name)}</h3>"
        if not numbers.bands:
            yield "<p>They have no data at the same time.</p>"
            continue
        most = picture.limits[1]
        meaning = (
            f"Difference of mean powers, blue -{most:g} dB to red +{most:g} dB; "
            "grey: one of them has no data"
        )
        png = picture.png(diverging(SHADES))
        yield _picture(picture, f"difference: {name}", png, meaning, zone)
        yield from _octaves(numbers)
    if left_out:
        yield "<h3>Without a difference</h3><ul>"
        yield from (f"<li>{_text(line)}</li>" for line in left_out[:LISTED_MAX])
        yield "</ul>"
        yield from _more(len(left_out) - LISTED_MAX, "report.json")
    yield "</section>"


def _octaves(found: DeploymentDifference) -> Iterator[str]:
    """Yield the table of octaves in which both deployments have data."""
    unit = _text(found.unit or "dB")
    heads = (
        "octave",
        f"{found.deployment}, {unit}",
        f"{found.reference}, {unit}",
        "difference, dB",
    )
    yield "<table><tr>" + "".join(f'<th scope="col">{_text(one)}</th>' for one in heads) + "</tr>"
    for band in found.bands:
        levels = (band.level_db, band.reference_db)
        cells = (_frequency(band.f_hz), *(f"{one:.1f}" for one in levels))
        cells += (f"{band.difference_db:+.1f}",)
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</table>"


def _picture(average: LongTermAverage, name: str, png: bytes, meaning: str, zone: tzinfo) -> str:
    href = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    if average.period_s:
        meaning += f"; columns of a period of the schedule, {average.period_s:g} s"
    times = zone_title((average.begin_utc_ns, average.end_utc_ns), zone)
    return "\n".join(
        [
            f'<svg viewBox="0 0 {_LEFT + WIDTH} {HEIGHT + _BOTTOM}" role="img"',
            f' aria-label="{_text(name)}">',
            f'<image x="{_LEFT}" y="0" width="{WIDTH}" height="{HEIGHT}" href="{href}"',
            ' preserveAspectRatio="none" style="image-rendering: pixelated"/>',
            *_frequency_labels(average),
            *_time_labels(average, zone),
            "</svg>",
            f"<p>{meaning}. Times: {_text(times)}.</p>",
        ]
    )


def _frequency(f_hz: float) -> str:
    return f"{f_hz / 1000:g} kHz" if f_hz >= 1000.0 else f"{f_hz:g} Hz"


def _frequency_labels(average: LongTermAverage) -> Iterator[str]:
    span = np.log(average.f_max_hz / average.f_min_hz)
    for power in range(int(np.ceil(np.log10(average.f_max_hz))) + 1):
        f_hz = 10.0**power
        if not average.f_min_hz <= f_hz <= average.f_max_hz:
            continue
        y = HEIGHT * (1.0 - np.log(f_hz / average.f_min_hz) / span)
        text = _frequency(f_hz)
        y_text = min(max(y + 4, 12), HEIGHT)
        yield f'<text x="{_LEFT - 10}" y="{y_text:.1f}" text-anchor="end">{text}</text>'
        yield f'<path d="M{_LEFT - 6} {y:.1f}h6" stroke="#181a20"/>'


def _time_labels(average: LongTermAverage, zone: tzinfo) -> Iterator[str]:
    """Yield labels at whole minutes, hours or days of local time."""
    begin_ns = average.begin_utc_ns
    span_s = (average.end_utc_ns - begin_ns) / NS_PER_S
    ticks = clock_axis(begin_ns, span_s, _TIME_LABELS, zone).ticks
    places_s = [tick.value for tick in ticks] or [0.0]
    texts = [_iso(begin_ns + round(place_s * NS_PER_S), zone) for place_s in places_s]
    n_common = next((n for n, end in _ROUND.items() if all(one.endswith(end) for one in texts)), 19)
    for place_s, text in zip(places_s, texts, strict=True):
        x = _LEFT + WIDTH * place_s / span_s
        is_end = x > _LEFT + WIDTH - _HALF_LABEL
        anchor = "end" if is_end else "start" if x < _HALF_LABEL else "middle"
        label = text[:n_common]
        yield f'<text x="{x:.1f}" y="{HEIGHT + 18}" text-anchor="{anchor}">{label}</text>'
        yield f'<path d="M{x:.1f} {HEIGHT}v5" stroke="#181a20"/>'


def _iso(t_utc_ns: int, zone: tzinfo) -> str:
    """Return a time as ``YYYY-MM-DD HH:MM:SS``; nanoseconds if the calendar lacks it."""
    try:
        found = local_time(t_utc_ns, zone)
    except (OverflowError, ValueError, OSError):
        return f"{t_utc_ns} ns"
    return found.strftime("%Y-%m-%d %H:%M:%S")
