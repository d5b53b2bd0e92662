"""The palette of a picture: data first, then a ramp from paper to ink, then the colour of gaps."""

from dataclasses import dataclass

import numpy as np

from spectrod.formats.picture.colormaps import Uint8Array, colormap
from spectrod.formats.picture.surface import BoolArray

N_LEVELS = 240
"""Palette entries 0 to 239 are levels, lowest first."""

GAP = 255
"""Palette entry of the hatching where there are no samples."""

_N_INKS = GAP - N_LEVELS

HATCH_PERIOD, HATCH_WIDTH = 8, 2

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours around the data, sRGB."""

    paper: Rgb
    ink: Rgb
    gap: Rgb


THEMES: dict[str, Theme] = {
    "light": Theme(paper=(255, 255, 255), ink=(24, 26, 32), gap=(64, 156, 214)),
    "dark": Theme(paper=(17, 19, 24), ink=(232, 234, 238), gap=(64, 156, 214)),
}


def palette(colormap_name: str, theme: Theme) -> bytes:
    """All 256 entries, three bytes each."""
    data = colormap(colormap_name, N_LEVELS)
    inks = np.linspace(theme.paper, theme.ink, _N_INKS)
    entries = np.concatenate([data, np.rint(inks), [theme.gap]])
    return entries.astype(np.uint8).tobytes()


def ink_entries(coverage: Uint8Array) -> Uint8Array:
    """Palette entries of ink coverage, 0 (paper) to 255 (ink)."""
    steps = _N_INKS - 1
    scaled = (coverage.astype(np.uint16) * steps + 127) // 255
    return (scaled + N_LEVELS).astype(np.uint8)


def hatching(shape: tuple[int, int]) -> BoolArray:
    """Where the lines of an area's hatching are; the rest of it is paper."""
    diagonal = np.add.outer(*map(np.arange, shape))
    return np.asarray(diagonal % HATCH_PERIOD < HATCH_WIDTH)
