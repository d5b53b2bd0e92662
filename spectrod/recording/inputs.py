"""Opening of recordings, independent of their format."""

from collections.abc import Iterator
from pathlib import Path

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import RowReader
from spectrod.formats.segment.header import row_samples
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_series import is_segment_name
from spectrod.lib.errors import InputError, storage_errors
from spectrod.lib.output_formats import OutputFormat, format_named, load, readable_suffixes
from spectrod.lib.regular_files import open_regular


def is_recording(path: Path) -> bool:
    """Return whether a path names a recording of spectra, or is a folder of segments."""
    if is_segment_name(path) or _readable(path):
        return True
    return path.is_dir() and any(is_segment_name(entry) for entry in path.iterdir())


def open_recording(path: Path) -> RowReader:
    """Open a recording of spectra: a segment, a folder of segments, or an exported file.

    Raises
    ------
    InputError
        If it is not such a recording.
    StorageError
        If it cannot be read.
    UnavailableError
        If the format needs a package that is not installed.
    """
    if not is_recording(path):
        known = ", ".join(readable_suffixes())
        raise InputError(f"{path}: must be a recording of spectra ({known}), or a folder of .spd")
    found = _readable(path)
    if found is None:
        return SegmentReader(path)
    with storage_errors(path):
        if not path.is_dir():  # shorter than the errors of the libraries, which wait for FIFOs
            open_regular(path).close()
    reader: RowReader = load(found.reader)(path)
    return reader


def _readable(path: Path) -> OutputFormat | None:
    found = format_named(path.suffix)
    return found if found and found.reader else None


def span_utc_ns(reader: RowReader) -> tuple[int, int] | None:
    """Return the UTC of a recording's first row and of its end [ns], if that is cheap."""
    return reader.span_utc_ns() if isinstance(reader, SegmentReader) else None


def scan_span_utc_ns(reader: RowReader) -> tuple[int, int]:
    """Return the result of ``span_utc_ns`` by reading all rows; (0, 0) without rows."""
    begin_ns = end_ns = None
    spec = reader.description.spec
    row_ns = round(row_samples(spec) * 1e9 / spec.fs)
    for batch in reader.batches():
        if batch.n_frames:
            begin_ns = int(batch.t_utc_ns[0]) if begin_ns is None else begin_ns
            end_ns = int(batch.t_utc_ns[-1]) + row_ns
    return begin_ns or 0, end_ns or 0


def left_out_samples(reader: RowReader) -> int | None:
    """Return the number of samples that are in no row; None if the recording does not say."""
    return reader.left_out_samples if isinstance(reader, SegmentReader) else None


def batches_between(
    reader: RowReader, start_utc_ns: int | None = None, stop_utc_ns: int | None = None
) -> Iterator[SpectrumBatch]:
    """Yield the rows of a recording from a start time until before a stop time [ns].

    The first row of a part reports no gap before it.
    """
    if isinstance(reader, SegmentReader):
        return reader.batches(start_utc_ns, stop_utc_ns)
    if start_utc_ns is None and stop_utc_ns is None:
        return reader.batches()
    return _cut(reader.batches(), start_utc_ns, stop_utc_ns)


def _cut(
    batches: Iterator[SpectrumBatch], start_utc_ns: int | None, stop_utc_ns: int | None
) -> Iterator[SpectrumBatch]:
    is_first = start_utc_ns is not None
    for batch in batches:
        first, stop = 0, batch.n_frames
        if start_utc_ns is not None:
            first = batch.index_at(start_utc_ns)
        if stop_utc_ns is not None:
            stop = batch.index_at(stop_utc_ns)
            if stop == 0:
                return
        if first < stop:
            part = batch.between(first, stop)
            yield part.as_first() if is_first else part
            is_first = False
