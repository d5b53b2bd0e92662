"""One-line status, for output without a terminal and for the head of a picture."""

from spectrod.apps.view.frame_levels import level_unit, levels_db
from spectrod.dsp.peak import Peak, find_peak
from spectrod.lib.text import printable
from spectrod.wire.schema import Frame, SpectrumHeader


def plain(text: str) -> str:
    """Make a peer's text ``printable`` and ASCII: one terminal column per character."""
    return printable(text).encode("ascii", "replace").decode()


def peak_text(peak: Peak | None, header: SpectrumHeader) -> str:
    """Describe a peak, as in ``1000.0 Hz -20.0 dBFS``; a bin's own frequency is marked."""
    if peak is None:
        return "silence"
    bin_only = "" if peak.is_interpolated else " (bin)"
    unit = plain(level_unit(header))
    return f"{peak.frequency_hz:.1f} Hz{bin_only} {peak.level_db:.1f} {unit}"


def engine_text(engine: str, width: int) -> str:
    """Return the name of an engine in at most ``width`` columns: first without its platform."""
    name = plain(engine)
    if len(name) > width and "/" in name:
        kind, _, rest = name.partition(":")
        name = f"{kind}:{rest.partition('/')[2]}"
    return name if len(name) <= width else f"{name[: max(0, width - 2)]}.."


def losses_text(header: SpectrumHeader, missed: int) -> str:
    """Return the losses, by place."""
    suspected = f"  suspected {header.suspected}" if header.suspected else ""
    return (
        f"missed {missed}  dropped {header.dropped}  overflows {header.overflows}{suspected}"
        f"  gap {header.gap_samples}"
    )


def status_line(frame: Frame, missed: int = 0) -> str:
    """Return one line about a frame; missed is the subscription's count of lost messages."""
    peak = find_peak(levels_db(frame), frame.header)
    return (
        f"{frame.source}/{frame.channel}  peak {peak_text(peak, frame.header)}"
        f"  seq {frame.header.seq}  {losses_text(frame.header, missed)}"
    )
