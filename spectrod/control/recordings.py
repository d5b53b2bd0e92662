"""What a running daemon records because somebody asked for it: pictures, spectra, sound."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

import spectrod
from spectrod.control.journal import Journal
from spectrod.control.pictures import MEMORY_MAX_BYTES, ProductPicture
from spectrod.errors import (
    BusyError,
    ConfigError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.pipeline import Pipeline, Sink, Tap
from spectrod.record.outputs import KINDS
from spectrod.record.recording import Description
from spectrod.recorder.ondemand import QUEUE_MAX_BYTES, SegmentSink, SoundSink
from spectrod.settings import SourceTable
from spectrod.types import SpectrumSpec
from spectrod.wire.names import name_channels

_log = logging.getLogger(__name__)

RECORDINGS_MAX: Final = 4
"""That run at once."""

_ENDED_KEPT = 20
_LOOK_S = 0.5
_GRACE_S = 2.0
_JOIN_S = 2.0
_DRAWING_MAX_S = 30.0
_FOLDER_MODE = 0o750
_PICTURE, _SEGMENT = ".png", ".spd"
_SUFFIXES = (_PICTURE, _SEGMENT, ".wav", ".flac")

State = Literal["recording", "finished", "failed"]
_Sink = ProductPicture | SegmentSink | SoundSink


class Recorded(Protocol):
    """A source that can be recorded."""

    @property
    def name(self) -> str:
        """What topics call it."""

    @property
    def pipeline(self) -> Pipeline | None:
        """None while it was never there."""

    @property
    def ended(self) -> bool:
        """True when nothing more will come of it."""

    def attach(self, sink: Sink, product: str, on_failure: Callable[[SpectrodError], None]) -> None:
        """Give a sink all batches of a product from now on."""

    def detach(self, sink: Sink) -> None:
        """Let a sink go."""

    def tap(self, tap: Tap, on_failure: Callable[[SpectrodError], None]) -> None:
        """Give a tap all samples from now on."""

    def untap(self, tap: Tap) -> None:
        """Let a tap go."""

    @property
    def table(self) -> SourceTable:
        """The source and its analyses."""


@dataclass(slots=True)
class _Recording:
    """One file; all but the sink's part is changed by the thread of ``Recordings`` alone."""

    path: Path
    member: Recorded
    product: str
    sink: _Sink
    who: str
    deadline_s: float
    begun_utc_ns: int = field(default_factory=time.time_ns)
    state: State = "recording"
    error: str = ""
    stop_wanted: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def facts(self) -> dict[str, Any]:
        """Say in built-in types what there is to say."""
        return {
            "name": self.path.name,
            "path": os.fspath(self.path),
            "source": self.member.name,
            "product": self.product,
            "state": self.state,
            "begun_utc_ns": self.begun_utc_ns,
            "frames": self.sink.n_frames,
            "dropped": self.sink.dropped,
            "error": self.error,
            "who": self.who,
        }


class Recordings:
    """The files that are being written on demand, and the last twenty that were.

    At most four at a time, which keep at most 512 MB together, whatever their length. A thread,
    which runs while there are any, ends each when somebody says so, when its duration is over, when
    the source has ended or its analysis has changed, and at ``close``. Any thread may call.

    Parameters
    ----------
    folder : Path
        Where all of them go; made with mode 0750 if it is missing.
    journal : Journal
        Is told of each beginning and end.
    """

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._folder, self._journal = folder, journal
        self._running: list[_Recording] = []
        self._ended: deque[_Recording] = deque(maxlen=_ENDED_KEPT)
        self._lock = threading.Lock()
        self._wakeup = threading.Event()
        self._thread: threading.Thread | None = None

    def facts(self) -> list[dict[str, Any]]:
        """Describe all, those that ended first."""
        with self._lock:
            return [one.facts() for one in (*self._ended, *self._running)]

    def start(
        self, member: Recorded, product: str, name: str, duration_s: float | None, who: str
    ) -> dict[str, Any]:
        """Begin a picture, a file of spectra or one of sound.

        Parameters
        ----------
        member : Recorded
            The source.
        product : str
            Which of its products; empty takes the main one.
        name : str
            File name, which says what it holds: ``.png``, ``.spd``, ``.wav`` or ``.flac``; of any
            other, and where it is empty, a picture.
        duration_s : float or None
            After which it ends by itself [s].
        who : str
            Who asked for it.

        Returns
        -------
        facts : dict
            What ``facts`` says of it.

        Raises
        ------
        BusyError
            If as many run as may, in number or memory.
        ConfigError
            If no such file can hold the product.
        NotFoundError
            If there is no such product.
        StorageError
            If the file is there already, or cannot be made.
        UnavailableError
            If the source is not there yet, or has ended.
        """
        pipeline = member.pipeline
        if pipeline is None or member.ended:
            why = "has ended" if member.ended else "is waited for"
            raise UnavailableError(f"source={member.name!r}: gives nothing: it {why}")
        spec = _find(pipeline, member.name, product)
        path = self._path(name or _name(member.name, spec.product))
        with self._lock:
            if len(self._running) >= RECORDINGS_MAX:
                raise BusyError(f"recordings: {RECORDINGS_MAX} run already; stop one first")
            self._check_new(path)
            sink = self._make(path, member, spec, duration_s)
            limit_s = float("inf") if duration_s is None else duration_s + _GRACE_S
            deadline_s = time.monotonic() + limit_s
            recording = _Recording(path, member, spec.product, sink, who, deadline_s)
            self._attach(recording)
            self._running.append(recording)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recordings", daemon=True)
                self._thread.start()
        self._journal.note("record.start", path.name, source=member.name, who=who)
        return recording.facts()

    def stop(self, name: str, who: str) -> list[dict[str, Any]]:
        """End pictures and wait until their files are written.

        Parameters
        ----------
        name : str
            Which; empty means all.
        who : str
            Who asked for it.

        Returns
        -------
        facts : list of dict
            What ``facts`` says of each.

        Raises
        ------
        BusyError
            If that takes longer than 30 s.
        NotFoundError
            If none of that name runs.
        """
        with self._lock:
            wanted = [one for one in self._running if name in ("", one.path.name, one.path.stem)]
            if not wanted:
                running = ", ".join(one.path.name for one in self._running) or "none"
                raise NotFoundError(f"recording={name!r}: does not run; there are: {running}")
            for one in wanted:
                one.stop_wanted = True
                one.who = who
        self._wakeup.set()
        for one in wanted:
            if not one.ended.wait(_DRAWING_MAX_S):
                raise BusyError(f"{one.path.name}: is still being written")
        return [one.facts() for one in wanted]

    def close(self) -> None:
        """Finish all; to be called while the pipelines are still there. Idempotent."""
        with self._lock:
            thread = self._thread
            for one in self._running:
                one.stop_wanted = True
        self._wakeup.set()
        if thread is not None:
            thread.join(_JOIN_S)
            if thread.is_alive():
                _log.error("recordings: take too long to finish: not waited for")

    def _path(self, name: str) -> Path:
        path = self._folder / name
        suffix = path.suffix.lower()
        if suffix in _SUFFIXES:
            return path
        if suffix in KINDS:
            raise ConfigError(
                f"name={name!r}: a running daemon makes {', '.join(_SUFFIXES)}; spectrod convert "
                "makes others of a .spd"
            )
        return path.with_name(path.name + _PICTURE)

    def _make(
        self, path: Path, member: Recorded, spec: SpectrumSpec, duration_s: float | None
    ) -> _Sink:
        suffix = path.suffix.lower()
        if suffix == _PICTURE:
            picture = ProductPicture(path, spec, duration_s, f"{member.name} {spec.product}")
            self._check_memory(picture.size_bytes)
            return picture
        self._check_memory(QUEUE_MAX_BYTES)
        about = _describe(member, spec)
        make = SegmentSink if suffix == _SEGMENT else SoundSink
        file = make(path, about, duration_s)
        file.start()
        return file

    def _attach(self, recording: _Recording) -> None:
        sink, member = recording.sink, recording.member
        try:
            if isinstance(sink, SoundSink):
                member.tap(sink, self._fail(recording))
            else:
                member.attach(sink, recording.product, self._fail(recording))
        except SpectrodError:
            with suppress(SpectrodError):
                sink.finish()
            raise

    def _check_new(self, path: Path) -> None:
        try:
            path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path.parent}: {error.strerror}") from error
        if path.is_symlink() or path.exists() or any(one.path == path for one in self._running):
            raise StorageError(f"{path.name}: is there already; give another name")

    def _check_memory(self, size_bytes: int) -> None:
        left_bytes = MEMORY_MAX_BYTES - sum(one.sink.size_bytes for one in self._running)
        if size_bytes > left_bytes:
            raise BusyError(
                f"recordings: {size_bytes >> 20} MB are needed, and {left_bytes >> 20} left "
                "by those that run; stop one first"
            )

    def _fail(self, recording: _Recording) -> Callable[[SpectrodError], None]:
        def note(error: SpectrodError) -> None:
            recording.error = str(error)
            recording.stop_wanted = True
            self._wakeup.set()

        return note

    # ---- the thread that ends them

    def _run(self) -> None:
        while True:
            self._wakeup.wait(_LOOK_S)
            self._wakeup.clear()
            with self._lock:
                due = [one for one in self._running if _is_due(one)]
            for one in due:
                self._finish(one)
            with self._lock:
                if not self._running:
                    self._thread = None
                    return

    def _finish(self, recording: _Recording) -> None:
        if isinstance(recording.sink, SoundSink):
            recording.member.untap(recording.sink)
        else:
            recording.member.detach(recording.sink)
        try:
            recording.sink.finish()
            recording.state = "finished"
        except SpectrodError as error:
            recording.error, recording.state = str(error), "failed"
        except Exception as error:  # noqa: BLE001 - the thread has others to finish
            _log.exception("recording failed")
            recording.error, recording.state = f"{error!r}; please report this", "failed"
        with self._lock:
            self._running.remove(recording)
            self._ended.append(recording)
        told = f"{recording.path.name}: {recording.state}, {recording.sink.n_frames} frames"
        text = f"{told}: {recording.error}" if recording.error else told
        source, has_failed = recording.member.name, recording.state == "failed"
        if has_failed:
            _log.error("%s: recording %s", source, text)
        note = self._journal.note
        note("record.stop", text, source=source, who=recording.who, log=not has_failed)
        recording.ended.set()


def _is_due(recording: _Recording) -> bool:
    is_over = recording.sink.is_full or recording.deadline_s <= time.monotonic()
    return recording.stop_wanted or is_over or recording.member.ended


def _find(pipeline: Pipeline, source: str, product: str) -> SpectrumSpec:
    for spec in pipeline.specs:
        if product in ("", spec.product):
            return spec
    known = ", ".join(spec.product for spec in pipeline.specs)
    raise NotFoundError(f"product={product!r}: {source} has no such; there are: {known}")


def _describe(member: Recorded, spec: SpectrumSpec) -> Description:
    signals = name_channels(member.table.channel_names, spec.n_signals)
    settings = dict(msgspec.to_builtins(member.table))
    software = f"spectrod {spectrod.__version__}"
    return Description(spec, member.name, signals, software, settings=settings)


def _name(source: str, product: str) -> str:
    return f"{source}-{product}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
