"""Memory layout of samples, from a source to the kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import SampleFormat
from spectrod.lib.errors import ConfigError

SAMPLE_BYTES: dict[SampleFormat, int] = {"int16": 2, "int24": 3, "int32": 4, "float32": 4}

_DTYPES: dict[SampleFormat, str] = {
    "int16": "<i2",
    "int24": "u1",
    "int32": "<i4",
    "float32": "<f4",
}


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Memory layout of samples.

    Attributes
    ----------
    sample_format : {"int16", "int24", "int32", "float32"}
        Format of each sample.
    channels : int
        Number of channels of the source.
    interleaved : bool
        True if the samples of all channels at one time are adjacent; False if planar.

    Raises
    ------
    ConfigError
        If the format is unknown.
    """

    sample_format: SampleFormat = "float32"
    channels: int = 1
    interleaved: bool = False

    def __post_init__(self) -> None:
        if self.sample_format not in SAMPLE_BYTES:
            raise ConfigError(
                f"sample_format={self.sample_format!r}: must be one of {', '.join(SAMPLE_BYTES)}"
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the arrays; int24 is an array of bytes, three per sample."""
        return np.dtype(_DTYPES[self.sample_format])

    @property
    def step_bytes(self) -> int:
        """Bytes of the samples of all channels at one time."""
        return SAMPLE_BYTES[self.sample_format] * self.channels

    def pitch(self, capacity: int) -> int:
        """Return the pitch of ``stft_stage.Samples`` for this capacity per channel."""
        return self.channels if self.interleaved else capacity

    def arranged(self, memory: NDArray[Any], capacity: int) -> NDArray[Any]:
        """View flat memory as (channels, capacity) samples, or (channels, capacity, 3) bytes."""
        values = memory[: self.step_bytes * capacity].view(self.dtype)
        ends = (3,) if self.sample_format == "int24" else ()
        if self.interleaved:
            return values.reshape(capacity, self.channels, *ends).swapaxes(0, 1)
        return values.reshape(self.channels, capacity, *ends)
