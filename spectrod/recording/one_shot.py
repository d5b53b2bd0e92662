"""One file on request, without a thread."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from spectrod.config.schedule import NEVER_NS
from spectrod.dsp.blocks import Block, Chunk
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.output import Output
from spectrod.lib.errors import ConfigError, InputError, SpectrodError
from spectrod.recording.rotating_writer import ALWAYS, FileSpan, RotatingWriter

T = TypeVar("T", bound=Chunk)

MEMORY_MAX_BYTES: Final = 512 << 20
"""Limit for all pictures together: a stop has 2 s, enough to draw this much."""

_GRACE_S = 2.0
_NEVER_ON = FileSpan(-NEVER_NS, NEVER_NS, is_on=False)

State = Literal["recording", "finished", "failed"]


class OneShot(RotatingWriter[T]):
    """Writes one span of time to one file.

    The file ends after its duration, when the analysis changes, after a write error, and when the
    recorder stops. One thread, except ``status``.

    Parameters
    ----------
    path : Path
        The file.
    open_file : callable
        Makes the file.
    who : str
        Name of the client that asked for it; later of the one that stopped it.
    is_of_samples : bool
        Whether samples come, not rows.
    duration_s : float or None
        Duration from the first row or sample on [s]; None to record until stopped.
    memory_bytes : int
        Memory that it takes at most [bytes].
    """

    def __init__(
        self,
        path: Path,
        open_file: Callable[[], Output[T]],
        who: str,
        *,
        is_of_samples: bool,
        duration_s: float | None = None,
        memory_bytes: int = 0,
    ) -> None:
        super().__init__()
        self._path, self._open_file, self.who = path, open_file, who
        self._is_of_samples, self._duration_s = is_of_samples, duration_s
        self.memory_bytes = memory_bytes
        self._file: Output[T] | None = None
        self._duration_ns: int | None = None
        self._deadline_s = float("inf")
        self._begin_utc_ns = time.time_ns()
        self._has_started = self._is_full = self._has_changed = self._has_ended = False
        self._n_bytes = 0
        self._error: SpectrodError | None = None

    @property
    def path(self) -> Path:
        """Path of the file; at the end it may get a numbered name if its own is taken."""
        return self._file.path if self._file else self._path

    @property
    def is_over(self) -> bool:
        """Whether the file takes no more data."""
        return self._is_full or time.monotonic() >= self._deadline_s

    def start(self) -> None:
        """Open the file; raises a SpectrodError."""
        if self._duration_s is not None:
            self._duration_ns = round(self._duration_s * NS_PER_S)
        self._file = self._open_file()
        if self._duration_s is not None:
            self._deadline_s = time.monotonic() + self._duration_s + _GRACE_S

    def tick(self) -> None:
        """Do nothing: the file ends with its data, or after its duration."""

    def finish(self) -> None:
        """Finish the file; remove it if nothing was written."""
        self._is_full = True
        if self._file and not self._has_started:
            self._file.abort()
            self._error = InputError(f"{self.path.name}: nothing came to be written")
        self.close()
        self._has_ended = True

    def break_off(self, _why: str) -> None:
        """Close the file as it is."""
        self._is_full = self._has_ended = True
        if self._file:
            self._file.abort()

    def status(self) -> dict[str, Any]:
        """Return the status in built-in types: the fields of a configured recording, and more."""
        path = self.path
        state: State = "recording"
        if self._has_ended:
            state = "finished" if self._error is None or self._has_changed else "failed"
        n_samples = self.written if self._is_of_samples else 0
        return {
            "name": path.name,
            "path": os.fspath(path),
            "state": state,
            "begun_utc_ns": self._begin_utc_ns,
            "error": str(self._error or ""),
            "who": self.who,
            "folder": os.fspath(path.parent),
            "files": [] if self._has_ended else [path.name],
            "rows": self.written - n_samples,
            "samples": n_samples,
            "lost_rows": 0,
            "lost_samples": 0,
            "written_bytes": self._n_bytes,
            "free_bytes": None,
        }

    # ---- the file

    def _span_at(self, t_utc_ns: int) -> FileSpan:
        if self._has_started:
            self._is_full = True
            return _NEVER_ON
        if self._duration_ns is None:
            return ALWAYS
        return FileSpan(ALWAYS.begin_ns, t_utc_ns + self._duration_ns)

    def _may_write(self) -> bool:
        return not self._is_full

    def _fits(self, output: Output[T], chunk: T) -> bool:
        # Sound goes on in the same file after a gap of any length.
        return isinstance(chunk, Block) or output.fits(chunk)

    def _open(self, _chunk: T) -> Output[T]:
        if self._has_started:
            self._has_changed = True
            raise ConfigError("the analysis has changed, and a file holds one kind")
        assert self._file
        self._has_started = True
        return self._file

    def _note_written(self, _chunk: T) -> None:
        self._n_bytes = self.open_bytes

    def _note_finished(self, output: Output[T]) -> None:
        with contextlib.suppress(OSError):  # the file was moved: keep the earlier size
            self._n_bytes = output.path.stat().st_size

    def _fail(self, error: SpectrodError) -> None:
        self._error, self._is_full = self._error or error, True
        output = self._take_output()
        if output is not None:
            self._end_after_fault(output)
        self._count_cut()
