"""Recordings of a running daemon on request: pictures, spectra, sound."""

import logging
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from spectrod.daemon.control.change_journal import Journal
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.source_runner import SourceRunner
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    NotFoundError,
    UnavailableError,
    exists_error,
)
from spectrod.lib.names import find_product
from spectrod.lib.output_formats import format_named, format_of, suffixes
from spectrod.recording.one_shot import (
    MEMORY_MAX_BYTES,
    QUEUE_MAX_BYTES,
    OneShot,
    OneShotConfig,
)

_log = logging.getLogger(__name__)

RECORDINGS_MAX: Final = 4
"""Maximum of recordings that run at once."""
START_MAX_S: Final = 5.0
"""Longest wait of a start for the disk [s]."""
STOP_MAX_S: Final = 30.0
"""Longest wait of a stop for files to be written and pictures to be drawn [s]."""

_ENDED_KEPT = 20
_JOIN_S = 2.0
_PICTURE = ".png"


class Recordings:
    """The files that are being written on request, and the last twenty finished ones.

    At most four run at a time. Pictures use at most 512 MB together, whatever their length; each
    recording may queue 32 MB more for its disk. Any thread may call.

    Only a recording's own thread waits for its disk, from the first access to the folder to the
    end. While a disk hangs, ``snapshots`` returns at once; a file that hangs counts as one of the
    four.

    Parameters
    ----------
    folder : Path
        Folder of all recordings; created with mode 0750 if missing.
    journal : Journal
        Records each start and end.
    """

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._folder, self._journal = folder, journal
        self._running: dict[OneShot[Any], int] = {}
        self._ended: deque[OneShot[Any]] = deque(maxlen=_ENDED_KEPT)
        # Held only briefly: status requests wait for this lock, so its holder never waits for the
        # disk.
        self._lock = threading.Lock()

    @property
    def n_running(self) -> int:
        """Number of files that are being written."""
        with self._lock:
            return sum(one.is_open for one in self._running)

    def status(self) -> list[dict[str, Any]]:
        """Return the status of all recordings, finished ones first."""
        with self._lock:
            several = [*self._ended, *(one for one in self._running if one.is_open)]
        return [one.status() for one in several]

    def start(
        self, runner: SourceRunner, product: str, name: str, duration_s: float | None, who: str
    ) -> dict[str, Any]:
        """Start to record a picture, a file of spectra or a file of sound.

        Parameters
        ----------
        runner : Recorded
            The source.
        product : str
            Name of the product; empty: the main one.
        name : str
            File name, whose suffix selects one of the formats that ``output_formats`` marks; a
            picture for an unknown suffix and for an empty name.
        duration_s : float or None
            Duration after which the recording ends by itself [s].
        who : str
            Peer that requested it.

        Returns
        -------
        snapshot : dict
            See ``OneShot.snapshot``.

        Raises
        ------
        BusyError
            If the maximum number or memory of recordings is in use, or the disk has not answered
            for 5 s; nothing is recorded then, and a file created later is removed.
        ConfigError
            If the format cannot hold the product.
        NotFoundError
            If there is no such product.
        StorageError
            If the file exists already, or cannot be created.
        UnavailableError
            If the source is absent or has ended, or the system provides no thread.
        """
        pipeline, spec = find_running(runner, product)
        path = self._path(name or _name(runner.name, spec.product))
        # Imported when needed: the start of a daemon waits for none of it.
        from spectrod.daemon.control.recording_files import open_file, picture_bytes  # noqa: PLC0415

        content = format_of(path).content
        size_bytes = picture_bytes(spec) if content == "picture" else QUEUE_MAX_BYTES
        is_of_samples = content == "samples"
        config = OneShotConfig(path, runner.name, spec.product, is_of_samples, duration_s)
        one = OneShot[Any](
            config, pipeline, who, lambda: open_file(path, runner, spec), self._note_end
        )
        with self._lock:
            self._check_room(path, size_bytes)
            self._running[one] = size_bytes
        one.start(START_MAX_S)
        self._journal.note("record.start", path.name, source=runner.name, who=who)
        return one.status()

    def stop(self, name: str, who: str) -> list[dict[str, Any]]:
        """Stop recordings and wait until their files are written.

        Parameters
        ----------
        name : str
            Name of the recording; empty: all.
        who : str
            Peer that requested it.

        Returns
        -------
        snapshots : list of dict
            See ``OneShot.snapshot``.

        Raises
        ------
        BusyError
            If it takes longer than 30 s; the files are written as soon as possible.
        NotFoundError
            If no running recording has that name.
        """
        with self._lock:
            running = [one for one in self._running if one.is_open]
        selected = [one for one in running if name in ("", one.path.name, one.path.stem)]
        if not selected:
            known = ", ".join(one.path.name for one in running) or "none"
            raise NotFoundError(f"recording={name!r}: does not run; there are: {known}")
        for one in selected:
            one.who = who
            one.stop()
        late = _wait(selected, STOP_MAX_S)
        if late is not None:
            raise BusyError(f"{late.path.name}: is still being written")
        return [one.status() for one in selected]

    def close(self) -> None:
        """Finish all recordings; call it while the pipelines still exist. Idempotent."""
        with self._lock:
            running = list(self._running)
        for one in running:
            one.stop()
        if _wait(running, _JOIN_S) is not None:
            _log.error("recordings: not finished in time; stopping without them")

    def _path(self, name: str) -> Path:
        path = self._folder / name
        found = format_named(path.suffix)
        if found is None:
            return path.with_name(path.name + _PICTURE)
        if found.is_of_daemon:
            return path
        is_of_samples = found.content == "samples"
        others = "record makes others" if is_of_samples else "convert makes others of a .spd"
        known = ", ".join(suffixes(lambda one: one.is_of_daemon))
        raise ConfigError(f"name={name!r}: a running daemon makes {known}; spectrod {others}")

    def _check_room(self, path: Path, size_bytes: int) -> None:
        if len(self._running) >= RECORDINGS_MAX:
            raise BusyError(f"recordings: {RECORDINGS_MAX} run already; stop one first")
        if any(one.path == path for one in self._running):
            raise exists_error(path.name)
        left_bytes = MEMORY_MAX_BYTES - sum(self._running.values())
        if size_bytes > left_bytes:
            raise BusyError(
                f"recordings: {size_bytes >> 20} MB are needed, and {left_bytes >> 20} left "
                "by those that run; stop one first"
            )

    def _note_end(self, one: OneShot[Any]) -> None:
        """Record the result of a recording; called by its thread."""
        with self._lock:
            del self._running[one]
            if not one.is_open:
                return
            self._ended.append(one)
        state_text = f"{one.path.name}: {one.state}, {one.frames} frames"
        text = f"{state_text}: {one.error}" if one.error else state_text
        source, has_failed = one.source_name, one.state == "failed"
        if has_failed:
            _log.error("%s: recording %s", source, text)
        self._journal.note("record.stop", text, source=source, who=one.who, log=not has_failed)


def _wait(several: list[OneShot[Any]], timeout_s: float) -> OneShot[Any] | None:
    """Wait for recordings to end; return one that is still running, if any."""
    deadline_s = time.monotonic() + timeout_s
    for one in several:
        if not one.has_ended.wait(max(0.0, deadline_s - time.monotonic())):
            return one
    return None


def find_running(runner: SourceRunner, product: str) -> tuple[Pipeline, SpectrumSpec]:
    """Return the pipeline of a source and the spec of a product; empty is the main one.

    Raises
    ------
    NotFoundError, UnavailableError
        If there is no such product, or the source is absent or has ended.
    """
    pipeline = runner.pipeline
    if pipeline is None or runner.ended:
        why = "has ended" if runner.ended else "waits for its device"
        raise UnavailableError(f"source={runner.name!r}: no data: the source {why}")
    specs = {spec.product: spec for spec in pipeline.specs}
    return pipeline, find_product(product, specs, runner.name)


def _name(source: str, product: str) -> str:
    return f"{source}-{product}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
