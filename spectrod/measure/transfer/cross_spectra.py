"""Cross spectrum, coherence and transfer function of two channels by Welch's method."""

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.spectrum import SpectrumSpec, taper_for
from spectrod.dsp.windows import WindowLike
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.frame_spectra import FrameTransform
from spectrod.measure.transfer.alignment import Alignment
from spectrod.measure.transfer.channel_pairs import as_pair
from spectrod.measure.transfer.cross_sums import CrossSums
from spectrod.measure.transfer.transfer_function import TransferFunction


class TransferMeter:
    """Averages the cross spectrum of two channels of a stream.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    window, win_length
        As for ``spectrod.spectrogram``.
    hop : int, optional
        Samples from one frame to the next; by default half of win_length.
    nfft : int
        Transform length, see ``SpectrumSpec``.
    delay_samples : int
        Delay of the response that is removed first, within +-``DELAY_MAX_SAMPLES``; negative if it
        is early. A delay of a noticeable part of the window lowers the coherence.

    Attributes
    ----------
    spec : SpectrumSpec
        Definition of the frames.

    Raises
    ------
    ConfigError
        If a parameter breaks a rule.
    """

    def __init__(
        self,
        fs: float,
        *,
        window: WindowLike = "hann",
        win_length: int | None = None,
        hop: int | None = None,
        nfft: int = 0,
        delay_samples: int = 0,
    ) -> None:
        taper = taper_for(window, win_length)
        n = len(taper.samples)
        self.spec = SpectrumSpec(
            fs,
            2,
            taper.name,
            n,
            max(1, n // 2) if hop is None else hop,
            nfft,
            output="complex",
            taper=taper,
        )
        self._alignment = Alignment(delay_samples)
        self._frames = FrameTransform(self.spec)
        self._sums = CrossSums(self.spec)

    @property
    def n_frames(self) -> int:
        """Frames so far."""
        return self._sums.n_frames

    def restart(self) -> None:
        """Continue after a gap: no frame spans it, and the averages remain."""
        self._alignment.restart()
        self._frames.restart()

    @naming_arrays
    def push(self, reference: ArrayLike, response: ArrayLike) -> None:
        """Add samples of both channels.

        Parameters
        ----------
        reference, response : (n,) array-like
            Samples that follow those pushed before [FS].

        Raises
        ------
        InputError
            If the shapes differ, the samples are integers, or a sample is not finite.
        """
        aligned = self._alignment.push(np.stack(as_pair(reference, response)))
        for spectra in self._frames.push(aligned):
            self._sums.add(spectra)

    def result(self) -> TransferFunction:
        """Return the averages so far; raises InputError with fewer than two frames."""
        return self._sums.result()


@naming_arrays
def measure_transfer(  # noqa: PLR0913 - the measurement has these settings
    reference: ArrayLike,
    response: ArrayLike,
    fs: float,
    *,
    window: WindowLike = "hann",
    win_length: int | None = None,
    hop: int | None = None,
    nfft: int = 0,
    delay_samples: int = 0,
) -> TransferFunction:
    """Measure the transfer function from one channel to another; see ``TransferMeter``.

    Parameters
    ----------
    reference, response : (n,) array-like
        Input and output of the system [FS].
    fs : float
        Sample rate [Hz].
    window, win_length, hop, nfft, delay_samples
        See ``TransferMeter``.

    Returns
    -------
    transfer : TransferFunction

    Raises
    ------
    ConfigError, InputError
        If a parameter breaks a rule, or there are fewer than two frames.
    """
    meter = TransferMeter(
        fs,
        window=window,
        win_length=win_length,
        hop=hop,
        nfft=nfft,
        delay_samples=delay_samples,
    )
    meter.push(reference, response)
    return meter.result()
