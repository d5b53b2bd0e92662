"""How samples lie in memory, from a source up to the kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError
from spectrod.types import SampleFormat

SAMPLE_BYTES: dict[SampleFormat, int] = {"int16": 2, "int24": 3, "int32": 4, "float32": 4}

_DTYPES: dict[SampleFormat, str] = {
    "int16": "<i2",
    "int24": "u1",
    "int32": "<i4",
    "float32": "<f4",
}


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """How samples lie in memory.

    Attributes
    ----------
    sample_format : {"int16", "int24", "int32", "float32"}
        Of each sample.
    channels : int
        Of the source.
    interleaved : bool
        Whether the samples of all channels at one time are neighbours; if not, those of a channel.

    Raises
    ------
    ConfigError
        If the format is not known.
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
        """Of the arrays; int24 is an array of bytes, three for each sample."""
        return np.dtype(_DTYPES[self.sample_format])

    @property
    def step_bytes(self) -> int:
        """Bytes of the samples of all channels at one time."""
        return SAMPLE_BYTES[self.sample_format] * self.channels

    def pitch(self, capacity: int) -> int:
        """As ``spectrod.stft.stage.Samples`` has it, where a channel has room for so many."""
        return self.channels if self.interleaved else capacity

    def arranged(self, memory: NDArray[Any], capacity: int) -> NDArray[Any]:
        """View flat memory as (channels, capacity) samples, or (channels, capacity, 3) bytes."""
        values = memory[: self.step_bytes * capacity].view(self.dtype)
        ends = (3,) if self.sample_format == "int24" else ()
        if self.interleaved:
            return values.reshape(capacity, self.channels, *ends).swapaxes(0, 1)
        return values.reshape(self.channels, capacity, *ends)
