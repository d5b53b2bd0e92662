"""The picture as a sink: takes batches while a recording runs and writes the file at its end."""

import os
from pathlib import Path

from spectrod.errors import ConfigError, InputError
from spectrod.record.files import check_writable, write_whole
from spectrod.record.picture.pixelmap import Recording
from spectrod.record.picture.pooling import ColumnPool
from spectrod.record.picture.render import PictureOptions, Transpose, render
from spectrod.types import SpectrumBatch, SpectrumSpec

PICTURE_SUFFIXES = (".png",)

_COLUMNS_PER_PIXEL = 2
"""Merging halves the columns, so this leaves at least one for each pixel."""


class PictureSink:
    """Collects spectra and makes one spectrogram PNG of them.

    Takes every batch at once and never drops one; memory is bounded whatever the length (see
    ``ColumnPool``). All that can be known to be wrong is found when it is made, not after an hour
    of recording. Thread: ``submit`` is the analysis thread's; ``finish`` or ``abort`` may be
    called by another once that has ended.

    Parameters
    ----------
    path : path-like
        Where the picture goes; its folder must exist.
    options : PictureOptions
        What it shall look like.
    transpose : callable
        From a C-contiguous (rows, columns) float32 matrix to its transpose: an engine's.
    spec : SpectrumSpec
        Of the batches to come; scaling "spectrum" or "density".
    software : str
        Name and version to be written into the file.

    Raises
    ------
    ConfigError
        If the suffix is unknown, or options and spec do not fit each other.
    StorageError
        If no file can be made at this path.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: PictureOptions,
        transpose: Transpose,
        spec: SpectrumSpec,
        software: str = "spectrod",
    ) -> None:
        self.path = Path(path)
        if self.path.suffix.lower() not in PICTURE_SUFFIXES:
            known = ", ".join(PICTURE_SUFFIXES)
            raise ConfigError(f"{self.path}: a picture's suffix must be one of {known}")
        if spec.scaling == "dbfs":
            raise ConfigError("scaling='dbfs': a picture is made of linear power; take 'spectrum'")
        options.frequency_axis(spec)
        options.height_for(spec.channels)
        check_writable(self.path)
        self._options = options
        self._transpose = transpose
        self._spec = spec
        self._software = software
        self._pool = ColumnPool(spec.hop, _COLUMNS_PER_PIXEL * options.width)
        self._engines: list[str] = []
        self._begin_utc_ns = 0
        self._gaps = 0
        self._gap_samples = 0

    @property
    def n_frames(self) -> int:
        """Frames taken so far."""
        return self._pool.n_frames

    def submit(self, batch: SpectrumBatch) -> None:
        """Add a batch of linear power, of the spec given at the start.

        Raises
        ------
        ConfigError
            If the batch is of another spec: a picture holds one kind of spectrum.
        """
        if batch.spec != self._spec:
            raise ConfigError(f"{self.path}: the analysis has changed; a picture holds one kind")
        if batch.n_frames == 0:
            return
        if batch.engine not in self._engines:
            self._engines.append(batch.engine)
        if self.n_frames == 0:
            self._begin_utc_ns = int(batch.t_utc_ns[0])
        elif batch.discontinuity:
            self._gaps += 1
            self._gap_samples += batch.gap_samples
        self._pool.add(batch)

    def finish(self) -> None:
        """Draw the picture and write it.

        Raises
        ------
        InputError
            If there was not a single frame; no file is made then.
        StorageError
            If it cannot be written; a file of that name stays as it was.
        """
        if self.n_frames == 0:
            need = self._spec.win_length
            raise InputError(f"{self.path}: nothing to draw: fewer than {need} samples in a row")
        about = Recording(
            self._spec,
            ", ".join(self._engines),
            self._begin_utc_ns,
            self._gaps,
            self._gap_samples,
            self._software,
        )
        write_whole(self.path, render(self._pool, about, self._options, self._transpose))
        self.abort()

    def abort(self) -> None:
        """Forget what was collected; no file is made."""
        self._pool = ColumnPool(self._spec.hop, self._pool.max_columns)
