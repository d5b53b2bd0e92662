"""One line that says how things are, for where there is no terminal, and for a picture's head."""

from spectrod.view.peak import Peak, find_peak, level_unit, levels_db
from spectrod.wire.schema import Frame, SpectrumHeader


def plain(text: str) -> str:
    """Make text from a peer harmless: a terminal would obey the escape sequences in it."""
    return "".join(c if " " <= c <= "~" else "?" for c in text)


def peak_text(peak: Peak | None, header: SpectrumHeader) -> str:
    """Describe a peak, as in ``1000.0 Hz -20.0 dBFS``; a bin's own frequency is marked."""
    if peak is None:
        return "silence"
    bin_only = "" if peak.is_interpolated else " (bin)"
    unit = plain(level_unit(header))
    return f"{peak.frequency_hz:.1f} Hz{bin_only} {peak.level_db:.1f} {unit}"


def losses_text(header: SpectrumHeader, missed: int) -> str:
    """Say what has been lost, and where."""
    return (
        f"missed {missed}  dropped {header.dropped}  overflows {header.overflows}"
        f"  gap {header.gap_samples}"
    )


def status_line(frame: Frame, missed: int = 0) -> str:
    """Say in one line what a frame shows; missed is the subscription's count of lost messages."""
    peak = find_peak(levels_db(frame), frame.header)
    return (
        f"{frame.source}/{frame.channel}  peak {peak_text(peak, frame.header)}"
        f"  seq {frame.header.seq}  {losses_text(frame.header, missed)}"
    )
