"""Frames longer than local memory, in two or three passes: for GPUs.

The first pass reads and windows the samples, and the last one writes power, levels or complex
spectra. For bands and averages it writes spectra, of which the launches of ``general`` make rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectrod.analysis.stft.stft_defines import product_defines, sample_defines
from spectrod.analysis.stft.stft_general import FrameSpectra, GeneralStage, Slice
from spectrod.analysis.stft.stft_local import is_aligned, window_factors
from spectrod.analysis.stft.stft_stage import (
    StftLaunch,
    StftSpec,
    StftStage,
    StftTables,
)
from spectrod.fft.defines import KernelDefines
from spectrod.fft.local import LocalKernel, LocalShape, Steps
from spectrod.fft.multipass import MULTIPASS, MultipassParams
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.transform import steps
from spectrod.fft.twiddles import column_twiddles, pass_twiddles, twiddle_tables
from spectrod.lib.errors import ConfigError
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo


class StftMultipassStage:
    """Stage of the family for what the last pass writes itself: no bands, no averages."""

    def __init__(
        self, context: Context, spec: StftSpec, tables: StftTables, params: MultipassParams
    ) -> None:
        self.spec = spec
        self.params = params
        self._passes = _Passes(context, spec, tables, params)
        self._lines_max = max(1, params.slice_bytes // self._passes.scratch_bytes(1))

    def scratch_bytes(self, n_frames: int, channels: int) -> int:
        """Bytes of the frames that go through the passes at a time."""
        frames, at_once = self._slice(n_frames, channels)
        return self._passes.scratch_bytes(frames * at_once)

    def launch(self, out: Any, launch: StftLaunch, scratch: Any = None) -> list[Any]:
        """Queue the computation, as ``StftStage.launch`` says."""
        assert launch.average is None
        n_frames, channels = launch.n_frames, launch.channels
        frames_step, channels_step = self._slice(n_frames, channels)
        n_values = self.spec.n_values
        events = []
        for c, c_end in steps(channels, channels_step):
            for f, f_end in steps(n_frames, frames_step):
                place = Slice(f, f_end - f, c, c_end - c, f, channels)
                rows = _RowPlacement(
                    out, (f * channels + c) * n_values, channels * n_values, n_values
                )
                events += self._passes.launch(rows, launch, place, scratch)
        return events

    def _slice(self, n_frames: int, channels: int) -> tuple[int, int]:
        frames = max(1, min(n_frames, self._lines_max // channels))
        return frames, min(channels, self._lines_max)


class _PassedSpectra:
    """Spectra for other launches; implements ``stft_general.FrameSpectra``."""

    def __init__(
        self, context: Context, spec: StftSpec, tables: StftTables, params: MultipassParams
    ) -> None:
        self._passes = _Passes(context, _spectra_spec(spec), tables, params)

    def scratch_bytes(self, lines: int) -> int:
        """Bytes of the frames between the passes."""
        return self._passes.scratch_bytes(lines)

    def launch(self, spectra: Lines, launch: StftLaunch, place: Slice, scratch: Any) -> list[Any]:
        """Queue the passes, as ``FrameSpectra.launch`` says."""
        pitch = spectra.pitch
        rows = _RowPlacement(spectra.buffer, 0, place.n_channels * pitch, pitch)
        return self._passes.launch(rows, launch, place, scratch)


@dataclass(frozen=True, slots=True)
class _RowPlacement:
    """Where the values of a slice's frames go; all counts are in values."""

    buffer: Any
    first: int
    row_pitch: int
    channel_pitch: int


class _Passes:
    """The launches of a transform of frames: one a pass."""

    def __init__(
        self, context: Context, spec: StftSpec, tables: StftTables, params: MultipassParams
    ) -> None:
        self._length = spec.complex_length
        if params.length != self._length:
            lengths = [one.length for one in params.passes]
            raise ConfigError(f"passes of {lengths}: must multiply to {self._length}")
        first, *middle, last = params.passes
        self._first = _FirstPass(context, spec, tables, first)
        self._middle = [self._middle_pass(context, first, shape) for shape in middle]
        self._last = _LastPass(context, spec, tables, first, last)

    def scratch_bytes(self, lines: int) -> int:
        """Bytes of the frames between the passes."""
        return 8 * self._length * lines

    def launch(
        self, rows: _RowPlacement, launch: StftLaunch, place: Slice, scratch: Any
    ) -> list[Any]:
        """Queue the passes over a slice of frames; return the events."""
        lines = place.n_frames * place.n_channels
        return [
            self._first.launch(scratch, launch, place),
            *(self._launch_middle(kernel, scratch, lines) for kernel in self._middle),
            self._last.launch(rows, scratch, place),
        ]

    def _middle_pass(self, context: Context, first: LocalShape, shape: LocalShape) -> LocalKernel:
        return LocalKernel(
            context,
            TransformSpec(self._length),
            shape,
            ranks=2,
            in_unit=False,
            out_unit=False,
            in_slice=True,
            out_slice=True,
            n_columns=self._length // first.length // shape.length,
        )

    def _launch_middle(self, kernel: LocalKernel, scratch: Any, lines: int) -> Any:
        """Transform columns of a matrix of `rest` values for each result of the first pass."""
        first = self._first.shape.length
        rest = self._length // first
        columns = rest // kernel.params.length
        to = scratch, Steps(0, rest, 0, 1, columns)
        kernel.bind(to, to, (lines * first, 1, columns), 1.0, lines * first)
        return kernel.launch()


class _FirstPass:
    """Columns of frames of samples to lines in scratch memory.

    Samples that do not lie in pairs at even places have a kernel of their own, compiled when first
    needed.
    """

    def __init__(
        self, context: Context, spec: StftSpec, tables: StftTables, shape: LocalShape
    ) -> None:
        self.shape = shape
        self._spec = spec
        self._context = context
        self._n_columns = spec.complex_length // shape.length
        window = window_factors(spec, tables.window)
        outer = column_twiddles(shape.length, self._n_columns, shape.radices[-1])
        self._tables = (
            context.table(window),
            context.table(pass_twiddles(shape.radices).astype(np.complex64)),
            context.table(outer.astype(np.complex64)),
        )
        self._kernels: dict[bool, Arguments] = {}
        self._kernel_for(aligned=True)  # what does not compile is to be found out here

    def launch(self, lines: Any, launch: StftLaunch, place: Slice) -> Any:
        """Queue it; return the event."""
        samples, hop = launch.samples, launch.hop
        aligned = is_aligned(self._spec, samples, hop, launch.places)
        arguments = self._kernel_for(aligned=aligned)
        arguments.set(0, (lines, samples.buffer))
        arguments.set(2, self._tables)
        longs = samples.first, samples.pitch, hop, *launch.place_arguments
        arguments.set(5, map(np.uint64, longs))
        n_lines = place.n_frames * place.n_channels
        row_frames, done, _ = launch.row_state
        counts = place.frame, row_frames, done, n_lines, place.channel
        arguments.set(11, map(np.uint32, (*counts, place.n_channels)))
        return _launch(self._context, arguments, self.shape, n_lines * self._n_columns)

    def _kernel_for(self, *, aligned: bool) -> Arguments:
        if aligned not in self._kernels:
            defines = (
                sample_defines(self._spec)
                | replace(self.shape.defines(), mirrored=None)
                | KernelDefines(
                    win_length=self._spec.win_length,
                    interleaved=self._spec.interleaved,
                    aligned=aligned,
                    n_columns=self._n_columns,
                    line_pairs=0,
                )
            )
            kernel = self._context.kernel(
                "stft_multipass_first.cl", "transform_frames", defines.pairs()
            )
            self._kernels[aligned] = Arguments(kernel)
        return self._kernels[aligned]


class _LastPass:
    """Lines in scratch memory to rows of power, levels or complex spectra."""

    def __init__(
        self,
        context: Context,
        spec: StftSpec,
        tables: StftTables,
        first: LocalShape,
        shape: LocalShape,
    ) -> None:
        self._shape = shape
        self._context = context
        length = spec.complex_length
        self._n_columns = length // shape.length
        self._held_lines = 1 if spec.iq else 2
        # Column c is number c // first of the middle pass's columns, and c % first of the first's.
        self._steps = first.length, shape.length, length // first.length
        pairs = 0 if spec.iq else self._n_columns
        defines = (
            replace(product_defines(spec), averaging=None)
            | replace(shape.defines(), mirrored=None)
            | KernelDefines(
                values=self._held_lines * shape.values,
                complex_out=spec.output == "complex",
                n_columns=self._n_columns,
                line_pairs=pairs,
            )
        )
        self._arguments = Arguments(
            context.kernel("stft_multipass_last.cl", "finish_frames", defines.pairs())
        )
        outer = twiddle_tables(2 * length, pairs) if pairs else np.ones(1)
        weights = np.ones(1) if tables.weights is None else tables.weights
        self._tables = (
            context.table(pass_twiddles(shape.radices).astype(np.complex64)),
            context.table(outer.astype(np.complex64)),
            context.table(weights.astype(np.float32)),
        )
        self._floor_db = np.float32(tables.floor_db)

    def launch(self, rows: _RowPlacement, lines: Any, place: Slice) -> Any:
        """Queue it; return the event."""
        self._arguments.set(0, (rows.buffer, lines, *self._tables))
        self._arguments.set(5, map(np.uint64, (rows.first, rows.row_pitch, rows.channel_pitch)))
        n_lines = place.n_frames * place.n_channels
        counts = n_lines, place.n_channels, *self._steps
        self._arguments.set(8, (*map(np.uint32, counts), self._floor_db))
        held = self._n_columns // self._held_lines
        return _launch(self._context, self._arguments, self._shape, n_lines * held)


def _launch(context: Context, arguments: Arguments, shape: LocalShape, lines: int) -> Any:
    size = shape.group_items
    groups = -(-lines // shape.lines)
    return context.launch(arguments.kernel, (groups * size,), (size,))


class StftMultipassFamily:
    """Frames whose transform takes two or three passes, on GPUs."""

    name = "stft-multipass"
    params_type = MultipassParams

    def supports(self, spec: StftSpec, device: DeviceInfo) -> bool:
        """Return True if the transform has passes there; bands and averages of real frames only."""
        if device.kind == "cpu" or (spec.iq and not _is_direct(spec)):
            return False
        return MULTIPASS.supports(_transform_spec(spec), device)

    def candidates(self, spec: StftSpec, device: DeviceInfo) -> Iterable[MultipassParams]:
        """Return those of the transform."""
        return MULTIPASS.candidates(_transform_spec(spec), device)

    def build(
        self, context: Context, spec: StftSpec, tables: StftTables, params: MultipassParams
    ) -> StftStage:
        """Compile the stage."""
        if _is_direct(spec):
            return StftMultipassStage(context, spec, tables, params)
        spectra: FrameSpectra = _PassedSpectra(context, spec, tables, params)
        return GeneralStage(context, spec, tables, params, params.slice_bytes, spectra)


MULTIPASS_STFT = StftMultipassFamily()


def _is_direct(spec: StftSpec) -> bool:
    return spec.n_bands == 0 and spec.averaging == "none"


def _spectra_spec(spec: StftSpec) -> StftSpec:
    """Return what computes the spectra of which others make a spec's rows."""
    return replace(
        spec, output="complex", weighted=False, n_bands=0, averaging="none", decibels=False
    )


def _transform_spec(spec: StftSpec) -> TransformSpec:
    return TransformSpec(spec.nfft, "c2c" if spec.iq else "r2c")
