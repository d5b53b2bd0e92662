"""Ownership of files: a recording deletes and recovers only files that it wrote itself."""

import contextlib
import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.origin import Origin, read_origin
from spectrod.lib.output_formats import PART_SUFFIX

# A finished file gets a number if its name is taken.
_NUMBER = r"(_[0-9]{1,4})?"
_SHORT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class Owner:
    """Identifies the files that one recording of one source has written.

    Each file holds the names of the recording and of the source, and the name that it was started
    with. A file belongs to the recording if these match, and if its present name is that first one,
    apart from a number. So a copy under another name or a file of another program does not belong
    to it. An unfinished file with a second hard link does not either: finishing it would change
    the content of the other name.

    Older versions wrote no recording's name. Their files belong to the recording if they are of the
    source, are owned by this user, and have the name that the recording gives to a file that begins
    at their time.

    Parameters
    ----------
    recording, source : str
        Names of the recording and the source.
    stem_at : callable
        Returns the name, without suffix, of a file that begins at a UTC [ns since 1970].
    """

    def __init__(self, recording: str, source: str, stem_at: Callable[[int], str]) -> None:
        self._recording, self._source, self._stem_at = recording, source, stem_at

    def wrote(self, directory: Directory, name: str) -> bool | None:
        """Return whether the recording wrote a file; None if the file cannot be read.

        Parameters
        ----------
        directory : Directory
            Directory of the file.
        name : str
            Name of the file, finished or unfinished.

        Raises
        ------
        OSError
            If this process has too many open files to check.
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
        return found.st_uid == os.geteuid() and self._is_named_by_start(name, suffix, origin)

    def _is_named_by_start(self, name: str, suffix: str, origin: Origin) -> bool:
        if origin.begin_utc_ns is None:
            return False
        with contextlib.suppress(ValueError, OverflowError, OSError):  # the time is out of range
            return _is_name_of(name, self._stem_at(origin.begin_utc_ns) + suffix)
        return False


def _is_name_of(name: str, unnumbered: str) -> bool:
    path = Path(unnumbered)
    pattern = re.escape(path.stem) + _NUMBER + re.escape(path.suffix)
    return bool(path.stem) and re.fullmatch(pattern, name) is not None
