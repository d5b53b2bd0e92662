"""Conversion of the power of columns and bins to levels and palette entries of pixels."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from spectrod.analysis.engine import Engine, fallback_for
from spectrod.dsp.units import FLOOR_DBFS, Float32Array, Int64Array
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.peak_entries import PeakLevels, entries_per_db, level_entries
from spectrod.formats.picture.theme import GAP, HATCH_PERIOD, HATCH_WIDTH, N_LEVELS, hatching
from spectrod.lib.errors import DeviceError

if TYPE_CHECKING:  # NumPy paints without OpenCL
    from spectrod.opencl.context import Context

_STEPS_MAX = 8
"""Longest spans that are combined step by step, all of them at once."""

Transpose = Callable[[Float32Array], Float32Array]


def host_transpose(matrix: Float32Array) -> Float32Array:
    """Transpose a matrix on the CPU, for few pixels or where no device is open."""
    return np.ascontiguousarray(matrix.T)


class Painter(Protocol):
    """Computes pixels; one thread at a time."""

    @property
    def host(self) -> "NumpyPainter | None":
        """The painter on the CPU, if this one does not use a device."""

    def levels(
        self, power: Float32Array, spans: Int64Array, full_scale: float, offset_db: float
    ) -> Float32Array:
        """Return the largest power among each row's bins, as a level.

        With the largest, not the mean, a tone keeps its level for any number of bins per row.

        Parameters
        ----------
        power : (columns, bins) float32
            Linear power, C-contiguous, >= 0 or NaN; a NaN makes its row and column NaN.
        spans : (2, rows) int64
            First bin of each row, and the one after its last; not empty, within the bins.
        full_scale : float
            Power that is 0 dB; a power of two.
        offset_db : float
            Offset added to the levels [dB].

        Returns
        -------
        levels : (rows, columns) float32
            ``10 log10(power / full_scale)``, at least ``FLOOR_DBFS``, plus the offset [dB].
        """

    def entries(self, levels: Float32Array, lo: float, hi: float) -> Uint8Array:
        """Return palette entries, (rows, columns) uint8, of levels; gaps are hatched.

        Levels up to lo have entry 0, levels from hi on the last entry of levels.
        """


class NumpyPainter:
    """Implements ``Painter`` on the CPU.

    Parameters
    ----------
    transpose : callable
        Returns the transpose of a C-contiguous (rows, columns) float32 matrix.
    """

    def __init__(self, transpose: Transpose) -> None:
        self._transpose = transpose

    @property
    def host(self) -> "NumpyPainter":
        """The painter itself."""
        return self

    def peaks(self, power: Float32Array, spans: Int64Array, full_scale: float) -> Float32Array:
        """Return the largest power among each row's bins, for ``PeakLevels``; see ``levels``."""
        rows = _largest(self._transpose(power), spans)
        rows *= np.float32(0.5 / full_scale)
        return rows

    def levels(
        self, power: Float32Array, spans: Int64Array, full_scale: float, offset_db: float
    ) -> Float32Array:
        """Return the largest power among each row's bins, as a level."""
        return PeakLevels(offset_db)(self.peaks(power, spans, full_scale))

    def entries(self, levels: Float32Array, lo: float, hi: float) -> Uint8Array:
        """Return palette entries of levels."""
        return hatched(level_entries(levels, lo, hi), levels)


def hatched(entries: Uint8Array, values: Float32Array) -> Uint8Array:
    """Hatch the entries where values are NaN, in place."""
    is_gap = np.isnan(values)
    if is_gap.any():
        entries[is_gap] = np.where(hatching(values.shape), GAP, N_LEVELS)[is_gap]
    return entries


class OpenCLPainter:
    """Implements ``Painter`` on a device; kernels do the transpose, maxima, levels and colours.

    Parameters
    ----------
    context : Context
        Context of the device.

    Raises
    ------
    DeviceError
        If the kernels cannot be compiled; from its methods, if the device fails.
    """

    def __init__(self, context: "Context") -> None:
        # Imported here, because a machine without OpenCL imports this module too.
        from spectrod.fft.stage import Lines  # noqa: PLC0415
        from spectrod.fft.transpose import DeviceTranspose  # noqa: PLC0415
        from spectrod.opencl.workspace import Workspace  # noqa: PLC0415

        self._context, self._lines = context, Lines
        # Pictures come in pieces of similar size: new buffers would take as long as painting.
        self._buffers = Workspace(context.allocate)
        defines = (
            ("N_LEVELS", N_LEVELS),
            ("GAP", GAP),
            ("HATCH_PERIOD", HATCH_PERIOD),
            ("HATCH_WIDTH", HATCH_WIDTH),
        )
        self._turn = DeviceTranspose(context, value_bytes=4)
        self._to_levels = context.kernel("picture.cl", "pixel_levels", defines)
        self._to_entries = context.kernel("picture.cl", "pixel_entries", defines)

    @property
    def host(self) -> None:
        """None: a device paints."""

    def levels(
        self, power: Float32Array, spans: Int64Array, full_scale: float, offset_db: float
    ) -> Float32Array:
        """Return the largest power among each row's bins, as a level."""
        columns, bins = power.shape
        context, buffers = self._context, self._buffers
        levels = np.empty((spans.shape[1], columns), np.float32)
        given, turned = (buffers.get(name, power.nbytes) for name in ("power", "turned"))
        table = spans.astype(np.uint64)
        places, out = buffers.get("spans", table.nbytes), buffers.get("levels", levels.nbytes)
        context.upload(given, power)
        context.upload(places, table)
        self._turn.launch(self._lines(turned, 0), self._lines(given, 0), 1, columns, bins)
        self._to_levels.set_args(
            out,
            turned,
            places,
            *map(np.uint64, (columns, len(levels))),
            *(np.float32(1.0 / full_scale), np.float32(FLOOR_DBFS), np.float32(offset_db)),
        )
        context.launch(self._to_levels, *_sizes(columns, len(levels)))
        context.download(levels, out)
        return levels

    def entries(self, levels: Float32Array, lo: float, hi: float) -> Uint8Array:
        """Return palette entries of levels."""
        (n_rows, columns), context = levels.shape, self._context
        entries = np.empty(levels.shape, np.uint8)
        given = self._buffers.get("levels", levels.nbytes)
        out = self._buffers.get("entries", entries.nbytes)
        context.upload(given, np.ascontiguousarray(levels))
        self._to_entries.set_args(
            out,
            given,
            *(np.uint64(columns), np.uint64(n_rows)),
            *(np.float32(lo), entries_per_db(lo, hi)),
        )
        context.launch(self._to_entries, *_sizes(columns, n_rows))
        context.download(entries, out)
        return entries


class EnginePainter:
    """Implements ``Painter`` with an engine, and with its fallback after a failure.

    The device's kernels are compiled when the first picture needs them.

    Parameters
    ----------
    engine : Engine
        Engine that paints; the caller keeps its ownership.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._painter: Painter | None = None

    @property
    def host(self) -> NumpyPainter | None:
        """The painter on the CPU, if the engine has no device."""
        if getattr(self._engine, "context", None) is not None:
            return None
        own = self._own()
        return own if isinstance(own, NumpyPainter) else None

    def levels(
        self, power: Float32Array, spans: Int64Array, full_scale: float, offset_db: float
    ) -> Float32Array:
        """Return the largest power among each row's bins, as a level."""
        return cast("Float32Array", self._do("levels", power, spans, full_scale, offset_db))

    def entries(self, levels: Float32Array, lo: float, hi: float) -> Uint8Array:
        """Return palette entries of levels."""
        return cast("Uint8Array", self._do("entries", levels, lo, hi))

    def _do(self, what: str, *args: Any) -> Any:
        try:
            return getattr(self._own(), what)(*args)
        except DeviceError as error:
            self._engine, self._painter = fallback_for(self._engine, error), None
            return getattr(self._own(), what)(*args)

    def _own(self) -> Painter:
        if self._painter is None:
            context = getattr(self._engine, "context", None)
            self._painter = (
                NumpyPainter(self._engine.transpose) if context is None else OpenCLPainter(context)
            )
        return self._painter


def _largest(values: Float32Array, spans: Int64Array) -> Float32Array:
    """Return the largest value of each span of rows, shape (spans, columns)."""
    first, stop = spans
    n_most = int(np.max(stop - first))
    if n_most > _STEPS_MAX:
        return np.stack([values[begin:end].max(axis=0) for begin, end in spans.T])
    largest: Float32Array = values.take(first, axis=0)
    for step in range(1, n_most):
        # A shorter span has its last row again.
        rows = np.minimum(first + step, stop - 1)
        np.maximum(largest, values.take(rows, axis=0, mode="clip"), out=largest)
    return largest


def _sizes(columns: int, n_rows: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (-(-columns // 64) * 64, min(n_rows, 65535)), (64, 1)
