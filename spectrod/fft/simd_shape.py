"""Shapes of the vector kernels: how the lanes and the passes share the work of a line or frame."""

from dataclasses import dataclass
from functools import cache
from math import prod

from spectrod.fft.defines import KernelDefines
from spectrod.fft.radices import PASSES_MAX, RADICES, radix_lists
from spectrod.lib.errors import ConfigError

LANES = (2, 4, 8, 16)
"""Of OpenCL's vectors."""

ITEMS_PER_UNIT = 4
"""Work-items for each core: one that is held up keeps the others waiting a little only."""

FACTORIZATIONS_MAX = 3
"""Ways to cut the rows that are worth a tuner's time."""

# Private memory is the stack of a driver's thread (2 or 8 MiB as a rule).
_PRIVATE_BYTES_MAX = 1 << 20
_RADICES = frozenset(radix for radix in RADICES if radix <= 16) | {1}
# Measured; the radices that are not here took half their number or more.
_PASS_WORK = {1: 0.0, 2: 2.0, 3: 2.2, 4: 2.5, 5: 3.2, 8: 3.6, 16: 5.4}


@dataclass(frozen=True, slots=True)
class SimdShape:
    """Shape of ``fft_simd.cl`` or ``stft_simd.cl``.

    Attributes
    ----------
    lanes : int
        Of a vector: 2, 4, 8 or 16.
    radices : tuple of int
        Of the passes over the rows, 2 to 16, or 1 alone.
    columns : bool
        True: the lanes are columns of one line or frame, whose complex length is lanes times the
        product of the radices, and at least the square of lanes. False: they are lines or frames,
        of the product alone.
    staged : bool
        Whether columns are copied to memory of the work-item first; lines always are.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    lanes: int
    radices: tuple[int, ...]
    columns: bool
    staged: bool = True

    def __post_init__(self) -> None:
        if self.lanes not in LANES:
            raise ConfigError(f"lanes={self.lanes}: must be 2, 4, 8 or 16")
        if not 1 <= len(self.radices) <= PASSES_MAX or not _RADICES.issuperset(self.radices):
            raise ConfigError(
                f"radices={self.radices}: must be 1 to {PASSES_MAX} of {sorted(_RADICES)}"
            )
        if self.columns and self.rows < self.lanes:
            raise ConfigError(
                f"radices={self.radices}: must multiply to lanes={self.lanes} or more for columns"
            )

    @property
    def rows(self) -> int:
        """Length of the transform that the passes compute."""
        return prod(self.radices)

    @property
    def length(self) -> int:
        """Length of the complex transform."""
        return self.rows * (self.lanes if self.columns else 1)

    @property
    def steps(self) -> int:
        """Butterflies of the last pass."""
        return prod(self.radices[:-1])

    def defines(self, own_bytes: int) -> KernelDefines:
        """Return what both kernels need of a shape whose work-items have so much memory."""
        return KernelDefines(
            n=self.length,
            lanes=self.lanes,
            columns=self.columns,
            staged=self.staged,
            scratch=needs_scratch(own_bytes),
            radices=self.radices,
        )


def needs_scratch(own_bytes: int) -> bool:
    """Whether memory of a work-item is too much for private memory."""
    return own_bytes > _PRIVATE_BYTES_MAX


@cache
def row_factorizations(rows: int, *, largest_last: bool) -> list[tuple[int, ...]]:
    """Ways to cut the rows, the least work by a rough count first.

    The radices of each are in falling order, or in rising order where the largest comes last.
    """
    step = -1 if largest_last else 1
    factorizations = (
        radices[::step] for radices in radix_lists(rows) if _RADICES.issuperset(radices)
    )
    return sorted(factorizations, key=lambda radices: (_work(radices), radices))


def _work(radices: tuple[int, ...]) -> float:
    """Rough cost of passes, on processors with 16 or 32 vector registers."""
    return sum(_PASS_WORK.get(radix, radix / 2.0) for radix in radices)
