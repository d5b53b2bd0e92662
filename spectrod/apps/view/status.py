"""One-line status, for output without a terminal and for the head of a picture."""

import errno
import os
import select
import stat
from typing import TextIO

from spectrod.cli.terminal.peak import Peak, find_peak, level_unit, levels_db
from spectrod.lib.errors import StorageError
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


def write_line(text: str, out: TextIO) -> None:
    """Write a line; skip it if the reader has stopped reading.

    Raises
    ------
    BrokenPipeError
        If the reader has gone: a pipe's other end, or the terminal.
    StorageError
        If the target of ``out`` cannot be written, for example on a full disk.
    """
    fd = out.fileno()
    if not select.select([], [fd], [], 0.0)[1]:
        return
    try:
        # Not through out's buffer, which would fail again at the program's end.
        os.write(fd, f"{text}\n".encode(out.encoding, "replace"))
    except BrokenPipeError:
        raise
    except OSError as error:
        # A terminal that has gone returns EIO, and isatty() is false for it.
        if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(fd).st_mode):
            raise BrokenPipeError(error.errno, error.strerror) from error
        raise StorageError(f"{out.name}: {error.strerror}") from error
