"""Noise on a device, on which stages of spectra are checked and timed, one after the other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_select import StftFamily
from spectrod.analysis.stft.stft_stage import Samples, StftLaunch, StftSpec, StftStage, StftTables
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import NFFT_MAX, NFFT_MIN
from spectrod.fft.lengths import is_smooth
from spectrod.fft.radices import PRIME_MAX
from spectrod.fft.reference import relative_l2
from spectrod.fft.stage import Params
from spectrod.fft.timing import span_seconds
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context

# Enough values for a mean error, few enough for a reference in float64.
_CHECKED_SAMPLES = 1 << 16
_LIMIT = 3e-7
# Of lengths that take three transforms of at least twice the length.
_OTHER_LENGTHS_FACTOR = 2.0
_FS = 48_000.0


def tuned_spec(n: int, *, iq: bool) -> StftSpec:
    """Say what stands for all that is made of frames of n samples: their power.

    Raises
    ------
    ConfigError
        If no frame has that length.
    """
    if not NFFT_MIN <= n <= NFFT_MAX:
        raise ConfigError(f"n={n}: must be {NFFT_MIN} to {NFFT_MAX} for frames")
    return _kernel_spec(n, iq=iq)[0]


class StftArena:
    """One buffer of samples to read and one for rows, for frames of every length.

    One channel of float32 under a Hann window, hop half a frame; one thread at a time. It has the
    interface of ``spectrod.fft.arena.Arena`` that the tuner needs.

    Parameters
    ----------
    context : Context
        The device, with profiling.
    n_samples : int
        Real numbers to read; one frame's if it is longer.
    n_max : int
        Length of the longest frame.

    Raises
    ------
    DeviceError
        If the device has no memory for that.
    """

    def __init__(self, context: Context, n_samples: int, n_max: int) -> None:
        self.context = context
        n = max(n_samples, 2 * n_max)
        self._values = np.random.default_rng(0).standard_normal(n, np.float32)
        self._values *= np.float32(0.1)
        self._samples = context.table(self._values)
        self._out: Any = None
        self._scratch: Any = None

    def n_bytes(self, spec: StftSpec) -> int:
        """Bytes of the samples and the rows, each once."""
        return int(self._values.nbytes) + self._row_bytes(spec) * self._n_frames(spec)

    def build(self, family: StftFamily, spec: StftSpec, params: Params) -> StftStage:
        """Compile a family's stage with the window that is tuned with."""
        _, tables = _kernel_spec(spec.nfft, iq=spec.iq)
        return family.build(self.context, spec, tables, params)

    def twins(self, spec: StftSpec) -> tuple[StftSpec, ...]:  # noqa: ARG002 - of the interface
        """None: what else is made of frames is made of the same transform."""
        return ()

    def error(self, stage: StftStage) -> float:
        """Relative L2 error of the power of the first frames; NaN where none is written.

        Raises
        ------
        DeviceError
            If the device cannot run the stage.
        """
        spec = stage.spec
        count = min(self._n_frames(spec), max(3, 2 * _CHECKED_SAMPLES // spec.nfft))
        expected = ReferenceStft(*_kernel_spec(spec.nfft, iq=spec.iq)).rows(
            self._channels(spec), 0, _hop(spec), count
        )
        return relative_l2(self._result(stage, count), expected)

    def error_limit(self, spec: StftSpec) -> float:
        """Largest relative L2 error that right power of noise may have [1]."""
        return _LIMIT if is_smooth(spec.nfft, PRIME_MAX) else _LIMIT * _OTHER_LENGTHS_FACTOR

    def device_seconds(self, stage: StftStage) -> float:
        """Time from the start of the first kernel to the end of the last [s]."""
        return span_seconds(self._launch(stage, self._n_frames(stage.spec)))

    def _result(self, stage: StftStage, count: int) -> NDArray[Any]:
        """Compute the first rows and fetch them; NaN where none is written."""
        found = np.full((count, 1, stage.spec.n_values), np.nan, np.float32)
        self._out = self._at_least(self._out, found.nbytes)
        self.context.upload(self._out, found)
        self._launch(stage, count)
        self.context.download(found, self._out)
        return found

    def _launch(self, stage: StftStage, n_frames: int) -> list[Any]:
        spec = stage.spec
        self._out = self._at_least(self._out, n_frames * self._row_bytes(spec))
        n_scratch = stage.scratch_bytes(n_frames, 1)
        self._scratch = self._at_least(self._scratch, n_scratch)
        samples = Samples(self._samples, 2 if spec.iq else len(self._values))
        launch = StftLaunch(samples, _hop(spec), n_frames, 1)
        return stage.launch(self._out, launch, self._scratch if n_scratch else None)

    def _at_least(self, buffer: Any, n_bytes: int) -> Any:
        if n_bytes == 0 or (buffer is not None and buffer.size >= n_bytes):
            return buffer
        return self.context.allocate(n_bytes)

    def _channels(self, spec: StftSpec) -> NDArray[np.float32]:
        """Lay out the samples as the reference takes them, (parts, n)."""
        if not spec.iq:
            return self._values[None]
        return self._values[: len(self._values) // 2 * 2].reshape(-1, 2).T

    def _n_frames(self, spec: StftSpec) -> int:
        return (len(self._values) // spec.parts - spec.nfft) // _hop(spec) + 1

    def _row_bytes(self, spec: StftSpec) -> int:
        return spec.n_values * spec.value_bytes


def _hop(spec: StftSpec) -> int:
    return max(1, spec.nfft // 2)


def _kernel_spec(n: int, *, iq: bool) -> tuple[StftSpec, StftTables]:
    parts = 2 if iq else 1
    spec = SpectrumSpec(_FS, parts, "hann", win_length=n, hop=max(1, n // 2), nfft=n, iq=iq)
    return kernel_spec(spec, interleaved=iq)
