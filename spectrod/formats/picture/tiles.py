"""Pictures whose width follows from their length; long ones continue in further files."""

from pathlib import Path

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.output import WholeFile
from spectrod.formats.picture.plan import PicturePlan
from spectrod.formats.picture.sink import PictureSink, TimeScale
from spectrod.lib.errors import ConfigError

_NUMBERS = "{stem}-{number:04d}{suffix}"


class TiledPicture(WholeFile):
    """Draws at a fixed number of seconds per pixel, at most ``options.width`` pixels per file.

    Tile k has the rows that begin in its time; it is written when the first row of the next one
    arrives, so memory holds one tile. A single tile has the plain name; several are
    ``OUT-0001.png`` and so on. Pixels of the last tile after the end of the recording are drawn as
    a gap. Tiles without rows are left out.

    Implements ``spectrod.formats.description.RowWriter``.

    Parameters
    ----------
    path : Path
        Path of the picture, see ``PictureSink``.
    how : PicturePlan
        Plan with ``seconds_per_pixel``.
    spec : SpectrumSpec
        Spec of the batches.
    software : str
        Name and version for the files.

    Raises
    ------
    ConfigError, StorageError
        Like ``PictureSink``; ConfigError also for a waveform strip, which tiles do not have.
    """

    def __init__(self, path: Path, how: PicturePlan, spec: SpectrumSpec, software: str) -> None:
        if "waveform" in how.options.strips:
            raise ConfigError("strips=waveform: pictures with a time per pixel have none")
        self.path, self._how = path, how
        self._spec, self._software = spec, software
        self._tile_samples = max(1, round(how.seconds_per_pixel * how.options.width * spec.fs))
        self._begin: int | None = None
        self._number = 0
        self._n_written = 0
        self.n_frames = 0
        """Rows written so far."""
        self._sink = self._new_sink(path)

    def _new_sink(self, path: Path, begin_sample: int = 0) -> PictureSink:
        how, origin = self._how, self._how.origin_sample
        first_sample = (self._begin or 0) if origin is None else origin
        return PictureSink(
            path,
            how.options,
            how.paint,
            self._spec,
            self._software,
            TimeScale(self._tile_samples / how.options.width, begin_sample, first_sample),
        )

    def write(self, batch: SpectrumBatch) -> None:
        """Add a batch; raises the errors of ``PictureSink.write`` and ``finish``."""
        if batch.n_frames == 0:
            return
        if self._begin is None:
            self._begin = int(batch.sample_index[0])
            self._sink = self._new_sink(self.path, self._begin)
        self.n_frames += batch.n_frames
        for number, part in batch.runs((batch.sample_index - self._begin) // self._tile_samples):
            if number != self._number:
                self._turn_to(number)
            self._sink.write(part)

    def _turn_to(self, number: int) -> None:
        """Write the complete tile and start another one."""
        assert self._begin is not None
        self._write(self._numbered(self._number))
        self._number = number
        begin = self._begin + number * self._tile_samples
        self._sink = self._new_sink(self._numbered(number), begin)

    def _numbered(self, number: int) -> Path:
        path = self.path
        return path.with_name(
            _NUMBERS.format(stem=path.stem, suffix=path.suffix, number=number + 1)
        )

    def _write(self, path: Path) -> None:
        if self._sink.n_frames:
            self._sink.rename(path)
            self._sink.finish()
            self._n_written += 1

    def finish(self) -> None:
        """Write the last tile; raises the errors of ``PictureSink.finish``."""
        if self._n_written == 0:
            self._sink.finish()
        else:
            self._write(self._numbered(self._number))

    def abort(self) -> None:
        """Discard the present tile; earlier tiles are already written."""
        self._sink.abort()
