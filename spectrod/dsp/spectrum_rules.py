"""Limits and rules of a spectrum, and what follows from what is given."""

from math import ceil
from operator import index
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from spectrod.dsp.averaging import (
    EXCEEDED_RULE,
    FLOOR,
    PERCENTILE_BYTES_MAX,
    exceeded_percent,
    percentile_bytes,
)
from spectrod.dsp.bands import REASSIGNED
from spectrod.dsp.row_grid import exact_row_step, frames_starting_in, frames_within
from spectrod.dsp.units import SCALINGS
from spectrod.dsp.weighting import WEIGHTINGS
from spectrod.dsp.windows import (
    CUSTOM,
    LENGTH_MAX,
    WINDOW_NAMES,
    Window,
    get_window,
    window_derivative,
)
from spectrod.lib.errors import ConfigError

if TYPE_CHECKING:
    from spectrod.dsp.spectrum import SpectrumSpec

Output = Literal["power", "complex"]
Averaging = Literal["none", "mean", "max", "min", "exponential"]
Align = Literal["start", "utc"]

NFFT_MIN, NFFT_MAX = 16, LENGTH_MAX
REASSIGNED_HOPS_MAX = 64
"""Largest number of hops in a window of a reassigned spectrogram, which has transforms for each."""
CHANNELS_MAX = 4096
WIN_LENGTH_DEFAULT = 4096
FS_MIN_HZ, FS_MAX_HZ = 1e-3, 1e10
CENTER_FREQUENCY_MAX_HZ = 1e12
BAND_RESPONSES_MAX = 64
"""Different frequency responses of channels with bands, each of which is computed apart."""
HOP_MAX = (1 << 31) - 1
AVERAGING_FRAMES_MAX = (1 << 31) - 1

_NFFT_CHOSEN_MIN = 64
_WHOLE_MAX = 2.0**53
"""Largest float accepted as a whole number: all larger floats are whole for lack of bits."""


def fill_in(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of ``SpectrumSpec`` as it keeps them.

    Numbers are of one type, and what is left out follows from the rest: nfft, the hop and the
    frames of rows of rate_hz, the product, the window itself.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """
    draft = SimpleNamespace(**given)
    for name in ("channels", "win_length", "hop", "nfft", "averaging_frames"):
        setattr(draft, name, whole(name, given[name]))
    draft.fs = _positive("fs", draft.fs, "Hz")
    draft.averaging_s = _positive("averaging_s", draft.averaging_s, "s")
    _fill_in_frames(draft)
    _check_choices(draft)
    _check_output(draft)
    draft.center_frequency_hz = _center_frequency_hz(draft)
    _fill_in_rows(draft)
    _check_averaging_frames(draft)
    draft.product = draft.product or draft.scaling
    draft.taper = _taper(draft)
    draft.calibration = draft.calibration if any(draft.calibration) else ()
    return vars(draft)


def check(spec: "SpectrumSpec") -> None:
    """Check the rules of a spectrum whose fields are filled in; raises ConfigError."""
    _check_calibration(spec)
    spec.band_table  # noqa: B018 - refuses unknown ones
    _check_percentile(spec)
    if spec.bands == REASSIGNED:
        _check_reassigned(spec)


def _fill_in_frames(draft: SimpleNamespace) -> None:
    if not FS_MIN_HZ <= draft.fs <= FS_MAX_HZ:
        raise ConfigError(f"fs={draft.fs:g}: must be {FS_MIN_HZ:g} to {FS_MAX_HZ:g} Hz")
    if not 1 <= draft.channels <= CHANNELS_MAX:
        raise ConfigError(f"must be 1 to {CHANNELS_MAX}", channels=draft.channels)
    if not 2 <= draft.win_length <= NFFT_MAX:
        raise ConfigError(f"must be 2 to {NFFT_MAX}", win_length=draft.win_length)
    if draft.hop < 1:
        raise ConfigError("must be at least 1 sample", hop=draft.hop)
    if draft.hop > HOP_MAX:
        raise ConfigError(f"must be at most {HOP_MAX} samples", hop=draft.hop)
    if draft.nfft == 0:
        draft.nfft = max(_NFFT_CHOSEN_MIN, 1 << (draft.win_length - 1).bit_length())
    if not NFFT_MIN <= draft.nfft <= NFFT_MAX:
        raise ConfigError(f"must be {NFFT_MIN} to {NFFT_MAX}", nfft=draft.nfft)
    if draft.win_length > draft.nfft:
        raise ConfigError(f"must not exceed nfft={draft.nfft}", "nfft", win_length=draft.win_length)


def _check_choices(draft: SimpleNamespace) -> None:
    if not isinstance(draft.window, str):  # such as SciPy's ("kaiser", 8.6)
        raise ConfigError(
            f"window={draft.window!r}: must be a name, one of {', '.join(WINDOW_NAMES)}",
            "window",
        )
    if not isinstance(draft.bands, str):
        raise ConfigError(f"bands={draft.bands!r}: must be a name, or '' for bins", "bands")
    if draft.broadband and not draft.bands:
        raise ConfigError("broadband=True: needs bands")
    _one_of("scaling", draft.scaling, SCALINGS)
    _one_of("output", draft.output, get_args(Output))
    _one_of("weighting", draft.weighting, WEIGHTINGS)
    check_averaging(draft.averaging)
    _one_of("align", draft.align, get_args(Align))


def _check_output(draft: SimpleNamespace) -> None:
    if draft.output == "complex":
        if draft.scaling == "dbfs":
            raise ConfigError("complex spectra have no level", scaling="dbfs")
        _require_none(draft, "complex spectra have none", "weighting", "bands", "averaging")
    if draft.iq:
        if draft.channels % 2:
            raise ConfigError("must be even, I and Q in turn", channels=draft.channels)
        _require_none(draft, "I/Q signals have none", "weighting", "bands")


def _require_none(draft: SimpleNamespace, why: str, *names: str) -> None:
    for name in names:
        value = getattr(draft, name)
        if value not in ("Z", "", "none"):
            raise ConfigError(f"{name}={value!r}: {why}", name)


def _center_frequency_hz(draft: SimpleNamespace) -> float:
    given = draft.center_frequency_hz
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not abs(value) <= CENTER_FREQUENCY_MAX_HZ:
        raise ConfigError(
            f"center_frequency_hz={given}: must be a frequency within "
            f"+-{CENTER_FREQUENCY_MAX_HZ:g} Hz",
            "center_frequency_hz",
        )
    if value and not draft.iq:
        raise ConfigError(
            f"center_frequency_hz={value:.15g}: needs I/Q samples, iq", "center_frequency_hz"
        )
    return value + 0.0  # no -0.0


def _fill_in_rows(draft: SimpleNamespace) -> None:
    """Check rate_hz, and fill in what follows from it."""
    if not draft.rate_hz:
        draft.rate_hz = 0.0
        if draft.align != "start":
            raise ConfigError("needs rate_hz", align=draft.align)
        return
    draft.rate_hz = _positive("rate_hz", draft.rate_hz, "Hz")
    step = draft.fs / draft.rate_hz  # not exact: only for limits
    if not step >= 1.0:
        raise ConfigError(f"must be at most fs={draft.fs:g}", rate_hz=draft.rate_hz)
    if step > HOP_MAX:
        rule = f"must be at least {draft.fs / HOP_MAX:.3g}, fs={draft.fs:g}"
        raise ConfigError(rule, rate_hz=draft.rate_hz)
    n_row = int(exact_row_step(draft.fs, draft.rate_hz))
    if draft.averaging == "none":
        draft.hop = n_row
        return
    if draft.hop > n_row:
        raise ConfigError(
            f"rows of {n_row} samples have no frame of hop="
            f"{draft.hop}: hop must be at most {n_row}, or rate_hz {draft.fs / draft.hop:.6g}",
            "hop",
            rate_hz=draft.rate_hz,
        )
    if draft.averaging == "mean":
        n_frames = frames_within(n_row, draft.win_length, draft.hop)
    else:
        n_frames = frames_starting_in(n_row, draft.hop)
    if draft.averaging_frames not in {1, n_frames}:
        raise ConfigError(
            f"averaging_frames={draft.averaging_frames}: rate_hz={draft.rate_hz:g} makes it "
            f"{n_frames}",
            "rate_hz",
        )
    draft.averaging_frames = n_frames


def _check_averaging_frames(draft: SimpleNamespace) -> None:
    if draft.averaging_frames < 1:
        raise ConfigError(f"averaging_frames={draft.averaging_frames}: must be at least 1")
    if draft.averaging_frames > AVERAGING_FRAMES_MAX:
        raise ConfigError(
            f"averaging_frames={draft.averaging_frames}: must be at most {AVERAGING_FRAMES_MAX}"
        )
    if draft.averaging == "none" and draft.averaging_frames > 1:
        raise ConfigError(f"averaging_frames={draft.averaging_frames}: must be 1 without averaging")


def _taper(draft: SimpleNamespace) -> Window:
    """Return the window itself: the named or the given custom one."""
    if draft.window != CUSTOM:
        return get_window(draft.window, draft.win_length)
    taper: Window = draft.taper
    if taper.name != CUSTOM:
        raise ConfigError(f"window={CUSTOM!r}: must be given as an array, it has no name")
    n = len(taper.samples)
    if n != draft.win_length:
        raise ConfigError(f"window: {n} samples: must be as many as win_length={draft.win_length}")
    return taper


def _check_calibration(spec: "SpectrumSpec") -> None:
    if not spec.calibration:
        return
    if len(spec.calibration) != spec.n_signals:
        raise ConfigError(
            f"calibration: of {len(spec.calibration)} channels: must be of {spec.n_signals}, one "
            "for each spectrum"
        )
    n_responses = len(spec.scale.responses)
    if spec.bands and n_responses > BAND_RESPONSES_MAX:
        raise ConfigError(
            f"channels with {n_responses} frequency responses: must be "
            f"at most {BAND_RESPONSES_MAX}; analyse them apart, or without bands",
            bands=spec.bands,
        )


def _check_percentile(spec: "SpectrumSpec") -> None:
    averaging = spec.averaging
    if exceeded_percent(averaging) is None:
        return
    if averaging == FLOOR and spec.bands:
        raise ConfigError(
            "is of bins, the power of a band is distributed otherwise: "
            "choose a percentile such as L90, or no bands",
            averaging=FLOOR,
        )
    n_values = spec.n_signals * spec.n_computed
    n_bytes = percentile_bytes(spec.averaging_frames, n_values)
    if n_bytes > PERCENTILE_BYTES_MAX:
        raise ConfigError(
            f"{n_values} values over {spec.averaging_frames} frames "
            f"need {n_bytes >> 20} MiB: must be at most {PERCENTILE_BYTES_MAX >> 20} MiB; "
            "choose bands, a smaller nfft or fewer channels",
            averaging=averaging,
        )


def _check_reassigned(spec: "SpectrumSpec") -> None:
    window_derivative(spec.window, 2)  # refuses windows without one
    least = ceil(spec.win_length / REASSIGNED_HOPS_MAX)
    if spec.hop < least:
        raise ConfigError(
            f"bands='reassigned' needs at least win_length/{REASSIGNED_HOPS_MAX}, {least}",
            "bands",
            hop=spec.hop,
        )


def check_averaging(name: object) -> None:
    """Raise ConfigError if there is no such averaging."""
    if name in get_args(Averaging) or (isinstance(name, str) and exceeded_percent(name)):
        return
    known = ", ".join((*get_args(Averaging), FLOOR))
    raise ConfigError(f"must be one of {known}, or {EXCEEDED_RULE}", averaging=name)


def whole(name: str, value: object) -> int:
    """Return an integer of any type, or a whole float, as int, the only type in messages."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if abs(number) <= _WHOLE_MAX and number.is_integer():
            return int(number)
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{name}={value!r}: must be a whole number", name) from None


def _positive(name: str, given: float, unit: str) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not (np.isfinite(value) and value > 0.0):
        raise ConfigError(f"{name}={given}: must be a positive number of {unit}", name)
    return value


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}={value!r}: must be one of {', '.join(allowed)}", name)
