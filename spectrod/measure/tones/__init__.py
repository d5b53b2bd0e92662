"""Tones in power spectra: peaks, tracks, distortion, occupied bandwidth and channel power."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
