"""A folder of sound files as one stream, with gaps according to their times."""

import copy
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from spectrod.config.config import Pace
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.base import SPAN_MAX_S, YEAR_S, Discontinuity, PulledSource, StreamFile
from spectrod.source.files.filesamples import UNUSABLE, FileSamples, plain_format_of
from spectrod.source.files.local_times import tell_passes_apart
from spectrod.source.files.placing import TOLERANCE_S, Member, place
from spectrod.source.files.recorded_at import recorded_at, why_undated
from spectrod.source.files.recorded_name import OF_NAME
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.triggered import find_stretches
from spectrod.source.left_out import LeftOut
from spectrod.source.naming import topic_name
from spectrod.source.source_listing import list_sound_files

_log = logging.getLogger(__name__)

_LONG_GAP_S = YEAR_S
"""Gaps longer than this cause a warning: a recorder with an unset clock starts in 1970 [s]."""


class FolderSource(PulledSource):
    """The sound files of a folder, one after the other, as one stream.

    Files are sorted by time (see ``recorded_at``), with gaps between them according to their times
    (see ``placing``). If no file gives a time, they are sorted by name, without gaps, and a warning
    is logged. Hidden files and files without a sound file's suffix are ignored.

    The stream contains all readable samples; the others are a gap. A truncated or damaged file is
    read up to the damage. Where files overlap, the later one starts at the end of the earlier one.
    A file is skipped if it cannot be read, if it gives no time but others do, or if its sample rate
    or number of channels differs from that of most files (in a tie, that of the earliest file
    counts). ``left_out`` lists these files.

    The source reads all headers at the start and keeps one file open at a time. At full speed the
    analysis reads the files itself; plain WAV files of one sample format are then not converted.

    Parameters
    ----------
    path : str
        The folder.
    pace : {"realtime", "full"}
        Pace of reading; gaps are not waited for.
    loop : bool
        Repeat the files endlessly; times are then those of playing.
    strict : bool
        Raise an error instead of skipping anything.
    recursive : bool
        Include the files of subfolders; see ``list_sound_files``.
    time_format : str
        Format of the start time in names; empty: see ``recorded_at``.
    time_zone : str
        Time zone of start times that name none; empty: UTC. See ``recorded_at``.

    Raises
    ------
    InputError
        If no file can be read, if there are too many files or they are too far apart in time; if
        ``strict``, for the first file that would be skipped or read in part.
    """

    def __init__(  # noqa: PLR0913 - the settings of a source
        self,
        path: str,
        pace: Pace,
        *,
        loop: bool = False,
        strict: bool = False,
        recursive: bool = False,
        time_format: str = "",
        time_zone: str = "",
    ) -> None:
        super().__init__(pace)
        self._path, self._loop = path, loop
        self._time_format, self._time_zone = time_format, time_zone
        self.is_direct = pace == "full" and not loop
        self.left_out = LeftOut(strict=strict)
        files = self._listed(recursive=recursive)
        members = self._alike(self._in_order(self._with_headers(files)))
        self._members = place(members, self.left_out.add)
        first, last = self._members[0], self._members[-1]
        self._speakers_path = str(first.path)
        self.name = topic_name(Path(path).absolute().name)
        self.fs, self.channels = first.fs, first.channels
        formats = {member.sample_format for member in self._members}
        self._plain_format = first.sample_format if len(formats) == 1 else ""
        self._sample_format = self._plain_format or "float32"
        self.description = f"{printable(path)} ({len(self._members)} files)"
        if last.end > SPAN_MAX_S * self.fs:
            raise InputError(
                f"{path}: lasts {last.end / self.fs / YEAR_S:.3g} years: must be at most "
                f"{SPAN_MAX_S / YEAR_S:g}; the first file by its time is {first.path.name}, the "
                f"last one {last.path.name}"
            )
        self._warn_of_a_long_gap()
        if not loop:
            self.n_samples = last.end
            self.files = tuple(
                StreamFile(str(one.path), one.origin, one.n_samples) for one in self._members
            )
            self.take_start(*(one.recorded for one in self._members))

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``PulledSource``."""
        if not self._loop:
            self._first = sample_index

    def again(self) -> Self | None:
        """Return the source as it was before its start; see ``SelectableSource``."""
        if not self.is_direct:
            return None
        other = copy.copy(self)
        other.failure = None
        other.start_at(0)
        return other

    def blocks(self, n_max: int) -> Iterator[NDArray[Any] | Discontinuity]:
        """Yield the samples of each file in turn, with a ``Discontinuity`` for each gap."""
        while True:
            end, n_read = self._first, 0
            for member in self._members:
                begin = max(end, member.begin)
                if begin >= member.end:
                    continue
                for first, samples in self._samples(member, begin - member.origin, n_max):
                    if member.origin + first > end:
                        yield Discontinuity(member.origin + first - end)
                    yield samples
                    n_read += samples.shape[1]
                    end = member.origin + first + samples.shape[1]
            if not n_read:
                why = "".join(f": {line}" for line in self.left_out.lines[-1:])
                raise InputError(f"{self._path}: none of its files can be read any more{why}")
            if not self._loop:
                return

    def _samples(
        self, member: Member, first: int, n_max: int
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the readable samples of a file from one of them on, with their indices."""
        try:
            file = FileSamples(str(member.path), self._plain_format)
            try:
                _require_unchanged(file, member)
                file.skip(first)
                yield from file.runs(member.n_samples, n_max)
            finally:
                file.close()
        except InputError as error:
            self.left_out.add(member.path, str(error))
            return
        self._note_damage(member.path, file)
        if file.n_unusable:
            problem = f"{member.path}: {file.n_unusable} of its samples are {UNUSABLE}"
            self.left_out.add(member.path, problem, "these are left out")

    def _note_damage(self, path: Path, file: SoundFile | FileSamples) -> None:
        if file.damage:
            self.left_out.add(path, f"{path}: {file.damage}", "read up to there")

    # ---- list the files and read their headers

    def _listed(self, *, recursive: bool) -> list[Path]:
        found = list_sound_files(self._path, recursive=recursive)
        for folder, line in found.unread:
            self.left_out.add(folder, line)
        if not found.files:
            hint = "; --recursive searches the folders in it" if found.n_folders else ""
            raise InputError(f"{self._path}: a folder without sound files{hint}")
        if found.n_folders:
            _log.warning(
                "%s: folders in it that are not searched: %d (--recursive searches them)",
                printable(self._path),
                found.n_folders,
            )
        return found.files

    def _with_headers(self, files: list[Path]) -> list[Member]:
        """Read the headers of all readable files."""
        members = []
        for path in files:
            try:
                members.append(self._read_header(path))
            except InputError as error:
                self.left_out.add(path, str(error))
        if not members:
            raise InputError(
                f"{self._path}: none of its {len(files)} sound files can be read: "
                f"{self.left_out.lines[0]}"
            )
        return members

    def _read_header(self, path: Path) -> Member:
        file = SoundFile(str(path))
        try:
            found = recorded_at(
                str(path), file.fs, file.comment, self._time_format, self._time_zone
            )
            sample_format = plain_format_of(str(path), file) if self.is_direct else ""
            stretches = find_stretches(str(path), file.comment)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        finally:
            file.close()
        self._note_damage(path, file)
        if file.note:
            _log.warning("%s: %s", printable(path), file.note)
        n_samples = stretches.n_samples if stretches else file.n_samples
        return Member(
            path,
            file.fs,
            file.channels,
            n_samples,
            n_samples + file.n_announced - file.n_samples,
            found,
            sample_format=sample_format,
        )

    def _warn_of_a_long_gap(self) -> None:
        pairs = pairwise(self._members)
        gaps = ((after.begin - before.end, before, after) for before, after in pairs)
        length, before, after = max(gaps, key=itemgetter(0), default=(0, None, None))
        if before and after and length > _LONG_GAP_S * self.fs:
            _log.warning(
                "%s: %.3g years without samples between %s and %s: is the clock of one of them "
                "wrong?",
                printable(self._path),
                length / self.fs / YEAR_S,
                printable(before.path.name),
                printable(after.path.name),
            )

    def _in_order(self, members: list[Member]) -> list[Member]:
        """Sort by time; if no file gives a time, keep the order of names."""
        dated = [member for member in members if member.recorded is not None]
        if not dated:
            reasons = (self._why_undated(member) for member in members)
            _log.warning(
                "%s: no file says when it begins: joined by name, without gaps between them%s",
                printable(self._path),
                next(filter(None, reasons), "").replace(": ", "; ", 1),
            )
            return members
        if len(dated) == len(members) and not self._time_format and _are_numbered(members):
            _log.warning(
                "%s: the times in the names are one second apart, but the files last longer: taken "
                "as numbers, joined by name, without gaps between them and without a start time",
                printable(self._path),
            )
            return [replace(member, recorded=None) for member in members]
        for member in members:
            if member.recorded is None:
                self.left_out.add(
                    member.path,
                    f"{member.path}: has no start time, but other files have one"
                    f"{self._why_undated(member)}",
                )
        dated.sort(key=lambda member: member.t_ns)
        return self._told_apart(dated) if self._time_zone else dated

    def _told_apart(self, members: list[Member]) -> list[Member]:
        """Find the pass of each file whose local time comes twice."""
        try:
            found, several = tell_passes_apart(members)
        except OSError as error:
            raise InputError(f"{self._path}: {error.filename}: {error.strerror}") from error
        for one in several:
            _log.warning(
                "%s: begins when local times of %s come twice: of %d files then, %d are taken for "
                "the first time, %d for the second",
                printable([*one.first, *one.second][0].path),
                self._time_zone,
                len(one.first) + len(one.second),
                len(one.first),
                len(one.second),
            )
        for member in found:
            if member.repeat_ns < 0:
                _log.warning(
                    "%s: begins at a local time that %s leaves out",
                    printable(member.path),
                    self._time_zone,
                )
        return found

    def _why_undated(self, member: Member) -> str:
        return why_undated(str(member.path), self._time_format)

    def _alike(self, members: list[Member]) -> list[Member]:
        """Select the files that have the most common rate and number of channels."""
        counts = Counter(map(_format, members))
        ((chosen, n_chosen),) = counts.most_common(1)  # in a tie, the first one counted
        for member in members:
            if _format(member) != chosen:
                self.left_out.add(
                    member.path,
                    f"{member.path}: {_text(_format(member))}, but {n_chosen} of {len(members)} "
                    f"files have {_text(chosen)}",
                )
        return [member for member in members if _format(member) == chosen]


def _format(file: Member | FileSamples) -> tuple[float, int]:
    """Return sample rate [Hz] and number of channels."""
    return file.fs, file.channels


def _text(format_: tuple[float, int]) -> str:
    return "{:g} Hz x {}".format(*format_)


def _require_unchanged(file: FileSamples, member: Member) -> None:
    if (_format(file), file.n_samples) != (_format(member), member.n_samples):
        raise InputError(f"{member.path}: has changed since the folder was read")


def _are_numbered(members: list[Member]) -> bool:
    """Return whether names that look like times count files: one second apart, though files last.

    FFmpeg's segments ``20260101_0000%02d`` do. A recorder of which three files in a row overlap by
    so much is not known.
    """
    pairs = list(pairwise(members))
    return len(pairs) > 1 and all(
        before.recorded is not None
        and after.recorded is not None
        and before.recorded.origin == after.recorded.origin == OF_NAME
        and after.t_ns - before.t_ns == NS_PER_S
        and before.n_samples > (1.0 + TOLERANCE_S) * before.fs
        for before, after in pairs
    )
