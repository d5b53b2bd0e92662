"""Pictures of what a running daemon computes, of whatever product can be drawn."""

from pathlib import Path

import numpy as np

import spectrod
from spectrod.errors import ConfigError, StorageError
from spectrod.record.directory import Directory
from spectrod.record.picture.options import PictureOptions
from spectrod.record.picture.sink import PictureSink
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.units import Float32Array

MEMORY_MAX_BYTES = 512 << 20
"""Of all that run at once: as much is drawn in the 2 s that a stop has for it."""

_WIDTH_PX = 1000
_COLUMN_BYTES = 2 * _WIDTH_PX * 8  # of a bin: two columns a pixel, sums in float64


class ProductPicture:
    """Draws a picture of a product, for as long as was asked for.

    ``submit`` is the analysis thread's; ``finish`` another's, once it is detached.

    Parameters
    ----------
    path : Path
        Where it should go.
    directory : Directory
        Where the last part of the path is looked up; duplicated.
    spec : SpectrumSpec
        Of the product.
    duration_s : float or None
        After which it is full [s].
    title : str
        Above the picture.

    Attributes
    ----------
    size_bytes : int
        Memory that it takes.

    Raises
    ------
    ConfigError
        If no picture can show the product.
    StorageError
        If no file can be made there.
    """

    dropped = 0
    """Nothing is: it draws at the end."""

    is_late = False
    """Whether the disk does not answer: not known, since it draws and writes at once."""

    def __init__(
        self,
        path: Path,
        directory: Directory,
        spec: SpectrumSpec,
        duration_s: float | None,
        title: str,
    ) -> None:
        self.path, self._spec = path, spec
        self.size_bytes = picture_bytes(spec)
        self._n_samples = None if duration_s is None else round(duration_s * spec.fs)
        self._end_sample: int | None = None
        self.n_frames = 0
        self.is_full = False
        software = f"spectrod {spectrod.__version__}"
        options = PictureOptions(width=_WIDTH_PX, title=title)
        self._picture = PictureSink(path, options, _transpose, spec, software)
        self._picture.write = self._write
        self._directory = directory.duplicate()

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch.

        Raises
        ------
        ConfigError
            If the analysis has changed; what came before is drawn.
        """
        if batch.spec != self._spec:
            raise ConfigError("the analysis has changed, and a picture holds one kind")
        n_rows = self._n_within(batch)
        if n_rows == 0:
            return
        self._picture.submit(batch.head(n_rows))
        self.n_frames += n_rows

    def _n_within(self, batch: SpectrumBatch) -> int:
        """Count the rows that begin before the duration is over."""
        if self._n_samples is None or batch.n_frames == 0:
            return batch.n_frames
        if self._end_sample is None:
            self._end_sample = int(batch.sample_index[0]) + self._n_samples
        n_rows = int(np.searchsorted(batch.sample_index, self._end_sample))
        self.is_full |= n_rows < batch.n_frames
        return n_rows

    def finish(self) -> None:
        """Draw the picture; raises as ``PictureSink.finish``.

        If its name was taken meanwhile it gets the next free one, which ``path`` is then.
        """
        try:
            self._picture.finish()
        finally:
            self._directory.close()

    def discard(self) -> None:
        """Make no picture."""
        self._picture.abort()
        self._directory.close()

    def _write(self, path: Path, content: bytes) -> None:
        try:
            self.path = path.with_name(self._directory.write_new(path.name, content))
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error


def picture_bytes(spec: SpectrumSpec) -> int:
    """Say how much memory a picture of a product takes [bytes].

    Raises
    ------
    ConfigError
        If no picture can show it, or it would take too much.
    """
    if spec.iq or spec.bands or spec.output != "power":
        what = "bands" if spec.bands else "two-sided or complex spectra"
        raise ConfigError(f"product={spec.product!r}: pictures show no {what}")
    size_bytes = spec.n_bins * spec.channels * _COLUMN_BYTES
    if size_bytes > MEMORY_MAX_BYTES:
        raise ConfigError(
            f"product={spec.product!r}: {spec.channels} channels of {spec.n_bins} bins need "
            f"{size_bytes >> 20} MB for a picture, at most {MEMORY_MAX_BYTES >> 20} are given"
        )
    return size_bytes


def _transpose(matrix: Float32Array) -> Float32Array:
    """Turn a matrix without the engine, which is the analysis thread's."""
    return np.ascontiguousarray(matrix.T)
