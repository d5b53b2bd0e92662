"""The reference engine: NumPy in float64, for tests and for machines without OpenCL."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.rows import RowCount
from spectrod.analysis.window import SampleWindow
from spectrod.sample_layout import SampleLayout
from spectrod.stft.reference import ReferenceStft
from spectrod.stft.tables import kernel_spec, row_places
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array


class NumpyEngine:
    """Implements ``spectrod.analysis.engine.Engine`` without any device."""

    name = "numpy"
    fallback = None
    batch_bytes = 1 << 20

    def window(self, layout: SampleLayout, capacity: int) -> SampleWindow:
        """Make an empty window."""
        return SampleWindow(layout, capacity)

    def window_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> SampleWindow:
        """Make a window of samples where they are."""
        return SampleWindow(layout, len(memory) // layout.step_bytes, memory, filled=True)

    def plan(self, spec: SpectrumSpec, window: SampleWindow, max_frames: int) -> "NumpyPlan":  # noqa: ARG002
        """Prepare for frames in a window; any number of them."""
        return NumpyPlan(spec, window)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a C-contiguous (rows, columns) float32 matrix into a new one."""
        return np.array(matrix.T, order="C")

    def keep_programs(self) -> None:
        """Do nothing: nothing is compiled."""

    def close(self) -> None:
        """Do nothing: there is no device."""


class NumpyPlan:
    """Frames in float64, rounded once at the end; computed when submitted.

    Implements ``spectrod.analysis.engine.FramePlan``.
    """

    def __init__(self, spec: SpectrumSpec, window: SampleWindow) -> None:
        layout = window.layout
        shape, tables = kernel_spec(spec, layout.sample_format, interleaved=layout.interleaved)
        self.count = RowCount(spec)
        self._hop, self._grid = spec.hop, spec.grid
        self._window = window
        self._reference = ReferenceStft(shape, tables)
        self._average = self._reference.average(spec.averaging_frames)

    def restart(self) -> None:
        """Begin averages anew."""
        self.count.restart()
        if self._average is not None:
            self._average.clear()

    def submit(
        self, place: int, n_frames: int, out: NDArray[Any] | None = None, *, phase: int = 0
    ) -> "Computed":
        """Compute frames, the first at a place of the window."""
        if self._average is not None:
            self._average.frames = self.count.frames
        self.count.take(n_frames)
        rows = self._reference.rows(
            self._window.data,
            place,
            self._hop,
            n_frames,
            self._average,
            row_places(self._grid, phase),
        )
        if out is None:
            return Computed(rows)
        out[...] = rows
        return Computed(out)


class Computed:
    """Rows that are there; implements ``spectrod.analysis.engine.Rows``."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._rows = rows

    def collect(self) -> NDArray[Any]:
        """Return them."""
        return self._rows
