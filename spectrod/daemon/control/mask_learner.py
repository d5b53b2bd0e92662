"""Learns a mask: a percentile of the levels of each value over minutes, and a margin."""

from math import ceil
from typing import Final

import numpy as np

from spectrod.analysis.percentile import CountedFrames
from spectrod.dsp.averaging import KEPT_FRAMES_MAX, PERCENTILE_BYTES_MAX, percentile_bytes
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import FLOOR_DBFS
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.triggers.mask import LearnedFrom, Mask, analysis_of
from spectrod.measure.triggers.trigger_config import LEARNED_POINTS_MAX

MISSING_MAX_PERCENT: Final = 5.0
"""Largest share of the time that may be missing [%]."""


class MaskLearner:
    """Counts the levels of each value of each signal in classes of 0.1 dB.

    The mask is, at each frequency above 0 Hz, the highest percentile of all signals, and the
    margin.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the rows.
    duration_s : float
        Time to learn from, gaps included [s].
    percentile : float
        Percentage of rows that lie below the mask without its margin, at least 50 and below 100
        [%].
    margin_db : float
        Added to the percentile [dB].

    Raises
    ------
    ConfigError
        If the rows cannot have a mask, need more than 256 MiB, or are too few for the percentile.
    """

    def __init__(
        self, spec: SpectrumSpec, duration_s: float, percentile: float, margin_db: float
    ) -> None:
        _check(spec, duration_s, percentile)
        self.spec, self._percentile, self._margin_db = spec, percentile, margin_db
        self._n_values = spec.n_signals * spec.n_values
        self.due_samples = round(duration_s * spec.fs)
        self._counted = CountedFrames(spec, self._n_values)
        self._begin_utc_ns = 0
        self.rows = self.missing_samples = self.seen_samples = 0

    @property
    def is_complete(self) -> bool:
        """Whether the time is over."""
        return self.seen_samples >= self.due_samples

    def push(self, batch: SpectrumBatch) -> None:
        """Count rows; those after the end of the time do not count.

        Raises
        ------
        InputError
            If the analysis has changed, or more than 5 % of the time is missing.
        """
        if batch.spec is not self.spec and batch.spec != self.spec:
            raise InputError("the analysis has changed: learn the mask again")
        if not self.rows:
            if not batch.n_frames:
                return
            batch, self._begin_utc_ns = batch.as_first(), int(batch.t_utc_ns[0])
        step = float(self.spec.row_step)
        self._note_missing(batch.gap_samples + round(batch.skipped_rows * step))
        n_left = max(0, ceil((self.due_samples - self.seen_samples) / step))
        values = batch.values[:n_left]
        self._counted.add(values.reshape(len(values), self._n_values))
        self.rows += len(values)
        self.seen_samples += round(len(values) * step)

    def _note_missing(self, n_samples: int) -> None:
        self.missing_samples += n_samples
        self.seen_samples += n_samples
        percent = 100.0 * self.missing_samples / self.due_samples
        if percent > MISSING_MAX_PERCENT:
            raise InputError(
                f"{self.missing_samples / self.spec.fs:.3g} s are missing, {percent:.3g} % of the "
                f"time: must be at most {MISSING_MAX_PERCENT:g} %"
            )

    def mask(self, source: str) -> Mask:
        """Return the mask, after ``is_complete``; once."""
        spec = self.spec
        rank = max(1, ceil(round(self._percentile / 100.0 * self.rows, 6)))
        found = self._counted.ranked(rank).reshape(spec.n_signals, spec.n_values)
        level = np.maximum(spec.scale.to_level(found).max(axis=0), FLOOR_DBFS) + self._margin_db
        points = tuple(
            (float(f"{f_hz:.9g}"), round(float(one), 2))
            for f_hz, one in zip(spec.frequencies.tolist(), level.tolist(), strict=True)
            if f_hz > 0.0
        )
        learned = LearnedFrom(
            source,
            spec.product,
            self._begin_utc_ns,
            self.seen_samples / spec.fs,
            self.rows,
            self.missing_samples,
            self._percentile,
            self._margin_db,
        )
        return Mask(points, spec.scale.level_unit, learned, analysis_of(spec))


def _check(spec: SpectrumSpec, duration_s: float, percentile: float) -> None:
    if spec.iq:
        raise ConfigError(
            f"product={spec.product!r}: of I/Q samples: a mask is logarithmic in frequency"
        )
    if spec.output != "power" or len(set(spec.scale.units)) > 1:
        raise ConfigError(
            f"product={spec.product!r}: a mask needs power in one unit of all channels, not "
            f"{spec.scale.unit}"
        )
    n_points = int((spec.frequencies > 0.0).sum())
    if n_points > LEARNED_POINTS_MAX:
        raise ConfigError(
            f"product={spec.product!r}: {n_points} values above 0 Hz: a mask has at most "
            f"{LEARNED_POINTS_MAX} points; choose bands or a smaller nfft"
        )
    n_bytes = percentile_bytes(KEPT_FRAMES_MAX, spec.n_signals * spec.n_values)
    if n_bytes > PERCENTILE_BYTES_MAX:
        raise ConfigError(
            f"product={spec.product!r}: {spec.n_signals * spec.n_values} values need "
            f"{n_bytes >> 20} MiB: must be at most {PERCENTILE_BYTES_MAX >> 20} MiB; choose bands, "
            "a smaller nfft or fewer channels"
        )
    n_rows = duration_s / spec.row_s
    least = 100.0 / (100.0 - percentile)
    if n_rows < least:
        raise ConfigError(
            f"duration_s={duration_s:g}: has {int(n_rows)} rows: percentile={percentile:g} needs "
            f"at least {ceil(least)}, {least * spec.row_s:.3g} s"
        )
