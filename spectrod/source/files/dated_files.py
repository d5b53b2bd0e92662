"""Sound files that say when they begin: which of them was recorded at a time, and where in it."""

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.files.recorded_at import recorded_at, why_undated
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.source_listing import list_sound_files


class DatedFile(NamedTuple):
    """A sound file.

    Attributes
    ----------
    path : Path
        The file.
    begin_utc_ns : int
        UTC of its first sample [ns since 1970].
    fs : float
        Sample rate [Hz].
    n_samples : int
        Samples per channel.
    """

    path: Path
    begin_utc_ns: int
    fs: float
    n_samples: int


class DatedPlace(NamedTuple):
    """Where a sample is.

    Attributes
    ----------
    path : str
        Its file.
    sample : int
        Index in the file, per channel.
    before_s : float
        Length of the files before that one [s].
    fs : float
        Sample rate of the file [Hz].
    """

    path: str
    sample: int
    before_s: float
    fs: float


class DatedFiles:
    """Sound files in the order of their begins.

    Unlike those of ``FolderSource`` they are not joined to a stream: the time of a sample is that
    of its own file, however short the pause before it is. Files of other rates may be among them.
    What cannot be read or says no time is left out.

    Parameters
    ----------
    path : Path
        A sound file, or a folder of them; folders in it are not searched.

    Attributes
    ----------
    left_out : list of str
        A printable line for each file that is left out.

    Raises
    ------
    InputError
        If it cannot be read, or none of the files says when it begins.
    """

    def __init__(self, path: Path) -> None:
        paths = list_sound_files(str(path)).files if path.is_dir() else [path]
        self.left_out: list[str] = []
        found = []
        for one in paths:
            try:
                found.append(_dated(one))
            except InputError as error:
                self.left_out.append(printable(f"{str(error).rstrip('.')}: left out"))
        if not found:
            rule = "must be sound that says when it begins, or a folder of such files"
            raise InputError(f"{printable(path)}: {rule}")
        self._files = sorted(found, key=lambda one: (one.begin_utc_ns, one.path))
        self._begins_ns = [one.begin_utc_ns for one in self._files]
        ends_ns = (one.begin_utc_ns + duration_ns(one.n_samples, one.fs) for one in self._files)
        self._last_ends_ns = list(accumulate(ends_ns, max))
        # A time within half a sample before the first one is that of the first one.
        self._half_ns = max(round(NS_PER_S / (2 * one.fs)) for one in self._files)
        lengths_s = (one.n_samples / one.fs for one in self._files)
        self._before_s = list(accumulate(lengths_s, initial=0.0))

    def at(self, utc_ns: int) -> DatedPlace | None:
        """Return the sample that is nearest to a UTC [ns since 1970]; None if no file has it.

        Of files that overlap it is in the one that begins last.
        """
        k = bisect_right(self._begins_ns, utc_ns + self._half_ns) - 1
        while k >= 0 and utc_ns < self._last_ends_ns[k]:
            one = self._files[k]
            sample = round((utc_ns - one.begin_utc_ns) * one.fs / NS_PER_S)
            if 0 <= sample < one.n_samples:
                return DatedPlace(str(one.path), sample, self._before_s[k], one.fs)
            k -= 1
        return None


def _dated(path: Path) -> DatedFile:
    """Return a file with its begin; raises InputError if it cannot be read or says no time."""
    file = SoundFile(str(path))
    try:
        found = recorded_at(str(path), file.fs, file.comment)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    finally:
        file.close()
    if found is None:
        raise InputError(f"{path}: has no start time{why_undated(str(path))}")
    return DatedFile(path, found.utc_ns, file.fs, file.n_samples)
