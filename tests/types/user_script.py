"""A user's program, whose types ``make types`` checks."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import spectrod

single: NDArray[np.float32] = np.zeros(4096, np.float32)
double: NDArray[np.float64] = np.zeros((64, 64))

assert_type(spectrod.fft.rfft(single), NDArray[np.complex64])
assert_type(spectrod.fft.fft(double, axis=0), NDArray[np.complex128])
assert_type(spectrod.fft.ifft([1.0, 2.0], 4, norm="ortho"), NDArray[np.complex128])
assert_type(spectrod.fft.ihfft(single), NDArray[np.complex64])
assert_type(spectrod.fft.irfft(spectrod.fft.rfft(single), len(single)), NDArray[np.float32])
assert_type(spectrod.fft.hfft(double), NDArray[np.float64])
assert_type(spectrod.fft.rfft2(double), NDArray[np.complex128])
assert_type(spectrod.fft.irfft2(spectrod.fft.rfft2(double)), NDArray[np.float64])
assert_type(spectrod.fft.next_fast_len(1000), int)

spectra = spectrod.spectrogram(single, 48000.0)
assert_type(spectra, spectrod.Spectrogram)
assert_type(np.asarray(spectra), NDArray[Any])
with spectrod.Stft(48000.0) as stft:
    for batch in stft.push(single):
        assert_type(batch.values, NDArray[Any])
