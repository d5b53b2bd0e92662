"""Random data on a device, on which stages are checked and timed, one after the other."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from spectrod.fft import reference
from spectrod.fft.stage import Lines, Params, Precision, Stage, TransformFamily, TransformSpec
from spectrod.fft.timing import span_seconds
from spectrod.opencl.context import Context, event_seconds

# Enough values for a mean error, few enough for a reference in long double.
_CHECKED_VALUES = 1 << 15
_CHECKED_LINES_MIN = 3


class Arena:
    """One buffer of random values to read and one to write, for every transform of a precision.

    One thread at a time.

    Parameters
    ----------
    context : Context
        The device, with profiling.
    precision : {"single", "double"}
        Of all transforms.
    points : int
        Values that a batch of transforms reads, or one transform if it is longer.
    n_max : int
        Length of the longest transform.

    Raises
    ------
    DeviceError
        If the device has no memory for that.
    """

    def __init__(self, context: Context, precision: Precision, points: int, n_max: int) -> None:
        self.context = context
        self._points = max(points, n_max)
        dtype = np.dtype(np.float32 if precision == "single" else np.float64)
        # First, as a device's limit is an error that says so; the host's is none, or a lack.
        self._out = context.allocate(2 * self._points * dtype.itemsize)
        self._values = _random_values(2 * self._points, dtype)
        self._source = context.table(self._values)
        self._scratch: Any = None
        self._scratch_bytes = 0

    def batch(self, spec: TransformSpec) -> int:
        """Count of lines that fill the buffers."""
        return self._points // spec.n

    def n_bytes(self, spec: TransformSpec) -> int:
        """Bytes that a batch reads and writes once."""
        line = spec.n_in * spec.in_value_bytes + spec.n_out * spec.out_value_bytes
        return self.batch(spec) * line

    def lines(self, spec: TransformSpec, count: int) -> Any:
        """First lines that are read, (count, n_in), on the host."""
        values = self._values.view(reference.in_dtype(spec))
        return values[: count * spec.n_in].reshape(count, spec.n_in)

    def build(self, family: TransformFamily, spec: TransformSpec, params: Params) -> Stage:
        """Compile a family's stage."""
        return family.build(self.context, spec, params)

    def twins(self, spec: TransformSpec) -> tuple[TransformSpec, ...]:
        """Return what shares a tuner's result: the other direction of a complex transform."""
        return (replace(spec, inverse=not spec.inverse),) if spec.kind == "c2c" else ()

    def error_limit(self, spec: TransformSpec) -> float:
        """Largest relative L2 error that a right result may have [1]."""
        return reference.error_limit(spec)

    def error(self, stage: Stage) -> float:
        """Relative L2 error of the first lines, an odd number of them; NaN where none is written.

        Raises
        ------
        DeviceError
            If the device cannot run the stage.
        """
        spec = stage.spec
        count = min(self.batch(spec), max(_CHECKED_LINES_MIN, _CHECKED_VALUES // spec.n | 1))
        expected = reference.transform(spec, self.lines(spec, count))
        return reference.relative_l2(self.result(stage, count), expected)

    def result(self, stage: Stage, count: int) -> Any:
        """Transform the first lines and fetch them, (count, n_out); NaN where none is written."""
        spec = stage.spec
        found = np.full((count, spec.n_out), np.nan, reference.out_dtype(spec))
        self.context.upload(self._out, found)
        self._launch(stage, count)
        self.context.download(found, self._out)
        return found

    def launch(self, stage: Stage) -> list[Any]:
        """Queue the transform of the whole batch; return its events."""
        return self._launch(stage, self.batch(stage.spec))

    def device_seconds(self, stage: Stage) -> float:
        """Time from the start of the first kernel to the end of the last [s]."""
        return span_seconds(self.launch(stage))

    def wall_seconds(self, stage: Stage) -> float:
        """Time from the call to the end of the last kernel [s]."""
        start = time.perf_counter()
        self.launch(stage)
        self.context.finish()
        return time.perf_counter() - start

    @property
    def copy_bytes(self) -> int:
        """Bytes that ``copy_seconds`` reads and writes: those of a batch of complex transforms."""
        return 2 * int(self._values.nbytes)

    def copy_seconds(self) -> float:
        """Time of a copy on the device, to compare with [s]."""
        return event_seconds(self.context.copy(self._out, self._source))

    def _launch(self, stage: Stage, count: int) -> list[Any]:
        spec = stage.spec
        out, source = Lines(self._out, spec.n_out), Lines(self._source, spec.n_in)
        return stage.launch(out, source, count, 1, 1.0, self._scratch_for(stage, count))

    def _scratch_for(self, stage: Stage, count: int) -> Any:
        needed = stage.scratch_bytes(count, 1)
        if needed > self._scratch_bytes:
            self._scratch, self._scratch_bytes = self.context.allocate(needed), needed
        return self._scratch


def _random_values(count: int, dtype: Any) -> Any:
    """Uniform in [-1, 1): what is hardest on a GPU's power, unlike zeros; seeded."""
    values = np.random.default_rng(0).random(count, dtype)
    values *= 2
    values -= 1
    return values
