"""The picture as a sink: collects batches of a recording and writes the file at its end."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.dsp.blocks import Block
from spectrod.dsp.row_grid import as_number
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.writer import Sink
from spectrod.formats.output import WholeFile
from spectrod.formats.picture.encode import check_format, encode
from spectrod.formats.picture.marks import Mark, with_marks
from spectrod.formats.picture.page import Plots, compose
from spectrod.formats.picture.painter import NumpyPainter, Painter, Transpose
from spectrod.formats.picture.picture_settings import width_min
from spectrod.formats.picture.pixelmap import Recording
from spectrod.formats.picture.pooling import ColumnPool
from spectrod.formats.picture.raster import PixelTimes
from spectrod.formats.picture.recorded_spans import RecordedSpans
from spectrod.formats.picture.render import PictureOptions, render
from spectrod.formats.picture.strips import RowStrips, SampleStrips
from spectrod.formats.whole_files import check_writable, is_there, write_whole
from spectrod.lib.errors import ConfigError, InputError

_LEVEL_S = 0.02
"""Shortest time of a level in a strip: two periods of a deep voice."""

_COLUMNS_PER_PIXEL = 2
"""Merging halves the columns, so at least one per pixel remains."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Mapping of pixels to time.

    Attributes
    ----------
    samples_per_pixel : float
        Samples per pixel.
    begin_sample : int
        Sample at which the first pixel begins.
    first_sample : int
        Sample at which elapsed time is 0.
    """

    samples_per_pixel: float
    begin_sample: int = 0
    first_sample: int = 0

    def width_for(self, end_sample: int, options: PictureOptions) -> int:
        """Return the number of pixels up to a sample, limited to the allowed range."""
        width = math.ceil((end_sample - self.begin_sample) / self.samples_per_pixel)
        return min(max(width, width_min(raw=options.raw)), options.width)


class PictureSink(WholeFile):
    """Collects spectra and draws one spectrogram picture of them.

    It takes every batch immediately and drops none; memory is bounded for any length (see
    ``ColumnPool``). The constructor checks everything that can be checked before a recording.
    Thread: the analysis thread calls ``write``; another may call ``finish`` or ``abort`` after
    that has ended.

    Parameters
    ----------
    path : path-like
        Path of the picture, in an existing folder.
    options : PictureOptions
        Options of the picture.
    paint : Painter or callable
        Computes the pixels; a callable transposes a C-contiguous (rows, columns) float32 matrix for
        a ``NumpyPainter``.
    spec : SpectrumSpec
        Spec of the batches; they must have power or levels, which are converted to power.
    software : str
        Name and version for the file.
    scale : TimeScale, optional
        Time scale of a picture whose width follows from its length, up to ``options.width``. By
        default the picture always has that width.

    Attributes
    ----------
    origin_sample : int or None
        Sample at which elapsed time is 0; None for the first one that is drawn.
    marks : sequence of Mark
        Framed ranges of times and frequencies.

    Raises
    ------
    ConfigError
        If the suffix is unknown, or options and spec do not match.
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
        self.marks: Sequence[Mark] = ()
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
        self._spans = RecordedSpans(spec)
        self._engines: list[str] = []
        self._begin_utc_ns = 0
        self._gaps = 0
        self._gap_samples = 0

    def rename(self, path: str | os.PathLike[str]) -> None:
        """Change the picture's path; raises ConfigError and StorageError like the constructor."""
        self.path = Path(path)
        try:
            check_format(self.path.suffix, self._options, self._spec)
        except ConfigError as error:
            raise error.of(str(self.path)) from error
        self._paths = _paths(self.path, self._options, self._spec.n_signals)
        for one in self._paths:
            check_writable(one)
        self._existing = [one for one in self._paths if is_there(one)]

    @property
    def n_frames(self) -> int:
        """Rows written so far."""
        return self._pool.n_frames

    @property
    def strips(self) -> Sink[Block] | None:
        """Consumes samples for the strips, before the spectra computed from them; None without.

        Without samples a level strip is made of rows.
        """
        return self._samples if self._options.strips else None

    def write(self, batch: SpectrumBatch) -> None:
        """Add a batch of the constructor's spec.

        Raises
        ------
        ConfigError
            If the batch is of another spec: a picture holds one kind of spectrum.
        InputError
            If a power is infinite or NaN.
        """
        if batch.spec != self._spec:
            raise ConfigError(f"{self.path}: the analysis has changed; a picture holds one kind")
        if batch.n_frames == 0:
            return
        if not batch.values.max() < np.inf:  # also False for NaN
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
            power = self._spec.scale.to_power(batch.values)
            batch = replace(batch, spec=self._linear, values=power)
        self._pool.add(batch)
        self._spans.add(batch)
        if self._options.strips and self._samples.is_empty:
            self._rows.write(batch)

    def finish(self) -> None:
        """Draw the picture and write it.

        Raises
        ------
        InputError
            If there were no rows; no file is made then.
        StorageError
            If it cannot be written; an existing file stays unchanged.
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
        schedule = self._spans.schedule()
        shown = schedule.shown((begin, n_samples), options.width) if schedule else None
        about = Recording(
            self._linear,
            ", ".join(self._engines),
            self._begin_utc_ns - round((pool.first_sample - begin) * 1e9 / self._spec.fs),
            self._gaps,
            self._gap_samples,
            self._software,
            schedule=schedule,
            is_by_period=shown is not None,
            row_frames=self._spans.row_frames,
        )
        strips = self._rows if self._samples.is_empty else self._samples
        drawn_strips = strips if options.strips else None
        times = PixelTimes(begin, n_samples, shown)
        plots = render(pool, about, options, self._painter, drawn_strips, times=times)
        plots = with_marks(plots, self.marks, options.frequency_axis(self._linear), begin)
        # Free the pool's memory before drawing.
        del pool
        self._pool = self._new_pool()
        if self.origin_sample is not None:
            plots = replace(plots, begin_s=(begin - self.origin_sample) / self._spec.fs)
        for path, part, names in self._pages(plots):
            page = compose(part, about, replace(options, **names))
            self._write_file(path, encode(page, path.suffix))

    def _pages(self, plots: Plots) -> Iterator[tuple[Path, Plots, dict[str, Any]]]:
        """Yield path, data and changed options of each file."""
        if len(self._paths) == 1:
            yield self._paths[0], plots, {}
            return
        title = self._options.title
        for channel, path in enumerate(self._paths):
            name = self._options.names(len(self._paths))[channel]
            yield path, plots.only(channel), {"title": f"{title}, {name}" if title else name}

    def _write_file(self, path: Path, content: bytes) -> None:
        write_whole(path, content, replaces=path in self._existing)

    def abort(self) -> None:
        """Discard the collected data; no file is made."""
        self._pool = self._new_pool()

    def _new_pool(self) -> ColumnPool:
        options, spec = self._options, self._spec
        return ColumnPool(
            as_number(spec.row_step), _COLUMNS_PER_PIXEL * options.width, options.pool
        )


def _paths(path: Path, options: PictureOptions, n_signals: int) -> tuple[Path, ...]:
    """Return the paths of the files: one, or one for each channel with its name."""
    names = options.names(n_signals)
    if options.channels_as == "rows" or n_signals == 1:
        return (path,)
    # Replace characters that a channel's name may have and a file's name should not.
    safe = ["".join(c if c.isalnum() or c in "-_." else "-" for c in name) for name in names]
    if len(set(safe)) < n_signals:
        raise ConfigError(f"signals={','.join(names)}: must be different names, a file each")
    return tuple(path.with_name(f"{path.stem}-{name}{path.suffix}") for name in safe)
