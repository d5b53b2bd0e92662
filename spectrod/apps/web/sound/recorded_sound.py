"""Sound files of the daemon's recordings: found by source and time, and opened by their names.

Names come from pages and from the disk, and both may be hostile. A file is opened by descriptors
from its folder on, so that no name and no link leads elsewhere, and only one that the recording
wrote itself, which it says in its header (``spectrod.formats.origin``).
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectrod.formats.directory import Directory
from spectrod.formats.origin import Origin, read_origin
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.names import is_name

MEDIA_TYPES: Final = {".wav": "audio/wav", ".flac": "audio/flac"}
"""Media type of each suffix; others are not played."""
RECORDINGS_MAX: Final = 256
"""Recordings of a folder that are looked at."""
NAMES_MAX: Final = 20_000
"""Names that are looked at in a folder of a source."""
READ_MAX: Final = 64
"""Headers that are read for a question, of all recordings; the oldest that can fit come first."""
CLIPS_MAX: Final = 8
"""Files of an answer."""
_NAME_MAX_CHARS: Final = 255
_S: Final = 10**9
_CLOSED_NS: Final = 2 * _S
"""Clocks of disks and of sources differ [ns]."""


@dataclass(frozen=True, slots=True)
class ClipPlace:
    """Where a file is: number of the folder, names of the recording, the source and the file."""

    folder: int
    recording: str
    source: str
    name: str

    @property
    def suffix(self) -> str:
        """Suffix of the name, with its dot; empty without one."""
        return Path(self.name).suffix

    @property
    def media_type(self) -> str:
        """Media type by the suffix; empty of other files."""
        return MEDIA_TYPES.get(self.suffix, "")

    def check(self) -> None:
        """Raise ConfigError if it can be no file of a recording."""
        for key in ("recording", "source"):
            if not _is_folder_name(getattr(self, key)):
                raise ConfigError(f"{key}={getattr(self, key)[:40]!a}: must be a name")
        is_plain = not self.name.startswith(".") and not set("/\\\0") & set(self.name)
        if not is_plain or len(self.name) > _NAME_MAX_CHARS or not self.media_type:
            rule = f"must be the name of a file, {' or '.join(MEDIA_TYPES)}"
            raise ConfigError(f"name={self.name[:40]!a}: {rule}")


@dataclass(frozen=True, slots=True)
class Clip:
    """A file of sound with its time [ns since 1970] and size [bytes]."""

    place: ClipPlace
    begin_utc_ns: int
    end_utc_ns: int
    n_bytes: int


class RecordedSound:
    """Finds and opens sound of recordings. Keeps nothing, so any thread may use it.

    Parameters
    ----------
    folders : sequence of Path
        Folders with recordings; links that lead to these are followed, others are not.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def clips(self, source: str, begin_utc_ns: int, end_utc_ns: int) -> list[Clip]:
        """Return the finished files of a source with sound of a span of time, the oldest first.

        Parameters
        ----------
        source : str
        begin_utc_ns, end_utc_ns : int
            Span of time [ns since 1970].

        Raises
        ------
        ConfigError
            If the source is no name.
        """
        if not _is_folder_name(source):
            raise ConfigError(f"source={source[:40]!a}: must be a name")
        ended = sorted(self._ended_since(source, begin_utc_ns - _CLOSED_NS), key=lambda one: one[0])
        found = []
        for _, place in ended[:READ_MAX]:
            clip = self._clip(place)
            if (
                clip is not None
                and clip.begin_utc_ns <= end_utc_ns
                and clip.end_utc_ns >= begin_utc_ns
            ):
                found.append(clip)
        return sorted(found, key=lambda clip: clip.begin_utc_ns)[:CLIPS_MAX]

    def open(self, place: ClipPlace) -> int:
        """Open a file and return its descriptor.

        Raises
        ------
        ConfigError
            If a name can be none of a recording.
        NotFoundError
            If there is no such file, or the recording did not write it.
        """
        place.check()
        opened = self._opened(place)
        if opened is None:
            raise NotFoundError(f"{place.name[:40]!a}: there is no such sound of {place.source}")
        return opened[0]

    def _opened(self, place: ClipPlace) -> tuple[int, Origin] | None:
        """Return a file of a recording with its origin; None if it is none, or has gone."""
        try:
            root = self._folders[place.folder]
            with (
                Directory.open(root) as top,
                top.child(place.recording) as middle,
                middle.child(place.source) as folder,
            ):
                descriptor = folder.open_file(place.name)
        except (OSError, IndexError):
            return None
        try:
            origin = read_origin(descriptor, place.suffix)
        except OSError:
            origin = None
        is_own = origin is not None and origin.source == place.source
        if origin is None or not is_own or origin.recording != place.recording:
            os.close(descriptor)
            return None
        return descriptor, origin

    def _clip(self, place: ClipPlace) -> Clip | None:
        opened = self._opened(place)
        if opened is None:
            return None
        descriptor, origin = opened
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        begin = origin.begin_utc_ns
        if begin is None:
            return None
        # A file that does not say its length was closed when its sound ended.
        length = origin.length_s
        end = status.st_mtime_ns if length is None else begin + round(length * _S)
        if begin % _S == 0:  # FLAC states whole seconds
            end += _S
        return Clip(place, begin, max(begin, end), status.st_size)

    def _ended_since(self, source: str, begin_utc_ns: int) -> Iterator[tuple[int, ClipPlace]]:
        """Yield the files of a source written since a time, each with that of its last write."""
        for number, root in enumerate(self._folders):
            try:
                with Directory.open(root) as top:
                    for recording in _names(top, RECORDINGS_MAX):
                        yield from self._of_recording(
                            top, (number, recording, source), begin_utc_ns
                        )
            except OSError:
                continue

    def _of_recording(
        self, top: Directory, names: tuple[int, str, str], begin_utc_ns: int
    ) -> Iterator[tuple[int, ClipPlace]]:
        number, recording, source = names
        try:
            with top.child(recording) as middle, middle.child(source) as folder:
                for name in _names(folder, NAMES_MAX):
                    place = ClipPlace(number, recording, source, name)
                    status = folder.find(name) if place.media_type else None
                    if status is not None and status.st_mtime_ns >= begin_utc_ns:
                        yield status.st_mtime_ns, place
        except OSError:  # it has vanished, is a link, or is not for this user
            return


def _is_folder_name(name: str) -> bool:
    """Return whether a name is that of a recording or a source; dots alone lead elsewhere."""
    return is_name(name) and not name.startswith(".")


def _names(folder: Directory, most: int) -> list[str]:
    with folder.scan() as entries:
        names = [entry.name for entry, _ in zip(entries, range(most), strict=False)]
    return sorted(name for name in names if not name.startswith("."))
