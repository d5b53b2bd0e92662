"""What a running daemon records because somebody asked for it: pictures, spectra, sound."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

import spectrod
from spectrod.control.journal import Journal
from spectrod.control.pictures import MEMORY_MAX_BYTES, ProductPicture, picture_bytes
from spectrod.errors import (
    BusyError,
    ConfigError,
    InternalError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.names import name_channels
from spectrod.pipeline import Pipeline, Sink, Tap
from spectrod.record.directory import Directory
from spectrod.record.outputs import KINDS
from spectrod.record.part import PartFile
from spectrod.record.recording import Description
from spectrod.recorder.ondemand import QUEUE_MAX_BYTES, SegmentSink, SoundSink
from spectrod.settings import SourceTable
from spectrod.types import SpectrumSpec

_log = logging.getLogger(__name__)

RECORDINGS_MAX: Final = 4
"""That run at once."""
START_MAX_S: Final = 5.0
"""How long a start waits for the disk."""
STOP_MAX_S: Final = 30.0
"""How long a stop waits for files to be written, and pictures to be drawn."""

_ENDED_KEPT = 20
_LOOK_S = 0.5
_GRACE_S = 2.0
_JOIN_S = 2.0
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
    """One file; ``stop_wanted`` and ``error`` are anybody's, all else one thread's."""

    member: Recorded
    product: str
    sink: _Sink
    who: str
    deadline_s: float
    begun_utc_ns: int = field(default_factory=time.time_ns)
    state: State = "recording"
    error: str = ""
    stop_wanted: bool = False
    is_ending: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def path(self) -> Path:
        """The file."""
        return self.sink.path

    def facts(self) -> dict[str, Any]:
        """Return the status in built-in types."""
        late = "the disk does not answer" if self.state == "recording" and self.sink.is_late else ""
        return {
            "name": self.path.name,
            "path": os.fspath(self.path),
            "source": self.member.name,
            "product": self.product,
            "state": self.state,
            "begun_utc_ns": self.begun_utc_ns,
            "frames": self.sink.n_frames,
            "dropped": self.sink.dropped,
            "error": self.error or late,
            "who": self.who,
        }


@dataclass(slots=True)
class _Start:
    """A file that is being made, by a thread of its own, since the disk may hang."""

    path: Path
    member: Recorded
    spec: SpectrumSpec
    duration_s: float | None
    who: str
    size_bytes: int
    recording: _Recording | None = None
    error: SpectrodError | None = None
    is_abandoned: bool = False
    is_made: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Recordings:
    """The files that are being written on demand, and the last twenty that were.

    At most four at a time, which keep at most 512 MB together, whatever their length. A thread,
    which runs while there are any, ends each when somebody says so, when its duration is over, when
    the source has ended or its analysis has changed, and at ``close``. Any thread may call.

    Only threads of their own wait for the disk: one makes a file, one writes it, one finishes it.
    While a disk hangs, ``facts`` returns at once, and a file that hangs is one of the four.

    Parameters
    ----------
    folder : Path
        Where all of them go; made with mode 0750 if it is missing.
    journal : Journal
        Is told of each beginning and end.
    """

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._folder, self._journal = folder, journal
        self._starting: list[_Start] = []
        self._running: list[_Recording] = []
        self._ended: deque[_Recording] = deque(maxlen=_ENDED_KEPT)
        # Held for a moment only: who asks for the status waits for it, and it never for the disk.
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
        """Start a picture, a file of spectra or one of sound.

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
            If as many run as may, in number or memory, or the disk has not answered for 5 s;
            nothing is recorded then, and what it makes later is removed.
        ConfigError
            If no such file can hold the product.
        NotFoundError
            If there is no such product.
        StorageError
            If the file is there already, or cannot be made.
        UnavailableError
            If the source is not there yet, or has ended, or the system gives no thread.
        """
        pipeline = member.pipeline
        if pipeline is None or member.ended:
            why = "has ended" if member.ended else "is waited for"
            raise UnavailableError(f"source={member.name!r}: gives nothing: it {why}")
        spec = _find(pipeline, member.name, product)
        path = self._path(name or _name(member.name, spec.product))
        is_picture = path.suffix.lower() == _PICTURE
        size_bytes = picture_bytes(spec) if is_picture else QUEUE_MAX_BYTES
        wanted = _Start(path, member, spec, duration_s, who, size_bytes)
        with self._lock:
            self._check_room(wanted)
            self._starting.append(wanted)
        self._start_thread(wanted)
        self._wait_for(wanted)
        if wanted.error is not None:
            raise wanted.error
        assert wanted.recording is not None
        self._journal.note("record.start", path.name, source=member.name, who=who)
        return wanted.recording.facts()

    def _start_thread(self, wanted: _Start) -> None:
        try:
            _thread("record-start", self._make, wanted).start()
        except RuntimeError as error:
            with self._lock:
                self._starting.remove(wanted)
            raise UnavailableError(f"{wanted.path.name}: {error}") from error

    def _wait_for(self, wanted: _Start) -> None:
        """Wait until a file is made and is being written; not long for the disk."""
        if wanted.done.wait(START_MAX_S):
            return
        with self._lock:
            wanted.is_abandoned = not wanted.is_made
        if wanted.is_abandoned:
            raise BusyError(
                f"{wanted.path.name}: the disk has not answered for {START_MAX_S:g} s: "
                "nothing is recorded"
            )
        wanted.done.wait()  # for the pipeline, no more for the disk

    def stop(self, name: str, who: str) -> list[dict[str, Any]]:
        """End recordings and wait until their files are written.

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
            If that takes longer than 30 s; the files are written when they can be.
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
        deadline_s = time.monotonic() + STOP_MAX_S
        for one in wanted:
            if not one.ended.wait(max(0.0, deadline_s - time.monotonic())):
                raise BusyError(f"{one.path.name}: is still being written")
        return [one.facts() for one in wanted]

    def close(self) -> None:
        """Finish all; to be called while the pipelines are still there. Idempotent."""
        with self._lock:
            running = list(self._running)
            for one in running:
                one.stop_wanted = True
        self._wakeup.set()
        deadline_s = time.monotonic() + _JOIN_S
        if not all(one.ended.wait(max(0.0, deadline_s - time.monotonic())) for one in running):
            _log.error("recordings: take too long to finish: not waited for")

    def _path(self, name: str) -> Path:
        path = self._folder / name
        suffix = path.suffix.lower()
        if suffix in _SUFFIXES:
            return path
        if suffix in KINDS:
            is_of_samples = KINDS[suffix] == "samples"
            others = "record makes others" if is_of_samples else "convert makes others of a .spd"
            raise ConfigError(
                f"name={name!r}: a running daemon makes {', '.join(_SUFFIXES)}; spectrod {others}"
            )
        return path.with_name(path.name + _PICTURE)

    def _check_room(self, wanted: _Start) -> None:
        taken = [(one.path, one.sink.size_bytes) for one in self._running]
        taken += [(one.path, one.size_bytes) for one in self._starting]
        if len(taken) >= RECORDINGS_MAX:
            raise BusyError(f"recordings: {RECORDINGS_MAX} run already; stop one first")
        if any(path == wanted.path for path, _ in taken):
            raise _is_there(wanted.path)
        left_bytes = MEMORY_MAX_BYTES - sum(size_bytes for _, size_bytes in taken)
        if wanted.size_bytes > left_bytes:
            raise BusyError(
                f"recordings: {wanted.size_bytes >> 20} MB are needed, and {left_bytes >> 20} left "
                "by those that run; stop one first"
            )

    # ---- the thread that makes a file

    def _make(self, wanted: _Start) -> None:
        try:
            sink = self._open(wanted)
            with self._lock:
                wanted.is_made = not wanted.is_abandoned
            if wanted.is_made:
                self._begin(wanted, sink)
            else:
                sink.discard()
        except SpectrodError as error:
            wanted.error = error
        except Exception as error:  # noqa: BLE001 - the thread's last frame: logged, and the reply
            _log.exception("%s: cannot be recorded", wanted.path.name)
            wanted.error = InternalError(f"{wanted.path.name}: {error!r}; please report this")
        finally:
            with self._lock:
                self._starting.remove(wanted)
            wanted.done.set()

    def _open(self, wanted: _Start) -> _Sink:
        """Make the file, and what writes it."""
        path = wanted.path
        try:
            self._folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
            with Directory.open(self._folder) as directory:
                if directory.find(path.name) is not None:
                    raise _is_there(path)
                return _open_in(directory, wanted)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error

    def _begin(self, wanted: _Start, sink: _Sink) -> None:
        """Have the source's data written."""
        duration_s, member = wanted.duration_s, wanted.member
        limit_s = float("inf") if duration_s is None else duration_s + _GRACE_S
        deadline_s = time.monotonic() + limit_s
        recording = _Recording(member, wanted.spec.product, sink, wanted.who, deadline_s)
        try:
            with self._lock:
                if self._thread is None:
                    thread = _thread("recordings", self._run)
                    thread.start()
                    self._thread = thread
            if isinstance(sink, SoundSink):
                member.tap(sink, self._fail(recording))
            else:
                member.attach(sink, recording.product, self._fail(recording))
        except BaseException:
            sink.discard()
            raise
        with self._lock:
            self._running.append(recording)
        wanted.recording = recording

    def _fail(self, recording: _Recording) -> Callable[[SpectrodError], None]:
        def note(error: SpectrodError) -> None:
            recording.error = str(error)
            recording.stop_wanted = True
            self._wakeup.set()

        return note

    # ---- the thread that ends them, and one for each that waits for its disk

    def _run(self) -> None:
        while True:
            self._wakeup.wait(_LOOK_S)
            self._wakeup.clear()
            with self._lock:
                due = [one for one in self._running if _is_due(one)]
            for one in due:
                one.is_ending = True
                try:
                    _thread("record-finish", self._finish, one).start()
                except RuntimeError:  # the system gives no thread: the others wait for this one
                    self._finish(one)
            with self._lock:
                if not (self._running or self._starting):
                    self._thread = None
                    return

    def _finish(self, recording: _Recording) -> None:
        if isinstance(recording.sink, SoundSink):
            recording.member.untap(recording.sink)
        else:
            recording.member.detach(recording.sink)
        try:
            recording.sink.finish()
            state: State = "finished"
        except SpectrodError as error:
            recording.error, state = str(error), "failed"
        except Exception as error:  # noqa: BLE001 - the thread's last frame: logged, and in status
            _log.exception("recording failed")
            recording.error, state = f"{error!r}; please report this", "failed"
        with self._lock:
            recording.state = state
            self._running.remove(recording)
            self._ended.append(recording)
        self._note_end(recording)
        recording.ended.set()

    def _note_end(self, recording: _Recording) -> None:
        told = f"{recording.path.name}: {recording.state}, {recording.sink.n_frames} frames"
        text = f"{told}: {recording.error}" if recording.error else told
        source, has_failed = recording.member.name, recording.state == "failed"
        if has_failed:
            _log.error("%s: recording %s", source, text)
        note = self._journal.note
        note("record.stop", text, source=source, who=recording.who, log=not has_failed)


def _thread(name: str, act: Callable[..., None], *args: Any) -> threading.Thread:
    return threading.Thread(target=act, args=args, name=name, daemon=True)


def _is_there(path: Path) -> StorageError:
    return StorageError(f"{path.name}: is there already; give another name")


def _open_in(directory: Directory, wanted: _Start) -> _Sink:
    path, member, spec = wanted.path, wanted.member, wanted.spec
    suffix = path.suffix.lower()
    if suffix == _PICTURE:
        title = f"{member.name} {spec.product}"
        return ProductPicture(path, directory, spec, wanted.duration_s, title)
    make = SegmentSink if suffix == _SEGMENT else SoundSink
    part = PartFile(path, directory)
    try:
        file = make(part, _describe(member, spec), wanted.duration_s)
        file.start()
    except BaseException:
        part.close()
        raise
    return file


def _is_due(recording: _Recording) -> bool:
    is_over = recording.sink.is_full or recording.deadline_s <= time.monotonic()
    is_wanted = not (recording.stop_wanted or is_over or recording.member.ended)
    return not (is_wanted or recording.is_ending)


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
