"""A whole signal's spectrogram in one call."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spectrod.analysis.samples import as_samples, require_finite
from spectrod.analysis.stft import Stft
from spectrod.errors import InputError
from spectrod.types import SpectrumSpec
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
    require_finite(samples)
    channels, n_samples = samples.shape
    if n_samples < win_length:
        raise InputError(f"{n_samples} samples: fewer than one window, win_length={win_length}")
    stft = Stft(
        fs,
        channels=channels,
        window=window,
        win_length=win_length,
        hop=max(1, win_length // 4) if hop is None else hop,
        nfft=nfft,
        scaling=scaling,
        engine=engine,
        device=device,
    )
    with stft:
        batches = stft.push(samples)
    values = np.concatenate([batch.values for batch in batches]).transpose(1, 2, 0)
    starts = np.concatenate([batch.sample_index for batch in batches])
    return Spectrogram(
        stft.spec.frequencies,
        (starts + win_length / 2) / fs,
        values[0] if np.ndim(x) == 1 else values,
        stft.spec.unit,
        stft.spec,
        stft.engine.name,
    )
