"""What writers of all exported formats have in common: checks, collecting, whole or not at all."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from spectrod.errors import ConfigError, InputError, StorageError
from spectrod.formats.description import Description
from spectrod.formats.export.options import ExportOptions
from spectrod.formats.export.rows import Rows, join, rows_of, take
from spectrod.formats.files import check_writable, whole_file
from spectrod.types import SpectrumBatch

CHUNK_BYTES = 1 << 20
ENGINES_MAX = 1 << 15
_COUNT_MAX = (1 << 63) - 1


class _AbandonedError(Exception):
    """Leaves the block that names a file without giving it its name."""


class ExportWriter(ABC):
    """Collects rows to chunks of about ``CHUNK_BYTES`` and writes them under another name.

    Takes every batch and never drops one; memory is bounded whatever the length. The final name
    appears with ``finish``, of a file that has reached the disk. Thread: one at a time.

    Parameters
    ----------
    path : Path
        Where the file goes; its folder must exist. A file of that name is replaced at the end.
    description : Description
        Of the batches to come.
    options : ExportOptions
        See there.

    Attributes
    ----------
    left_out_samples : int or None
        Samples that are in no row because they do not fill a frame; None if nobody knows. Goes into
        the file, so it must be set before ``finish``.

    Raises
    ------
    ConfigError
        If the description has a signal too many or too few, or settings that JSON cannot hold.
    StorageError
        If no file can be made at this path.
    UnavailableError
        If the format needs a package that is not installed.
    """

    def __init__(self, path: Path, description: Description, options: ExportOptions) -> None:
        if len(description.signals) != description.spec.n_signals:
            raise ConfigError(
                f"signals={description.signals}: must be {description.spec.n_signals} names"
            )
        self.path = path
        self.description = description
        self.options = options
        self.engines: list[str] = []
        self.left_out_samples: int | None = None
        self._n_frames = 0
        self._parts: list[Rows] = []
        self._n_collected = 0
        self._chunk_rows = chunk_rows(description)
        self._stack = ExitStack()
        self._check()
        with self._abandoned_if_it_fails():
            part = self._stack.enter_context(self._whole())
            self._open(part)

    @property
    def n_frames(self) -> int:
        """Rows taken so far."""
        return self._n_frames

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch of the description's spec.

        Raises
        ------
        ConfigError
            If it is of another one.
        InputError
            If it says that more is missing than 64 bits count.
        StorageError
            If the disk does not take it; nothing is left then.
        """
        if batch.spec != self.description.spec:
            raise ConfigError(f"{self.path}: the analysis has changed; a file holds one kind")
        if batch.n_frames == 0:
            return
        for name in ("gap_samples", "skipped_rows"):
            count = getattr(batch, name)
            if count > _COUNT_MAX:
                raise InputError(f"{self.path}: {name}={count}: must be less than 2^63")
        if batch.engine not in self.engines:
            if len(self.engines) == ENGINES_MAX:
                raise ConfigError(f"{self.path}: more than {ENGINES_MAX} engines")
            self.engines.append(batch.engine)
        rows = rows_of(batch, self.engines.index(batch.engine))
        self._n_frames += len(rows)
        self._parts.append(rows)
        self._n_collected += len(rows)
        if self._n_collected >= self._chunk_rows:
            with self._abandoned_if_it_fails():
                self._write_chunks()

    def finish(self) -> None:
        """Write what is left and give the file its name.

        Raises
        ------
        InputError
            If there was not a single row; no file is made then.
        StorageError
            If the disk does not take it; nothing is left then.
        """
        if self._n_frames == 0:
            self.abort()
            need = self.description.spec.win_length
            raise InputError(f"{self.path}: nothing to write: fewer than {need} samples in a row")
        with self._stack.pop_all():
            if self._parts:
                self._write(join(self._parts))
            self._parts = []
            self._close()

    def abort(self) -> None:
        """Give up: nothing is left. Idempotent; nothing after ``finish``."""
        self._parts = []
        with contextlib.suppress(_AbandonedError, StorageError), self._stack.pop_all():
            raise _AbandonedError

    def _check(self) -> None:
        check_writable(self.path)

    def _whole(self) -> AbstractContextManager[Path]:
        return whole_file(self.path)

    @abstractmethod
    def _open(self, part: Path) -> None:
        """Begin the file under this name; what is to be closed goes to ``self._stack``."""

    @abstractmethod
    def _write(self, rows: Rows) -> None:
        """Write a chunk; only the last one is shorter than ``self._chunk_rows``."""

    def _end_attributes(self) -> dict[str, int]:
        """Return the attributes that are known at the end only."""
        n_samples = self.left_out_samples
        return {} if n_samples is None else {"left_out_samples": n_samples}

    @abstractmethod
    def _close(self) -> None:
        """Write what is known at the end only; called after the last row."""

    def _write_chunks(self) -> None:
        """Write the whole chunks of what was collected; what is left is less than one."""
        rows = join(self._parts)
        past = len(rows) - len(rows) % self._chunk_rows
        for first in range(0, past, self._chunk_rows):
            self._write(take(rows, first, first + self._chunk_rows))
        self._n_collected = len(rows) - past
        self._parts = [take(rows, past, len(rows))] if self._n_collected else []

    @contextlib.contextmanager
    def _abandoned_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.abort()
            if isinstance(error, OSError):
                reason = error.strerror or error
                raise StorageError(f"{self.path}: {reason}") from error
            raise


def chunk_rows(description: Description) -> int:
    """Rows that are written together: as many as fit ``CHUNK_BYTES``, or one."""
    spec = description.spec
    row_bytes = spec.n_signals * spec.n_values * (8 if spec.output == "complex" else 4)
    return max(1, CHUNK_BYTES // row_bytes)
