"""The palette of a picture: levels, then a ramp from paper to ink, then the colour of gaps."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spectrod.formats.picture.colormaps import Uint8Array, colormap
from spectrod.formats.picture.surface import BoolArray

N_LEVELS = 240
"""Number of levels, lowest first: palette entries 0 to 239."""

GAP = 255
"""Palette entry of the hatching where samples are missing."""

_N_INKS = GAP - N_LEVELS

HATCH_PERIOD, HATCH_WIDTH = 8, 2

_ENTRIES_OF_INK = bytes(
    N_LEVELS + (coverage * (_N_INKS - 1) + 127) // 255 for coverage in range(256)
)
"""Palette entry of each amount of ink."""

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours around the data, sRGB."""

    paper: Rgb
    ink: Rgb
    gap: Rgb

    def mixed(self, share: float) -> Rgb:
        """Return the colour between paper (0) and ink (1)."""
        pairs = zip(self.paper, self.ink, strict=True)
        red, green, blue = (round(paper + share * (full - paper)) for paper, full in pairs)
        return red, green, blue


THEMES: dict[str, Theme] = {
    "light": Theme(paper=(255, 255, 255), ink=(24, 26, 32), gap=(64, 156, 214)),
    "dark": Theme(paper=(17, 19, 24), ink=(232, 234, 238), gap=(64, 156, 214)),
}


@lru_cache(maxsize=16)
def palette(colormap_name: str, theme: Theme) -> bytes:
    """Return all 256 entries, three bytes each."""
    data = colormap(colormap_name, N_LEVELS)
    inks = np.linspace(theme.paper, theme.ink, _N_INKS)
    entries = np.concatenate([data, np.rint(inks), [theme.gap]])
    return entries.astype(np.uint8).tobytes()


def ink_entries(coverage: Uint8Array) -> Uint8Array:
    """Return the palette entries of ink coverage, 0 (paper) to 255 (ink)."""
    entries = coverage.tobytes().translate(_ENTRIES_OF_INK)
    return np.frombuffer(bytearray(entries), np.uint8).reshape(coverage.shape)


def hatching(shape: tuple[int, int]) -> BoolArray:
    """Return a mask of the hatching lines of an area; the rest of it is paper."""
    diagonal = np.add.outer(*map(np.arange, shape))
    return np.asarray(diagonal % HATCH_PERIOD < HATCH_WIDTH)
