"""Sources that are shorter than a window: one window over the samples that there are."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from spectrod.errors import InputError
from spectrod.text import printable
from spectrod.types import SpectrumSpec

_log = logging.getLogger(__name__)

_LEAST_SAMPLES = 2
"""Shortest window that a spectrum can have."""


def shortened(
    specs: Mapping[str, SpectrumSpec], n_samples: int | None, source: str
) -> dict[str, SpectrumSpec]:
    """Shorten windows to the length of the source, and report it in one line.

    The window covers the samples that there are, so its gain and noise bandwidth are exact and
    levels stay right. The transform keeps its length, so frequencies are the same as those of
    longer sources.

    Parameters
    ----------
    specs : mapping of str to SpectrumSpec
        What is made of the source.
    n_samples : int or None
        Samples of the source in each channel, if that is known.
    source : str
        For messages.

    Returns
    -------
    specs : dict of str to SpectrumSpec
        The same keys.

    Raises
    ------
    InputError
        If there are fewer than two samples.
    """
    longest = max((spec.win_length for spec in specs.values()), default=0)
    if n_samples is None or n_samples >= longest:
        return dict(specs)
    name = printable(source)
    if n_samples < _LEAST_SAMPLES:
        raise InputError(
            f"{name}: too short: {n_samples} of the {_LEAST_SAMPLES} samples that a spectrum needs"
        )
    _log.warning(
        "%s: %d samples are fewer than the window of %d (--win-length): the window is shortened to "
        "%d samples and zero-padded",
        name,
        n_samples,
        longest,
        n_samples,
    )
    return {key: _within(spec, n_samples) for key, spec in specs.items()}


def _within(spec: SpectrumSpec, n_samples: int) -> SpectrumSpec:
    if n_samples >= spec.win_length:
        return spec
    # At a rate, the number of frames in a row follows from the window.
    frames = 1 if spec.rate_hz else spec.averaging_frames
    hop = min(spec.hop, n_samples)
    return replace(spec, win_length=n_samples, hop=hop, averaging_frames=frames)
