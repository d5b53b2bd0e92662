"""Which files a recording has written itself: only those are ever deleted or made whole."""

import contextlib
import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.origin import Origin, read_origin
from spectrod.formats.part import PART_SUFFIX

# A finished file whose name was taken has got a number.
_NUMBER = r"(_[0-9]{1,4})?"
_SHORT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class Owner:
    """A recording of a source, by what it writes into its files.

    A file is the recording's if it says so itself: each holds the names of the recording and of the
    source, and the name that the file was started with, which it must still have, but for a
    number. So a copy under another name, or what another program has made, is not the recording's.
    Nor is an unfinished file with a second hard link: to finish it would change what the other name
    holds.

    Files of versions that wrote no recording's name are the recording's if they are of the source,
    belong to this user, and have the name that the recording gives to a file of their begin.

    Parameters
    ----------
    recording, source : str
        Their names.
    stem_at : callable
        Names a file that begins at a UTC [ns since 1970], without suffix.
    """

    def __init__(self, recording: str, source: str, stem_at: Callable[[int], str]) -> None:
        self._recording, self._source, self._stem_at = recording, source, stem_at

    def wrote(self, directory: Directory, name: str) -> bool | None:
        """Whether the recording wrote a file; None if it cannot be read.

        Parameters
        ----------
        directory : Directory
            Of the file.
        name : str
            Its name, that of a finished file or of an unfinished one.

        Raises
        ------
        OSError
            If this process has too many files open to say.
        """
        try:
            descriptor = directory.open_file(name)
        except OSError as error:
            if error.errno in _SHORT_OF_DESCRIPTORS:
                raise
            return None
        try:
            return self._is_own(descriptor, name)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _is_own(self, descriptor: int, name: str) -> bool:
        found, final = os.fstat(descriptor), name.removesuffix(PART_SUFFIX)
        if final != name and found.st_nlink != 1:
            return False
        name, suffix = final, Path(final).suffix
        origin = read_origin(descriptor, suffix)
        if origin is None or origin.source != self._source:
            return False
        if origin.recording is not None:
            return origin.recording == self._recording and _is_name_of(name, origin.file_name)
        return found.st_uid == os.geteuid() and self._is_named_by_begin(name, suffix, origin)

    def _is_named_by_begin(self, name: str, suffix: str, origin: Origin) -> bool:
        if origin.begin_utc_ns is None:
            return False
        with contextlib.suppress(ValueError, OverflowError, OSError):  # of no time that there is
            return _is_name_of(name, self._stem_at(origin.begin_utc_ns) + suffix)
        return False


def _is_name_of(name: str, wanted: str) -> bool:
    path = Path(wanted)
    pattern = re.escape(path.stem) + _NUMBER + re.escape(path.suffix)
    return bool(path.stem) and re.fullmatch(pattern, name) is not None
