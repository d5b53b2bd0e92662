"""Shapes of ``stft_simd.cl``: how the lanes and the passes share the work of a frame."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod

from spectrod.errors import ConfigError
from spectrod.fft.defines import KernelDefines
from spectrod.fft.radices import PASSES_MAX, radix_lists
from spectrod.fft.simd import ROW_RADICES, pass_work, require_row_radices
from spectrod.stft.defines import stft_defines
from spectrod.stft.stage import StftSpec

LANES = (16, 8)
"""Of a vector of float32."""

# Private memory is the stack of a driver's thread (2 or 8 MiB as a rule).
_PRIVATE_BYTES_MAX = 1 << 20
_OWN_BYTES_MAX = 1 << 28
# Longer frames are staged: their columns are too many pages for the processor to follow at once.
_DIRECT_LENGTH_MAX = 1 << 13
_CUTS_MAX = 3


@dataclass(frozen=True, slots=True)
class SimdShape:
    """Shape of ``stft_simd.cl``.

    Attributes
    ----------
    lanes : int
        Of a vector: 8 or 16.
    radices : tuple of int
        Of the passes over the rows, 2 to 16, or 1 alone.
    columns : bool
        True: the lanes are columns of one frame, whose complex length is lanes times the product of
        the radices, and at least the square of lanes. False: they are frames, of the product alone,
        which is at least lanes.
    staged : bool
        Whether columns are copied to memory of the work-item first.

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
            raise ConfigError(f"lanes={self.lanes}: must be 8 or 16")
        require_row_radices(self.radices)
        if prod(self.radices) < self.lanes:
            raise ConfigError(
                f"radices={self.radices}: must multiply to lanes={self.lanes} or more"
            )

    @property
    def length(self) -> int:
        """Length of the complex transform."""
        return prod(self.radices) * (self.lanes if self.columns else 1)

    @property
    def steps(self) -> int:
        """Butterflies of the last pass."""
        return prod(self.radices[:-1])

    def own_values(self, spec: StftSpec) -> int:
        """Pairs of vectors in a work-item's memory."""
        scalars = (self._column_scalars if self.columns else self._line_scalars)(spec)
        return -(-scalars // (2 * self.lanes))

    def own_bytes(self, spec: StftSpec) -> int:
        """Memory of a work-item [bytes]."""
        return self.own_values(spec) * 8 * self.lanes

    def needs_scratch(self, spec: StftSpec) -> bool:
        """Whether that is too much for private memory."""
        return self.own_bytes(spec) > _PRIVATE_BYTES_MAX

    def defines(self, spec: StftSpec) -> KernelDefines:
        """Return what ``stft_simd.cl`` needs."""
        return stft_defines(spec) | KernelDefines(
            n=self.length,
            lanes=self.lanes,
            columns=self.columns,
            staged=self.staged,
            scratch=self.needs_scratch(spec),
            own_values=self.own_values(spec),
            radices=self.radices,
        )

    def _column_scalars(self, spec: StftSpec) -> int:
        averaged = spec.averaging != "none"
        return (
            2 * self.length * (1 + self.staged)
            + (self._padded(spec.n_bins) if spec.n_bands or averaged else 0)
            + (self._padded(spec.n_bands) if spec.n_bands else 0)
            + self._state_scalars(spec)
        )

    def _line_scalars(self, spec: StftSpec) -> int:
        rows = 2 * self.length + spec.n_bins * (spec.value_bytes // 4) + spec.n_bands
        return rows * self.lanes + self._state_scalars(spec)

    def _state_scalars(self, spec: StftSpec) -> int:
        return self._padded(spec.n_values) * (spec.state_values // spec.n_values)

    def _padded(self, count: int) -> int:
        """Scalars of a row of which whole vectors are read from any place on."""
        return (count + 2 * self.lanes - 1) // self.lanes * self.lanes


def complex_length(spec: StftSpec) -> int:
    """Length of the transform of a frame: every two real samples count as a complex value."""
    return spec.nfft if spec.iq else spec.nfft // 2


def shapes(spec: StftSpec) -> Iterator[SimdShape]:
    """Shapes worth a try, the untuned choice first; none where nfft has a large prime or is odd."""
    if spec.nfft % 2 and not spec.iq:
        return
    for make in (_columns, _lines):
        for lanes in LANES:
            for shape in make(spec, lanes):
                if shape.own_bytes(spec) <= _OWN_BYTES_MAX:
                    yield shape


def _columns(spec: StftSpec, lanes: int) -> Iterator[SimdShape]:
    length = complex_length(spec)
    if length % lanes or length < lanes * lanes:
        return
    ways = (False, True) if length <= _DIRECT_LENGTH_MAX else (True, False)
    for cut in _cuts(length // lanes)[:_CUTS_MAX]:
        for staged in ways:
            if staged or _may_be_direct(spec):
                yield SimdShape(lanes, cut, columns=True, staged=staged)


def _may_be_direct(spec: StftSpec) -> bool:
    """Whether the samples of a frame are neighbours, and the window has them all."""
    return not spec.interleaved and spec.win_length == spec.nfft


def _lines(spec: StftSpec, lanes: int) -> Iterator[SimdShape]:
    length = complex_length(spec)
    if length >= lanes:
        for cut in _cuts(length)[:_CUTS_MAX]:
            yield SimdShape(lanes, cut, columns=False)


@cache
def _cuts(rows: int) -> list[tuple[int, ...]]:
    """Ways to cut the rows, largest radix first: one pass, then the least work by a rough count."""
    cuts = [cut for cut in radix_lists(rows, passes_max=PASSES_MAX) if ROW_RADICES.issuperset(cut)]
    return sorted(cuts, key=lambda cut: (len(cut) > 1, sum(map(pass_work, cut)), cut))
