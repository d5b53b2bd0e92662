"""Bands of channels with different frequency responses: one plan for each response.

A response is applied to bins before they are summed into bands, by one table of weights for all
channels. So all channels are computed with each response, and each channel's rows are taken from
the plan of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.engine import Engine, FramePlan, PendingRows
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.numpy_engine import NumpyPlan
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.dsp.calibration import ChannelCalibration, Reference, Response
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array

_Channels = NDArray[np.int64]


def make_plan(
    engine: Engine, spec: SpectrumSpec, buffer: SampleBuffer, max_frames: int
) -> FramePlan:
    """Make the plan of an engine, or those of several responses; see ``Engine.plan``."""
    parts = list(_parts(spec))
    if len(parts) < 2:
        return engine.plan(spec, buffer, max_frames)
    return ResponsePlan(
        [engine.plan(part, buffer, max_frames) for part, _ in parts],
        [channels for _, channels in parts],
    )


class ResponsePlan:
    """Plans of one spec but for the response; implements ``FramePlan``.

    Parameters
    ----------
    plans : sequence of FramePlan
        One per response, each of all channels.
    channels : sequence of (n,) int64
        Channels whose rows each of them gives.
    """

    def __init__(self, plans: Sequence[FramePlan], channels: Sequence[_Channels]) -> None:
        self._plans, self._channels = plans, channels

    def resume(self, power: Float64Array | None) -> None:
        """Continue the averages of another plan; see ``FramePlan``."""
        for k, plan in enumerate(self._plans):
            plan.resume(None if power is None else power[k])

    @property
    def average_power(self) -> Float64Array | None:
        """Averaged power of each plan so far, (plans, signals, values); all must be of NumPy."""
        found = [plan.average_power for plan in self._plans if isinstance(plan, NumpyPlan)]
        powers = [power for power in found if power is not None]
        return np.stack(powers) if powers else None

    def submit(self, launch: FrameLaunch, out: NDArray[Any] | None = None) -> "_MergedRows":
        """Start to compute frames; see ``FramePlan``."""
        pending = [plan.submit(launch) for plan in self._plans]
        return _MergedRows(pending, self._channels, out)


class _MergedRows:
    """Rows in flight of several plans; implements ``PendingRows``."""

    def __init__(
        self,
        pending: Sequence[PendingRows],
        channels: Sequence[_Channels],
        out: NDArray[Any] | None,
    ) -> None:
        self._pending, self._channels, self._out = pending, channels, out

    def collect(self) -> NDArray[Any]:
        """Wait for the rows, and take those of each channel."""
        found = [pending.collect() for pending in self._pending]
        out = np.empty_like(found[0]) if self._out is None else self._out
        for rows, channels in zip(found, self._channels, strict=True):
            out[:, channels] = rows[:, channels]
        return out


def _parts(spec: SpectrumSpec) -> Iterator[tuple[SpectrumSpec, _Channels]]:
    """Yield a spec for each response of bands, and the channels that have it."""
    if not spec.bands or not spec.calibration or len(spec.scale.responses) < 2:
        return
    own = [one.response if one else None for one in spec.calibration]
    for response in spec.scale.responses:
        channels = np.array([k for k, one in enumerate(own) if one == response], np.int64)
        yield replace(spec, calibration=_with_response(spec, response)), channels


def _with_response(
    spec: SpectrumSpec, response: Response | None
) -> tuple[ChannelCalibration | None, ...]:
    """Return the sensitivities of a spec with one response for all channels."""
    if response is None:
        return tuple(one and replace(one, response=None) for one in spec.calibration)
    # Channels without a calibration keep their factor, so that the scale stays the same.
    level_db = 10.0 * np.log10(1.0 / spec.scale.uncalibrated_reference_power)
    neutral = ChannelCalibration(
        Reference(1.0, "V"), float(level_db) if spec.scaling == "dbfs" else 0.0, response
    )
    return tuple(replace(one, response=response) if one else neutral for one in spec.calibration)
