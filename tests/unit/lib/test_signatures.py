"""Signatures as help() shows them."""

import inspect

import pytest
from numpy.typing import ArrayLike

from spectrod import Stft, spectrogram
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.levels import LevelMeter
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
    [spectrogram, Stft, Stft.push, LevelMeter.push, FrameMeter.push, TransferIntervalMeter.push],
)
def test_public_signatures_name_arrays(function):
    """No private type of NumPy is in the signatures of what users call."""
    shown = str(inspect.signature(function))
    assert "ArrayLike" in shown
    assert "_array_like" not in shown
