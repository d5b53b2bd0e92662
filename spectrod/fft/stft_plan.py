"""The plan for power spectra of overlapping frames on an OpenCL device."""

from typing import Any

import numpy as np

from spectrod.fft.stft_frames import check_frames, frames_span
from spectrod.fft.stft_params import StftParams, choose_params
from spectrod.fft.twiddles import padded_window, stft_twiddles
from spectrod.opencl.context import Context
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

_N_FRAMES_ARGUMENT = 6


class StftPowerPlan:
    """Upload samples, run the fused kernel, read the power back.

    Everything on the device is allocated here, for ``max_frames`` frames; nothing later. Implements
    ``spectrod.analysis.engine.PowerPlan``. One thread at a time; others may make plans meanwhile.

    Parameters
    ----------
    context : Context
        The device.
    spec : SpectrumSpec
        What to compute.
    max_frames : int
        Most frames in one call, >= 1.
    params : StftParams, optional
        Shape of the kernel; by default the choice for the device.

    Raises
    ------
    DeviceError
        If the device is too small, saying which limit, or how much memory it lacks.
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(
        self,
        context: Context,
        spec: SpectrumSpec,
        max_frames: int,
        params: StftParams | None = None,
    ) -> None:
        self.spec = spec
        self.max_frames = max_frames
        self.params = params or choose_params(spec.nfft, spec.win_length, context.device)
        self.params.check(context.device)
        self._context = context
        self._row_length = frames_span(spec, max_frames)
        self._samples = context.allocate(4 * spec.channels * self._row_length)
        self._power = context.allocate(4 * max_frames * spec.channels * spec.n_bins)
        self._kernel = self._prepare_kernel()

    def execute(self, samples: Float32Array, n_frames: int) -> Float32Array:
        """Compute the one-sided power of overlapping frames, as ``PowerPlan.execute`` says.

        Raises
        ------
        InternalError
            If the samples do not fit the plan.
        DeviceError
            If the device fails.
        """
        self.upload(samples, n_frames)
        self.launch(n_frames)
        return self.download(n_frames)

    def upload(self, samples: Float32Array, n_frames: int) -> None:
        """Transfer the frames' samples; done when this returns."""
        span = check_frames(self.spec, samples, n_frames, self.max_frames)
        self._context.upload_columns(self._samples, samples, span, self._row_length)

    def launch(self, n_frames: int) -> Any:
        """Queue the kernel for the first frames of what was uploaded; return its event."""
        params = self.params
        groups = -(-n_frames // params.group_frames)
        self._kernel.set_arg(_N_FRAMES_ARGUMENT, np.uint32(n_frames))
        return self._context.launch(
            self._kernel,
            (params.items * groups, params.group_frames, self.spec.channels),
            (params.items, params.group_frames, 1),
        )

    def download(self, n_frames: int) -> Float32Array:
        """Wait for the kernel and return its power, (n_frames, channels, n_bins) float32."""
        power = np.empty((n_frames, self.spec.channels, self.spec.n_bins), np.float32)
        self._context.download(power, self._power)
        return power

    def _prepare_kernel(self) -> Any:
        """Kernel with every argument set but the number of frames."""
        spec, context = self.spec, self._context
        kernel = context.kernel("stft_power.cl", "stft_power", self.params.defines())
        arguments = {
            0: self._power,
            1: self._samples,
            2: context.table(padded_window(spec.taper.samples, spec.nfft)),
            3: context.table(stft_twiddles(self.params.radices)),
            4: np.uint64(self._row_length),
            5: np.uint32(spec.hop),
            7: np.float32(spec.power_scale / 4.0),
        }
        for index, argument in arguments.items():
            kernel.set_arg(index, argument)
        # The kernel refers to its buffers, but does not keep them alive.
        self._tables = arguments[2], arguments[3]
        return kernel
