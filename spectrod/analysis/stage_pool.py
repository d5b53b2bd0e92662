"""Compiled stages that stay on the device between plans."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from spectrod.analysis.stft.stft_select import make_stft_stage
from spectrod.analysis.stft.stft_stage import StftSpec, StftStage
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.fft import wisdom
from spectrod.opencl.context import Context

_IDLE_MAX = 4
"""Maximum number of unused stages: each holds a window and twiddles on the device."""


@dataclass(frozen=True, slots=True, eq=False)
class PooledStage:
    """A stage, and what it was built for.

    Attributes
    ----------
    key : tuple
        Spectrum and layout of the samples.
    shape : StftSpec
        Description of the kernel's work.
    tuned : object
        The tuner's result that was used; None without one.
    stage : StftStage
        The stage.
    """

    key: tuple[Any, ...]
    shape: StftSpec
    tuned: Any
    stage: StftStage


class StagePool:
    """Pool of the stages of one device.

    Loading a program and its tables takes milliseconds, longer than the spectra of a short signal.
    A plan takes a stage for itself and returns it at its end, in any thread.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        # Appending and removing are atomic: a plan that is collected in the middle needs no lock.
        self._idle: deque[PooledStage] = deque(maxlen=_IDLE_MAX)

    def take(self, spec: SpectrumSpec, layout: SampleLayout) -> PooledStage:
        """Return an unused stage, or build one.

        Raises
        ------
        DeviceError
            If the device has too little memory.
        KernelBuildError
            If a kernel does not compile.
        """
        key = spec, layout.sample_format, layout.interleaved
        for pooled in list(self._idle):
            if pooled.key == key and pooled.tuned == self._tuned(pooled.shape):
                try:
                    self._idle.remove(pooled)
                except ValueError:  # another thread was faster
                    continue
                return pooled
        shape, tables = kernel_spec(spec, layout.sample_format, interleaved=layout.interleaved)
        stage = make_stft_stage(self._context, shape, tables)
        return PooledStage(key, shape, self._tuned(shape), stage)

    def put(self, pooled: PooledStage) -> None:
        """Take a stage back; the one that has been unused for longest may be dropped."""
        self._idle.append(pooled)

    def clear(self) -> None:
        """Drop all unused stages."""
        self._idle.clear()

    def _tuned(self, shape: StftSpec) -> Any:
        return wisdom.lookup(self._context.device, shape)
