"""Frames in which events are found, where nobody names others."""

import argparse
import math

import msgspec

from spectrod.config.config import Loaded
from spectrod.config.settings import AnalysisConfig

_WINDOW_S = 0.064
_WINDOW_MIN, _WINDOW_MAX = 64, 1 << 15
_HOPS = 4
"""Hops in a window: frames overlap by three quarters."""


def window_for(fs: float) -> int:
    """Return a window length for calls: the power of two nearest to 64 ms [samples]."""
    return int(min(max(2 ** round(math.log2(fs * _WINDOW_S)), _WINDOW_MIN), _WINDOW_MAX))


def analysis_of(args: argparse.Namespace, loaded: Loaded, fs: float) -> AnalysisConfig:
    """Return the analysis in which events are found.

    A trigger of the configuration and a mask have that of the configuration. Else the window is
    that of ``window_for`` unless options or the configuration name one, or what depends on it, and
    the hop is a quarter of the window unless they name one.

    Parameters
    ----------
    args : argparse.Namespace
        The options.
    loaded : Loaded
        The configuration with these options.
    fs : float
        Sample rate [Hz].
    """
    analysis = loaded.config.analysis
    if args.trigger is not None or args.mask is not None:
        return analysis
    named = {
        key
        for key in ("win_length", "hop", "nfft", "bands")
        if loaded.where(("analysis", key)) != "default"
    }
    if "hop" in named or "bands" in named:
        return analysis
    win_length = analysis.win_length if named else window_for(fs)
    return msgspec.structs.replace(analysis, win_length=win_length, hop=max(1, win_length // _HOPS))
