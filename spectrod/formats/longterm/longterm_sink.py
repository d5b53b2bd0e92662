"""Level statistics as a sink: counts rows of a recording, and writes a file at its end."""

import os
from dataclasses import replace
from pathlib import Path

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.longterm.data import Span, write_csv, write_npz
from spectrod.formats.longterm.statistics import LevelStatistics
from spectrod.formats.output import WholeFile
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.recorded_spans import RecordedSpans
from spectrod.formats.whole_files import check_writable, is_there, whole_file, write_whole
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.output_formats import suffixes

_DATA = {".npz": write_npz, ".csv": write_csv}
"""Writers of the formats of rows that hold level statistics."""


def samples_needed(spec: SpectrumSpec) -> int:
    """Return how many samples in a row a row needs to be counted: half its frames."""
    return spec.win_length + ((spec.averaging_frames + 1) // 2 - 1) * spec.hop


class SpdSink(WholeFile):
    """A ``RowWriter`` of the spectral probability density, as a picture or as numbers.

    It counts every batch immediately; the memory is that of ``LevelStatistics``, for any length.
    ``finish`` writes the file.

    Parameters
    ----------
    path : path-like
        Path of a picture (.png, .jpg, .webp, .svg, .pdf), or of numbers (.npz, .csv).
    description : Description
        Description of the rows: power, or levels.
    options : PictureOptions
        Options of a picture: size, frequency axis, ``levels`` as ends of the level axis, colour
        map, theme, title. With ``time_axis="utc"`` or a ``time_zone`` the footer gives the time.
        Strips and pooling are ignored, and ``raw`` is refused.
    step_db : float
        Width of the classes, see ``LevelStatistics`` [dB].

    Raises
    ------
    ConfigError
        If the suffix is unknown, or options and spec do not match.
    StorageError
        If no file can be made at this path.
    UnavailableError
        If the package for PDF is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        description: Description,
        options: PictureOptions,
        step_db: float = 0.0,
    ) -> None:
        self.path = Path(path)
        self._suffix = self.path.suffix.lower()
        known = suffixes(lambda one: one.holds_levels)
        if self._suffix not in known:
            rule = f"suffix must be one of {', '.join(known)}"
            raise ConfigError(f"{self.path}: level statistics: {rule}")
        self._about, self._options = description, options
        if self._suffix not in _DATA:
            if options.raw:
                raise ConfigError(f"{self.path}: raw: a picture of level statistics has axes")
            if self._suffix == ".pdf":
                # Imported when needed: the encoders import Pillow.
                from spectrod.formats.picture.encode import check_pdf  # noqa: PLC0415

                check_pdf()
            options.frequency_axis(description.spec)
            options.height_for(description.spec.n_signals)
        self._statistics: LevelStatistics | None = LevelStatistics(description.spec, step_db)
        check_writable(self.path)
        self._replaces = is_there(self.path)
        self._span = Span()
        self._recorded = RecordedSpans(description.spec)

    @property
    def n_frames(self) -> int:
        """Rows counted so far."""
        return self._statistics.n_rows if self._statistics else 0

    def write(self, batch: SpectrumBatch) -> None:
        """Count a batch, except averages that were cut off before half their time.

        Raises
        ------
        ConfigError
            If the batch is of another spec.
        InputError
            If a power is infinite or NaN.
        """
        is_short = 0 < 2 * batch.cut_frames < batch.spec.averaging_frames
        if batch.n_frames == 0 or self._statistics is None or is_short:
            return
        try:
            self._statistics.add(batch)
        except (ConfigError, InputError) as error:
            raise error.of(str(self.path)) from error
        self._recorded.add(batch)
        spec, span = batch.spec, self._span
        samples = spec.row_span
        is_first = span.end_utc_ns == 0
        is_gap = batch.discontinuity and not is_first
        self._span = replace(
            span,
            begin_utc_ns=int(batch.t_utc_ns[0]) if is_first else span.begin_utc_ns,
            end_utc_ns=int(batch.t_utc_ns[-1]) + round(samples * 1e9 / spec.fs),
            gaps=span.gaps + is_gap,
            gap_samples=span.gap_samples + (batch.gap_samples if is_gap else 0),
        )

    def finish(self) -> None:
        """Write the file.

        Raises
        ------
        InputError
            If there were no rows; no file is made then.
        StorageError
            If it cannot be written; an existing file stays unchanged.
        """
        statistics = self._statistics
        if statistics is None or statistics.n_rows == 0:
            need = samples_needed(self._about.spec)
            raise InputError(f"{self.path}: nothing to count: fewer than {need} samples in a row")
        span = self._span_with_schedule()
        if self._suffix in _DATA:
            with whole_file(self.path, replaces=self._replaces) as part:
                _DATA[self._suffix](part, statistics, self._about, span)
        else:
            from spectrod.formats.longterm.longterm_picture import draw_spd  # noqa: PLC0415

            content = draw_spd(statistics, self._about, self._options, span, suffix=self._suffix)
            write_whole(self.path, content, replaces=self._replaces)
        self.abort()

    def _span_with_schedule(self) -> Span:
        schedule = self._recorded.schedule()
        if schedule is None:
            return self._span
        return replace(self._span, pauses=schedule.pauses)

    def abort(self) -> None:
        """Discard all counts; no file is made. Idempotent."""
        self._statistics = None
