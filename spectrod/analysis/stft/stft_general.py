"""The family that computes everything: launches before and behind a transform of any length.

Frames go through scratch memory in slices: as many at a time, of as many channels, as fit into a
bound. What a slice does to an average it leaves in the average's state.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_defines import product_defines, sample_defines
from spectrod.analysis.stft.stft_reference import bin_factors
from spectrod.analysis.stft.stft_stage import (
    Average,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.fft.defines import KernelDefines
from spectrod.fft.linekernels import LineKernel, aligned, rest_of
from spectrod.fft.select import make_stage
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.transform import halved, steps
from spectrod.lib.errors import ConfigError
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_SLICE_BYTES = 1 << 28
_CPU_SLICE_BYTES = 1 << 22  # less costs launches, more costs memory
_LONG_BINS, _LONG_TIMES = 256, 16  # of a row that is longer than the mean of the others
_LINE_ALIGN = 16  # complex values: 128 bytes, the longest that memory takes at once


@dataclass(frozen=True, slots=True)
class GeneralParams:
    """What may differ from device to device.

    Attributes
    ----------
    slice_bytes : int
        Bound of scratch memory; a single frame of one channel may be above it.

    Raises
    ------
    ConfigError
        If it is not positive.
    """

    slice_bytes: int

    def __post_init__(self) -> None:
        if self.slice_bytes < 1:
            raise ConfigError(f"slice_bytes={self.slice_bytes}: must be at least 1")


class GeneralStage:
    """Stage of the family; implements ``spectrod.analysis.stft.stft_stage.StftStage``."""

    def __init__(
        self,
        context: Context,
        spec: StftSpec,
        tables: StftTables,
        params: Any,
        slice_bytes: int,
        spectra: "FrameSpectra",
    ) -> None:
        self.spec = spec
        self.params = params
        self._context = context
        self._spectra = spectra
        self._pitch = line_pitch(spec)
        self._lines_max = halved(
            max(1, slice_bytes // self._lines_bytes(1)),
            lambda lines: self._slice_bytes(lines) <= slice_bytes,
        )
        self._bands = _Bands(context, spec, tables) if spec.n_bands else None
        self._products = _Products(context, spec, tables)

    def scratch_bytes(self, n_frames: int, channels: int) -> int:
        """Bytes for a slice's lines, bands, and what the transform itself needs."""
        return self._slice_bytes(prod(self._slice(n_frames, channels)))

    def launch(self, out: Any, launch: StftLaunch, scratch: Any = None) -> list[Any]:
        """Queue the computation, as ``StftStage.launch`` says."""
        n_frames, channels = launch.n_frames, launch.channels
        frames_step, channels_step = self._slice(n_frames, channels)
        parts = self._parts(scratch, frames_step * channels_step)
        events = []
        for c, c_end in steps(channels, channels_step):
            going = launch.average
            row = 0
            for f, f_end in steps(n_frames, frames_step):
                place = Slice(f, f_end - f, c, c_end - c, row, channels)
                events += self._launch_slice(out, launch, place, going, parts)
                row += place.n_frames if going is None else going.rows(place.n_frames)
                going = self._continued(going, place.n_frames)
        return events

    def _launch_slice(
        self,
        out: Any,
        launch: StftLaunch,
        place: "Slice",
        average: Average | None,
        parts: "_Parts",
    ) -> list[Any]:
        lines = place.n_frames * place.n_channels
        values = spectra = Lines(parts.lines, self._pitch)
        events = self._spectra.launch(spectra, launch, place, parts.rest)
        if self._bands is not None:
            values = Lines(parts.bands, self.spec.n_bands)
            events += self._bands.launch(values, spectra, lines)
        return [*events, self._products.launch(out, values, place, average)]

    def _continued(self, average: Average | None, n_frames: int) -> Average | None:
        if average is None:
            return None
        done = (average.done + n_frames) % average.frames
        return replace(average, done=done, primed=done > 0 or self.spec.averaging == "exponential")

    def _slice(self, n_frames: int, channels: int) -> tuple[int, int]:
        """Frames and channels at a time; fewer frames never need more memory."""
        frames = max(1, min(n_frames, self._lines_max // channels))
        return frames, min(channels, self._lines_max)

    def _slice_bytes(self, lines: int) -> int:
        own = aligned(self._lines_bytes(lines)) + aligned(self._bands_bytes(lines))
        return own + self._spectra.scratch_bytes(lines)

    def _lines_bytes(self, lines: int) -> int:
        return 8 * self._pitch * lines

    def _bands_bytes(self, lines: int) -> int:
        return 4 * self.spec.n_bands * lines

    def _parts(self, scratch: Any, lines: int) -> "_Parts":
        first, second = self._lines_bytes(lines), self._bands_bytes(lines)
        start = aligned(first)
        return _Parts(
            self._context.region(scratch, 0, first),
            self._context.region(scratch, start, second) if second else None,
            rest_of(self._context, scratch, start + aligned(second)),
        )


def line_pitch(spec: StftSpec) -> int:
    """Complex values from the spectrum of a frame to that of the next one."""
    length = spec.nfft if spec.iq else spec.nfft // 2 + 1
    return -(-length // _LINE_ALIGN) * _LINE_ALIGN


@dataclass(frozen=True, slots=True)
class Slice:
    """Frames and channels that go through scratch memory together."""

    frame: int
    n_frames: int
    channel: int
    n_channels: int
    row: int
    """The first that these frames finish."""
    channels: int
    """Of all slices."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Scratch memory, and what is in it."""

    lines: Any
    bands: Any
    rest: Any


class FrameSpectra(Protocol):
    """Samples to the spectra of frames, on a device."""

    def scratch_bytes(self, lines: int) -> int:
        """Bytes of scratch memory for a number of lines."""
        ...

    def launch(self, spectra: Lines, launch: StftLaunch, place: Slice, scratch: Any) -> list[Any]:
        """Queue it; return the events. Spectra lie as transforms leave them, with their pitch."""
        ...


class _GatheredSpectra:
    """Frames gathered as lines, then any transform of lines in place."""

    def __init__(self, context: Context, spec: StftSpec, tables: StftTables) -> None:
        self._transform = make_stage(context, TransformSpec(spec.nfft, "c2c" if spec.iq else "r2c"))
        self._gather = _Gather(context, spec, tables, line_pitch(spec))
        self._reals = 1 if spec.iq else 2

    def scratch_bytes(self, lines: int) -> int:
        """Bytes that the transform needs."""
        return self._transform.scratch_bytes(lines, 1)

    def launch(self, spectra: Lines, launch: StftLaunch, place: Slice, scratch: Any) -> list[Any]:
        """Queue both, as ``FrameSpectra.launch`` says."""
        lines = place.n_frames * place.n_channels
        values = Lines(spectra.buffer, spectra.pitch * self._reals)
        return [
            self._gather.launch(spectra.buffer, launch, place),
            *self._transform.launch(spectra, values, lines, 1, 1.0, scratch),
        ]


class _Gather:
    """Samples to windowed lines."""

    def __init__(self, context: Context, spec: StftSpec, tables: StftTables, pitch: int) -> None:
        self._kernel = LineKernel(
            context, "stft_frames.cl", "gather_frames", "single", sample_defines(spec)
        )
        factors = tables.window / spec.loaded_full_scale
        self._window = context.table(factors.astype(np.float32))
        self._spec = spec
        self._pitch = pitch if spec.iq else 2 * pitch

    def launch(self, lines: Any, launch: StftLaunch, place: Slice) -> Any:
        """Queue it; return the event."""
        spec, samples = self._spec, launch.samples
        row_frames, done, _ = launch.row_state
        pitches = (samples.pitch, 1) if spec.interleaved else (1, samples.pitch)
        n_lines = place.n_frames * place.n_channels
        return self._kernel.launch(
            n_lines, spec.nfft, lines, self._pitch,
            samples.buffer, place.channel * spec.parts, samples.first, launch.hop, *pitches,
            self._window, n_lines, place.n_channels, spec.win_length, spec.nfft,
            place.frame, row_frames, done, *launch.place_arguments,
        )  # fmt: skip


class _Bands:
    """Spectra to sums over their bins' power."""

    def __init__(self, context: Context, spec: StftSpec, tables: StftTables) -> None:
        assert tables.bands is not None
        bands = tables.bands
        starts = np.cumsum(bands.count) - bands.count
        bins = np.repeat(bands.first - starts, bands.count) + np.arange(len(bands.weights))
        weights = bands.weights * bin_factors(spec, tables)[bins]
        self._rows = context.table(np.array([bands.first, bands.count, starts], np.uint64))
        self._weights = context.table(weights.astype(np.float32))
        self._spec = spec
        self._context = context
        self._parts = [
            _BandPart(first, past, items, self._compiled(items))
            for first, past, items in _band_parts(context.device, bands.count)
        ]

    def launch(self, sums: Lines, spectra: Lines, lines: int) -> list[Any]:
        """Queue it; return the events."""
        return [self._launch_part(part, sums, spectra, lines) for part in self._parts]

    def _launch_part(self, part: "_BandPart", sums: Lines, spectra: Lines, lines: int) -> Any:
        spec, arguments, group = self._spec, part.arguments, max(64, part.items)
        arguments.set(0, (sums.buffer, spectra.buffer, np.uint64(spectra.pitch)))
        arguments.set(3, (self._rows, self._weights))
        numbers = lines, spec.n_bands, spec.nfft, part.first, part.past
        arguments.set(5, map(np.uint64, numbers))
        groups = -(-(part.past - part.first) * part.items // group)
        size = groups * group, min(lines, 65535)
        return self._context.launch(arguments.kernel, size, (group, 1))

    def _compiled(self, items: int) -> Arguments:
        defines = KernelDefines(iq=self._spec.iq, band_items=items)
        return Arguments(self._context.kernel("stft_bands.cl", "sum_bands", defines.pairs()))


@dataclass(frozen=True, slots=True)
class _BandPart:
    """Bands that one launch adds up, and the work-items that each of them gets."""

    first: int
    past: int
    items: int
    arguments: Arguments


class _Products:
    """Spectra or bands' sums to rows of results."""

    def __init__(self, context: Context, spec: StftSpec, tables: StftTables) -> None:
        weighted = spec.weighted and not spec.n_bands  # those of bands are in the bands' own
        defines = product_defines(spec) | KernelDefines(
            weighted=weighted, band_sums=spec.n_bands > 0
        )
        self._kernel = LineKernel(context, "stft_products.cl", _kernel_of(spec), "single", defines)
        factors = bin_factors(spec, tables) if weighted else np.ones(1)
        self._weights = context.table(factors.astype(np.float32))
        self._spec = spec
        self._floor_db = np.float32(tables.floor_db)
        self._smoothing = np.float32(tables.smoothing)

    def launch(self, out: Any, values: Lines, place: Slice, average: Average | None) -> Any:
        """Queue it; return the event."""
        spec = self._spec
        row_pitch = place.channels * spec.n_values
        first = place.row * row_pitch + place.channel * spec.n_values
        target = out, first, row_pitch, spec.n_values, values.buffer, values.pitch
        lines = place.n_frames * place.n_channels
        if average is not None:
            return self._launch_average(target, place, average)
        factors = (self._weights, self._floor_db) if spec.output == "power" else ()
        return self._kernel.launch(
            lines, spec.n_values, *target, lines, place.n_channels, spec.nfft, *factors
        )

    def _launch_average(self, target: tuple[Any, ...], place: Slice, average: Average) -> Any:
        spec, channels, n_rows = self._spec, place.n_channels, average.rows(place.n_frames)
        is_endless = spec.averaging == "exponential"
        lines = channels if is_endless else channels * max(1, n_rows)
        return self._kernel.launch(
            lines, spec.n_values, *target,
            place.n_frames, channels, spec.nfft, self._weights, self._floor_db,
            average.state, place.channel * spec.state_values,
            average.frames, average.done, int(average.primed), n_rows,
            *([self._smoothing] if is_endless else []),
        )  # fmt: skip


class GeneralStft:
    """Any length, format and product, on every device that transforms."""

    name = "stft-general"
    params_type = GeneralParams

    def supports(self, spec: StftSpec, device: DeviceInfo) -> bool:  # noqa: ARG002 - all
        """Whether it computes this: it does."""
        return True

    def candidates(self, spec: StftSpec, device: DeviceInfo) -> Iterable[GeneralParams]:  # noqa: ARG002
        """Slices that stay in a cache, or are few."""
        sizes = _CPU_SLICE_BYTES, _SLICE_BYTES
        return map(GeneralParams, sizes if device.kind == "cpu" else reversed(sizes))

    def build(
        self, context: Context, spec: StftSpec, tables: StftTables, params: GeneralParams
    ) -> GeneralStage:
        """Compile the stage."""
        spectra = _GatheredSpectra(context, spec, tables)
        return GeneralStage(context, spec, tables, params, params.slice_bytes, spectra)


GENERAL = GeneralStft()


def _kernel_of(spec: StftSpec) -> str:
    if spec.output == "complex":
        return "write_spectra"
    if spec.averaging == "none":
        return "write_power"
    return "smooth_rows" if spec.averaging == "exponential" else "average_rows"


def _band_parts(device: DeviceInfo, count: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Divide bands between launches: (first, past, work-items of a band) of each.

    On a GPU a last row much longer than the others, that of all bins, has a launch with more items
    of its own: the others would wait for it.
    """
    n, others = len(count), count[:-1]
    is_long = n > 1 and count[-1] > _LONG_BINS + _LONG_TIMES * int(others.mean())
    if device.kind == "cpu" or not is_long:
        return [(0, n, _band_items(device, int(count.mean())))]
    return [
        (0, n - 1, _band_items(device, int(others.mean()))),
        (n - 1, n, _band_items(device, int(count[-1]))),
    ]


def _band_items(device: DeviceInfo, mean_bins: int) -> int:
    """Power of two: on a CPU barriers cost more than a loop; on a GPU some bins for each item."""
    if device.kind == "cpu":
        return 1
    largest = min(256, device.max_work_group_size)
    return min(largest, max(8, 1 << (mean_bins // 4).bit_length()))
