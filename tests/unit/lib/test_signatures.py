"""Signatures as help() shows them."""

import inspect

import pytest
from numpy.typing import ArrayLike

from spectrod import Stft, spectrogram
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.features.indices import (
    acoustic_complexity,
    acoustic_diversity,
    soundscape_index,
)
from spectrod.measure.features.kurtosis import spectral_kurtosis
from spectrod.measure.features.shape import spectral_shape
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.levels import LevelMeter, OctaveMeter
from spectrod.measure.tones.channel_power import (
    adjacent_channel_ratio,
    channel_power,
    occupied_bandwidth,
)
from spectrod.measure.tones.distortion import measure_distortion
from spectrod.measure.tones.intermodulation import measure_intermodulation
from spectrod.measure.tones.peaks import find_peaks
from spectrod.measure.tones.tone_tracker import PeakTracker
from spectrod.measure.transfer.cross_spectra import TransferMeter, measure_transfer
from spectrod.measure.transfer.delay import measure_delay
from spectrod.measure.transfer.sweep import Sweep
from spectrod.measure.transfer.sweep_response import measure_sweep
from spectrod.measure.transfer.transfer_meter import TransferIntervalMeter


def test_array_like_has_its_name():
    """ArrayLike is named alone and in unions, whose other members stay; what is called stays."""

    @naming_arrays
    def function(
        x: ArrayLike,
        y: tuple[int, float] | ArrayLike | dict[str, int] | None = None,
        *,
        z: int | str = 1,
    ) -> int:
        return x

    assert str(inspect.signature(function)) == (
        "(x: ArrayLike, y: tuple[int, float] | ArrayLike | dict[str, int] | None = None, *, "
        "z: int | str = 1) -> int"
    )
    assert function(3) == 3


@pytest.mark.parametrize(
    "function",
    [
        *(spectrogram, Stft, Stft.push, LevelMeter.push, FrameMeter.push),
        *(TransferIntervalMeter.push, OctaveMeter.push, TransferMeter.push, PeakTracker.push),
        *(measure_transfer, measure_delay, measure_sweep, Sweep.begin_in, Sweep.impulse_responses),
        *(find_peaks, measure_distortion, measure_intermodulation, channel_power),
        *(occupied_bandwidth, adjacent_channel_ratio),
        *(acoustic_complexity, acoustic_diversity, soundscape_index, spectral_shape),
        spectral_kurtosis,
    ],
)
def test_public_signatures_name_arrays(function):
    """No private type of NumPy is in the signatures of what users call."""
    shown = str(inspect.signature(function))
    assert "ArrayLike" in shown
    assert "_array_like" not in shown
