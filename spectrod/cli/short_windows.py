"""Sources shorter than a window: one window over all their samples."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

_LEAST_SAMPLES = 2
"""Shortest window of a spectrum [samples]."""


def shortened(
    specs: Mapping[str, SpectrumSpec], n_samples: int | None, source: str
) -> dict[str, SpectrumSpec]:
    """Shorten windows to the length of the source, and log that in one line.

    The window covers the available samples, so its gain and noise bandwidth are exact and levels
    stay right. The transform keeps its length, so frequencies are the same as those of longer
    sources.

    Parameters
    ----------
    specs : mapping of str to SpectrumSpec
        Specs of the source's products.
    n_samples : int or None
        Samples per channel of the source, if known.
    source : str
        Name for messages.

    Returns
    -------
    specs : dict of str to SpectrumSpec
        Specs with the same keys.

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
    # With rate_hz, the number of frames in a row follows from the window.
    frames = 1 if spec.rate_hz else spec.averaging_frames
    hop = min(spec.hop, n_samples)
    return replace(spec, win_length=n_samples, hop=hop, averaging_frames=frames)
