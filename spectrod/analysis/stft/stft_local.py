"""Frames in the registers of a work-group's items, exchanged through local memory: for GPUs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectrod.analysis.stft.stft_defines import stft_defines
from spectrod.analysis.stft.stft_stage import (
    BandRows,
    RowPlaces,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.dsp.units import Float64Array
from spectrod.fft.defines import KernelDefines
from spectrod.fft.local import LOCAL as TRANSFORMS
from spectrod.fft.local import LocalShape, can_mirror
from spectrod.fft.stage import TransformSpec
from spectrod.fft.twiddles import pass_twiddles, real_twiddles
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

# Slots for each compute unit: with fewer, frames are not worth keeping together.
_UNIT_SLOTS = 64
# An odd number of values, so that neighbouring items read from different banks.
_PIECE_BINS = 17
# These exchange values within a warp.
_FEW_ITEMS = 32


@dataclass(frozen=True, slots=True)
class StftLocalShape:
    """Shape of ``stft_local.cl``.

    Attributes
    ----------
    passes : LocalShape
        Of the complex transform, of half the frame's length or, for I/Q, of all of it.
    held : bool
        Whether the window's factors stay in registers from frame to frame.
    ahead : bool
        Whether a frame's samples are loaded while the one before is transformed; of those that both
        have, many then stay in registers.
    buffers : {1, 2}
        Of local memory for exchanges of whole values: two halve the barriers.
    run : int
        Frames that an item computes one after the other, where there is no average.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    passes: LocalShape
    held: bool = False
    ahead: bool = False
    buffers: int = 1
    run: int = 1

    def __post_init__(self) -> None:
        if self.passes.sections != 1:
            raise ConfigError(f"sections={self.passes.sections}: must be 1 for frames")
        if self.buffers not in {1, 2}:
            raise ConfigError(f"buffers={self.buffers}: must be 1 or 2")
        if self.run < 1:
            raise ConfigError(f"run={self.run}: must be at least 1")


class StftLocalStage:
    """Stage of the family: one launch, or two for some averages.

    Samples that do not lie in pairs at even places, and those that frames share in registers, have
    kernels of their own, compiled when first needed.
    """

    def __init__(
        self, context: Context, spec: StftSpec, tables: StftTables, params: StftLocalShape
    ) -> None:
        _require_length(spec, params.passes)
        if spec.n_bands:
            params = _for_bands(params)
        self.spec = spec
        self.params = params
        self._context = context
        self._tables = tables
        pieces = _Pieces(tables.bands) if tables.bands else None
        self._n_pieces = pieces.count if pieces else 0
        if not _fits(spec, params, context.device, self._n_pieces):
            raise DeviceError(
                f"nfft={spec.nfft}: {context.device.label} has not got the local memory or the "
                f"work-group size for {params}"
            )
        self._buffers = [context.table(t) for t in _kernel_tables(spec, tables, params, pieces)]
        self._kernels: dict[tuple[bool, int], Arguments] = {}
        self._kernel_for(aligned=True, shift=0)  # what does not compile is to be found out here

    def scratch_bytes(self, n_frames: int, channels: int) -> int:  # noqa: ARG002 - of the interface
        """None."""
        return 0

    def launch(self, out: Any, launch: StftLaunch, scratch: Any = None) -> list[Any]:  # noqa: ARG002 - of the interface
        """Queue the computation, as ``StftStage.launch`` says."""
        return [self._launch(out, one) for one in launch.side_by_side(self.spec.averaging)]

    def _launch(self, out: Any, launch: StftLaunch) -> Any:
        samples, hop = launch.samples, launch.hop
        aligned = is_aligned(self.spec, samples, hop, launch.places)
        arguments = self._kernel_for(aligned, self._shift(hop))
        run, slots = self._divide(launch)
        row_frames, done, primed = launch.row_state
        arguments.set(0, (out, launch.state, samples.buffer))
        arguments.set(10, map(np.uint64, (samples.first, samples.pitch, hop)))
        counts = launch.n_frames, run, done, row_frames, int(primed)
        arguments.set(13, map(np.uint32, counts))
        arguments.set(18, map(np.uint64, launch.place_arguments))
        size = self.params.passes.group_items
        groups = -(-slots // self.params.passes.lines)
        return self._context.launch(arguments.kernel, (groups * size, launch.channels), (size, 1))

    def _divide(self, launch: StftLaunch) -> tuple[int, int]:
        """Frames a slot, and slots."""
        n_frames = launch.n_frames
        if launch.average is None:
            enough = max(1, _UNIT_SLOTS * self._context.device.compute_units)
            run = max(1, min(self.params.run, n_frames * launch.channels // enough))
            return run, -(-n_frames // run)
        if self.spec.averaging == "exponential":
            return n_frames, 1
        row_frames, done, _ = launch.row_state
        return row_frames, -(-(done + n_frames) // row_frames)

    def _shift(self, hop: int) -> int:
        """Count steps of a butterfly from a frame to the next; 0 if not whole or too many."""
        if self.spec.placed:
            return 0  # the next frame may be of another row
        radix = self.params.passes.radices[0]
        step = self.spec.nfft // radix
        is_whole = hop % step == 0 and self.spec.win_length == self.spec.nfft
        return hop // step if self.params.ahead and is_whole and hop < self.spec.nfft else 0

    def _kernel_for(self, aligned: bool, shift: int) -> Arguments:  # noqa: FBT001 - a key
        key = aligned, shift
        if key not in self._kernels:
            kernel = self._context.kernel(
                "stft_local.cl", "stft_local", self._defines(aligned=aligned, shift=shift).pairs()
            )
            for index, table in enumerate(self._buffers, 3):
                kernel.set_arg(index, table)
            kernel.set_arg(21, np.float32(self._tables.smoothing))
            kernel.set_arg(22, np.float32(self._tables.floor_db))
            self._kernels[key] = Arguments(kernel)
        return self._kernels[key]

    def _defines(self, *, aligned: bool, shift: int) -> KernelDefines:
        return (
            stft_defines(self.spec)
            | self.params.passes.defines()
            | KernelDefines(
                tile_buffers=self.params.buffers,
                aligned=aligned,
                held=self.params.held,
                ahead=self.params.ahead,
                shift=shift,
                one_frame=self.params.run == 1 and self.spec.averaging == "none",
                n_pieces=self._n_pieces,
            )
        )


class StftLocalFamily:
    """Local-memory kernels: frames whose complex transform fits into a work-group."""

    name = "stft-local"
    params_type = StftLocalShape

    def supports(self, spec: StftSpec, device: DeviceInfo) -> bool:
        """Whether it fits; real frames must be of even length."""
        return next(iter(self.candidates(spec, device)), None) is not None

    def candidates(self, spec: StftSpec, device: DeviceInfo) -> Iterator[StftLocalShape]:
        """Vary the shapes of the transform, and what each keeps in registers and local memory."""
        if not spec.iq and spec.nfft % 2:
            return
        for passes in TRANSFORMS.candidates(_transform_spec(spec), device):
            if passes.sections == 1:
                for params in dict.fromkeys((_preferred(spec, passes), *_forms(passes))):
                    if _fits(spec, params, device, _pieces_max(spec)):
                        yield params

    def build(
        self, context: Context, spec: StftSpec, tables: StftTables, params: StftLocalShape
    ) -> StftLocalStage:
        """Compile the stage."""
        return StftLocalStage(context, spec, tables, params)


LOCAL = StftLocalFamily()


def _preferred(spec: StftSpec, passes: LocalShape) -> StftLocalShape:
    """Keep as much in registers as gained where it was measured, see kernels/README.md.

    Of short frames, few items exchange values within a warp, where barriers are cheap, and keep the
    window; more of them gain by half the barriers. Long frames need the registers for values.
    """
    length, items = passes.length, passes.items
    if spec.iq or length & (length - 1) or length < 128:
        return StftLocalShape(passes, run=4)
    if length >= 512:
        return StftLocalShape(passes)
    few = items <= _FEW_ITEMS
    return StftLocalShape(passes, held=items <= 64, ahead=few, buffers=1 if few else 2, run=4)


def _for_bands(params: StftLocalShape) -> StftLocalShape:
    """Load ahead where few items sum bands: the samples arrive during the sums.

    At 1024 points on an H200 third octaves took 0.8 of the time that they take with the shape that
    is best for power.
    """
    if params.held and params.passes.items <= _FEW_ITEMS:
        return replace(params, ahead=True, buffers=1)
    return params


def _forms(passes: LocalShape) -> Iterator[StftLocalShape]:
    yield StftLocalShape(passes)
    yield StftLocalShape(passes, held=True, ahead=True, run=4)
    yield StftLocalShape(passes, buffers=2, run=4)
    yield StftLocalShape(passes, held=True, buffers=2, run=4)
    yield StftLocalShape(passes, ahead=True, buffers=2, run=8)
    yield StftLocalShape(passes, run=4)
    yield StftLocalShape(passes, run=2)


def _require_length(spec: StftSpec, passes: LocalShape) -> None:
    if passes.length != spec.complex_length:
        raise ConfigError(f"radices={passes.radices}: must multiply to {spec.complex_length}")
    if passes.mirrored and not can_mirror(_transform_spec(spec), passes):
        raise ConfigError(f"mirrored={passes.mirrored}: {passes.items} items cannot hold pairs")


def _transform_spec(spec: StftSpec) -> TransformSpec:
    return TransformSpec(spec.nfft, "c2c" if spec.iq else "r2c")


def _pieces_max(spec: StftSpec) -> int:
    """Pieces of as many bands, where each bin belongs to two at most, and to one of all bins."""
    return 3 * spec.n_bins // _PIECE_BINS + 2 * spec.n_bands if spec.n_bands else 0


def _fits(spec: StftSpec, params: StftLocalShape, device: DeviceInfo, n_pieces: int) -> bool:
    passes = params.passes
    values = spec.n_bins + n_pieces if spec.n_bands else 0
    values += spec.n_values if spec.averaging != "none" else 0
    limit = (device.local_mem_bytes - 4 * passes.lines * values) // params.buffers
    return passes.fits(replace(device, local_mem_bytes=limit), 4)


def is_aligned(spec: StftSpec, samples: Samples, hop: int, places: RowPlaces | None = None) -> bool:
    """Whether pairs of samples start at multiples of their size."""
    if spec.interleaved:
        return spec.iq and samples.pitch % 2 == 0
    if places and (places.denominator > 1 or places.numerator % 2):
        return False
    return not spec.iq and samples.first % 2 == samples.pitch % 2 == hop % 2 == 0


class _Pieces:
    """Bands cut into pieces of a few bins.

    Attributes
    ----------
    pieces : (count, 4) uint32
        First bin, bins, first weight, 0.
    bands : (n_bands, 2) uint32
        First piece, pieces.
    """

    def __init__(self, rows: BandRows) -> None:
        per_band = -(-rows.count // _PIECE_BINS)
        self.count = int(per_band.sum())
        band = np.repeat(np.arange(len(per_band)), per_band)
        first_piece = np.cumsum(per_band) - per_band
        start = (np.arange(self.count) - first_piece[band]) * _PIECE_BINS
        first_weight = np.cumsum(rows.count) - rows.count
        self.pieces = np.stack(
            [
                rows.first[band] + start,
                np.minimum(rows.count[band] - start, _PIECE_BINS),
                first_weight[band] + start,
                np.zeros_like(start),
            ],
            axis=1,
        ).astype(np.uint32)
        self.bands = np.stack([first_piece, per_band], axis=1).astype(np.uint32)


def _kernel_tables(
    spec: StftSpec, tables: StftTables, params: StftLocalShape, pieces: _Pieces | None
) -> Iterable[Any]:
    """Tables in the order of the kernel's arguments; one number for those not read."""
    none = np.zeros(4, np.uint32)
    length = params.passes.length
    twiddles = pass_twiddles(params.passes.radices)
    yield window_factors(spec, tables.window)
    yield (twiddles if len(twiddles) else np.ones(1)).astype(np.complex64)
    yield none if spec.iq else real_twiddles(length).astype(np.complex64)
    yield none if tables.weights is None else tables.weights.astype(np.float32)
    yield pieces.pieces if pieces else none
    yield tables.bands.weights.astype(np.float32) if tables.bands else none
    yield pieces.bands if pieces else none


def window_factors(spec: StftSpec, window: Float64Array) -> Any:
    """Factors of a value's two parts, in which are an integer's full scale and the twice of a pair.

    24 bits are read as the upper ones of 32.
    """
    full_scale = spec.loaded_full_scale
    factors = np.zeros(spec.nfft, np.float32)
    factors[: spec.win_length] = window / (full_scale if spec.iq else 2.0 * full_scale)
    return np.repeat(factors, 2) if spec.iq else factors
