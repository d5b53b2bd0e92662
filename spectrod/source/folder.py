"""A folder of sound files as one stream, with the gaps that their times say."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spectrod.config import Pace
from spectrod.errors import InputError
from spectrod.source.base import PulledSource, Seam
from spectrod.source.naming import topic_name
from spectrod.source.recorded_at import RecordedAt, recorded_at
from spectrod.source.soundfile import SoundFile
from spectrod.text import printable
from spectrod.units import Float32Array

_log = logging.getLogger(__name__)

SUFFIXES = frozenset({
    ".wav", ".wave", ".bwf", ".rf64", ".w64", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf",
    ".flac", ".ogg", ".oga", ".opus", ".mp3",
})  # fmt: skip
"""Of the files that count, in capitals or not; others are left alone."""

TOLERANCE_S = 2.0
"""From where on a difference between a file's end and the next one's time is a gap or an overlap:
names give whole seconds."""

DRIFT_MAX = 200e-6
"""What a recorder's sample rate may be off from its clock: so much more may times and samples
differ over many files that follow on each other. Beyond that, small pauses have added up."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A file of the folder, as its header says, and its place in the stream."""

    path: Path
    fs: float
    channels: int
    n_samples: int
    recorded: RecordedAt | None
    begin: int = 0
    """Sample index of its first sample in the stream."""

    @property
    def end(self) -> int:
        return self.begin + self.n_samples

    @property
    def t_ns(self) -> int:
        """UTC of its first sample; only where it says so."""
        assert self.recorded is not None
        return self.recorded.utc_ns


class FolderSource(PulledSource):
    """The sound files of a folder, one after the other, as one stream.

    Files are in the order of their times (see ``recorded_at``). Where one begins ``TOLERANCE_S`` or
    more after the end of the one before, the samples between are missing: its index is what its
    time says, counted at the nominal rate from the first file's. Below that it follows directly,
    unless pauses add up (see ``DRIFT_MAX``); an overlap of that size is an error. Where no file
    says its time, they are in the order of their names, without gaps, and a warning says so.
    Folders within the folder, hidden files and files whose suffix is not of sound are left alone.

    All headers are read at the start; one file at a time is open.

    Parameters
    ----------
    path : str
        The folder.
    pace : {"realtime", "full"}
        How fast; what is missing is not waited for.
    loop : bool
        Whether to play them again and again; times are then those of playing.

    Raises
    ------
    InputError
        If there is no sound file, if one of them cannot be read or is damaged, differs in sample
        rate or channels, alone has no time, or overlaps another.
    """

    def __init__(self, path: str, pace: Pace, *, loop: bool = False) -> None:
        super().__init__(pace)
        self._loop = loop
        self._members = _placed(_in_order(path, [_read_header(name) for name in _listed(path)]))
        first, last = self._members[0], self._members[-1]
        self.name = topic_name(Path(path).absolute().name)
        self.fs, self.channels = first.fs, first.channels
        self._n_channels = first.channels
        self.description = f"{printable(path)} ({len(self._members)} files)"
        if not loop:
            self.n_samples = last.end
            self.start_utc_ns = first.recorded.utc_ns if first.recorded else None
        self._log_summary()

    def begin_at(self, sample_index: int) -> None:
        """Leave out the samples before one; see ``PulledSource``."""
        member = next((one for one in self._members if one.end > sample_index), None)
        if member is None or self._loop:
            return
        is_inside = sample_index > member.begin
        self._begin = sample_index
        if is_inside and not _seeks_exactly(member):
            self._begin = member.begin

    def blocks(self, n_max: int) -> Iterator[Float32Array | Seam]:
        """Yield the samples of each file in turn, with a ``Seam`` for each gap."""
        interleaved = np.empty((n_max, self._n_channels), np.float32)
        while True:
            end = self._begin
            for member in self._members:
                if member.end <= end:
                    continue
                if member.begin > end:
                    yield Seam(member.begin - end)
                    end = member.begin
                for samples in _samples(member, interleaved, end - member.begin):
                    yield samples
                    end += samples.shape[1]
            if not self._loop:
                return

    def _log_summary(self) -> None:
        last = self._members[-1]
        n_missing = last.end - sum(member.n_samples for member in self._members)
        _log.info("%s: %.1f s of it missing", self.description, n_missing / self.fs)


def _listed(path: str) -> list[Path]:
    try:
        found = [
            name
            for name in Path(path).iterdir()
            if name.suffix.lower() in SUFFIXES and not name.name.startswith(".")
        ]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if not found:
        raise InputError(f"{path}: a folder without sound files")
    return sorted(found)


def _read_header(path: Path) -> _Member:
    file = SoundFile(str(path))
    try:
        found = recorded_at(str(path), file.fs, file.comment)
        return _Member(path, file.fs, file.channels, file.n_samples, found)
    finally:
        file.close()


def _in_order(path: str, members: list[_Member]) -> list[_Member]:
    """Sort by time, or leave the order of names; refuse what cannot be one stream."""
    first = members[0]
    for member in members:
        if (member.fs, member.channels) != (first.fs, first.channels):
            raise InputError(
                f"{member.path}: {_format(member)}, but {first.path.name} has {_format(first)}: "
                "the files of a folder must be alike"
            )
    timeless = [member for member in members if member.recorded is None]
    if not timeless:
        return sorted(members, key=lambda member: member.t_ns)
    if len(timeless) < len(members):
        raise InputError(
            f"{timeless[0].path}: does not say when it begins, but other files of its folder do"
        )
    _log.warning("%s: no file says when it begins: joined by name, without gaps between them", path)
    return members


def _format(member: _Member) -> str:
    return f"{member.fs:g} Hz x {member.channels}"


def _placed(members: list[_Member]) -> list[_Member]:
    """Give each file its place in the stream."""
    anchor = members[0]
    placed = [anchor]
    for member in members[1:]:
        before = placed[-1]
        begin = before.end
        if member.recorded is not None and _is_gap(anchor, before, member):
            stated = round((member.t_ns - members[0].t_ns) * 1e-9 * member.fs)
            begin = max(before.end + 1, stated)
        placed.append(replace(member, begin=begin))
        if begin > before.end:
            anchor = placed[-1]
    return placed


def _is_gap(anchor: _Member, before: _Member, member: _Member) -> bool:
    """Compare a file's time with the samples since the file before and since the last gap."""
    allowed_s = TOLERANCE_S + DRIFT_MAX * (member.t_ns - anchor.t_ns) * 1e-9
    excess_s = (
        (_late_s(before, before, member), TOLERANCE_S),
        (_late_s(anchor, before, member), allowed_s),
    )
    for late_s, limit_s in excess_s:
        if late_s <= -limit_s:
            raise InputError(
                f"{member.path}: begins {-late_s:.1f} s before {before.path.name} ends: "
                "the files of a folder must not overlap"
            )
    return any(late_s >= limit_s for late_s, limit_s in excess_s)


def _late_s(since: _Member, before: _Member, member: _Member) -> float:
    """By how much a file begins after the end of the one before, by samples since another [s]."""
    return (member.t_ns - since.t_ns) * 1e-9 - (before.end - since.begin) / member.fs


def _seeks_exactly(member: _Member) -> bool:
    file = SoundFile(str(member.path))
    try:
        return file.seeks_exactly
    finally:
        file.close()


def _samples(member: _Member, interleaved: Float32Array, first: int) -> Iterator[Float32Array]:
    file = SoundFile(str(member.path))
    try:
        if (file.fs, file.channels, file.n_samples) != (
            member.fs,
            member.channels,
            member.n_samples,
        ):
            raise InputError(f"{member.path}: has changed since the folder was read")
        if first:
            file.seek(first)
        while n := file.read(interleaved):
            yield interleaved[:n].T
    finally:
        file.close()
