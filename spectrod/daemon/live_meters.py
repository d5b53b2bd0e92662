"""Taps of the samples of a running source that measure for the publisher."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectrod.daemon.demand import Demand
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.dsp.blocks import Block
from spectrod.dsp.writer import Sink
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.measure.measurement import Measurement
from spectrod.measure.measurement_config import IntervalMeter, MeasurementConfig, OpenMeter

WriteRow = Callable[[IntervalEncoder, Measurement, int], None]
"""Takes a row, and the monotonic clock at its first sample [ns]."""


class LiveMeter:
    """Measures one product while somebody wants it; see ``Pipeline.tap``.

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
    write_row : callable
        Takes the rows.
    about : MeasurementDescription
        Description of the rows.

    Attributes
    ----------
    name : str
        The PRODUCT of its topics.
    settings : MeasurementConfig
    encoder : IntervalEncoder
    about : MeasurementDescription
    """

    def __init__(
        self,
        settings: MeasurementConfig,
        encoder: IntervalEncoder,
        open_meter: OpenMeter,
        demand: Demand,
        write_row: WriteRow,
        about: MeasurementDescription,
    ) -> None:
        self.settings, self.about = settings, about
        self.name, self.encoder = encoder.product, encoder
        # Replaced, never changed, so that the analysis need not wait for a change.
        self._sinks: tuple[Sink[MeasurementChunk], ...] = ()
        self._open, self._demand, self._write_row = open_meter, demand, write_row
        self._meter: IntervalMeter | None = None
        self._rest: tuple[Measurement, ...] = ()
        self._missing_samples = 0
        self._behind_ns = 0
        self._must_restart = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody subscribes to the product, records it or asks for it."""
        if self._sinks and not self._demand.is_paused:
            return True
        wanted = self._demand.wanted((), ())
        return wanted is None or self.name in wanted

    def attach(self, sink: Sink[MeasurementChunk]) -> None:
        """Measure, and pass on rows, from the next block on, until ``detach``; any thread."""
        self._sinks = (*self._sinks, sink)

    def detach(self, sink: Sink[MeasurementChunk]) -> None:
        """Pass on no more rows; one may still be on its way. Any thread."""
        self._sinks = tuple(one for one in self._sinks if one is not sink)

    def end(self, sink: Sink[MeasurementChunk]) -> None:
        """Detach, and pass on the row of the unfinished interval; no samples may follow."""
        self.detach(sink)
        if self._meter is not None:
            self._rest, self._meter = tuple(self._meter.finish()), None
        for row in self._rest:
            sink.write(MeasurementChunk(row, self.about))

    def finish(self) -> None:
        """Write the row of the last interval if it is whole; the source has ended."""
        if self._meter is None:
            return
        self._rest, self._meter = tuple(self._meter.finish()), None
        for row in self._rest:
            if row.n_samples == row.due_samples:
                self._write_row(self.encoder, row, (row.begin_utc_ns or 0) + self._behind_ns)

    def restart(self) -> None:
        """Begin a new interval with the next block; any thread."""
        self._must_restart = True

    def write(self, block: Block) -> None:
        """Measure a block of samples, and write the rows that are complete."""
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
        for row in self._meter.push(block.samples, missing, block.t_utc_ns):
            self._write_row(self.encoder, row, (row.begin_utc_ns or 0) + self._behind_ns)
            for sink in self._sinks:
                sink.write(MeasurementChunk(row, self.about))
