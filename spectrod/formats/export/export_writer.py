"""Base class of exporters: checks, collects chunks, and writes files atomically."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.export_rows import Rows, join, rows_of, take
from spectrod.formats.output import WholeFile
from spectrod.formats.whole_files import WholeFileWriter, check_writable, whole_file
from spectrod.lib.errors import ConfigError, InputError

CHUNK_BYTES = 1 << 20
ENGINES_MAX = 1 << 15
_COUNT_MAX = (1 << 63) - 1


class ExportWriter(WholeFileWriter, WholeFile, ABC):
    """Collects rows to chunks of about ``CHUNK_BYTES`` and writes them to a temporary file.

    It accepts every batch and drops none; memory is bounded for any length. ``finish`` synchronises
    the file to disk and gives it its final name. Thread: one at a time.

    Parameters
    ----------
    path : Path
        Path of the file, in an existing folder. An existing file is replaced at the end.
    description : Description
        Description of the batches.
    options : ExportOptions
        Export options.

    Attributes
    ----------
    left_out_samples : int or None
        Samples that are in no row because they do not fill a frame; None if unknown. It is stored
        in the file, so set it before ``finish``.

    Raises
    ------
    ConfigError
        If the number of signals is wrong, or JSON cannot represent the settings.
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
        super().__init__(path)
        self.description = description
        self.options = options
        self.engines: list[str] = []
        self.left_out_samples: int | None = None
        self._n_frames = 0
        self._parts: list[Rows] = []
        self._n_collected = 0
        self._chunk_rows = chunk_rows(description)
        self._check()
        with self._aborted_if_it_fails():
            part = self._stack.enter_context(self._whole())
            self._open(part)

    @property
    def n_frames(self) -> int:
        """Rows written so far."""
        return self._n_frames

    def write(self, batch: SpectrumBatch) -> None:
        """Add a batch of the description's spec.

        Raises
        ------
        ConfigError
            If the batch is of another spec.
        InputError
            If a number of missing samples or rows does not fit into 64 bits.
        StorageError
            If writing fails; no file is left then.
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
            with self._aborted_if_it_fails():
                self._write_chunks()

    def finish(self) -> None:
        """Write the remaining rows and publish the file.

        Raises
        ------
        InputError
            If there were no rows; no file is made then.
        StorageError
            If writing fails; no file is left then.
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
        """Leave no file. Idempotent; no effect after ``finish``."""
        self._parts = []
        super().abort()

    def _check(self) -> None:
        check_writable(self.path)

    def _whole(self) -> AbstractContextManager[Path]:
        return whole_file(self.path)

    @abstractmethod
    def _open(self, part: Path) -> None:
        """Start the file at this path; push its cleanup on ``self._stack``."""

    @abstractmethod
    def _write(self, rows: Rows) -> None:
        """Write a chunk; only the last one is shorter than ``self._chunk_rows``."""

    def _end_attributes(self) -> dict[str, int]:
        """Return the attributes that are known only at the end."""
        n_samples = self.left_out_samples
        return {} if n_samples is None else {"left_out_samples": n_samples}

    @abstractmethod
    def _close(self) -> None:
        """Write the data that are known only at the end; called after the last row."""

    def _write_chunks(self) -> None:
        """Write all complete chunks; keep the rest, which is shorter than one."""
        rows = join(self._parts)
        past = len(rows) - len(rows) % self._chunk_rows
        for first in range(0, past, self._chunk_rows):
            self._write(take(rows, first, first + self._chunk_rows))
        self._n_collected = len(rows) - past
        self._parts = [take(rows, past, len(rows))] if self._n_collected else []


def chunk_rows(description: Description) -> int:
    """Return the number of rows per chunk: as many as fit ``CHUNK_BYTES``, at least one."""
    spec = description.spec
    row_bytes = spec.n_signals * spec.n_values * (8 if spec.output == "complex" else 4)
    return max(1, CHUNK_BYTES // row_bytes)
