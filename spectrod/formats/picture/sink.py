"""The picture as a sink: takes batches while a recording runs and writes the file at its end."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.errors import ConfigError, InputError
from spectrod.formats.files import check_writable, is_there, write_whole
from spectrod.formats.picture.encode import check_format, encode
from spectrod.formats.picture.options import width_min
from spectrod.formats.picture.page import Plots, compose
from spectrod.formats.picture.painter import NumpyPainter, Painter, Transpose
from spectrod.formats.picture.pixelmap import Recording
from spectrod.formats.picture.pooling import ColumnPool
from spectrod.formats.picture.render import PictureOptions, render
from spectrod.formats.picture.strips import RowStrips, SampleStrips
from spectrod.grid import as_number
from spectrod.types import Block, SpectrumBatch, SpectrumSpec

_LEVEL_S = 0.02
"""Least time that a level along a plot is of: two periods of a deep voice."""

_COLUMNS_PER_PIXEL = 2
"""Merging halves the columns, so this leaves at least one for each pixel."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Where pixels lie in time.

    Attributes
    ----------
    samples_per_pixel : float
        Width of a pixel.
    begin_sample : int
        Where the first one begins.
    first_sample : int
        From where on elapsed time counts.
    """

    samples_per_pixel: float
    begin_sample: int = 0
    first_sample: int = 0

    def width_for(self, end_sample: int, options: PictureOptions) -> int:
        """Count the pixels up to a sample; no fewer than pictures have at least."""
        width = math.ceil((end_sample - self.begin_sample) / self.samples_per_pixel)
        return min(max(width, width_min(raw=options.raw)), options.width)


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
    paint : Painter or callable
        What makes the pixels; a callable is what transposes a C-contiguous (rows, columns) float32
        matrix for a ``NumpyPainter``.
    spec : SpectrumSpec
        Of the batches to come: power; levels are made power again.
    software : str
        Name and version to be written into the file.
    scale : TimeScale, optional
        Of a picture whose width follows from its length; ``options.width`` is its largest then. By
        default the picture is so wide, whatever it holds.

    Attributes
    ----------
    write : callable
        Writes a file of a path and its content; by default it replaces what was there before.
    origin_sample : int or None
        From which sample on elapsed time counts; None: from the first that is drawn.

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
        paint: Painter | Transpose,
        spec: SpectrumSpec,
        software: str = "spectrod",
        scale: TimeScale | None = None,
    ) -> None:
        if spec.output == "complex":
            raise ConfigError("output='complex': a picture is made of power")
        options.frequency_axis(spec)
        self._options = options
        self._spec = spec
        self.scale = scale
        self.origin_sample: int | None = None if scale is None else scale.first_sample
        self.write: Callable[[Path, bytes], None] = self._write
        self.rename(path)
        self._linear = replace(spec, scaling="spectrum") if spec.scaling == "dbfs" else spec
        self._samples = SampleStrips(
            spec.channels,
            options.width,
            is_iq=spec.iq,
            least_samples=round(_LEVEL_S * spec.fs),
        )
        self._rows = RowStrips(self._linear, options.width)
        self._painter = NumpyPainter(paint) if callable(paint) else paint
        self._software = software
        self._pool = self._new_pool()
        self._engines: list[str] = []
        self._begin_utc_ns = 0
        self._gaps = 0
        self._gap_samples = 0

    def rename(self, path: str | os.PathLike[str]) -> None:
        """Let the picture go elsewhere; raises ConfigError and StorageError as at the start."""
        self.path = Path(path)
        try:
            check_format(self.path.suffix, self._options, self._spec)
        except ConfigError as error:
            raise ConfigError(f"{self.path}: {error}") from error
        self._paths = _paths(self.path, self._options, self._spec.n_signals)
        for one in self._paths:
            check_writable(one)
        self._existing = [one for one in self._paths if is_there(one)]

    @property
    def n_frames(self) -> int:
        """Frames taken so far."""
        return self._pool.n_frames

    @property
    def wants_samples(self) -> bool:
        """Whether it shall be given samples too, by ``take``; without them a level is of rows."""
        return bool(self._options.strips)

    def take(self, block: Block) -> None:
        """Add samples for the strips, before the spectra that are made of them."""
        self._samples.take(block)

    def submit(self, batch: SpectrumBatch) -> None:
        """Add a batch of the spec given at the start.

        Raises
        ------
        ConfigError
            If the batch is of another spec: a picture holds one kind of spectrum.
        InputError
            If a power is beyond what numbers can be.
        """
        if batch.spec != self._spec:
            raise ConfigError(f"{self.path}: the analysis has changed; a picture holds one kind")
        if batch.n_frames == 0:
            return
        if not batch.values.max() < np.inf:  # NaN as well
            rule = "a power is beyond all numbers: samples too far beyond full scale"
            raise InputError(f"{self.path}: {rule}")
        if batch.engine not in self._engines:
            self._engines.append(batch.engine)
        if self.n_frames == 0:
            self._begin_utc_ns = int(batch.t_utc_ns[0])
        elif batch.discontinuity:
            self._gaps += 1
            self._gap_samples += batch.gap_samples
        if self._linear is not self._spec:
            power = self._spec.to_power(batch.values)
            batch = replace(batch, spec=self._linear, values=power)
        self._pool.add(batch)
        if self._options.strips and self._samples.is_empty:
            self._rows.submit(batch)

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
        pool, options = self._pool, self._options
        begin, n_samples = pool.first_sample, pool.end_sample - pool.first_sample
        if self.scale is not None:
            begin = self.scale.begin_sample
            width = self.scale.width_for(pool.end_sample, options)
            options = replace(options, width=width)
            n_samples = round(width * self.scale.samples_per_pixel)
        about = Recording(
            self._linear,
            ", ".join(self._engines),
            self._begin_utc_ns - round((pool.first_sample - begin) * 1e9 / self._spec.fs),
            self._gaps,
            self._gap_samples,
            self._software,
        )
        strips = self._rows if self._samples.is_empty else self._samples
        wanted = strips if options.strips else None
        plots = render(pool, about, options, self._painter, wanted, span=(begin, n_samples))
        # The pool's memory is for drawing now.
        del pool
        self.abort()
        if self.origin_sample is not None:
            plots = replace(plots, begin_s=(begin - self.origin_sample) / self._spec.fs)
        for path, part, names in self._pages(plots):
            page = compose(part, about, replace(options, **names))
            self.write(path, encode(page, path.suffix))

    def _pages(self, plots: Plots) -> Iterator[tuple[Path, Plots, dict[str, Any]]]:
        """Yield what goes into each file, and what its options say otherwise."""
        if len(self._paths) == 1:
            yield self._paths[0], plots, {}
            return
        title = self._options.title
        for channel, path in enumerate(self._paths):
            name = self._options.names(len(self._paths))[channel]
            yield path, plots.only(channel), {"title": f"{title}, {name}" if title else name}

    def _write(self, path: Path, content: bytes) -> None:
        write_whole(path, content, replaces=path in self._existing)

    def abort(self) -> None:
        """Forget what was collected; no file is made."""
        self._pool = self._new_pool()

    def _new_pool(self) -> ColumnPool:
        options, spec = self._options, self._spec
        return ColumnPool(
            as_number(spec.row_step), _COLUMNS_PER_PIXEL * options.width, options.pool
        )


def _paths(path: Path, options: PictureOptions, n_signals: int) -> tuple[Path, ...]:
    """Files to be written: a name for each channel where they have their own."""
    names = options.names(n_signals)
    if options.channels_as == "rows" or n_signals == 1:
        return (path,)
    # What a name may hold that a file's must not.
    safe = ["".join(c if c.isalnum() or c in "-_." else "-" for c in name) for name in names]
    if len(set(safe)) < n_signals:
        raise ConfigError(f"signals={','.join(names)}: must be different names, a file each")
    return tuple(path.with_name(f"{path.stem}-{name}{path.suffix}") for name in safe)
