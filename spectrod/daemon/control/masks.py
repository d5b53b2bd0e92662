"""Masks that a running daemon learns on request, one at a time."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.dispatch import error_code
from spectrod.daemon.control.mask_learner import MaskLearner
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.source_runner import SourceRunner, find_running
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.directory import Directory
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    NotFoundError,
    SpectrodError,
    UnavailableError,
    exists_error,
    storage_error,
    storage_errors,
)
from spectrod.lib.worker import Worker
from spectrod.measure.triggers.mask import FILE_MAX_BYTES, mask_path, mask_toml
from spectrod.measure.triggers.trigger_config import MASKS_FOLDER
from spectrod.wire.requests import StartLearningParams

_log = logging.getLogger(__name__)

State = Literal["learning", "finished", "failed", "aborted"]

_ENDED_KEPT: Final = 20
_POLL_S: Final = 0.5
_JOIN_S: Final = 2.0
_MODE: Final = 0o750


class Learning:
    """One mask that is being learned; see ``pipeline.Sink``.

    The analysis thread counts, a thread of its own writes the file.

    Parameters
    ----------
    params : StartLearningParams
        What is learned.
    runner : SourceRunner
        The source.
    pipeline : Pipeline
        Its pipeline.
    spec : SpectrumSpec
        The product.
    folder : Path
        The state folder.
    who : str
        Peer that requested it.
    on_end : callable
        Called by the thread after the end.
    """

    def __init__(  # noqa: PLR0913 - what is learned, of which source, and for whom
        self,
        params: StartLearningParams,
        runner: SourceRunner,
        pipeline: Pipeline,
        spec: SpectrumSpec,
        folder: Path,
        *,
        who: str,
        on_end: Callable[["Learning"], None],
    ) -> None:
        self.params, self.source_name, self.who = params, runner.name, who
        self._pipeline, self._folder, self._on_end = pipeline, folder, on_end
        self._learner = MaskLearner(spec, params.duration_s, params.percentile, params.margin_db)
        self.path = mask_path(folder / MASKS_FOLDER, params.name)
        self.state: State = "learning"
        self.error = self._error_code = ""
        self._failure: SpectrodError | None = None
        self._is_aborted = False
        self._done = threading.Event()
        self._worker = Worker(f"learn {params.name}", self._run, self._ended)

    def start(self) -> None:
        """Attach to the product, and start the thread."""
        self._pipeline.attach(self, self._learner.spec.product, self._fail)
        self._worker.start()

    def write(self, batch: SpectrumBatch) -> None:
        """Count rows; raises InputError where the mask cannot be learned."""
        if not self._done.is_set():
            self._learner.push(batch)
            if self._learner.is_complete:
                self._done.set()

    def abort(self) -> None:
        """Stop learning; no file is written."""
        self._is_aborted = True
        self._done.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; return whether it has ended."""
        return self._worker.wait(timeout_s)

    def _fail(self, error: SpectrodError) -> None:
        self._failure = error
        self._done.set()

    def _run(self) -> None:
        while not (self._done.wait(_POLL_S) or self._pipeline.finished):
            pass
        self._pipeline.detach(self)
        if self._is_aborted:
            return
        if self._failure:
            raise self._failure
        if not self._learner.is_complete:
            raise UnavailableError("the source has ended")
        self._write(mask_toml(self._learner.mask(self.source_name)).encode())

    def _write(self, content: bytes) -> None:
        if len(content) > FILE_MAX_BYTES:
            raise ConfigError(f"mask of {len(content)} bytes: must have at most {FILE_MAX_BYTES}")
        try:
            write_file(self._folder, self.path.name, content, replace=self.params.replace)
        except FileExistsError:
            raise exists_error(self.path.name) from None
        except OSError as error:
            raise storage_error(self.path, error) from error

    def _ended(self, failure: SpectrodError | None) -> None:
        self.error = str(failure) if failure else ""
        self._error_code = error_code(failure) if failure else ""
        self.state = "failed" if failure else "aborted" if self._is_aborted else "finished"
        self._on_end(self)

    def status(self) -> dict[str, Any]:
        """Return the state in built-in types; any thread."""
        learner = self._learner
        return {
            "name": self.params.name,
            "source": self.source_name,
            "product": learner.spec.product,
            "state": self.state,
            "error": self.error,
            "error_code": self._error_code,
            "path": str(self.path),
            "fs": learner.spec.fs,
            "due_samples": learner.due_samples,
            "seen_samples": min(learner.seen_samples, learner.due_samples),
            "missing_samples": learner.missing_samples,
            "rows": learner.rows,
            "percentile": self.params.percentile,
            "margin_db": self.params.margin_db,
        }


def write_file(folder: Path, name: str, content: bytes, *, replace: bool) -> None:
    """Write a file into the folder of masks, whole or not at all; links are not followed.

    Raises
    ------
    OSError
        FileExistsError if there is one that must not be replaced.
    """
    folder.mkdir(_MODE, parents=True, exist_ok=True)
    with Directory.open(folder) as state, state.make_child(MASKS_FOLDER, _MODE) as masks:
        part = masks.write_new(f".{name}.part", content)
        try:
            (masks.rename if replace else masks.rename_noreplace)(part, name)
        except OSError:
            masks.remove(part)
            raise
        masks.synchronise()


class Masks:
    """The mask that is being learned, and the last twenty that have ended. Any thread may call.

    Parameters
    ----------
    folder : Path
        The state folder; masks lie in ``masks`` in it.
    journal : Journal
        Records each start and end.
    runners : callable
        Returns the sources, whose triggers read a mask again that was replaced.
    """

    def __init__(
        self, folder: Path, journal: Journal, runners: Callable[[], Sequence[SourceRunner]]
    ) -> None:
        self._folder, self._journal, self._runners = folder, journal, runners
        self._running: Learning | None = None
        self._ended: deque[Learning] = deque(maxlen=_ENDED_KEPT)
        self._lock = threading.Lock()

    def start(self, runner: SourceRunner, params: StartLearningParams, who: str) -> dict[str, Any]:
        """Start to learn a mask; return its snapshot.

        Raises
        ------
        BusyError
            If another one is being learned.
        ConfigError, NotFoundError
            If the product cannot have a mask, or does not exist, or the name is not valid.
        StorageError
            If the mask exists already and is not to be replaced, or the folder cannot be written.
        UnavailableError
            If the source is absent or has ended.
        """
        pipeline, spec = find_running(runner, params.product)
        one = Learning(params, runner, pipeline, spec, self._folder, who=who, on_end=self._note_end)
        if not params.replace and os.path.lexists(one.path):
            raise exists_error(one.path.name)
        self._try_folder()
        with self._lock:
            if self._running is not None:
                raise BusyError(
                    f"mask={self._running.params.name!r}: is being learned; one at a time: wait, "
                    "or abort it"
                )
            self._running = one
        try:
            one.start()
        except SpectrodError:  # the analysis has changed meanwhile
            self._running = None
            raise
        self._journal.note("learn.begun", params.name, source=runner.name, who=who)
        return one.status()

    def _try_folder(self) -> None:
        """Find out now, not after minutes, whether the folder can be written."""
        with storage_errors(self._folder / MASKS_FOLDER):
            self._folder.mkdir(_MODE, parents=True, exist_ok=True)
            with (
                Directory.open(self._folder) as state,
                state.make_child(MASKS_FOLDER, _MODE) as masks,
            ):
                masks.remove(masks.write_new(".trial.part", b"#" * 4096))

    def abort(self, name: str, who: str) -> dict[str, Any]:
        """Stop learning a mask, by default the only one; return its snapshot.

        Raises
        ------
        NotFoundError
            If it is not being learned.
        BusyError
            If its file is still being written after 2 s.
        """
        one = self._running
        if one is None or name not in ("", one.params.name):
            known = one.params.name if one else "none"
            raise NotFoundError(f"mask={name!r}: is not being learned; there are: {known}")
        one.who = who
        one.abort()
        if not one.wait(_JOIN_S):
            raise BusyError(f"mask={one.params.name!r}: its disk does not respond")
        return one.status()

    def status(self) -> list[dict[str, Any]]:
        """Return the status of each mask, the latest last."""
        with self._lock:
            several = [*self._ended, *([self._running] if self._running else [])]
        return [one.status() for one in several]

    def close(self) -> None:
        """Abort the mask that is being learned. Idempotent."""
        one = self._running
        if one is not None:
            one.abort()
            if not one.wait(_JOIN_S):
                _log.error("learn: the disk does not respond; stopping without it")

    def _note_end(self, one: Learning) -> None:
        with self._lock:
            self._running = None
            self._ended.append(one)
        text = f"{one.params.name}: {one.state}"
        has_failed = one.state == "failed"
        if has_failed:
            text = f"{text}: {one.error}"
            _log.error("%s: mask %s", one.source_name, text)
        self._journal.note(
            "learn.ended", text, source=one.source_name, who=one.who, log=not has_failed
        )
        if one.state == "finished":
            self._reload(one.params.name)

    def _reload(self, name: str) -> None:
        """Have triggers with this mask read it again."""
        for runner in self._runners():
            try:
                if runner.reload_mask(name):
                    self._journal.note("trigger.mask", f"{name}: read again", source=runner.name)
            except SpectrodError as error:
                _log.error("%s: %s; its triggers keep the mask that they had", runner.name, error)
