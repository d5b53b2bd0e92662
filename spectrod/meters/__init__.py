"""Meters of frames: named values of intervals, and tracks of tones, of samples as they come."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
