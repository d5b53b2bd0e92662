"""Figures of measurements, drawn by matplotlib: histories, levels in bands, spectra, Bode plots.

Nothing here imports matplotlib before a figure is made, and nothing uses its global figures.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from spectrod.lib.submodules import submodules_of

    __getattr__ = submodules_of(__name__)
