"""The samples of a source, as blocks of float32, for commands that measure them."""

import logging
from collections.abc import Iterator
from dataclasses import replace

from spectrod.analysis.samples import to_float32
from spectrod.cli.absence import STILL_ABSENT, Absence
from spectrod.cli.interrupts import interrupts_held
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.blocks import Block, RangeTrimmer
from spectrod.lib.errors import UnavailableError
from spectrod.source.base import SampleReader
from spectrod.source.open_source import Source

_log = logging.getLogger(__name__)

_INCOMPLETE = 65
_READ_SAMPLES = 1 << 16
_READ_VALUES = 1 << 22
"""Samples of all channels that are read at a time, 16 MiB."""
_POLL_S = 0.1


def read_blocks(source: Source, span: SampleRange) -> Iterator[Block]:
    """Start a source, yield the blocks of the range, show progress, and stop the source.

    Raises
    ------
    SpectrodError
        The failure of the source, after the last block.
    UnavailableError
        If a live source has delivered nothing when the duration is over.
    """
    reader = source.open_reader()
    try:
        source.start(reader)
        with ProgressBar(source.fs, span.n_samples) as bar:
            yield from blocks_of(source, reader, span, bar)
    finally:
        with interrupts_held():
            source.stop()
            reader.close()
            reader.release()
    if source.failure is not None:
        raise source.failure


def blocks_of(
    source: Source, reader: SampleReader, span: SampleRange, bar: ProgressBar
) -> Iterator[Block]:
    """Yield the blocks of the range of a started source, as float32, and show progress.

    A live source that is absent when the duration is over has ended.

    Raises
    ------
    UnavailableError
        If it has delivered nothing by then.
    """
    absence = Absence(source)
    trimmer = RangeTrimmer(span.first, span.max_samples)
    n_max = max(1, min(_READ_SAMPLES, _READ_VALUES // reader.layout.channels))
    while not reader.exhausted and trimmer.left != 0:
        read = reader.read(n_max)
        if read is None:
            reader.wait(timeout_s=_POLL_S)
            waiting = source.capture().waiting_for
            bar.update(max(0, reader.written - span.first), waiting)
            if span.max_samples and absence.reaches(reader.written, span.max_samples):
                if not reader.written:
                    duration_s = span.max_samples / source.fs
                    raise UnavailableError(
                        f"{source.description}: no samples in {duration_s:g} s: {waiting}"
                    )
                _log.warning(STILL_ABSENT)
                return
            continue
        if (block := trimmer.trim(read)) is not None:
            bar.update(block.sample_index - span.first)
            samples = to_float32(block.samples, reader.layout.sample_format)
            yield replace(block, samples=samples)


def report_left_out(source: Source) -> int:
    """Log the files that were skipped or read in part; return the exit code for that."""
    left_out = source.left_out
    if not left_out.n_files:
        return 0
    _log.warning("files left out or read in part: %d", left_out.n_files)
    for line in left_out.lines:
        _log.warning("%s", line)
    return _INCOMPLETE
