"""A whole signal's spectrogram in one call."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spectrod.analysis.engine import open_engine
from spectrod.analysis.samples import as_samples
from spectrod.analysis.stft import FrameStream
from spectrod.errors import InputError
from spectrod.types import Block, SpectrumSpec
from spectrod.units import Float32Array, Float64Array, Scaling


@dataclass(frozen=True, slots=True, eq=False)
class Spectrogram:
    """Spectra over time.

    Attributes
    ----------
    f : (bins,) float64
        Centre of each bin [Hz].
    t : (frames,) float64
        Centre of each frame [s].
    values : (bins, frames) or (channels, bins, frames) float32
        As the input was (n,) or (channels, n), in ``unit``.
    unit : str
        ``FS^2/Hz``, ``FS^2`` or ``dBFS``.
    spec : SpectrumSpec
        What the values mean.
    engine : str
        What computed them.
    """

    f: Float64Array
    t: Float64Array
    values: Float32Array
    unit: str
    spec: SpectrumSpec
    engine: str


def spectrogram(  # noqa: PLR0913 - the analysis has these settings
    x: ArrayLike,
    fs: float,
    *,
    window: str = "hann",
    win_length: int = 4096,
    hop: int | None = None,
    nfft: int = 0,
    scaling: Scaling = "density",
    engine: Literal["auto", "opencl", "numpy"] = "auto",
    device: str = "",
) -> Spectrogram:
    """Compute the spectrogram of a signal.

    Frames lie wholly within the signal: the first starts at its first sample, and samples behind
    the last whole frame are left out.

    Parameters
    ----------
    x : (n,) or (channels, n) array-like
        Floats in [-1, 1] or integer PCM, n >= win_length [FS].
    fs : float
        Sample rate [Hz].
    window : str
        Name, see ``spectrod.windows``.
    win_length : int
        Samples under the window.
    hop : int, optional
        Samples from one frame to the next; a quarter of win_length if not given.
    nfft : int
        Transform length, see ``SpectrumSpec``.
    scaling : {"density", "spectrum", "dbfs"}
        One-sided PSD [FS^2/Hz], mean square of a sine at its bin [FS^2], or its level [dBFS].
    engine : {"auto", "opencl", "numpy"}
        What computes.
    device : str
        OpenCL device, by part of its name or by number.

    Returns
    -------
    spectrogram : Spectrogram

    Raises
    ------
    ConfigError, InputError, DeviceError
        If a setting breaks a rule, the signal is unusable, the device is not there.

    References
    ----------
    .. [1] G. Heinzel et al., "Spectrum and spectral density estimation by the DFT", 2002.
    """
    samples = as_samples(x)
    channels, n_samples = samples.shape
    first_hop = 1 if hop is None else hop
    spec = SpectrumSpec(fs, channels, window, win_length, first_hop, nfft, scaling)
    if hop is None:
        spec = replace(spec, hop=max(1, spec.win_length // 4))
    if n_samples < spec.win_length:
        raise InputError(
            f"{n_samples} samples: fewer than one window, win_length={spec.win_length}"
        )
    computing = open_engine(engine, device)
    try:
        batches = FrameStream(spec, computing).push(Block(samples, 0, 0, 0))
    finally:
        computing.close()
    values = np.concatenate([batch.values for batch in batches]).transpose(1, 2, 0)
    starts = np.concatenate([batch.sample_index for batch in batches])
    return Spectrogram(
        spec.frequencies,
        (starts + spec.win_length / 2) / spec.fs,
        values[0] if np.ndim(x) == 1 else values,
        spec.unit,
        spec,
        computing.name,
    )
