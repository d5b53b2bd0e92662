"""Sound levels of a running source: a tap of its samples, and its rows for the publisher."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from spectrod.calibration import ChannelCalibration
from spectrod.demand import Demand
from spectrod.levels import LevelMeter, LevelRow
from spectrod.levels.values import UNCALIBRATED_DB
from spectrod.settings import LevelsConfig
from spectrod.types import Block
from spectrod.wire.level_encoder import LevelEncoder

_log = logging.getLogger(__name__)

Submit = Callable[[LevelEncoder, LevelRow, int], None]
"""Takes a row, and the monotonic clock at its first sample [ns]."""


class LiveLevels:
    """Measures one product of sound levels while somebody wants it; see ``pipeline.Tap``.

    Intervals begin with the first sample that is wanted. With ``align = "start"`` they are counted
    from the source's sample 0.

    Parameters
    ----------
    settings : LevelsConfig
        The product.
    source_name : str
        The SOURCE of its topics.
    channel_names : sequence of str
        Names of the channels; empty for their numbers.
    fs : float
        Sample rate [Hz].
    calibrations : sequence of (ChannelCalibration or None)
        Calibration of each channel.
    demand : Demand
        Products that are wanted.
    submit : callable
        Takes the rows.

    Attributes
    ----------
    name : str
        The PRODUCT of its topics.
    encoder : LevelEncoder

    Raises
    ------
    ConfigError
        If a quantity does not exist at this sample rate or for these channels.
    """

    def __init__(  # noqa: PLR0913 - what a meter and its topics need
        self,
        settings: LevelsConfig,
        source_name: str,
        channel_names: Sequence[str],
        *,
        fs: float,
        calibrations: Sequence[ChannelCalibration | None],
        demand: Demand,
        submit: Submit,
    ) -> None:
        self.name = settings.name
        self._settings, self._fs, self._calibrations = settings, fs, calibrations
        self._demand, self._submit = demand, submit
        self._meter: LevelMeter | None = None
        self._missing_samples = 0
        self._must_restart = False
        # Raise errors now, not with the first sample.
        quantities = self._open(0).quantities
        self.encoder = LevelEncoder(
            source_name,
            channel_names,
            self.name,
            quantities,
            fs=fs,
            interval_s=settings.interval_s,
            calibrations=calibrations,
        )

    @property
    def is_wanted(self) -> bool:
        """Whether somebody wants the product."""
        wanted = self._demand.wanted((), ())
        return wanted is None or self.name in wanted

    def restart(self) -> None:
        """Begin a new interval with the next block; any thread."""
        self._must_restart = True

    def take(self, block: Block) -> None:
        """Measure a block of samples, and submit the rows that are complete."""
        if self._must_restart or not self.is_wanted:
            self._must_restart = False
            self._meter = None
            self._missing_samples = 0
            if not self.is_wanted:
                return
        if not np.isfinite(block.samples).all():
            # The spectra of these samples are left out as well.
            self._missing_samples += block.span_samples
            return
        if self._meter is None:
            self._meter = self._open(block.sample_index)
            block = replace(block, lost_samples=0)
            self._missing_samples = 0
        missing = self._missing_samples + block.lost_samples
        self._missing_samples = 0
        behind_ns = block.t_mono_ns - block.t_utc_ns
        for row in self._meter.feed(block.samples, missing, block.t_utc_ns):
            self._submit(self.encoder, row, (row.begin_utc_ns or 0) + behind_ns)

    def _open(self, first_sample: int) -> LevelMeter:
        settings = self._settings
        return LevelMeter(
            self._fs,
            len(self._calibrations),
            quantities=settings.quantities,
            interval_s=settings.interval_s,
            align=settings.align,
            time_zone=settings.time_zone,
            first_sample=first_sample,
            full_scale_db=[
                UNCALIBRATED_DB if one is None else one.full_scale_db for one in self._calibrations
            ],
        )
