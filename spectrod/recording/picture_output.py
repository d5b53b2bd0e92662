"""Pictures of any drawable product of a running daemon."""

from pathlib import Path

import spectrod
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.directory import Directory
from spectrod.formats.picture.painter import host_transpose
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.sink import PictureSink
from spectrod.lib.errors import ConfigError, storage_errors
from spectrod.recording.one_shot import MEMORY_MAX_BYTES

_WIDTH_PX = 1000
_COLUMN_BYTES = 2 * _WIDTH_PX * 8  # per bin: two columns per pixel, sums in float64


class PictureOutput(PictureSink):
    """A picture in a folder that is already open.

    Parameters
    ----------
    path : Path
        Path of the picture; ``finish`` takes the next free name if this one is taken by then.
    directory : Directory
        Directory of the path's last part; duplicated.
    spec : SpectrumSpec
        Spec of the product.
    title : str
        Title above the picture.

    Raises
    ------
    ConfigError
        If a picture cannot show the product.
    StorageError
        If no file can be made there.
    """

    def __init__(self, path: Path, directory: Directory, spec: SpectrumSpec, title: str) -> None:
        picture_bytes(spec)
        options = PictureOptions(width=_WIDTH_PX, title=title)
        super().__init__(path, options, host_transpose, spec, f"spectrod {spectrod.__version__}")
        self._directory = directory.duplicate()

    def fits(self, batch: SpectrumBatch) -> bool:
        """Return whether a batch is of the picture's analysis."""
        return batch.spec == self._spec

    def finish(self) -> None:
        """Draw and write the picture; raises the errors of ``PictureSink.finish``."""
        try:
            super().finish()
        finally:
            self._directory.close()

    def abort(self) -> None:
        """Discard the picture. Idempotent."""
        super().abort()
        self._directory.close()

    def _write_file(self, path: Path, content: bytes) -> None:
        with storage_errors(path):
            self.path = path.with_name(self._directory.write_new(path.name, content))


def picture_bytes(spec: SpectrumSpec) -> int:
    """Return the memory that a picture of a product needs [bytes].

    Raises
    ------
    ConfigError
        If a picture cannot show the product, or would need too much memory.
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
