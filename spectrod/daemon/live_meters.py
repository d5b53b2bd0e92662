"""Taps of the samples of a running source that measure for the publisher."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectrod.daemon.demand import Demand
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.daemon.recorders import RowTaker
from spectrod.dsp.blocks import Block
from spectrod.formats.values.value_description import LevelDescription
from spectrod.measure.interval_row import IntervalRow
from spectrod.measure.measurement import IntervalMeter, MeasurementConfig, OpenMeter

Submit = Callable[[IntervalEncoder, IntervalRow, int], None]
"""Takes a row, and the monotonic clock at its first sample [ns]."""


class LiveMeter:
    """Measures one product while somebody wants it; see ``pipeline.Tap``.

    Intervals begin with the first sample that is wanted. With ``align = "start"`` they are counted
    from the source's sample 0.

    Parameters
    ----------
    settings : MeasurementConfig
        Its settings.
    encoder : IntervalEncoder
        Its topics.
    open_meter : callable
        Makes its meter.
    demand : Demand
        Products that are wanted.
    submit : callable
        Takes the rows.
    about : LevelDescription
        Description of the rows.

    Attributes
    ----------
    name : str
        The PRODUCT of its topics.
    settings : MeasurementConfig
    encoder : IntervalEncoder
    about : LevelDescription
    """

    def __init__(
        self,
        settings: MeasurementConfig,
        encoder: IntervalEncoder,
        open_meter: OpenMeter,
        demand: Demand,
        submit: Submit,
        about: LevelDescription,
    ) -> None:
        self.settings, self.about = settings, about
        self.name, self.encoder = encoder.product, encoder
        # Replaced, never changed, so that the analysis need not wait for a change.
        self._takers: tuple[RowTaker, ...] = ()
        self._open, self._demand, self._submit = open_meter, demand, submit
        self._meter: IntervalMeter | None = None
        self._rest: tuple[IntervalRow, ...] = ()
        self._missing_samples = 0
        self._behind_ns = 0
        self._must_restart = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody subscribes to the product, records it or asks for it."""
        if self._takers and not self._demand.is_paused:
            return True
        wanted = self._demand.wanted((), ())
        return wanted is None or self.name in wanted

    def attach(self, taker: RowTaker) -> None:
        """Measure, and pass on rows, from the next block on, until ``detach``; any thread."""
        self._takers = (*self._takers, taker)

    def detach(self, taker: RowTaker) -> None:
        """Pass on no more rows; one may still be on its way. Any thread."""
        self._takers = tuple(one for one in self._takers if one is not taker)

    def end(self, taker: RowTaker) -> None:
        """Detach, and pass on the row of the unfinished interval; no samples may follow."""
        self.detach(taker)
        if self._meter is not None:
            self._rest, self._meter = tuple(self._meter.finish()), None
        for row in self._rest:
            taker.take_row(row, self.about)

    def finish(self) -> None:
        """Submit the row of the last interval if it is whole; the source has ended."""
        if self._meter is None:
            return
        self._rest, self._meter = tuple(self._meter.finish()), None
        for row in self._rest:
            if row.n_samples == row.due_samples:
                self._submit(self.encoder, row, (row.begin_utc_ns or 0) + self._behind_ns)

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
            self._meter, self._rest = self._open(block.sample_index), ()
            block = replace(block, lost_samples=0, discontinuity=False)
            self._missing_samples = 0
        missing = block.missing_samples
        if self._missing_samples:
            missing = self._missing_samples + block.lost_samples
        self._missing_samples = 0
        self._behind_ns = block.t_mono_ns - block.t_utc_ns
        for row in self._meter.feed(block.samples, missing, block.t_utc_ns):
            self._submit(self.encoder, row, (row.begin_utc_ns or 0) + self._behind_ns)
            for taker in self._takers:
                taker.take_row(row, self.about)
