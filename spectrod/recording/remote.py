"""A daemon's messages as rows of spectra; lost messages become gaps."""

import logging
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

import spectrod
from spectrod.client.subscription import Subscription
from spectrod.dsp.calibration import ChannelCalibration, parse_reference
from spectrod.dsp.conditions import Condition, UInt8Array
from spectrod.dsp.spectrum import SPEC_DEFAULTS, SPEC_FIELDS, SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.spectrum_rules import CHANNELS_MAX
from spectrod.dsp.units import NS_PER_S, UNITS, Scaling
from spectrod.dsp.value_scale import ZERO_DB
from spectrod.dsp.windows import CUSTOM, unknown_window
from spectrod.formats.description import Description
from spectrod.lib.errors import ConfigError, UnavailableError, WireError
from spectrod.lib.text import printable
from spectrod.lib.time_zones import TIME_ZONE, is_known_zone, unknown_zone
from spectrod.wire.schema import IntervalFrame, Meta

_log = logging.getLogger(__name__)

_SCALINGS: dict[str, Scaling] = {unit: scaling for scaling, unit in UNITS.items()}
_REFERENCE = re.compile(rf"{ZERO_DB} = ([^,]{{1,40}})(?:,.*)?", re.DOTALL)
_OF_SITE = re.compile(r"geospatial_[a-z_]{1,40}|platform|instrument")
"""Attributes of a source that recordings take over."""
_FIRST_S = 10.0
_INDEX_MAX = (1 << 62) - 1
"""Upper bound on sample indices of a recording, so that sums of two fit 64 bits [samples]."""


@dataclass(slots=True, eq=False)
class _Row:
    """Frames of the channels at one time, as received so far."""

    header: Any
    values: dict[str, Any]
    conditions: dict[str, Condition | None]
    restarted: bool


class DaemonReader:
    """Rows of one product of one source, as a daemon sends them.

    Implements ``spectrod.formats.description.RowReader``, except that ``batches`` continues until a
    given time. Frames of all channels at one time make a row. If one of them was lost, the row is
    left out, and the next row reports it as a gap. When the daemon restarts, sample indices
    continue according to UTC.

    Parameters
    ----------
    subscription : Subscription
        Subscription to topics ``spec/`` or ``bands/``; closed with the reader.
    prefix : str
        Prefix of these topics, for errors.
    timeout_s : float
        Time limit for the first two rows, which determine the channels [s].

    Raises
    ------
    UnavailableError
        If nothing arrives in that time.
    ConfigError
        If several sources or products arrive, or messages that a recording cannot hold.
    """

    def __init__(
        self, subscription: Subscription, prefix: str, timeout_s: float = _FIRST_S
    ) -> None:
        self._subscription, self._prefix = subscription, prefix
        self._row: _Row | None = None
        self._expected: int | None = None
        self._shift = 0
        self._last_utc_ns = 0
        self.lost_rows = 0
        """Rows with missing frames."""
        first = self._receive(time.monotonic() + timeout_s)
        if first is None:
            raise UnavailableError(f"{prefix}: no spectra came in {timeout_s:g} s")
        self._of = first.source, first.product
        self._headers = self._find_channels(first, time.monotonic() + timeout_s)
        self._channels = tuple(self._headers)
        spec = _spec_of(first, self._headers)
        software = f"spectrod {spectrod.__version__}"
        attributes = _attributes(first.topic, subscription.meta.get(first.topic))
        self.description = Description(
            spec, first.source, self._channels, software, attributes=attributes
        )
        """Metadata of all rows."""
        self._step = int(spec.row_step)
        self._engine = first.header.engine

    def _receive(self, deadline_s: float) -> Any:
        frame = self._subscription.receive(max(0.0, deadline_s - time.monotonic()))
        if isinstance(frame, IntervalFrame):
            raise ConfigError(
                f"{frame.topic}: has measurements; recordings are of spectra, from "
                "topics spec/ and bands/"
            )
        return frame

    def _find_channels(self, first: Any, deadline_s: float) -> dict[str, Any]:
        """Find the channels of one time, with a header of each.

        A subscription may begin in the middle of a row.
        """
        seen = [first]
        while (frame := self._receive(deadline_s)) is not None:
            if (frame.source, frame.product) != self._of:
                raise ConfigError(
                    f"{self._prefix}: has {'/'.join(self._of)} and {frame.source}/{frame.product}; "
                    "name one with --topic spec/SOURCE/ or spec/SOURCE/CHANNEL/PRODUCT/"
                )
            times = {one.header.sample_index for one in seen}
            if len(times) == 2 and frame.header.sample_index not in times:
                break
            if len(seen) == 2 * CHANNELS_MAX:
                raise ConfigError(f"{self._prefix}: more than {CHANNELS_MAX} channels at one time")
            seen.append(frame)
        found = {frame.channel: frame.header for frame in seen}
        return dict(sorted(found.items(), key=lambda one: (len(one[0]), one[0])))

    def batches(self, stop_monotonic_s: float | None = None) -> Iterator[SpectrumBatch]:
        """Yield rows as they arrive, until a time of the monotonic clock.

        Raises
        ------
        ConfigError
            If the daemon's analysis changes.
        WireError
            If a message has a time or a sample index that is impossible in a recording.
        """
        while True:
            left_s = 1.0 if stop_monotonic_s is None else stop_monotonic_s - time.monotonic()
            if left_s <= 0.0:
                return
            frame = self._subscription.receive(min(left_s, 1.0))
            if frame is not None and (frame.source, frame.product) == self._of:
                batch = self._add(frame)
                if batch is not None:
                    yield batch

    def _add(self, frame: Any) -> SpectrumBatch | None:
        row = self._row
        if row is None or row.header.sample_index != frame.header.sample_index:
            # Frames from before the subscription are not lost.
            self.lost_rows += row is not None and self._expected is not None
            self._check(frame)
            row = self._row = _Row(frame.header, {}, {}, frame.restarted)
        if frame.channel not in self._channels:
            raise ConfigError(f"{frame.topic}: the daemon's channels have changed")
        if len(frame.values) != self.description.spec.n_values or (
            _unit(frame.header) != _unit(self._headers[frame.channel])
        ):
            raise ConfigError(f"{frame.topic}: the daemon's analysis has changed")
        row.restarted |= frame.restarted
        row.values[frame.channel] = frame.values
        row.conditions[frame.channel] = frame.conditions
        if len(row.values) < len(self._channels):
            return None
        self._row = None
        return self._batch(row)

    def _check(self, frame: Any) -> None:
        spec = _spec_of(frame, self._headers)
        if spec != self.description.spec:
            raise ConfigError(f"{frame.topic}: the daemon's analysis has changed")

    def _batch(self, row: _Row) -> SpectrumBatch:
        header, spec = row.header, self.description.spec
        if row.restarted and self._expected is not None:
            away = round((header.t_utc_ns - self._last_utc_ns) * spec.fs / NS_PER_S)
            self._shift = self._expected - self._step + max(away, self._step) - header.sample_index
        index = header.sample_index + self._shift
        if index > _INDEX_MAX:
            raise WireError(
                f"{self._prefix}: sample_index={header.sample_index}, "
                f"t_utc_ns={header.t_utc_ns}: index {index} of the recording is above {_INDEX_MAX}"
            )
        gap = 0 if self._expected is None else max(0, index - self._expected)
        n_samples = header.cut_frames * spec.hop or self._step
        self._expected, self._last_utc_ns = index + n_samples, header.t_utc_ns
        values = np.stack([row.values[channel] for channel in self._channels])[np.newaxis]
        return SpectrumBatch(
            values,
            np.array([index], np.int64),
            np.array([header.t_mono_ns], np.int64),
            np.array([header.t_utc_ns], np.int64),
            spec,
            header.engine,
            gap_samples=gap,
            discontinuity=gap > 0 or row.restarted,
            cut_frames=header.cut_frames,
            conditions=self._conditions(row),
        )

    def _conditions(self, row: _Row) -> UInt8Array | None:
        """Return the conditions of a row, (1, signals); None where no channel has any."""
        found = [row.conditions[channel] for channel in self._channels]
        if not any(one is not None for one in found):
            return None
        return np.array([[one or 0 for one in found]], np.uint8)

    def close(self) -> None:
        """End the subscription. Idempotent."""
        self._subscription.close()


def _attributes(topic: str, meta: Meta | None) -> dict[str, str]:
    """Return what a description states of the place: a peer decides no other attribute."""
    if meta is None:
        return {}
    stated, zone = meta.header.attributes, meta.header.time_zone
    given = {} if stated is msgspec.UNSET else stated
    found = {name: text for name, text in given.items() if _OF_SITE.fullmatch(name)}
    if zone is msgspec.UNSET:
        return found
    if not is_known_zone(zone):
        _log.warning("%s: %s", topic, unknown_zone(zone))
        return found
    return found | {TIME_ZONE: zone}


def _unit(header: Any) -> tuple[str, str, str]:
    """Return what identifies the unit of values, and the calibration behind it."""
    return header.unit, header.ref, header.cal_id or ""


def _calibration(topic: str, header: Any) -> tuple[Scaling, ChannelCalibration | None]:
    """Return what a message's unit says of the scaling and the calibration.

    Raises
    ------
    ConfigError
        If this version does not support the unit.
    """
    if header.unit in _SCALINGS:
        return _SCALINGS[header.unit], None
    found = _REFERENCE.fullmatch(header.ref)
    if found:
        try:
            reference = parse_reference(found[1])
        except ConfigError as error:
            raise ConfigError(f"{topic}: {printable(str(error))}") from error
        one = ChannelCalibration(reference, math.nan, None, printable(header.cal_id or "", 64))
        for scaling in UNITS:
            spec = SpectrumSpec(1.0, scaling=scaling, calibration=(one,))
            if spec.scale.unit == header.unit:
                return scaling, one
    units = ", ".join(_SCALINGS)
    raise ConfigError(
        f"{topic}: unit={printable(header.unit)!r}: must be one of {units}, or that of a known "
        "reference"
    )


def _spec_of(frame: Any, headers: Mapping[str, Any]) -> SpectrumSpec:
    """Return the spec of a message's values, for a header of each channel.

    Raises
    ------
    ConfigError
        If this version does not support the unit or another name, or the message has only a part of
        the spectrum.
    """
    h = frame.header
    scaling, _ = _calibration(frame.topic, h)
    iq = getattr(h, "first_bin", 0) < 0
    n_frames = 1 if h.averaging == "none" else h.averaging_frames
    fields = {name: getattr(h, name) for name in SPEC_FIELDS if hasattr(h, name)}
    spec = SpectrumSpec(
        **fields
        | {
            "channels": len(headers) * (2 if iq else 1),
            "hop": h.frame_hop or h.hop // n_frames,
            "scaling": scaling,
            "calibration": tuple(_calibration(frame.topic, one)[1] for one in headers.values()),
            "iq": iq,
            "center_frequency_hz": h.center_frequency_hz if iq else 0.0,
            "averaging_frames": n_frames,
            "averaging_s": h.averaging_s or SPEC_DEFAULTS["averaging_s"],
            "align": "utc" if h.align == "utc" else "start",
            "product": frame.product,
        },
        **_custom_window(h),
    )
    if len(frame.values) != spec.n_values:
        raise ConfigError(
            f"{frame.topic}: has {len(frame.values)} of {spec.n_values} values; only whole spectra "
            "can be recorded"
        )
    return spec


def _custom_window(header: Any) -> dict[str, Any]:
    """Return an unnamed window with the parameters in the header."""
    if header.window != CUSTOM:
        return {}
    nenbw_bins = header.enbw_hz * header.win_length / header.fs
    return {"taper": unknown_window(header.win_length, nenbw_bins)}
