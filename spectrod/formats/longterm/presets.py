"""Views of long recordings: their frames, and the defaults of their pictures."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from spectrod.dsp.row_grid import row_period_s
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import NFFT_MAX

View = Literal["spectrogram", "ltsa", "spd"]
VIEWS: tuple[View, ...] = get_args(View)

_INTERVALS_S = (60.0, 30.0, 20.0, 15.0, 10.0, 5.0, 2.0, 1.0)
_ROWS_AT_LEAST = 200
_WINDOW_MIN_S, _WINDOW_MAX_S = 0.1, 1.0
_WINDOWS_A_ROW = 10.0
_WIN_LENGTH_MIN = 64


@dataclass(frozen=True, slots=True)
class LongTermFrames:
    """Frames that are averaged to the rows of a long-term view.

    Attributes
    ----------
    win_length : int
        Length of window and transform, even [samples].
    hop : int
        Half of ``win_length`` [samples].
    averaging_frames : int
        Frames per row.
    """

    win_length: int
    hop: int
    averaging_frames: int


def interval_for(duration_s: float | None) -> float:
    """Choose the time that a row covers [s].

    Returns the longest usual interval, from a minute down to a second, that gives at least 200
    rows; a second if the length of the recording is not known.
    """
    if duration_s is not None:
        for interval_s in _INTERVALS_S:
            if duration_s / interval_s >= _ROWS_AT_LEAST:
                return interval_s
    return _INTERVALS_S[-1]


def frames_for(  # noqa: PLR0913 - all that frames follow from
    fs: float,
    n_samples: int | None,
    win_length: int = 0,
    hop: int = 0,
    *,
    rate_hz: float = 0.0,
    win_length_max: int = NFFT_MAX,
    sound_s: float = 0.0,
) -> LongTermFrames:
    """Choose the frames of a long-term view.

    A window is a tenth of a row, limited to 0.1 ... 1 s: rows of a minute have bins of 1 Hz, and
    are means over 120 half-overlapping windows.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    n_samples : int or None
        Length of the recording, if known [samples].
    win_length, hop : int
        Window length and hop, if already chosen; otherwise 0 [samples].
    rate_hz : float
        Rows per second, if already chosen; otherwise 0 [Hz].
    win_length_max : int
        Longest window to choose [samples].
    sound_s : float
        Length of the recordings of a schedule, which a row that is chosen is no longer than; 0
        without a schedule [s].
    """
    is_cut = False
    if rate_hz:
        interval_s = float(row_period_s(rate_hz))
    else:
        interval_s = interval_for(None if n_samples is None else n_samples / fs)
        is_cut = 0.0 < sound_s < interval_s
        interval_s = sound_s if is_cut else interval_s
    if not win_length:
        window_s = min(max(interval_s / _WINDOWS_A_ROW, _WINDOW_MIN_S), _WINDOW_MAX_S)
        win_length = min(max(2 * round(window_s * fs / 2.0), _WIN_LENGTH_MIN), win_length_max)
    hop = hop or max(1, win_length // 2)
    if is_cut:  # all windows of a row lie in its recording
        n_hops = int(sound_s * fs - win_length) // hop
        return LongTermFrames(win_length, hop, max(0, n_hops) + 1)
    # The row interval equals the time of its hops; the last window extends into the next row.
    return LongTermFrames(win_length, hop, max(1, round(interval_s * fs / hop)))


def averaged(spec: SpectrumSpec, frames: LongTermFrames) -> SpectrumSpec:
    """Return the spec with the averages of a view; keep a spec that has its own averaging."""
    if spec.averaging != "none":
        return spec
    return replace(spec, averaging="mean", averaging_frames=frames.averaging_frames)


def picture_defaults(
    view: View, theme: str, *, has_utc: bool, is_iq: bool = False
) -> dict[str, Any]:
    """Return the defaults of a view's picture, by the names of ``PictureOptions``.

    Densities near zero have a colour close to the paper's.
    """
    # Without a known begin, a recording has the time at which it is read.
    found: dict[str, Any] = {"time_axis": "utc"} if has_utc else {}
    if view == "spd":
        found["colormap"] = "inferno" if theme == "dark" else "inferno_r"
        if not is_iq:  # I/Q has a linear axis
            found["f_scale"] = "log"
    return found
