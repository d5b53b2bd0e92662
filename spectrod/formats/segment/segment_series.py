"""Finds segments and determines their order."""

import logging
from collections.abc import Sequence
from pathlib import Path

from spectrod.formats.segment.segment import Segment
from spectrod.lib.errors import InputError, SpectrodError
from spectrod.lib.output_formats import PART_SUFFIX

_log = logging.getLogger(__name__)

SUFFIX = ".spd"
SUFFIXES = (SUFFIX, SUFFIX + PART_SUFFIX)


def is_segment_name(path: Path) -> bool:
    """Return whether a file of this name is a segment, finished or not."""
    return path.name.lower().endswith(SUFFIXES)


def find_segments(path: Path) -> list[Segment]:
    """Return the segments of a path, a file or a folder, in order.

    In a folder, unreadable segments are left out with a warning, and so are those without rows.

    Raises
    ------
    InputError
        If there is none, or they are of different analyses, or two have the same number.
    StorageError
        If a segment cannot be read.
    """
    if not path.is_dir():
        return [Segment(path)]
    names = sorted(entry for entry in path.iterdir() if is_segment_name(entry))
    if not names:
        raise InputError(f"{path}: must hold segments, *{SUFFIX}")
    found = [segment for name in names if (segment := _readable(name))]
    if not found:
        raise InputError(f"{path}: none of its {len(names)} segments can be read")
    with_rows = [segment for segment in found if segment.first]
    return _ordered(path, with_rows) if with_rows else found[:1]


def _readable(path: Path) -> Segment | None:
    try:
        return Segment(path)
    except SpectrodError as error:
        _log.warning("%s; it is left out", error)
        return None


def _ordered(folder: Path, segments: Sequence[Segment]) -> list[Segment]:
    """Sort segments by the begin of their recordings and by their numbers."""
    first = segments[0].header.description
    seen: dict[tuple[int, int], Segment] = {}
    begins: dict[int, int] = {}
    for segment in segments:
        about, place = segment.header.description, segment.header.place
        if (about.spec, about.signals, about.cal_id) != (first.spec, first.signals, first.cal_id):
            raise InputError(
                f"{folder}: {segments[0].path.name} and {segment.path.name} are of different "
                "analyses: name one, or keep them in folders of their own"
            )
        same = seen.setdefault((place.recording, place.number), segment)
        if same is not segment:
            raise InputError(
                f"{folder}: {same.path.name} and {segment.path.name} are the same part of a "
                "recording: remove one"
            )
        begin = begins.get(place.recording, segment.begin_utc_ns)
        begins[place.recording] = min(begin, segment.begin_utc_ns)

    def order(segment: Segment) -> tuple[int, int, int]:
        place = segment.header.place
        return begins[place.recording], place.recording, place.number

    return sorted(segments, key=order)
