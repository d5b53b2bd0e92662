"""Description of a recording, and the protocols of its writers and readers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, get_type_hints, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import Block
from spectrod.dsp.calibration import ChannelCalibration, Validity, parse_reference
from spectrod.dsp.calibration.validity import VALIDITY_NS_MAX
from spectrod.dsp.spectrum import SPEC_DEFAULTS, SPEC_FIELDS, SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.windows import CUSTOM, unknown_window
from spectrod.formats.output import Output
from spectrod.lib.errors import ConfigError, StorageError

TIME_REFERENCE = "time_reference"
"""Name of the attribute that states the origin of times, if it is not UTC."""
ELAPSED = "elapsed: the date is unknown, times count from the beginning of the recording"
"""Value of that attribute; ``t_utc_ns`` is 0 at the beginning of the recording then."""


@dataclass(frozen=True, slots=True)
class Description:
    """Metadata of a whole recording; each batch has its own beside these.

    Attributes
    ----------
    spec : SpectrumSpec
        Spec of all rows.
    source : str
        Name of the source in topics.
    signals : tuple of str
        Name of each signal (a channel, or a pair of channels for I/Q), ``spec.n_signals`` of them.
    software : str
        Name and version of the program that computed the rows.
    cal_id : str
        Identity of the calibration of the values, those of different signals joined by commas;
        empty if they are relative to full scale. By default that of the spec.
    settings : dict
        Other settings that the rows were made with, as configured; built-in types only, no
        secrets.
    attributes : dict of str
        The operator's attributes of the recording: title, creator_name, platform, license, ...;
        names follow the Attribute Convention for Data Discovery (ACDD 1.3).
    recording : str
        Name of the daemon's recording that writes the rows, ``[recordings.NAME]``; empty for other
        writers and for rows that are read.

    Raises
    ------
    ConfigError
        If the signals have different units: a recording has one.
    """

    spec: SpectrumSpec
    source: str
    signals: tuple[str, ...]
    software: str
    cal_id: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    recording: str = ""

    def __post_init__(self) -> None:
        units = dict.fromkeys(zip(self.spec.scale.units, self.spec.scale.references, strict=True))
        if len(units) > 1:
            raise ConfigError(
                f"{self.source}: channels have the units {', '.join(unit for unit, _ in units)}: "
                "a recording has one unit; calibrate all channels alike, or select those of one"
            )
        if not self.cal_id:
            object.__setattr__(self, "cal_id", self.spec.scale.cal_id)

    @property
    def has_utc(self) -> bool:
        """Whether ``t_utc_ns`` is UTC; otherwise it counts from the recording's first sample."""
        return self.attributes.get(TIME_REFERENCE) != ELAPSED


_HINTS = get_type_hints(SpectrumSpec)
_NENBW = "nenbw_bins"
"""Noise bandwidth of an unnamed window, whose samples are not stored."""

_CALIBRATION = "calibration"
"""Calibration of each signal: its unit and identity. The response itself is not stored."""


_ValidNs = Annotated[int, msgspec.Meta(ge=0, le=VALIDITY_NS_MAX)]


class _StoredCalibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of the calibration of a signal in a file."""

    reference: str
    cal_id: str = ""
    full_scale_db: float | None = None
    """None if it is not known, of messages."""
    response_hz: tuple[float, float] | None = None
    uncertainty_db: float | None = None
    valid_from_utc_ns: _ValidNs | None = None
    valid_until_utc_ns: _ValidNs | None = None

    @classmethod
    def of(cls, one: ChannelCalibration) -> "_StoredCalibration":
        """Return what is stored of a calibration."""
        level_db = None if math.isnan(one.full_scale_db) else one.full_scale_db
        return cls(
            one.reference.name,
            one.cal_id,
            level_db,
            one.response_hz,
            one.uncertainty_db,
            one.validity.from_utc_ns,
            one.validity.until_utc_ns,
        )

    def calibration(self) -> ChannelCalibration:
        """Return the calibration; raises ConfigError if its reference is not known."""
        return ChannelCalibration(
            parse_reference(self.reference),
            math.nan if self.full_scale_db is None else self.full_scale_db,
            None,
            self.cal_id,
            self.response_hz,
            self.uncertainty_db,
            Validity(self.valid_from_utc_ns, self.valid_until_utc_ns),
        )


_SpecFields = msgspec.defstruct(
    "_SpecFields",
    [
        *(
            (name, _HINTS[name], *((SPEC_DEFAULTS[name],) if name in SPEC_DEFAULTS else ()))
            for name in SPEC_FIELDS
        ),
        (_NENBW, float | msgspec.UnsetType, msgspec.UNSET),
        (_CALIBRATION, tuple[_StoredCalibration, ...], ()),
    ],
    forbid_unknown_fields=True,
)
"""The fields of an analysis with their types in a file."""


def spec_fields(spec: SpectrumSpec) -> dict[str, Any]:
    """Return the fields of an analysis for a file; ``stored_spec`` reads them back."""
    stored = {name: getattr(spec, name) for name in SPEC_FIELDS}
    if spec.window == CUSTOM:
        stored[_NENBW] = spec.taper.nenbw_bins
    if spec.calibration:
        stored[_CALIBRATION] = [
            msgspec.to_builtins(_StoredCalibration.of(one)) for one in spec.calibration if one
        ]
    return stored


def stored_spec(stored: Mapping[str, Any]) -> SpectrumSpec:
    """Make an analysis from the fields in a file.

    Only the noise bandwidth of a custom window is stored, so such an analysis cannot be computed.

    Raises
    ------
    StorageError
        If a field is missing, unknown, of another type, or invalid.
    """
    try:
        read = msgspec.structs.asdict(msgspec.convert(stored, _SpecFields))
        nenbw_bins = read.pop(_NENBW)
        read[_CALIBRATION] = tuple(one.calibration() for one in read[_CALIBRATION])
        if nenbw_bins is msgspec.UNSET:
            return SpectrumSpec(**read)
        return SpectrumSpec(**read, taper=unknown_window(read["win_length"], nenbw_bins))
    except (msgspec.ValidationError, ConfigError) as error:
        raise StorageError(f"spec: {error}") from error


def stored_spec_of(stored: Mapping[str, Any], signals: Sequence[str]) -> SpectrumSpec:
    """Make an analysis from the fields in a file that names its signals; see ``stored_spec``."""
    spec = stored_spec(stored)
    if len(signals) != spec.n_signals:
        raise StorageError(f"names of {len(signals)} signals: must be {spec.n_signals}")
    return spec


class StoredVersion(msgspec.Struct, frozen=True):
    """The field that descriptions of all versions have in a file."""

    v: int


class StoredDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a description in a file."""

    spec: dict[str, Any]
    source: str
    signals: tuple[str, ...]
    software: str
    cal_id: str = ""
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    attributes: dict[str, str] = msgspec.field(default_factory=dict)

    def description(self) -> Description:
        """Return the description; raises StorageError if its analysis is not valid."""
        return Description(
            stored_spec_of(self.spec, self.signals),
            self.source,
            self.signals,
            self.software,
            self.cal_id,
            self.settings,
            self.attributes,
        )


class RowWriter(Output[SpectrumBatch], Protocol):
    """A writer of spectra: of batches of the description's spec."""

    @property
    def n_frames(self) -> int:
        """Rows written so far."""


@runtime_checkable
class _HasLeftOut(Protocol):
    left_out_samples: int | None


def note_left_out(writer: object, n_samples: int | None) -> None:
    """Set the number of samples that are in no row, see ``FrameStream``, if the format has it.

    Parameters
    ----------
    writer : RowWriter or None
        A writer before its ``finish``.
    n_samples : int or None
        None if unknown.
    """
    if n_samples is not None and isinstance(writer, _HasLeftOut):
        writer.left_out_samples = n_samples


class SampleWriter(Output[Block], Protocol):
    """A writer of samples."""

    @property
    def n_samples(self) -> int:
        """Samples per channel so far, including missing ones."""


class RowReader(Protocol):
    """A reader of recorded spectra."""

    @property
    def description(self) -> Description:
        """Metadata of the whole recording."""

    def batches(self) -> Iterator[SpectrumBatch]:
        """Yield all rows in order; ``gap_samples`` of a batch gives the gap before it."""

    def close(self) -> None:
        """Close the file. Idempotent."""


def concatenated(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Concatenate arrays; return None if there are none."""
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None
