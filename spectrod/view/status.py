"""One line that says how things are, for where there is no terminal, and for a picture's head."""

import errno
import os
import select
import stat
from typing import TextIO

from spectrod.errors import StorageError
from spectrod.text import printable
from spectrod.view.peak import Peak, find_peak, level_unit, levels_db
from spectrod.wire.schema import Frame, SpectrumHeader


def plain(text: str) -> str:
    """Make text from a peer ``printable``, and ASCII: one column of the terminal a character."""
    return printable(text).encode("ascii", "replace").decode()


def peak_text(peak: Peak | None, header: SpectrumHeader) -> str:
    """Describe a peak, as in ``1000.0 Hz -20.0 dBFS``; a bin's own frequency is marked."""
    if peak is None:
        return "silence"
    bin_only = "" if peak.is_interpolated else " (bin)"
    unit = plain(level_unit(header))
    return f"{peak.frequency_hz:.1f} Hz{bin_only} {peak.level_db:.1f} {unit}"


def losses_text(header: SpectrumHeader, missed: int) -> str:
    """Say what has been lost, and where."""
    suspected = f"  suspected {header.suspected}" if header.suspected else ""
    return (
        f"missed {missed}  dropped {header.dropped}  overflows {header.overflows}{suspected}"
        f"  gap {header.gap_samples}"
    )


def status_line(frame: Frame, missed: int = 0) -> str:
    """Say in one line what a frame shows; missed is the subscription's count of lost messages."""
    peak = find_peak(levels_db(frame), frame.header)
    return (
        f"{frame.source}/{frame.channel}  peak {peak_text(peak, frame.header)}"
        f"  seq {frame.header.seq}  {losses_text(frame.header, missed)}"
    )


def write_line(text: str, out: TextIO) -> None:
    """Write a line; leave it out where it would have to wait for a reader that has stopped reading.

    Raises
    ------
    BrokenPipeError
        If the reader has gone: a pipe's other end, or the terminal.
    StorageError
        If what ``out`` is redirected to cannot be written, a full disk for example.
    """
    fd = out.fileno()
    if not select.select([], [fd], [], 0.0)[1]:
        return
    try:
        # Not through out's buffer: what cannot be written would fail again at the program's end.
        os.write(fd, f"{text}\n".encode(out.encoding, "replace"))
    except BrokenPipeError:
        raise
    except OSError as error:
        # A terminal that has gone says EIO, and isatty() no longer knows it.
        if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(fd).st_mode):
            raise BrokenPipeError(error.errno, error.strerror) from error
        raise StorageError(f"{out.name}: {error.strerror}") from error
