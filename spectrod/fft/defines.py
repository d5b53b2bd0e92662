"""The names that the host defines for the FFT and STFT kernels: one name for one thing.

Each kernel file lists the names that it needs in its header. A family sets those, and no others.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from spectrod.fft.radices import PASSES_MAX
from spectrod.opencl.source import Defines


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDefines:
    """Values of the ``#define`` lines of a program; a field's name in capitals is the define.

    None stands for no line. A flag is 0 or 1; ``double`` has a line only if it is true.

    Attributes
    ----------
    double : bool
        Double precision in place of single.
    n : int
        Length of the complex transform of a line or frame: half of that of real values.
    lanes : int
        Numbers in a vector.
    columns : bool
        Lanes are columns of one line or frame, not lines or frames.
    staged : bool
        A line or frame is copied to memory of the work-item first.
    scratch : bool
        Memory of a work-item is a part of a buffer, not private.
    own_values : int
        Vectors of complex values in memory of a work-item.
    radices : tuple of int
        Of the passes: ``N_PASSES``, ``RADIX_1`` to ``RADIX_6`` (1 past the last) and
        ``RADIX_LAST``.
    items : int
        Work-items a line or frame.
    lines : int
        Lines or frames a work-group.
    values : int
        Complex values that a work-item holds in registers.
    split_exchange : bool
        Real and imaginary parts one after the other through the same local memory.
    local_pad : int
        Values in local memory between gaps of one value; 0 for no gaps.
    lines_first : bool
        Neighbouring work-items have neighbouring lines.
    lines_last : bool
        Neighbouring work-items have neighbouring lines in the last pass only.
    sections : int
        Parts of an exchange, one after the other through the same local memory.
    paired_twiddles : bool
        Most twiddle factors are products of two others.
    fused : bool
        Radices that are powers of two take fewer, fused operations.
    mirrored : bool
        Two butterflies of a work-item hold pairs of bins.
    line_pairs : int
        Lines of a longer transform, of which a work-item holds two with pairs of bins; 0 for one
        line that is a transform of its own.
    n_columns : int
        Lines that are the columns of a longer transform; 0 for lines that are none.

    tile_buffers : int
        Buffers for exchanges of whole values.
    real_in, real_out : bool
        Values of the source, and of the result, are real; complex otherwise.
    inverse : bool
        The exponent's sign is plus.
    hermitian : bool
        The source is the first half of a spectrum.
    conjugate : bool
        Imaginary parts change their sign.
    ranks : int
        Axes that lines are counted along.
    in_unit, out_unit : bool
        Values of a line are neighbours.
    in_slice, out_slice : bool
        A side holds the lines of one launch alone.
    win_length : int
        Samples under the window.
    format : int
        Of samples: bits of an integer, 0 for float32.
    aligned : bool
        Pairs of samples, or of the reals of a line, lie at even places.
    interleaved : bool
        Samples of all channels at one time are neighbours.
    iq : bool
        Each two channels are one complex signal.
    placed : bool
        Rows begin at places of their own.
    held : bool
        The window's factors stay in registers from frame to frame.
    ahead : bool
        Samples of a frame are loaded while the one before is transformed.
    shift : int
        Steps of a butterfly from a frame to the next; 0 to share no samples.
    one_frame : bool
        A slot computes one frame.
    complex_out : bool
        Results are spectra, not power.
    weighted : bool
        Each bin's power has a factor.
    n_bands : int
        Bands a row; 0 for bins.
    n_pieces : int
        Pieces that bands are cut into.
    band_items : int
        Work-items that add up a band.
    band_sums : bool
        The source is bands' sums, not spectra.
    averaging : int
        Over frames: 0 none, 1 mean, 2 maximum, 3 minimum, 4 exponential.
    decibels : bool
        Results are levels.
    """

    double: bool | None = None
    n: int | None = None
    lanes: int | None = None
    columns: bool | None = None
    staged: bool | None = None
    scratch: bool | None = None
    own_values: int | None = None
    radices: tuple[int, ...] | None = None
    items: int | None = None
    lines: int | None = None
    values: int | None = None
    split_exchange: bool | None = None
    local_pad: int | None = None
    lines_first: bool | None = None
    lines_last: bool | None = None
    sections: int | None = None
    paired_twiddles: bool | None = None
    fused: bool | None = None
    mirrored: bool | None = None
    line_pairs: int | None = None
    n_columns: int | None = None

    tile_buffers: int | None = None
    real_in: bool | None = None
    real_out: bool | None = None
    inverse: bool | None = None
    hermitian: bool | None = None
    conjugate: bool | None = None
    ranks: int | None = None
    in_unit: bool | None = None
    out_unit: bool | None = None
    in_slice: bool | None = None
    out_slice: bool | None = None
    win_length: int | None = None
    format: int | None = None
    aligned: bool | None = None
    interleaved: bool | None = None
    iq: bool | None = None
    placed: bool | None = None
    held: bool | None = None
    ahead: bool | None = None
    shift: int | None = None
    one_frame: bool | None = None
    complex_out: bool | None = None
    weighted: bool | None = None
    n_bands: int | None = None
    n_pieces: int | None = None
    band_items: int | None = None
    band_sums: bool | None = None
    averaging: int | None = None
    decibels: bool | None = None

    def __or__(self, other: "KernelDefines") -> "KernelDefines":
        """Return these with the values that the other has."""
        values = {field.name: getattr(other, field.name) for field in fields(other)}
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    def pairs(self) -> Defines:
        """Names and values for the compiler, in the order of the fields."""
        return tuple(
            pair for field in fields(self) for pair in _pairs(field.name, getattr(self, field.name))
        )


def _pairs(name: str, value: Any) -> Defines:
    if value is None or (name == "double" and not value):
        return ()
    if name == "radices":
        padded = (*value, *(1,) * (PASSES_MAX - len(value)))
        numbered = ((f"RADIX_{i}", radix) for i, radix in enumerate(padded, 1))
        return ("N_PASSES", len(value)), *numbered, ("RADIX_LAST", value[-1])
    return ((name.upper(), int(value)),)
