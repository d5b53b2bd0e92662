"""What a recording is: rows of spectra with their description; who writes and who reads them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, get_type_hints, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError, StorageError
from spectrod.types import SPEC_DEFAULTS, SPEC_FIELDS, Block, SpectrumBatch, SpectrumSpec
from spectrod.windows import CUSTOM, unknown_window

TIME_REFERENCE = "time_reference"
"""Name of the attribute that says what times count from, where that is not UTC."""
ELAPSED = "elapsed: the date is unknown, times count from the beginning of the recording"
"""Value of that attribute; ``t_utc_ns`` is 0 at the beginning then."""


@dataclass(frozen=True, slots=True)
class Description:
    """What holds for a whole recording, beside what each batch says of itself.

    Attributes
    ----------
    spec : SpectrumSpec
        Of all rows.
    source : str
        Name of the source, as topics have it.
    signals : tuple of str
        Name of each signal (channel, or pair of channels where I/Q), ``spec.n_signals`` of them.
    software : str
        Name and version of what computed the rows.
    cal_id : str
        Identifies the calibration that the values hold; empty where they are of full scale.
    settings : dict
        What else the rows were made with, as the configuration has it; built-in types alone, no
        secrets.
    attributes : dict of str
        What the operator says of the recording: title, creator_name, platform, license, ...; named
        as the Attribute Convention for Data Discovery (ACDD 1.3) does.
    recording : str
        Name of the daemon's recording that writes the rows, ``[recordings.NAME]``; empty for all
        other writers, and where rows are read.
    """

    spec: SpectrumSpec
    source: str
    signals: tuple[str, ...]
    software: str
    cal_id: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    recording: str = ""

    @property
    def has_utc(self) -> bool:
        """Whether ``t_utc_ns`` is UTC; if not, it counts from the recording's first sample."""
        return self.attributes.get(TIME_REFERENCE) != ELAPSED


_HINTS = get_type_hints(SpectrumSpec)
_NENBW = "nenbw_bins"
"""Noise bandwidth of a window that has no name: its samples are not stored."""

_SpecFields = msgspec.defstruct(
    "_SpecFields",
    [
        *(
            (name, _HINTS[name], *((SPEC_DEFAULTS[name],) if name in SPEC_DEFAULTS else ()))
            for name in SPEC_FIELDS
        ),
        (_NENBW, float | msgspec.UnsetType, msgspec.UNSET),
    ],
    forbid_unknown_fields=True,
)
"""The fields of an analysis with the types that they have in a file."""


def spec_fields(spec: SpectrumSpec) -> dict[str, Any]:
    """Return the fields of an analysis for a file; ``stored_spec`` reads them."""
    stored = {name: getattr(spec, name) for name in SPEC_FIELDS}
    return stored | ({_NENBW: spec.taper.nenbw_bins} if spec.window == CUSTOM else {})


def stored_spec(stored: Mapping[str, Any]) -> SpectrumSpec:
    """Make the analysis that a file describes.

    Of a custom window only the noise bandwidth is known, so such an analysis cannot be computed.

    Raises
    ------
    StorageError
        If a field is missing, unknown or of another type, or breaks a rule.
    """
    try:
        read = msgspec.structs.asdict(msgspec.convert(stored, _SpecFields))
        nenbw_bins = read.pop(_NENBW)
        if nenbw_bins is msgspec.UNSET:
            return SpectrumSpec(**read)
        return SpectrumSpec(**read, taper=unknown_window(read["win_length"], nenbw_bins))
    except (msgspec.ValidationError, ConfigError) as error:
        raise StorageError(f"spec: {error}") from error


class RowWriter(Protocol):
    """What makes a file of spectra: a ``spectrod.pipeline.Sink`` that has an end.

    Made with all that can be known to be wrong checked; nothing is left under the final name unless
    it is whole, but for formats that are whole at every moment.
    """

    @property
    def n_frames(self) -> int:
        """Rows taken so far."""

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch of the description's spec; raises the SpectrodError of what is wrong."""

    def finish(self) -> None:
        """Write what is left; the file is whole then."""

    def abort(self) -> None:
        """Give up: nothing is left that looks whole. Idempotent; nothing after ``finish``."""


@runtime_checkable
class _SaysLeftOut(Protocol):
    left_out_samples: int | None


def note_left_out(writer: RowWriter, n_samples: int | None) -> None:
    """Tell a file how many samples are in no row, see ``FrameStream``, if its format has a place.

    Parameters
    ----------
    writer : RowWriter
        Before its ``finish``.
    n_samples : int or None
        None if nobody knows.
    """
    if n_samples is not None and isinstance(writer, _SaysLeftOut):
        writer.left_out_samples = n_samples


class SampleWriter(Protocol):
    """What makes a file of samples."""

    @property
    def n_samples(self) -> int:
        """Samples a channel taken so far, missing ones counted."""

    def take(self, block: Block) -> None:
        """Take a block; raises the SpectrodError of what is wrong."""

    def finish(self) -> None:
        """Write what is left; the file is whole then."""

    def abort(self) -> None:
        """Give up: nothing is left that looks whole. Idempotent; nothing after ``finish``."""


class RowReader(Protocol):
    """A recording that is read back."""

    @property
    def description(self) -> Description:
        """What holds for all of it."""

    def batches(self) -> Iterator[SpectrumBatch]:
        """Yield all rows in order; gaps are in their batches' ``gap_samples``."""

    def close(self) -> None:
        """Let go of the file. Idempotent."""


def concatenated(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Put arrays one after the other; None if there are none."""
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None
