"""Pictures of what a running daemon computes, of whatever product can be drawn."""

from pathlib import Path

import numpy as np

import spectrod
from spectrod.errors import ConfigError
from spectrod.record.picture.options import PictureOptions
from spectrod.record.picture.sink import PictureSink
from spectrod.record.recording import rows_between
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.units import Float32Array

MEMORY_MAX_BYTES = 512 << 20
"""Of all that run at once: as much is drawn in the 2 s that a stop has for it."""

_WIDTH_PX = 1000
_COLUMN_BYTES = 2 * _WIDTH_PX * 8  # of a bin: two columns a pixel, sums in float64


class ProductPicture:
    """Draws a picture of a product, for as long as was asked for.

    ``submit`` is the analysis thread's; ``finish`` another's, once it is detached.
    """

    dropped = 0
    """Nothing is: it draws at the end."""

    def __init__(
        self, path: Path, spec: SpectrumSpec, duration_s: float | None, title: str
    ) -> None:
        if spec.iq or spec.bands or spec.output != "power":
            what = "bands" if spec.bands else "two-sided or complex spectra"
            raise ConfigError(f"product={spec.product!r}: pictures show no {what}")
        self.size_bytes = spec.n_bins * spec.channels * _COLUMN_BYTES
        if self.size_bytes > MEMORY_MAX_BYTES:
            raise ConfigError(
                f"product={spec.product!r}: {spec.channels} channels of {spec.n_bins} bins need "
                f"{self.size_bytes >> 20} MB for a picture, at most {MEMORY_MAX_BYTES >> 20} are "
                "given"
            )
        self._spec = spec
        self._n_samples = None if duration_s is None else round(duration_s * spec.fs)
        self._end_sample: int | None = None
        self.n_frames = 0
        self.is_full = False
        software = f"spectrod {spectrod.__version__}"
        options = PictureOptions(width=_WIDTH_PX, title=title)
        self._picture = PictureSink(path, options, _transpose, spec, software)

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
        self._picture.submit(rows_between(batch, 0, n_rows))
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
        """Draw the picture; raises as ``PictureSink.finish``."""
        self._picture.finish()


def _transpose(matrix: Float32Array) -> Float32Array:
    """Turn a matrix without the engine, which is the analysis thread's."""
    return np.ascontiguousarray(matrix.T)
