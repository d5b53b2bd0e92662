"""Lines along a middle axis, for stages that want the values of a line side by side."""

from typing import Any

from spectrod.fft.linekernels import aligned, rest_of
from spectrod.fft.stage import Lines, Stage
from spectrod.fft.transpose import DeviceTranspose
from spectrod.opencl.context import Context


class TransposedStage:
    """A stage between two transposes, through scratch; implements ``Stage`` with any inner."""

    strided = True

    def __init__(self, context: Context, stage: Stage) -> None:
        self.spec = stage.spec
        self._context = context
        self._stage = stage
        self._gather = DeviceTranspose(context, self.spec.in_value_bytes)
        self._scatter = DeviceTranspose(context, self.spec.out_value_bytes)

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """Space for the lines, before and after, and what the stage itself needs."""
        stage = self._stage.scratch_bytes(outer * inner, 1)
        return sum(map(aligned, self._part_bytes(outer, inner))) + stage

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any = None,
    ) -> list[Any]:
        """Queue the transposes and the transform between them, as ``Stage.launch`` says."""
        context, spec = self._context, self.spec
        in_bytes, out_bytes = self._part_bytes(outer, inner)
        before = Lines(context.region(scratch, 0, in_bytes), spec.n_in * inner)
        start = aligned(in_bytes)
        after = Lines(context.region(scratch, start, out_bytes), spec.n_out * inner)
        rest = rest_of(context, scratch, start + aligned(out_bytes))
        rows_in, rows_out = Lines(before.buffer, spec.n_in), Lines(after.buffer, spec.n_out)
        return [
            self._gather.launch(before, source, outer, spec.n_in, inner),
            *self._stage.launch(rows_out, rows_in, outer * inner, 1, scale, rest),
            self._scatter.launch(out, after, outer, inner, spec.n_out),
        ]

    def _part_bytes(self, outer: int, inner: int) -> tuple[int, int]:
        spec, lines = self.spec, outer * inner
        return lines * spec.n_in * spec.in_value_bytes, lines * spec.n_out * spec.out_value_bytes
