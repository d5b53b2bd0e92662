"""A folder with a file of each event."""

import os
import time
from pathlib import Path

from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import StorageError, storage_errors
from spectrod.measure.triggers.detection import Detection


class EventFolder:
    """A folder that is made with its first file, so that nothing is left of a refusal.

    Parameters
    ----------
    path : Path
        The folder.

    Raises
    ------
    StorageError
        If it is no folder, or cannot be written or made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        nearest = next(one for one in (path, *path.absolute().parents) if one.exists())
        if not nearest.is_dir():
            raise StorageError(f"{nearest}: must be a folder, it is a file")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise StorageError(f"{nearest}: must be a folder that can be written")

    def made(self) -> Path:
        """Return the folder, which is made if needed; raises StorageError."""
        with storage_errors(self._path):
            self._path.mkdir(parents=True, exist_ok=True)
        return self._path


class EventNames:
    """Names of files of events, by the file and the time of each; no two of a run are alike."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def next(self, one: Detection) -> str:
        """Return the name for an event, without a suffix."""
        stem = Path(one.file).stem
        when = f"{one.begin_s:.3f}s"
        if one.has_utc:
            seconds, ns = divmod(one.event.begin_utc_ns, NS_PER_S)
            clock = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
            when = f"{clock}.{ns // 1_000_000:03d}Z"
        name, n = f"{stem}_{when}", 1
        while name in self._names:
            n += 1
            name = f"{stem}_{when}-{n}"
        self._names.add(name)
        return name
