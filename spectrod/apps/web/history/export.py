"""Files of a piece of the past: a table, a picture, or the recorded rows themselves."""

import datetime as dt
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.web.history.answer import HistoryAnswer
from spectrod.apps.web.history.axis import NOTHING
from spectrod.apps.web.history.budget import Budget, SpentError
from spectrod.apps.web.history.columns import from_wire
from spectrod.apps.web.history.lookup import Topic, find_recordings, find_topic
from spectrod.apps.web.history.recording_index import RecordingIndex, StoredRecordings
from spectrod.apps.web.history.request import HistoryRequest
from spectrod.apps.web.history.source_folder import StoredFile
from spectrod.apps.web.history.stored_rows import opened, read_beginning, rows_between
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.picture.colormaps import colormap
from spectrod.formats.picture.png import encode_png
from spectrod.formats.segment.continuity import Continuity, Range
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError, InputError, NotFoundError, SpectrodError

ROWS_BYTES_MAX: Final = 64 << 20
"""Largest file of rows that is made [bytes]."""
_COLOURS: Final = 255
_NO_DATA_COLOUR: Final = bytes((128, 128, 128))
_DIVERGING: Final = np.array([(33, 102, 172), (247, 247, 247), (178, 24, 43)])
"""Colours of the lowest difference, of none, and of the highest, as in the page."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def to_csv(answer: HistoryAnswer) -> bytes:
    """Return a table: a line for each column in time, a column for each value.

    Cells are levels to 0.01 dB; those of gaps are empty. Lines that begin with # say what it is.
    """
    header, axis = answer.header, answer.axis
    middles = (axis.lower + axis.upper) / 2.0
    lines = [
        f"# {_title(header)}, {header['unit']}, {header['layers'][0]} of power",
        f"# each line has {header['cell_ms'] / 1e3:g} s from its time on; frequencies in Hz",
        *(f"# left out: {text}" for text in header["left_out"]),
        ",".join(["time_utc", "effort_s", *(f"{hz:.10g}" for hz in middles)]),
    ]
    rows = zip(answer.effort_s, answer.layers[0], strict=True)
    for n, (effort_s, codes) in enumerate(rows):
        time = _iso_time(header["t0"] + n * header["cell_ms"])
        levels = ("" if code == NOTHING else f"{code / 100:.2f}" for code in from_wire(codes))
        lines.append(",".join([time, f"{effort_s:.3f}", *levels]))
    return ("\n".join(lines) + "\n").encode()


def _title(header: Mapping[str, Any]) -> str:
    """Return the topic, and the one whose levels are subtracted."""
    return f"{header['topic']} less {header['less']}" if "less" in header else header["topic"]


def _iso_time(t_ms: float) -> str:
    time = _EPOCH + dt.timedelta(milliseconds=t_ms)
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _diverging(n_entries: int) -> NDArray[np.uint8]:
    """Return a table of colours for differences (n_entries, 3), as ``colormap`` does."""
    place = np.linspace(0.0, 2.0, n_entries)
    colours = [np.interp(place, (0.0, 1.0, 2.0), ends) for ends in _DIVERGING.T]
    table: NDArray[np.uint8] = np.rint(np.stack(colours, axis=1)).astype(np.uint8)
    return table


def to_png(answer: HistoryAnswer, low_db: float, high_db: float, map_name: str) -> bytes:
    """Return a picture: time from left to right, frequencies upwards, a pixel a value.

    Parameters
    ----------
    answer : HistoryAnswer
        The piece of the past; its first layer is drawn.
    low_db, high_db : float
        Levels of the first and the last colour; the second is above the first [dB].
    map_name : str
        Name of a colour map; differences have one of their own, red above 0 and blue below.

    Raises
    ------
    ConfigError
        If the levels do not ascend, or there is no such map.
    """
    if not high_db > low_db:
        raise ConfigError(f"lo={low_db:g}, hi={high_db:g}: hi must be above lo")
    codes = from_wire(answer.layers[0].T[::-1])
    share = (codes / 100.0 - low_db) / (high_db - low_db)
    entries = 1 + np.rint(np.clip(share, 0.0, 1.0) * (_COLOURS - 1)).astype(np.uint8)
    entries[codes == NOTHING] = 0
    shades = _diverging(_COLOURS) if "less" in answer.header else colormap(map_name, _COLOURS)
    palette = _NO_DATA_COLOUR + shades.tobytes()
    header = answer.header
    about = (
        f"{_title(header)} from {_iso_time(header['t0'])}, {header['cell_ms'] / 1e3:g} s a pixel; "
        f"{header['f0']:g} to {header['f1']:g} Hz; {low_db:g} to {high_db:g} {header['unit']}"
    )
    return encode_png(entries, palette, [("Description", about), ("Software", "spectrod")])


def to_segment(
    request: HistoryRequest,
    topics: Mapping[int, Topic],
    recordings: StoredRecordings,
    budget: Budget,
) -> bytes:
    """Return the recorded rows of a span of time as a segment, bit for bit, all channels.

    Parameters
    ----------
    request : HistoryRequest
        Topic and time; frequencies and sizes do not matter.
    topics : mapping of int to Topic
        All topics of the server.
    recordings : StoredRecordings
        Recordings on the disk.
    budget : Budget
        What the request may read.

    Raises
    ------
    ConfigError
        If the rows are of several analyses, or too many.
    NotFoundError
        If there are no recorded rows of this time.
    """
    topic = find_topic(request, topics)
    index = recordings.of(topic.endpoint)
    index.refresh()
    found = find_recordings(topic, topics, index).files.values()
    span = request.t0_ns, request.t1_ns
    chosen = max((_overlapping(files, span) for files in found), key=len, default=[])
    if not chosen:
        raise NotFoundError("t0, t1: no recording holds rows of this time")
    about = chosen[0].description
    if any(file.description.spec != about.spec for file in chosen):
        raise ConfigError("t0, t1: the analysis changed in this time: choose a shorter one")
    with tempfile.TemporaryDirectory(prefix="spectrod-") as folder:
        path = Path(folder) / "rows.spd"
        _write(path, about, _batches(index, chosen, span, budget))
        return path.read_bytes()


def _overlapping(files: list[StoredFile], span: tuple[int, int]) -> list[StoredFile]:
    """Return the files that may have rows of a span of time, the oldest first."""
    t0_ns, t1_ns = span
    found = [
        file
        for file in files
        if file.begin_utc_ns < t1_ns and (file.end_utc_ns is None or file.end_utc_ns > t0_ns)
    ]
    return found[::-1]


def _batches(
    index: RecordingIndex, files: list[StoredFile], span: tuple[int, int], budget: Budget
) -> Iterator[SpectrumBatch]:
    """Yield the rows whose first samples are in a span of time."""
    continuity = Continuity(files[0].description.spec, is_part=True)
    try:
        for file in files:
            path, want = Path(file.name), Range(*span, 0, None)
            budget.spend_file()
            with opened(index.open_file(file), budget) as stream:
                start = read_beginning(path, stream)
                for stored in rows_between(path, stream, start, *span):
                    cut = want.cut(stored)
                    if cut is not None:
                        yield continuity.join(cut)
    except SpentError as error:
        raise ConfigError(f"t0, t1: {error}: choose a shorter time") from error
    except OSError as error:
        raise NotFoundError(f"{file.name}: {error.strerror}") from error


def _write(path: Path, about: Description, batches: Iterator[SpectrumBatch]) -> None:
    """Write rows to a file; nothing is left after an error."""
    writer = SegmentWriter(path, about, fsync_s=1e9, is_copy=True)
    try:
        for batch in batches:
            writer.write(batch)
            if writer.size_bytes > ROWS_BYTES_MAX:
                rule = f"more than {ROWS_BYTES_MAX >> 20} MiB of rows: choose a shorter time"
                raise ConfigError(f"t0, t1: {rule}")
        writer.finish()
    except InputError as error:
        raise NotFoundError("t0, t1: no recording holds rows of this time") from error
    except SpectrodError:
        writer.abort()
        raise
