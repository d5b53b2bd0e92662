"""Shapes of ``stft_simd.cl``, and the memory that a work-item needs for a frame."""

from collections.abc import Iterator

from spectrod.analysis.stft.stft_stage import StftSpec
from spectrod.fft.simd_shape import FACTORIZATIONS_MAX, SimdShape, row_factorizations

LANES = (8, 16)
"""Of a vector of float32."""

_OWN_BYTES_MAX = 1 << 28
# Longer frames are staged: their columns are too many pages for the processor to follow at once.
_DIRECT_LENGTH_MAX = 1 << 13


def own_values(shape: SimdShape, spec: StftSpec) -> int:
    """Pairs of vectors in memory of a work-item."""
    scalars = (_column_scalars if shape.columns else _line_scalars)(shape, spec)
    return -(-scalars // (2 * shape.lanes))


def own_bytes(shape: SimdShape, spec: StftSpec) -> int:
    """Memory of a work-item [bytes]."""
    return own_values(shape, spec) * 8 * shape.lanes


def _column_scalars(shape: SimdShape, spec: StftSpec) -> int:
    averaged = spec.averaging != "none"
    return (
        2 * shape.length * (1 + shape.staged)
        + (_padded(shape, spec.n_bins) if spec.n_bands or averaged else 0)
        + (_padded(shape, spec.n_bands) if spec.n_bands else 0)
        + _state_scalars(shape, spec)
    )


def _line_scalars(shape: SimdShape, spec: StftSpec) -> int:
    rows = 2 * shape.length + spec.n_bins * (spec.value_bytes // 4) + spec.n_bands
    return rows * shape.lanes + _state_scalars(shape, spec)


def _state_scalars(shape: SimdShape, spec: StftSpec) -> int:
    return _padded(shape, spec.n_values) * (spec.state_values // spec.n_values)


def _padded(shape: SimdShape, count: int) -> int:
    """Scalars of a row of which whole vectors are read from any place on."""
    return (count + 2 * shape.lanes - 1) // shape.lanes * shape.lanes


def shapes(spec: StftSpec, vector_bytes: int) -> Iterator[SimdShape]:
    """Shapes worth a try, the untuned choice first; none where nfft has a large prime or is odd.

    Vectors as wide as registers come first. Wider ones are left out: with AVX2, those of 16 lanes
    take 1.3 to 1.6 times the time of those of 8, and some compilers fail on them.
    """
    if spec.nfft % 2 and not spec.iq:
        return
    widest_first = sorted((lanes for lanes in LANES if 4 * lanes <= vector_bytes), reverse=True)
    for make in (_columns, _lines):
        for lanes in widest_first:
            for shape in make(spec, lanes):
                if own_bytes(shape, spec) <= _OWN_BYTES_MAX:
                    yield shape


def _columns(spec: StftSpec, lanes: int) -> Iterator[SimdShape]:
    length = spec.complex_length
    if length % lanes or length < lanes * lanes:
        return
    ways = (False, True) if length <= _DIRECT_LENGTH_MAX else (True, False)
    for radices in _factorizations(length // lanes):
        for staged in ways:
            if staged or may_be_direct(spec):
                yield SimdShape(lanes, radices, columns=True, staged=staged)


def may_be_direct(spec: StftSpec) -> bool:
    """Whether the samples of a frame are neighbours, and the window has them all."""
    return not spec.interleaved and spec.win_length == spec.nfft


def _lines(spec: StftSpec, lanes: int) -> Iterator[SimdShape]:
    length = spec.complex_length
    if length >= lanes:
        for radices in _factorizations(length):
            yield SimdShape(lanes, radices, columns=False)


def _factorizations(rows: int) -> list[tuple[int, ...]]:
    """Ways to cut the rows that are worth a try: one pass first."""
    factorizations = row_factorizations(rows, largest_last=False)
    return sorted(factorizations, key=lambda radices: len(radices) > 1)[:FACTORIZATIONS_MAX]
